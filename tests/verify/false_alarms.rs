//! Healthy runs that other verifiers would reject.

use serde_json::Value;

use crate::common::Environment;
use crate::common::report::{find_line, verdict};

fn report(env: &Environment, run: &str) -> Value {
    let verify_answer = env.handoff(["verify", "--json", "--allow-partial", run]).exit(0).stdout;
    serde_json::from_str(&verify_answer).expect("a report is JSON")
}

#[test]
fn commands_on_a_sealed_run_change_nothing() {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    let refs = || env.git(["for-each-ref"]).success();
    let (before, healthy) = (refs(), report(&env, "handoff-dag-1"));
    let commands: [&[&str]; 5] = [
        &["cancel", "handoff-dag-1"],
        &["cancel", "handoff-dag-1/edit-a"],
        &["retry", "handoff-dag-1/edit-a"],
        &["submit", "--queue", "other", "plan.json"],
        &["cancel", "no-such-run"],
    ];
    for ask in commands {
        env.handoff(ask).ends(1);
    }
    // Neither do repeated commands.
    env.handoff(["submit", "plan.json"]).success();
    env.handoff(["close", "handoff-dag-1"]).success();
    env.handoff(["run", "handoff-dag-1"]).success();
    assert_eq!(refs(), before);
    assert_eq!(report(&env, "handoff-dag-1"), healthy);
}

#[test]
fn items_that_never_ran_are_reported_without_failure() {
    let env = Environment::example("handoff-dag");
    env.write(
        "repo/broken.json",
        r#"{"id": "broken", "items": [
            {"id": "a", "executor": "command", "inputs": {"command": "true"}},
            {"id": "b", "executor": "command", "inputs": {"command": "true"},
             "needs": {"in": {"from": "a", "select": {"kind": "output", "path": "never-written"}}}},
            {"id": "c", "executor": "command", "inputs": {"command": "true"}, "depends_on": ["b"]}]}"#,
    );
    env.handoff(["run", "broken.json", "--close"]).ends(4);
    let report = report(&env, "broken");
    assert_eq!(report["checks"]["plan"]["ok"], true);
    assert!(report["checks"]["plan"]["detail"].as_str().expect("a text").starts_with("3 of 3 items"), "{report}");
    let log = env.handoff(["log", "--json", "broken"]).success();
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |item: &str| entries.iter().filter(|entry| entry["item"] == item).map(|e| e["kind"].clone()).collect();
    let (b, c): (Vec<Value>, Vec<Value>) = (of("b"), of("c"));
    assert_eq!((b, c), (vec!["item.skipped".into()], vec!["item.skipped".into()]));
}

#[test]
fn a_seal_that_its_log_missed_is_added_once() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let log = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let submitted = env.git(["rev-parse", log.trim()]).success();
    env.handoff(["run", "handoff-dag-1"]).success();
    let entries = report(&env, "handoff-dag-1")["entries"].clone();
    // As after a crash between the seal and the log.
    env.git(["update-ref", log.trim(), submitted.trim()]).success();
    let output = env.handoff(["verify", "handoff-dag-1"]).exit(3);
    assert_eq!(verdict(&output.stdout), "✗ NOT ANCHORED");
    let hint = "hint: git handoff doctor --fix   # logs handoff-dag-1 again if it is sound and your key's";
    assert_eq!(find_line(&output.stderr, "hint: "), hint);
    for _ in 0..3 {
        env.handoff(["run", "handoff-dag-1"]).success();
    }
    assert_eq!(report(&env, "handoff-dag-1")["entries"], entries);
    assert_eq!(env.git(["rev-list", "--count", log.trim()]).success().trim(), "2");
}
