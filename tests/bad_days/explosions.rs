//! Texts that are small to write and large to read. Every command runs under a limit of its address
//! space, as in a container.

use std::time::{Duration, Instant};

use git_handoff::model::json::JsonPath;
use git_handoff::model::problem::{Code, Problem};
use git_handoff::model::problems::{MAX_PROBLEMS, Problems};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::Output;
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_line, verdict};

/// Generous, since the machine may be busy; what is quadratic takes minutes.
const QUICK: Duration = Duration::from_secs(240);

/// Runs the program with a GB of address space; it says what is wrong in few words and soon.
#[track_caller]
fn run(repo: &TestRepo, command: &str) -> Output {
    let started = Instant::now();
    let output = repo.env.shell("repo", &format!("ulimit -v 1000000; exec git-handoff {command}"));
    assert!(started.elapsed() < QUICK, "{command}: {:?}", started.elapsed());
    assert!(output.raw.len() + output.stderr.len() < 1 << 20, "{command}: {} bytes", output.raw.len());
    output
}

/// Returns a plan with these items, as text.
fn plan(items: &str) -> String {
    format!(r#"{{"id":"r","items":[{items}]}}"#)
}

#[test]
fn a_plan_of_many_small_values_is_refused_in_few_words() {
    let repo = TestRepo::new();
    repo.env.write("zeros", &plan(&("0,".repeat(9_000_000) + "0")));
    let output = run(&repo, "validate ../zeros").exit(1);
    assert!(output.stdout.starts_with("too-large: its values are too many"), "{output}");
    repo.env.write("objects", &plan(&(r#"{"":0},"#.repeat(400_000) + "0")));
    assert!(run(&repo, "submit ../objects").exit(1).stdout.starts_with("too-large: "));
    repo.env.write("empty", &plan(&("{},".repeat(1_000_000) + "{}")));
    let second_output = run(&repo, "validate ../empty").exit(1);
    assert!(second_output.stdout.starts_with("too-many-items at items (line 1): 1000001 items"), "{second_output}");
    repo.env.write("rules", &format!(r#"{{"id":"r","items":[],"rules":[{}{{}}]}}"#, "{},".repeat(1_000_000)));
    assert!(run(&repo, "validate ../rules").exit(1).stdout.starts_with("bad-rule at rules (line 1): 1000001 rules"));
}

#[test]
fn validate_lists_the_first_thousand_problems() {
    let repo = TestRepo::new();
    let items: Vec<String> = (0..200)
        .map(|at| {
            let unknown: Vec<String> = (0..200).map(|on| format!("\"itme-{at}-{on}\"")).collect();
            format!(
                r#"{{"id":"item-{at}","executor":"command","inputs":{{"command":["true"]}},"depends_on":[{}]}}"#,
                unknown.join(",")
            )
        })
        .collect();
    repo.env.write("plan", &plan(&items.join(",")));
    for command in ["validate ../plan", "submit ../plan"] {
        let output = run(&repo, command).exit(1);
        assert_eq!(output.stdout.lines().last(), Some("… and 39000 more problems"), "{command}");
        assert!(output.stderr.ends_with("40000 problems\n"), "{command}: {}", output.stderr);
    }
    let output = run(&repo, "validate --json ../plan").exit(1);
    let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&verdict["valid"], &verdict["more"]), (&json!(false), &json!(39_000)));
    assert_eq!(verdict["problems"].as_array().map(Vec::len), Some(1000));
    // Complete lists have no note.
    repo.env.write("plan", &plan("{}"));
    let second_verdict: Value = serde_json::from_str(&run(&repo, "validate --json ../plan").exit(1).stdout).unwrap();
    assert_eq!(second_verdict.get("more"), None);
}

#[test]
fn long_text_is_cut() {
    let repo = TestRepo::new();
    let long = "k".repeat(1 << 20);
    let keys: Vec<String> = (0..20).map(|at| format!("\"{long}{at}\":0")).collect();
    repo.env.write(
        "plan",
        &format!(r#"{{"id":"{long}","queue":"{long}","items":[{{"id":"a","executor":"{long}"}}],{}}}"#, keys.join(",")),
    );
    let output = run(&repo, "validate --json ../plan").exit(1);
    assert!(output.raw.len() < 200 << 10, "{}", output.raw.len());
}

#[test]
fn rules_on_many_documents_are_read_in_one_pass() {
    let repo = TestRepo::new();
    let documents = |letter: &str| (0..60_000).map(|at| format!("\"{letter}{at}\"")).collect::<Vec<_>>().join(",");
    let (present, absent) = (documents("p"), documents("a"));
    let create = r#"{"executor":"command","inputs":{"command":["true"]}}"#;
    let rule = format!(r#"{{"id":"p","when":{{"present":[{present}],"absent":[{absent}]}},"create":{create}}}"#);
    let item = r#"{"id":"a","executor":"command","inputs":{"command":["true"]}}"#;
    repo.env.write("plan", &format!(r#"{{"id":"r","items":[{item}],"rules":[{rule}]}}"#));
    let _ = run(&repo, "validate ../plan").exit(0);
}

#[test]
fn oversized_audit_bundle_is_rejected() {
    let repo = TestRepo::new();
    let many = "{},".repeat(10_000_000) + "{}";
    repo.env.write("list", &format!("[{many}]"));
    let output = run(&repo, "verify --bundle-json ../list").exit(1);
    insta::assert_snapshot!(output.stderr, @"
    error: ../list holds no audit bundle: wrong-type: expected an object, found an array
    hint: git handoff export RUN --format bundle-json
    ");
    repo.env.write("log", &format!(r#"{{"runId":"r","manifests":[{many}],"auditLog":{{"entries":[],"root":{{}}}}}}"#));
    insta::assert_snapshot!(run(&repo, "verify --bundle-json ../log").exit(1).stderr, @"
    error: ../log holds no audit bundle: missing-field at manifests[0].runId: the field `runId` is missing
    hint: git handoff export RUN --format bundle-json
    ");
}

#[test]
fn oversized_proof_is_rejected_in_bounded_time() {
    let repo = TestRepo::new();
    let (zeros, digest) = ("0,".repeat(8_000_000) + "0", format!("sha256:{:064}", 0));
    let proof = format!(
        r#"{{"schema":"git-handoff.proof/1","run":"r","entries":1,"root":"{digest}","first":{{"commit":"","path":[]}},
            "last":{{"commit":""}},"shown":[{{"entry":{{"":[{zeros}]}},"path":[]}}]}}"#
    );
    repo.env.write("proof", &proof);
    let stated = (512 << 10) + 16 * (proof.len() >> 10);
    let verify = format!("ulimit -v {stated}; exec git-handoff verify --proof ../proof");
    assert_eq!(verdict(&repo.env.shell("repo", &verify).exit(3).stdout), "✗ NOT PROVEN");
}

/// A schema that follows itself twice at each level, and a value of 121 bytes that would make it
/// do so sixty times.
fn exponential() -> (Value, String) {
    let below = json!({"type": "array", "items": {"$ref": "#"}});
    (json!({"anyOf": [below, below]}), format!("{}1{}", "[".repeat(60), "]".repeat(60)))
}

/// How a value of too many levels is refused.
const TOO_DEEP: &str = "it nests arrays and objects more than 32 deep, the most that is checked";

#[test]
fn a_document_of_too_many_levels_is_refused() {
    let repo = TestRepo::new();
    let (schema, value) = exponential();
    repo.env.write("repo/schema.json", &schema.to_string());
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.submit("r", &[item("a", "true")]);
    repo.env.write("value", &value);
    let before = repo.refs();
    let output = run(&repo, "doc put r n ../value --schema s@1").exit(1);
    assert!(output.stderr.contains(&format!("caused by: it is not s@1: {TOO_DEEP}\n")), "{output}");
    assert_eq!(repo.refs(), before);
    // The schema as such is valid, and it accepts or refuses small values.
    repo.env.write("value", "[[],[]]");
    let _ = run(&repo, "doc put r n ../value --schema s@1").exit(0);
    repo.env.write("value", "{}");
    insta::assert_snapshot!(run(&repo, "doc put r n ../value --schema s@1").exit(1).stderr, @r#"
    error: cannot put the document "n"
    caused by: it is not s@1: value is not valid under any of the schemas listed in the 'anyOf' keyword
    "#);
}

#[test]
fn as_many_levels_as_are_checked_are_accepted_and_one_more_is_not() {
    let repo = TestRepo::new();
    repo.env.write("repo/schema.json", "{}");
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.submit("r", &[item("a", "true")]);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    repo.env.write("value", &nested(32));
    let _ = run(&repo, "doc put r n ../value --schema s@1").exit(0);
    repo.env.write("value", &nested(33));
    assert!(run(&repo, "doc put r n ../value --schema s@1").exit(1).stderr.contains(TOO_DEEP));
}

#[test]
fn an_item_that_makes_a_document_of_too_many_levels_fails() {
    let repo = TestRepo::new();
    let (schema, value) = exponential();
    repo.env.write("repo/schema.json", &schema.to_string());
    repo.config("handoff.schema.s@1.path", "schema.json");
    let mut producer = item("a", &format!("printf '{value}' >outputs/n"));
    producer["produces"] = json!([{"kind": "document", "name": "n", "path": "n", "schema": "s@1"}]);
    producer["maxAttempts"] = json!(1);
    let _ = repo.drive("r", &[producer]).exit(4);
    let entries = repo.entries("r");
    let reason = entries.iter().find_map(|entry| entry["reason"].as_str()).unwrap_or_default();
    let why = format!("the document \"n\" is not as declared: it is not s@1: {TOO_DEEP}");
    assert_eq!(reason, why, "{entries:?}");
    repo.ends_intact("r");
}

#[test]
fn inputs_of_too_many_levels_make_a_plan_invalid() {
    let repo = TestRepo::new();
    let (_, value) = exponential();
    let shape = json!({"inputSchema": {"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {
        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/x"}}, {"type": "array", "items": {"$ref": "#/$defs/x"}}],
    }}}});
    repo.env.write("repo/shape.json", &shape.to_string());
    repo.config("handoff.shape.s.path", "shape.json");
    let item = |id: &str, x: &str| {
        format!(r#"{{"id":"{id}","executor":"command","subagentShape":"s","inputs":{{"command":["true"],"x":{x}}}}}"#)
    };
    repo.env.write("plan", &plan(&[item("fits", "[]"), item("wrong", "1"), item("deep", &value)].join(",")));
    let output = run(&repo, "validate ../plan").exit(1);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert!(
        lines[0]
            .starts_with("inputs-schema at items[1].inputs.x (item \"wrong\", line 1): the shape \"s\" refuses it: "),
        "{output}"
    );
    let place = "inputs-schema at items[2].inputs (item \"deep\", line 1)";
    assert_eq!(lines[1], format!("{place}: the shape \"s\" refuses it: {TOO_DEEP}"));
}

#[test]
fn a_pattern_is_matched_in_linear_time_and_one_that_is_not_regular_is_refused() {
    let repo = TestRepo::new();
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.submit("r", &[item("a", "true")]);
    repo.env.write("repo/schema.json", r#"{"type":"string","pattern":"^(a|aa|a?a)+$"}"#);
    repo.env.write("value", &format!("\"{}b\"", "a".repeat(1 << 16)));
    insta::assert_snapshot!(run(&repo, "doc put r n ../value --schema s@1").exit(1).stderr, @r#"
    error: cannot put the document "n"
    caused by: it is not s@1: value does not match "^(a|aa|a?a)+$"
    "#);
    for pattern in ["^(?!x)", "(a)\\\\1"] {
        repo.env.write("repo/schema.json", &format!(r#"{{"pattern":"{pattern}"}}"#));
        let output = run(&repo, "doc put r n ../value --schema s@1").exit(1);
        assert_eq!(
            output.stderr,
            "error: cannot put the document \"n\"\ncaused by: the schema s@1 is not valid: value is not a \"regex\"\n"
        );
    }
}

#[test]
fn a_schema_of_references_that_lead_nowhere_is_followed_to_its_end() {
    let repo = TestRepo::new();
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.submit("r", &[item("a", "true")]);
    repo.env.write("value", "1");
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}]}}}),
    ] {
        repo.env.write("repo/schema.json", &schema.to_string());
        let output = run(&repo, "doc put r n ../value --schema s@1");
        assert!(matches!(output.status, Some(0 | 1)), "{schema}: {output}");
    }
}

#[test]
fn a_large_document_with_everything_wrong_is_refused_for_the_first_thing() {
    let repo = TestRepo::new();
    repo.env.write("repo/schema.json", r#"{"type":"array","items":{"type":"string"}}"#);
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.submit("r", &[item("a", "true")]);
    repo.env.write("value", &format!("[{}1]", "1,".repeat(2_000_000)));
    let output = run(&repo, "doc put r n ../value --schema s@1").exit(1);
    let why = "caused by: it is not s@1: at /0: value is not of type \"string\" (and perhaps more)";
    assert_eq!(find_line(&output.stderr, "caused by: "), why);
    repo.env.write("value", "[1,2,3]");
    let second_output = run(&repo, "doc put r n ../value --schema s@1").exit(1);
    insta::assert_snapshot!(second_output.stderr, @r#"
    error: cannot put the document "n"
    caused by: it is not s@1: at /0: value is not of type "string" (and 2 more)
    "#);
}

#[test]
fn a_schema_reaches_neither_files_nor_the_network() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "true")]);
    repo.config("handoff.schema.s@1.path", "schema.json");
    repo.env.write("other.json", "{}");
    repo.env.write("value", "1");
    for reference in [format!("file://{}", repo.path("other.json").display()), "http://127.0.0.1:9/x".to_owned()] {
        repo.env.write("repo/schema.json", &json!({ "$ref": reference }).to_string());
        // The rest of the line is the words of the library.
        let output = run(&repo, "doc put r n ../value --schema s@1").exit(1);
        let caused = find_line(&output.stderr, "caused by: ");
        assert!(caused.starts_with("caused by: the schema s@1 is not valid: Resource '"), "{output}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn dropped_findings_are_counted(lengths in prop::collection::vec(0_usize..4000, 0..2000)) {
        let mut problems = Problems::default();
        for (at, length) in lengths.iter().enumerate() {
            problems.push(Problem::new(Code::WrongType, &JsonPath::root().index(at), "x".repeat(*length)));
        }
        prop_assert_eq!(problems.count(), lengths.len());
        prop_assert_eq!(problems.len() + problems.more(), lengths.len());
        prop_assert_eq!(problems.is_empty(), lengths.is_empty());
        prop_assert!(problems.len() <= MAX_PROBLEMS);
        // The first ones, without a gap.
        for (at, problem) in problems.iter().enumerate() {
            prop_assert_eq!(&problem.path, &format!("[{at}]"));
        }
        let text: usize = problems.iter().map(|problem| problem.message.len() + problem.path.len()).sum();
        prop_assert!(text <= 600 << 10);
    }
}

#[test]
fn a_rule_creates_only_so_much_at_once() {
    let repo = TestRepo::new();
    let command = |text: &str| json!({ "command": ["true"], "text": text });
    let long = "l".repeat(200);
    let done = json!({ "items": [{ "items": ["a"], "are": "done" }] });
    let each = json!({ "outputsOf": "a", "key": format!("{long}/{long}/{long}/{{{{key}}}}"), "from": "a", "select": { "kind": "patch" } });
    let rules = json!([
        // Two hundred and seventy megabytes of inputs.
        { "id": "large", "when": done, "forEach": { "outputsOf": "a" }, "create": [{ "item": {
            "id": "l-{{key}}", "executor": "command", "inputs": command(&"x".repeat(1 << 20)) } }] },
        // Seventy thousand needs.
        { "id": "many", "when": done, "forEach": { "outputsOf": "a" }, "create": [{ "item": {
            "id": "m-{{key}}", "executor": "command", "inputs": command("") }, "each": each }] },
        // Two hundred and seventy thousand items.
        { "id": "small", "when": done, "forEach": { "outputsOf": "a" }, "create": (0..1000).map(|at| json!({ "item": {
            "id": format!("s-{{{{key}}}}-{at}"), "executor": "command", "inputs": command("") } })).collect::<Vec<_>>() },
    ]);
    let split = item("a", "i=0; while test $i -lt 270; do : >outputs/$i; i=$((i+1)); done");
    repo.env.write("r.json", &json!({ "id": "r", "items": [split], "rules": rules }).to_string());
    let _ = run(&repo, "submit ../r.json").exit(0);
    let output = run(&repo, "run r").exit(4);
    assert_eq!(output.stdout.matches("name-clash").count(), 3, "{output}");
    let details: Vec<String> =
        repo.entries("r").iter().filter_map(|entry| entry["detail"].as_str().map(str::to_owned)).collect();
    let expected = [
        "the items would come to more than 33554432 bytes at once",
        "the items would come to more than 33554432 bytes at once",
        "there would be more than 262144 items at once",
    ];
    assert_eq!(details, expected);
    let _ = run(&repo, "verify r").exit(4);
}

#[test]
fn a_driver_with_little_address_space_runs_its_items() {
    let repo = TestRepo::new();
    let items: Vec<Value> = ["a", "b", "c", "d"].map(|id| item(id, "echo x >outputs/x")).to_vec();
    for (run, kilobytes) in [("r1", 400_000), ("r2", 350_000), ("r3", 300_000)] {
        let plan = repo.plan(run, &items);
        let line = format!("ulimit -v {kilobytes}; exec git-handoff run -j 4 {plan}");
        repo.env.shell("repo", &line).success();
        let second_line = format!("ulimit -v {kilobytes}; exec git-handoff record --as of-{run} -- true");
        repo.env.shell("repo", &second_line).success();
        repo.is_intact(run);
    }
}
