//! Patterns: what the reserved payloads of a plan come to, through the built program.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forged;
mod gates;
mod maps;
mod own;
mod payloads;
mod quorums;
mod together;

use serde_json::{Value, json};

use crate::common::Output;
use crate::common::repo::TestRepo;

/// Ends a script with the verdict that the work is not good.
const RED: &str = r#"echo '{"verify":{"passed":false}}' >"$HANDOFF_RESULT""#;

/// Submits a plan of a pattern.
fn submit(repo: &TestRepo, pattern: &str, items: &[Value]) -> Output {
    let plan = json!({ "id": "r", "pattern": pattern, "items": items });
    repo.env.write("r.json", &plan.to_string());
    repo.env.handoff(["submit", "../r.json"])
}

/// Runs a plan of a pattern to its end, which is to have this exit code, and verifies it.
fn play(pattern: &str, items: &[Value], exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "1");
    submit(&repo, pattern, items).success();
    let _ = repo.env.handoff(["run", "r"]).exit(exit);
    repo.is_clean();
    repo
}

/// The results of all items, by id.
fn item_statuses(repo: &TestRepo) -> Vec<String> {
    repo.items("r").iter().map(|(id, item)| format!("{id} {}", item.status)).collect()
}

/// The outcomes recorded by rules.
fn rule_outcomes(repo: &TestRepo) -> Vec<String> {
    let entries = repo.entries("r");
    let concluded = entries.iter().filter(|entry| entry["kind"] == "run.concluded");
    concluded.map(|entry| entry["outcome"].as_str().unwrap().to_owned()).collect()
}

fn cat(repo: &TestRepo, what: &str) -> String {
    repo.env.handoff(["cat", &format!("r/{what}")]).success()
}

/// An item that runs a line of shell, with more fields.
fn item(id: &str, script: &str, more: &Value) -> Value {
    let mut item = json!({ "id": id, "executor": "command", "inputs": { "command": script } });
    for (key, value) in more.as_object().unwrap() {
        match key.as_str() {
            "gate" | "mapReduce" | "quorum" => item["inputs"][key] = value.clone(),
            _ => item[key] = value.clone(),
        }
    }
    item
}

fn template(script: &str) -> Value {
    json!({ "executor": "command", "inputs": { "command": script } })
}

/// A need of an item's patch as the input `work`.
fn work(from: &str) -> Value {
    json!({ "work": { "from": from, "select": { "kind": "patch" } } })
}
