//! The files of pipelines: checked, registered, named by plans.

use serde_json::{Value, json};

use super::{add, agent, capture, gate, item, repo, spec};
use crate::common::report::find_line;
use crate::common::{Environment, assert_output};

#[test]
fn pipeline_check_lists_every_mistake_with_its_position() {
    let env = Environment::empty();
    let bad = json!({
        "schemaVersion": 2, "id": "Dev", "output": 1, "outputEdgeType": "", "inputEdgeTypes": { "a": "", "b": 3 },
        "blocks": [3, { "kind": "seal" }, { "kind": "agnt" }, {}, { "kind": "agent", "command": "x" },
                   { "kind": "script", "cmd": "x", "lens": "gaet", "timeoutSeconds": 0 },
                   { "kind": "script", "command": " " }, { "kind": "script", "command": "a\u{0}b", "timeoutSeconds": 1.5 },
                   { "kind": "capture" }, { "kind": "capture", "what": "patches" }],
    });
    env.write("bad.json", &bad.to_string());
    // No repository is needed to check one.
    let output = env.handoff_in("", ["pipeline", "validate", "bad.json"]).exit(1);
    assert_output!("pipeline_bad", output);
    let pipeline_output = env.handoff_in("", ["pipeline", "validate", "bad.json", "--json"]).exit(1);
    let verdict: Value = serde_json::from_str(&pipeline_output.stdout).unwrap();
    assert_eq!((&verdict["valid"], verdict["problems"].as_array().unwrap().len()), (&json!(false), 20), "{verdict}");

    for (text, message) in [
        ("{", "not-json: not valid JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "wrong-type: expected an object, found an array"),
        (r#"{"schemaVersion":1,"id":"a.b","blocks":[]}"#, "bad-pipeline at blocks: a pipeline has at least one block"),
        (
            r#"{"schemaVersion":1,"schemaVersion":1,"id":"a.b","blocks":[{"kind":"agent"}]}"#,
            "duplicate-key at schemaVersion: the key \"schemaVersion\" stands here twice",
        ),
    ] {
        env.write("one.json", text);
        let one_output = env.handoff_in("", ["pipeline", "validate", "one.json"]).exit(1);
        assert_eq!(one_output.stdout, format!("{message}\n"), "{text}");
    }
    let many = spec("a.b", &vec![agent(); 101]);
    env.write("many.json", &many);
    let many_output = env.handoff_in("", ["pipeline", "validate", "many.json"]).exit(1);
    insta::assert_snapshot!(many_output.stdout, @"bad-pipeline at blocks: 101 blocks; at most 100 are allowed");
    env.write("large.json", &" ".repeat((256 << 10) + 1));
    let large_output = env.handoff_in("", ["pipeline", "validate", "large.json"]).exit(1);
    assert!(large_output.stdout.starts_with("too-large"), "{}", large_output.stdout);
}

#[test]
fn pipelines_can_be_added_listed_and_printed() {
    let repo = repo();
    let (env, json) = (&repo.env, |text: String| serde_json::from_str::<Value>(&text).unwrap());
    env.write("bad.json", "{}");
    env.handoff(["pipeline", "add", "../bad.json"]).ends(1);
    assert_eq!(env.handoff(["pipeline", "list"]).success(), "");
    let first = add(&repo, "dev.check", &[agent(), gate("cargo test"), capture("patch")]);
    let (_, hash) = first.split_once('@').unwrap();
    // Later changes of the file have no effect.
    env.write("spec.json", "{}");
    assert_output!("pipeline_list", env.handoff(["pipeline", "list"]));
    assert_output!("pipeline_shown", env.handoff(["pipeline", "show", "dev.check"]));
    let stored = json(env.handoff(["pipeline", "show", hash, "--json"]).success());
    assert_eq!(
        (&stored["id"], &stored["pinned"], &stored["registered"]),
        (&json!("dev.check"), &json!(first), &json!(true))
    );
    assert_eq!(stored["spec"]["blocks"][1]["command"], "cargo test");

    let second = add(&repo, "dev.check", &[agent()]);
    let list = json(env.handoff(["pipeline", "list", "--json"]).success());
    assert_eq!(list["pipelines"][0]["pinned"], json!(second));
    let unpinned = json(env.handoff(["pipeline", "show", &first, "--json"]).success());
    assert_eq!((&unpinned["hash"], &unpinned["registered"]), (&json!(hash), &json!(false)));
    env.write("spec.json", &spec("dev.check", &[agent()]));
    let again = json(env.handoff(["pipeline", "add", "../spec.json", "--json"]).success());
    assert_eq!((&again["added"], &again["pinned"]), (&json!(false), &json!(second)));

    let unknown = env.handoff(["pipeline", "show", "dev.other"]).exit(1);
    insta::assert_snapshot!(unknown.stderr, @r#"
    error: no pipeline "dev.other" is registered here
    hint: git handoff pipeline list   # to register another: git handoff pipeline add FILE
    "#);
    env.handoff(["pipeline", "show", "dev"]).ends(2);
}

#[test]
fn a_plan_names_what_is_registered_and_nothing_else() {
    let repo = repo();
    let env = &repo.env;
    let pinned = add(&repo, "dev.check", &[agent(), capture("patch")]);
    let zeros = format!("dev.check@sha256:{}", "0".repeat(64));
    let refused = |name: &str, reason: &str| {
        let output = env.handoff(["submit", &repo.plan("r", &[item("a", "true", name)])]).exit(1);
        assert!(
            output.stdout.starts_with("unknown-pipeline at items[0].inputs.pipeline (item \"a\", line 1): "),
            "{}",
            output.stdout
        );
        assert!(output.stdout.contains(reason), "{name}: {}", output.stdout);
    };
    refused("dev.chekc", "did you mean `dev.check`?");
    refused("other.thing", "git handoff pipeline add FILE");
    refused(&zeros, "is registered here as sha256:");
    refused("dev", "<pack>.<name>");
    refused("dev.check@sha256:00", "<pack>.<name>");
    let output = env.handoff(["validate", &repo.plan("r", &[item("a", "true", &pinned)]), "--json"]).exit(0);
    let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(verdict["pipelines"], json!({ &pinned: pinned.split_once('@').unwrap().1 }));
    assert_output!("pipeline_validate", env.handoff(["validate", &repo.plan("r", &[item("a", "true", "dev.check")])]));
    // Nothing runs where people decide, so no gate would be passed.
    let mut decided = item("a", "true", "dev.check");
    decided["executor"] = json!("approval");
    let submit_output = env.handoff(["submit", &repo.plan("r", &[decided])]).exit(1);
    assert!(
        submit_output
            .stdout
            .starts_with("unknown-field at items[0].inputs.pipeline (item \"a\", line 1): people decide"),
        "{}",
        submit_output.stdout
    );
    // A setting may name a file of a team as well; one that cannot be used is in the way of who
    // needs it alone.
    env.write("repo/team.json", &spec("team.one", &[agent()]));
    repo.config("handoff.pipeline.team.one.path", "team.json");
    repo.config("handoff.pipeline.team.two.path", "team.json");
    env.handoff(["validate", &repo.plan("r", &[item("a", "true", "team.one")])]).ends(0);
    refused("team.two", "is another in team.json");
    let list = env.handoff(["pipeline", "list"]).success();
    insta::assert_snapshot!(find_line(&list, "team.two "), @r#"team.two   -                                                                        is another in team.json: "team.one"; handoff.pipeline.team.two.path in $TEST/repo/.git/config names that file"#);
}
