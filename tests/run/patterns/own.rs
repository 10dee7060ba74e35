//! Rules of an author's own, in the language that patterns are written in.

use serde_json::{Value, json};

use super::{RED, cat, item, item_statuses, rule_outcomes};
use crate::common::repo::TestRepo;

/// Runs a plan with rules of its own to its end, which is to have this exit code.
fn play(items: &[Value], rules: &Value, exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "1");
    repo.env.write("r.json", &json!({ "id": "r", "items": items, "rules": rules }).to_string());
    repo.env.handoff(["submit", "../r.json"]).success();
    let _ = repo.env.handoff(["run", "r"]).exit(exit);
    repo.is_clean();
    repo
}

#[test]
fn results_of_items_decide_custom_rules() {
    let rules = json!([
        { "id": "each", "when": { "items": [{ "items": ["a"], "are": "green" }, { "items": ["a"], "count": "outputs", "op": ">=", "value": 2 }] },
          "forEach": { "outputsOf": "a" },
          "create": [{ "item": { "id": "got {{key}}", "executor": "command", "inputs": { "command": "cp inputs/it outputs/it", "name": "{{key}}" },
            "needs": { "it": { "from": "a", "select": { "kind": "output", "path": "{{key}}" } } } } }] },
        { "id": "never", "when": { "items": [{ "items": ["a"], "have": "nothing" }] }, "outcome": "never" },
        { "id": "tried", "when": { "items": [{ "createdBy": "each", "are": "done" }, { "createdBy": "each", "count": "attempts", "op": "==", "value": 2 }] },
          "create": [{ "item": { "id": "last", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["a"] } }] },
    ]);
    let repo = play(&[item("a", "echo 1 >outputs/x; echo 2 >outputs/y", &json!({}))], &rules, 0);
    assert_eq!(item_statuses(&repo), ["a done", "got x done", "got y done", "last done"]);
    assert_eq!(cat(&repo, "got y:outputs/it"), "2\n");
    repo.is_intact("r");
}

#[test]
fn unacceptable_items_are_recorded_and_end_nothing() {
    let rules = json!([
        { "id": "each", "when": { "items": [{ "items": ["a"], "are": "done" }] }, "forEach": { "outputsOf": "a" },
          "create": [{ "item": { "id": "of-{{key}}", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["not-{{key}}"] } }] },
        { "id": "last", "when": { "items": [{ "items": ["a~18446744073709551615"], "are": "failed" }] },
          "create": [{ "again": "a~18446744073709551615" }] },
    ]);
    let items = [item("a", "echo 1 >outputs/x", &json!({})), item("a~18446744073709551615", "false", &json!({}))];
    let repo = play(&items, &rules, 4);
    assert_eq!(rule_outcomes(&repo), ["name-clash", "name-clash"]);
    repo.env.handoff(["close", "r"]).success();
    repo.is_intact("r");
}

#[test]
fn an_id_that_a_rule_may_create_is_reserved() {
    let gate = json!({ "onRed": "spawn-fix", "subject": "a", "fixTemplate": super::template("true") });
    let items = [item("a", "true", &json!({})), item("look", RED, &json!({ "gate": gate }))];
    for id in ["look~2", "look~3", "a~2", "look-fix-1"] {
        let (repo, output) = extended("pipeline", &items, &item(id, "true", &json!({ "depends_on": ["a"] })));
        let output = output.exit(1);
        assert!(output.stdout.starts_with("duplicate-id at items[2].id: the rule \"look.fix\" may create"), "{output}");
        assert!(!repo.items("r").contains_key(id));
    }
    for id in ["look-fix-x", "look~x", "b~2", "look-fix-"] {
        let (_, output) = extended("pipeline", &items, &item(id, "true", &json!({ "depends_on": ["a"] })));
        output.success();
    }
    let split = json!({ "mapReduce": { "map": super::template("true"), "reduce": super::template("true") } });
    for id in ["map-x", "reduce"] {
        let (_, output) = extended("map-reduce", &[item("a", "true", &split)], &item(id, "true", &json!({})));
        output.ends(1);
    }
}

#[test]
fn circular_replacements_end_and_are_recorded() {
    let standing = |id: &str, field: &str, of: &str| json!({ "item": { "id": id, "executor": "command", "inputs": { "command": "true" }, field: of } });
    let after = json!({ "item": { "id": "b", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["a", "t"] } });
    for create in [
        json!([standing("x", "continues", "x"), standing("y", "continues", "x"), after]),
        json!([standing("a", "replaces", "t"), standing("t", "continues", "a"), after]),
        json!([standing("t", "replaces", "a"), standing("a", "continues", "t"), after]),
        json!([standing("x", "replaces", "a"), standing("a", "continues", "x"), standing("t", "replaces", "a"), after]),
    ] {
        let rules =
            json!([{ "id": "r", "when": { "items": [{ "items": ["a", "t"], "are": "ended" }] }, "create": create }]);
        let repo = play(&[item("a", "true", &json!({})), item("t", "true", &json!({}))], &rules, 4);
        assert_eq!(rule_outcomes(&repo), ["name-clash"], "{rules}");
        assert_eq!(item_statuses(&repo), ["a done", "t done"]);
        repo.is_intact("r");
    }
}

#[test]
fn duplicate_needs_are_recorded() {
    let need = json!({ "from": "@artifacts", "select": { "kind": "output", "path": "x" } });
    let create = json!([{ "item": { "id": "b", "executor": "command", "inputs": { "command": "true" },
        "needs": { "in-{{n}}": need, "in-1": need } } }]);
    let rules = json!([{ "id": "r", "when": { "items": [{ "items": ["a"], "are": "done" }] }, "create": create }]);
    let repo = TestRepo::new();
    repo.env.write("x", "x");
    let plan =
        json!({ "id": "r", "items": [item("a", "true", &json!({}))], "rules": rules, "artifacts": { "x": "x" } });
    repo.env.write("r.json", &plan.to_string());
    repo.env.handoff(["submit", "../r.json"]).success();
    let _ = repo.env.handoff(["run", "r"]).exit(4);
    assert_eq!(rule_outcomes(&repo), ["name-clash"]);
}

/// An open-ended run of a pattern, with what is added to it.
fn extended(pattern: &str, items: &[Value], more: &Value) -> (TestRepo, crate::common::Output) {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "1");
    let plan = |plan_items: &[Value]| {
        json!({ "id": "r", "pattern": pattern, "openEnded": true, "items": plan_items }).to_string()
    };
    repo.env.write("r.json", &plan(items));
    repo.env.handoff(["submit", "../r.json"]).success();
    repo.env.write("more.json", &plan(&[items, std::slice::from_ref(more)].concat()));
    let output = repo.env.handoff(["extend", "r", "../more.json"]);
    (repo, output)
}

#[test]
fn a_payload_that_no_item_would_read_is_refused() {
    let gate = |onto: &str| json!({ "gate": { "onRed": "block", "subject": onto } });
    let items = [item("a", "true", &json!({})), item("look", RED, &gate("a"))];
    let (repo, output) = extended("pipeline", &items, &item("more", RED, &gate("a")));
    let output = output.exit(1);
    assert!(output.stdout.starts_with("bad-pattern at items[2].inputs.gate: pipeline made its rules when"), "{output}");
    assert!(!repo.items("r").contains_key("more"));
    // Where no pattern reads it, it is an input like any other.
    let (_, second_output) = extended("dag", &items, &item("more", "true", &gate("a")));
    second_output.success();
}
