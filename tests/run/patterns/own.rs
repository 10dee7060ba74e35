//! Rules of an author's own, in the language that patterns are written in.

use serde_json::{Value, json};

use super::{RED, cat, item, said, told};
use crate::common::ground::Ground;

/// Runs a plan with rules of its own to its end, which is to have this exit code.
fn play(items: &[Value], rules: &Value, exit: i32) -> Ground {
    let ground = Ground::new();
    ground.config("handoff.queue.default.maxAttempts", "1");
    ground.env.write("r.json", &json!({ "id": "r", "items": items, "rules": rules }).to_string());
    ground.env.handoff(["submit", "../r.json"]).success();
    let _ = ground.env.handoff(["run", "r"]).exit(exit);
    ground.is_clean();
    ground
}

#[test]
fn what_became_of_items_decides_and_an_output_is_what_an_item_is_made_for() {
    let rules = json!([
        { "id": "each", "when": { "items": [{ "items": ["a"], "are": "green" }, { "items": ["a"], "count": "outputs", "op": ">=", "value": 2 }] },
          "forEach": { "outputsOf": "a" },
          "create": [{ "item": { "id": "got {{key}}", "executor": "command", "inputs": { "command": "cp inputs/it outputs/it", "name": "{{key}}" },
            "needs": { "it": { "from": "a", "select": { "kind": "output", "path": "{{key}}" } } } } }] },
        { "id": "never", "when": { "items": [{ "items": ["a"], "have": "nothing" }] }, "outcome": "never" },
        { "id": "tried", "when": { "items": [{ "createdBy": "each", "are": "done" }, { "createdBy": "each", "count": "attempts", "op": "==", "value": 2 }] },
          "create": [{ "item": { "id": "last", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["a"] } }] },
    ]);
    let ground = play(&[item("a", "echo 1 >outputs/x; echo 2 >outputs/y", &json!({}))], &rules, 0);
    assert_eq!(told(&ground), ["a done", "got x done", "got y done", "last done"]);
    assert_eq!(cat(&ground, "got y:outputs/it"), "2\n");
    ground.is_intact("r");
}

#[test]
fn what_a_run_cannot_take_is_said_and_ends_nothing() {
    let rules = json!([
        { "id": "each", "when": { "items": [{ "items": ["a"], "are": "done" }] }, "forEach": { "outputsOf": "a" },
          "create": [{ "item": { "id": "of-{{key}}", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["not-{{key}}"] } }] },
        { "id": "last", "when": { "items": [{ "items": ["a~18446744073709551615"], "are": "failed" }] },
          "create": [{ "again": "a~18446744073709551615" }] },
    ]);
    let items = [item("a", "echo 1 >outputs/x", &json!({})), item("a~18446744073709551615", "false", &json!({}))];
    let ground = play(&items, &rules, 4);
    assert_eq!(said(&ground), ["name-clash", "name-clash"]);
    ground.env.handoff(["close", "r"]).success();
    ground.is_intact("r");
}

#[test]
fn an_id_that_somebody_added_first_is_said_and_not_taken_for_the_rules() {
    let ground = Ground::new();
    let gate = json!({ "onRed": "spawn-fix", "subject": "a", "fixTemplate": super::template("true") });
    let items = [item("a", "true", &json!({})), item("look", RED, &json!({ "gate": gate }))];
    let plan =
        |items: &[Value]| json!({ "id": "r", "pattern": "pipeline", "openEnded": true, "items": items }).to_string();
    ground.env.write("r.json", &plan(&items));
    ground.env.handoff(["submit", "../r.json"]).success();
    let more = [items[0].clone(), items[1].clone(), item("look~2", "true", &json!({ "depends_on": ["a"] }))];
    ground.env.write("more.json", &plan(&more));
    ground.env.handoff(["extend", "r", "../more.json"]).success();
    let _ = ground.env.handoff(["run", "r"]).exit(4);
    assert_eq!(said(&ground), ["name-clash"]);
    assert_eq!(told(&ground), ["a done", "look done", "look~2 done"]);
}
