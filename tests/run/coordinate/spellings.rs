//! Items that are written otherwise than they are kept: dependencies that only a need names, that
//! stand twice, numbers with several spellings. What is recorded, run again and verified is one and
//! the same item.

use serde_json::{Value, json};

use super::rule;
use crate::common::repo::{TestRepo, item};

/// Numbers as people write them: what JSON keeps of the spelling, canonical JSON does not.
const NUMBERS: &str = "[1.0, -0.0, 1e3, 1.50, 2E-3, 100e-2, 0.1e1]";

/// Writes a plan whose items' and rules' `"NUMBERS"` become numbers as they are spelt above.
fn write(repo: &TestRepo, file: &str, plan: &Value) {
    repo.env.write(file, &plan.to_string().replace("\"NUMBERS\"", NUMBERS));
}

fn made() -> Value {
    item("made", "echo x >outputs/x")
}

/// A rule's items in a form that is not normalised.
fn ways() -> Vec<(&'static str, Value)> {
    let need = json!({ "in": { "from": "made", "select": { "kind": "output", "path": "x" } } });
    vec![
        ("a product of what depends_on does not name", json!({ "needs": need })),
        ("a dependency twice", json!({ "depends_on": ["made", "made"] })),
        ("both", json!({ "depends_on": ["made", "made"], "needs": need })),
        ("numbers", json!({ "inputs": { "command": "true", "numbers": "NUMBERS", "deep": [{ "n": "NUMBERS" }] } })),
    ]
}

#[test]
fn rule_spelling_does_not_change_the_created_item() {
    for (what, way) in ways() {
        let repo = TestRepo::new();
        let mut rule = rule("more", &json!({}));
        for (key, value) in way.as_object().unwrap() {
            rule["create"][key] = value.clone();
        }
        write(&repo, "r.json", &json!({ "id": "r", "items": [made()], "rules": [rule] }));
        repo.env.handoff(["submit", "../r.json"]).success();
        repo.env.handoff(["coordinate", "r"]).success();
        // A chain that is continued is verified before.
        let ran = repo.env.handoff(["run", "r"]);
        assert_eq!(ran.status, Some(0), "{what}: {ran}");
        assert_eq!(repo.items("r").len(), 2, "{what}");
        repo.is_intact("r");
    }
}

#[test]
fn extend_is_idempotent() {
    for (what, way) in ways() {
        let repo = TestRepo::new();
        write(&repo, "r.json", &json!({ "id": "r", "items": [made()], "openEnded": true }));
        repo.env.handoff(["submit", "../r.json"]).success();
        let mut more = item("more", "true");
        for (key, value) in way.as_object().unwrap() {
            more[key] = value.clone();
        }
        write(&repo, "more.json", &json!({ "id": "r", "items": [more] }));
        assert_eq!(repo.env.handoff(["extend", "r", "../more.json"]).success(), "more\n", "{what}");
        let before = repo.refs();
        for _ in 0..2 {
            let again = repo.env.handoff(["extend", "r", "../more.json"]).exit(0);
            assert_eq!(again.stderr, "the run has all of these items already; nothing changed\n");
        }
        assert_eq!(repo.refs(), before, "{what}");
        repo.env.handoff(["run", "r"]).success();
        repo.env.handoff(["close", "r"]).success();
        repo.is_intact("r");
    }
}

#[test]
fn an_item_that_differs_is_still_another() {
    let repo = TestRepo::new();
    write(&repo, "r.json", &json!({ "id": "r", "items": [made()], "openEnded": true }));
    repo.env.handoff(["submit", "../r.json"]).success();
    for (number, expected_code) in [(json!(1), 0), (json!(2), 1), (json!("1"), 1)] {
        let more = json!({ "id": "more", "executor": "command", "inputs": { "command": "true", "n": number } });
        write(&repo, "more.json", &json!({ "id": "r", "items": [more] }));
        let output = repo.env.handoff(["extend", "r", "../more.json"]).exit(expected_code);
        assert!(expected_code == 0 || output.stdout.contains("duplicate-id"), "{output}");
    }
}
