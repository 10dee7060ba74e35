//! Items that run block by block: by the built program, from the file of their pipeline to what
//! `verify` says of each block.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
pub(crate) mod forged;

use serde_json::{Value, json};

use crate::common::Environment;
use crate::common::assert_output;
use crate::common::repo::TestRepo;

/// A worker that changes a file and makes an output.
const EDIT: &str = "sed -i s/two/TWO/ a.txt; echo said >outputs/x";

fn agent() -> Value {
    json!({ "kind": "agent" })
}

fn capture(what: &str) -> Value {
    json!({ "kind": "capture", "what": what })
}

fn gate(line: &str) -> Value {
    json!({ "kind": "script", "command": line })
}

fn check(line: &str) -> Value {
    json!({ "kind": "script", "command": line, "lens": "verify" })
}

fn spec(id: &str, blocks: &[Value]) -> String {
    json!({ "schemaVersion": 1, "id": id, "blocks": blocks }).to_string()
}

/// Registers a pipeline and returns the reference to just its bytes.
fn add(repo: &TestRepo, id: &str, blocks: &[Value]) -> String {
    repo.env.write("spec.json", &spec(id, blocks));
    repo.env.handoff(["pipeline", "add", "../spec.json"]).success().trim().to_owned()
}

fn item(id: &str, line: &str, pipeline: &str) -> Value {
    json!({ "id": id, "executor": "command", "inputs": { "command": line, "pipeline": pipeline } })
}

/// The entry that ended an item.
fn end(repo: &TestRepo, run: &str) -> Value {
    repo.entries(run).into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap()
}

/// Kind and status of each block of an entry.
fn blocks(entry: &Value) -> Vec<String> {
    let word = |block: &Value, key: &str| block[key].as_str().unwrap().to_owned();
    let blocks = entry["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().map(|block| format!("{} {}", word(block, "kind"), word(block, "status"))).collect()
}

fn products(entry: &Value) -> Vec<&str> {
    entry["products"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// A repository whose items are tried once.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "1");
    repo.config("handoff.queue.default.concurrency", "1");
    repo
}

#[test]
fn every_screen_shows_the_blocks_of_an_item() {
    let repo = repo();
    let steps = [agent(), gate("grep TWO a.txt"), capture("patch"), check("echo fine"), capture("outputs")];
    let pinned = add(&repo, "dev.check", &steps);
    let output = repo.drive("r", &[item("a", EDIT, "dev.check")]).exit(0);
    assert_output!("pipeline_run", output);
    let entry = end(&repo, "r");
    assert_eq!(blocks(&entry), ["agent done", "script done", "capture done", "script done", "capture done"]);
    assert_eq!(entry["verify"], json!({ "passed": true, "by": "command" }));
    assert_eq!(entry["blocks"][3]["verify"], json!({ "passed": true, "by": "command" }));
    assert_eq!(entry["blocks"][1]["exit"], json!({ "code": 0 }));
    assert_eq!(products(&entry), ["outputs/x", "patch"]);
    let (_, digest) = pinned.split_once('@').unwrap();
    assert_eq!(repo.entries("r")[0]["pipelines"]["dev.check"]["sha256"], digest);
    let manifest: Value = serde_json::from_str(&repo.env.handoff(["cat", "r/a:manifest"]).success()).unwrap();
    assert_eq!(manifest["pipeline"], digest);
    let path = format!("r:pipelines/{}.json", digest.strip_prefix("sha256:").unwrap());
    assert_eq!(repo.env.handoff(["cat", &path]).success(), spec("dev.check", &steps));
    assert_output!("pipeline_log", repo.env.handoff(["log", "r"]));
    assert_output!("pipeline_show", repo.env.handoff(["show", "r/a"]));
    assert_output!("pipeline_verify", repo.env.handoff(["verify", "r"]));
    let answer: Value = serde_json::from_str(&repo.env.handoff(["show", "r/a", "--json"]).success()).unwrap();
    assert_eq!(answer["entries"][1]["blocks"], entry["blocks"]);
    let report: Value = serde_json::from_str(&repo.env.handoff(["verify", "r", "--json"]).success()).unwrap();
    assert_eq!(report["blocks"], json!([{ "item": "a", "attempt": 1, "blocks": entry["blocks"] }]));
    assert_eq!(report["pipelines"], json!({ "dev.check": digest }));
    repo.is_clean();
}

#[test]
fn only_the_last_capture_makes_the_product() {
    let repo = repo();
    add(&repo, "p.patch", &[agent(), capture("patch")]);
    add(&repo, "p.outputs", &[agent(), capture("outputs")]);
    add(&repo, "p.nothing", &[agent(), gate("true")]);
    let twice = [agent(), capture("patch"), gate("echo later >>a.txt"), capture("patch"), gate("echo unseen >>a.txt")];
    add(&repo, "p.twice", &twice);
    for (pipeline, made) in
        [("p.patch", &["patch"][..]), ("p.outputs", &["outputs/x"]), ("p.nothing", &[]), ("p.twice", &["patch"])]
    {
        repo.drive(pipeline, &[item("a", EDIT, pipeline)]).ends(0);
        assert_eq!(products(&end(&repo, pipeline)), made, "{pipeline}");
        repo.ends_intact(pipeline);
    }
    let patch = repo.env.handoff(["cat", "p.twice/a:patch"]).success();
    assert!(patch.contains("+later") && !patch.contains("unseen"), "{patch}");

    let mut declares = item("a", EDIT, "p.outputs");
    declares["produces"] = json!([{ "kind": "patch" }]);
    let refused = repo.env.handoff(["validate", &repo.plan("d", &[declares])]).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"undeclared-product at items[0].produces[0] (item "a", line 1): patch is declared, and no block of the pipeline "p.outputs" is `capture` of `patch`"#);
}

#[test]
fn agent_cannot_withdraw_its_own_red_result() {
    let repo = repo();
    add(&repo, "p.agents", &[agent(), capture("patch"), agent()]);
    // The first time it denies what it did, the second time it does not.
    let line = r#"grep -q more a.txt; no=$?; echo more >>a.txt; [ $no = 1 ] && w=false || w=true
        echo '{"verify":{"passed":'$w'}}' >"$HANDOFF_RESULT""#;
    repo.drive("r", &[item("a", line, "p.agents")]).ends(4);
    let entry = end(&repo, "r");
    assert_eq!(entry["verify"], json!({ "passed": false, "by": "self" }));
    assert_eq!(entry["reason"], "verify-failed: by the worker's own word");
    repo.ends_intact("r");
}

#[test]
fn a_block_that_does_not_pass_ends_the_attempt_with_its_name() {
    let repo = repo();
    add(&repo, "p.gate", &[agent(), gate("echo not yet; exit 3"), capture("patch")]);
    add(&repo, "p.agent", &[gate("true"), agent(), capture("patch")]);
    add(&repo, "p.slow", &[json!({ "kind": "script", "command": "sleep 60", "timeoutSeconds": 1 }), agent()]);
    add(&repo, "p.secret", &[agent(), capture("outputs")]);
    let cases = [
        ("p.gate", EDIT, "gate-failed: blocks[1] exited with 3: not yet", &["agent done", "script failed"][..]),
        ("p.agent", "exit 4", "blocks[1] (agent) exited with 4", &["script done", "agent failed"]),
        ("p.slow", EDIT, "gate-failed: blocks[0] ran longer than 1 s", &["script timed-out"]),
        (
            "p.secret",
            "ln -s /etc/passwd outputs/x",
            "the output `outputs/x` is a symbolic link",
            &["agent done", "capture failed"],
        ),
    ];
    for (pipeline, line, reason, expected_blocks) in cases {
        repo.drive(pipeline, &[item("a", line, pipeline)]).ends(4);
        let entry = end(&repo, pipeline);
        assert_eq!(entry["reason"], reason);
        assert_eq!(
            (blocks(&entry), products(&entry)),
            (expected_blocks.iter().map(ToString::to_string).collect(), vec![])
        );
        repo.ends_intact(pipeline);
    }
    // It is retried as usual, and every attempt is recorded.
    add(&repo, "p.flaky", &[agent(), gate("test $HANDOFF_ATTEMPT = 2"), capture("patch")]);
    let mut flaky = item("a", EDIT, "p.flaky");
    flaky["maxAttempts"] = json!(2);
    repo.drive("again", &[flaky]).ends(0);
    let entries = repo.entries("again");
    assert_eq!(
        (&entries[2]["kind"], blocks(&entries[2])),
        (&json!("item.retried"), vec!["agent done".to_owned(), "script failed".to_owned()])
    );
    assert_eq!(entries[2]["detail"], "gate-failed: blocks[1] exited with 1");
    assert_eq!(blocks(&entries[4]).len(), 3);
    assert_output!("pipeline_again", repo.env.handoff(["log", "again"]));
    repo.ends_intact("again");
}

#[test]
fn a_script_that_only_checks_has_its_executor_say_what_that_means() {
    let repo = repo();
    for (name, meaning) in [("keeps", "keep"), ("fails", "fail")] {
        repo.config(&format!("handoff.executor.{name}.command"), EDIT);
        repo.config(&format!("handoff.executor.{name}.verify"), "exit 9");
        repo.config(&format!("handoff.executor.{name}.onVerifyFail"), meaning);
    }
    // The first one counts, and nothing stops at any.
    add(&repo, "p.checks", &[agent(), check("echo bad; exit 2"), check("true"), capture("patch")]);
    add(&repo, "p.good", &[agent(), check("true"), check("false"), capture("patch")]);
    let by =
        |executor: &str, pipeline: &str| json!({ "id": "a", "executor": executor, "inputs": { "pipeline": pipeline } });

    repo.drive("kept", &[by("keeps", "p.checks")]).ends(4);
    let entry = end(&repo, "kept");
    assert_eq!((&entry["status"], &entry["red"]), (&json!("done"), &json!(true)), "{entry}");
    assert_eq!(entry["reason"], "verify-failed: blocks[1] exited with 2: bad");
    assert_eq!(blocks(&entry), ["agent done", "script failed", "script done", "capture done"]);
    assert_eq!(products(&entry), ["patch"]);

    repo.drive("failed", &[by("fails", "p.checks")]).ends(4);
    let failed_entry = end(&repo, "failed");
    assert_eq!((&failed_entry["status"], products(&failed_entry).len()), (&json!("failed"), 0), "{failed_entry}");
    assert_eq!(failed_entry["blocks"][1]["verify"]["passed"], false);

    repo.drive("good", &[by("fails", "p.good")]).ends(0);
    let good_entry = end(&repo, "good");
    assert_eq!(good_entry["verify"], json!({ "passed": true, "by": "command" }));

    // A worker's own word against its result stands.
    let denies = r#"echo '{"verify":{"passed":false}}' >$HANDOFF_RESULT"#;
    repo.drive("denied", &[item("a", denies, "p.good")]).ends(4);
    assert_eq!(end(&repo, "denied")["verify"], json!({ "passed": false, "by": "self" }));
    for run in ["kept", "failed", "good", "denied"] {
        repo.ends_intact(run);
    }
}

#[test]
fn scripts_run_where_the_agent_does_and_their_output_is_in_the_transcript() {
    let repo = repo();
    repo.config("handoff.executor.sees.command", "echo made >made; echo agent $SEEN");
    repo.config("handoff.executor.sees.setup", "echo setting up");
    repo.config("handoff.executor.sees.env", "SEEN=yes");
    let looks = "cat made; echo script $SEEN $HANDOFF_ITEM; grep -c inputRefs $HANDOFF_TASK; git rev-parse --is-inside-work-tree";
    add(&repo, "p.looks", &[agent(), gate(looks), capture("patch")]);
    let by = json!({ "id": "a", "executor": "sees", "inputs": { "pipeline": "p.looks" } });
    repo.drive("r", &[by]).ends(0);
    let transcript = repo.env.handoff(["cat", "r/a:transcript"]).success();
    for line in ["setting up", "agent yes", "made", "script yes a", "true"] {
        assert!(transcript.lines().any(|text| text.ends_with(line)), "{line}: {transcript}");
    }
    repo.ends_intact("r");
}

#[test]
fn an_open_run_keeps_what_its_names_meant_and_takes_in_what_new_items_name() {
    let repo = repo();
    let first = add(&repo, "p.one", &[agent(), capture("patch")]);
    let plan = |items: &[Value]| json!({ "id": "r", "openEnded": true, "items": items }).to_string();
    repo.env.write("plan.json", &plan(&[item("a", EDIT, "p.one")]));
    repo.env.handoff(["submit", "../plan.json"]).ends(0);
    // The name means other bytes by now, but not to this run.
    add(&repo, "p.one", &[agent(), gate("false")]);
    let other = add(&repo, "p.two", &[agent(), capture("outputs")]);
    repo.env.write("more.json", &plan(&[item("b", EDIT, "p.one"), item("c", EDIT, &other)]));
    repo.env.handoff(["extend", "r", "../more.json"]).ends(0);
    repo.env.write("bad.json", &plan(&[item("d", EDIT, "p.three")]));
    let refused = repo.env.handoff(["extend", "r", "../bad.json"]).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"
    unknown-pipeline at items[0].inputs.pipeline: no pipeline "p.three" is registered here
        git handoff pipeline add FILE
    "#);
    repo.env.handoff(["run", "r"]).ends(0);
    let entries = repo.entries("r");
    let added = entries.iter().find(|entry| entry["kind"] == "run.extended").unwrap();
    assert_eq!(added["pipelines"][&other]["sha256"], other.split_once('@').unwrap().1);
    assert_eq!(added["pipelines"].as_object().unwrap().len(), 1);
    let counts: Vec<usize> =
        entries.iter().filter(|e| e["kind"] == "item.reconciled").map(|e| blocks(e).len()).collect();
    assert_eq!(counts, [2, 2, 2]);
    repo.ends_intact("r");
    // Once added, it can be had by its hash for good.
    repo.drive("old", &[item("a", EDIT, &first)]).ends(0);
    assert_eq!(products(&end(&repo, "old")), ["patch"]);
    repo.ends_intact("old");
}

#[test]
fn created_items_use_pipelines_sealed_at_submit() {
    let repo = repo();
    add(&repo, "p.one", &[agent(), capture("patch")]);
    let created = json!({ "executor": "command", "inputs": { "command": EDIT, "pipeline": "p.one" } });
    let plan = json!({ "id": "r", "items": [{ "id": "a", "executor": "command", "inputs": { "command": ["true"] } }],
                       "rules": [{ "id": "more", "when": { "items": [{ "items": ["a"], "are": "done" }] }, "create": created }] });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["run", "../plan.json"]).ends(0);
    let entries = repo.entries("r");
    assert!(entries[0]["pipelines"]["p.one"]["sha256"].is_string(), "{}", entries[0]);
    assert!(entries.iter().any(|entry| blocks(entry).len() == 2));
    repo.ends_intact("r");
}

#[test]
fn a_repository_of_sha256_holds_the_same() {
    let env = Environment::example_with("handoff-dag", &["--object-format=sha256"]);
    env.write("spec.json", &spec("p.one", &[agent(), gate("true"), capture("outputs")]));
    env.handoff(["pipeline", "add", "../spec.json"]).ends(0);
    let plan = json!({ "id": "r", "items": [item("a", "echo x >outputs/x", "p.one")] });
    env.write("plan.json", &plan.to_string());
    env.handoff(["run", "../plan.json"]).ends(0);
    env.handoff(["verify", "r"]).ends(0);
}
