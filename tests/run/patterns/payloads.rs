//! Invalid or unused payloads, and reserved ids of patterns.

use serde_json::{Value, json};

use super::{item, template};
use crate::common::repo::TestRepo;

/// Asks for the problems of a plan, by their codes and places.
fn problems(pattern: &str, items: &[Value]) -> Vec<String> {
    let repo = TestRepo::new();
    repo.env.write("r.json", &json!({ "id": "r", "pattern": pattern, "items": items }).to_string());
    let answer = repo.env.handoff(["validate", "../r.json", "--json"]);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let problems = answer["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| format!("{} {}", problem["code"].as_str().unwrap(), problem["path"].as_str().unwrap()))
        .collect()
}

fn gate(payload: &Value, others: &[&str]) -> Vec<String> {
    let mut items = vec![item("build", "true", &json!({})), item("review", "true", &json!({ "gate": payload }))];
    items.extend(others.iter().map(|id| item(id, "true", &json!({}))));
    problems("pipeline", &items)
}

#[test]
fn invalid_gate_is_reported_with_its_position() {
    let at = |path: &str| format!("items[1].inputs.gate{path}");
    let fix = template("true");
    let cases = [
        (json!(3), vec![format!("wrong-type {}", at(""))]),
        (json!({}), vec![format!("missing-field {}", at(".onRed")), format!("missing-field {}", at(".subject"))]),
        (json!({ "onRed": "explode", "subject": "build" }), vec![format!("bad-pattern {}", at(".onRed"))]),
        (json!({ "onRed": "block", "subject": "ghost" }), vec![format!("unknown-dependency {}", at(".subject"))]),
        (json!({ "onRed": "spawn-fix", "subject": "build" }), vec![format!("missing-field {}", at(".fixTemplate"))]),
        (
            json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": fix, "maxFixAttempts": -1 }),
            vec![format!("wrong-type {}", at(".maxFixAttempts"))],
        ),
        (
            json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": { "executor": "nobody", "inputs": {} } }),
            vec![format!("unknown-executor {}", at(".fixTemplate.executor"))],
        ),
        (
            json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": { "executor": "command", "inputs": { "command": "true" }, "timeout": "a" } }),
            vec![format!("wrong-type {}", at(".fixTemplate.timeout"))],
        ),
        (
            json!({ "onRed": "spawn-fix", "subject": "ghost", "maxFixAttempts": "two" }),
            vec![
                format!("unknown-dependency {}", at(".subject")),
                format!("wrong-type {}", at(".maxFixAttempts")),
                format!("missing-field {}", at(".fixTemplate")),
            ],
        ),
        (json!({ "onRed": "block", "subject": "build", "extra": 1 }), vec![format!("unknown-field {}", at(".extra"))]),
    ];
    for (payload, expected) in cases {
        assert_eq!(gate(&payload, &[]), expected, "{payload}");
    }
}

#[test]
fn an_id_that_a_pattern_needs_is_no_authors() {
    let payload =
        json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": template("true"), "maxFixAttempts": 2 });
    assert_eq!(gate(&payload, &["review-fix-3", "other~2"]), Vec::<String>::new());
    assert_eq!(gate(&payload, &["Review-fix-2"]), ["bad-pattern items[2].id"]);
    assert_eq!(gate(&payload, &["build~7"]), ["bad-pattern items[2].id"]);
    let second_payload = json!({ "mapReduce": { "map": template("true"), "reduce": template("true") } });
    let with = |id: &str| problems("map-reduce", &[item("s", "true", &second_payload), item(id, "true", &json!({}))]);
    assert_eq!(with("map-a"), ["bad-pattern items[1].id"]);
    assert_eq!(with("reduce"), ["bad-pattern items[1].id"]);
    assert_eq!(with("s-map-a"), Vec::<String>::new());
}

#[test]
fn every_problem_of_a_splitter_is_reported() {
    let payload = json!({ "mapReduce": { "map": template("true"), "reduce": 3, "minSuccess": 2 } });
    let items = [item("s", "true", &payload), item("map-x", "true", &json!({}))];
    let expected = [
        "wrong-type items[0].inputs.mapReduce.reduce",
        "bad-pattern items[1].id",
        "bad-pattern items[0].inputs.mapReduce.minSuccess",
    ];
    assert_eq!(problems("map-reduce", &items), expected);
}

#[test]
fn cycle_through_an_order_is_reported() {
    let items = [
        item("a", "true", &json!({ "depends_on": ["c"] })),
        item("b", "true", &json!({})),
        item("c", "true", &json!({})),
    ];
    assert_eq!(problems("pipeline", &items), ["cycle items[0]"]);
}

#[test]
fn cycle_in_a_custom_order_is_reported() {
    let repo = TestRepo::new();
    let problem = |rules: &Value, more: &Value| {
        let items = [item("a", "true", more), item("b", "true", &json!({}))];
        repo.env.write("r.json", &json!({ "id": "r", "items": items, "rules": rules }).to_string());
        let output = repo.env.handoff(["--json", "validate", "../r.json"]).exit(1);
        let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
        format!(
            "{} {}",
            verdict["problems"][0]["code"].as_str().unwrap(),
            verdict["problems"][0]["path"].as_str().unwrap()
        )
    };
    let none = json!({});
    assert_eq!(problem(&json!([{ "id": "o", "order": { "a": ["b"], "b": ["a"] } }]), &none), "cycle items[0]");
    let two = json!([{ "id": "o", "order": { "a": ["b"] } }, { "id": "p", "order": { "b": ["a", "none"] } }]);
    assert_eq!(problem(&two, &none), "cycle items[0]");
    let on = json!({ "depends_on": ["b"] });
    assert_eq!(problem(&json!([{ "id": "o", "order": { "b": ["a"] } }]), &on), "cycle items[0]");
    assert_eq!(problem(&json!([{ "id": "o", "order": { "a": ["a"] } }]), &none), "bad-rule rules[0].order.a");
    // The queue's rules are validated in the same way.
    repo.env.write("repo/rules.json", &json!([{ "id": "o", "order": { "a": ["b"], "b": ["a"] } }]).to_string());
    repo.config("handoff.queue.default.rules", "rules.json");
    assert_eq!(problem(&json!([]), &none), "cycle items[0]");
}

#[test]
fn an_unknown_pattern_is_refused_and_an_unread_payload_is_reported() {
    assert_eq!(problems("pipelines", &[item("a", "true", &json!({}))]), ["bad-pattern pattern"]);
    let repo = TestRepo::new();
    let items = [item("a", "true", &json!({ "gate": { "anything": 1 } }))];
    repo.env.write("r.json", &json!({ "id": "r", "items": items }).to_string());
    let output = repo.env.handoff(["run", "../r.json"]);
    insta::assert_snapshot!(output.stderr, @"
    warning: nothing reads items[0].inputs.gate: this is dag, and no pattern such as pipeline
    ▶ a  attempt 1
    ✓ a  done in 0ms, nothing handed over
    ");
    output.success();
    repo.is_intact("r");
}

#[test]
fn only_a_rule_gives_an_item_the_place_of_another() {
    let items = [item("a", "true", &json!({})), item("b", "true", &json!({ "replaces": "a" }))];
    assert_eq!(problems("dag", &items), ["unknown-field items[1].replaces"]);
}

#[test]
fn pattern_expansion_is_printed() {
    let repo = TestRepo::new();
    let gate = json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": template("true") });
    let items = [item("build", "true", &json!({})), item("review", "true", &json!({ "gate": gate }))];
    repo.env.write("r.json", &json!({ "id": "r", "pattern": "pipeline", "items": items }).to_string());
    crate::common::assert_output!("pattern_compiled", repo.env.handoff(["validate", "../r.json"]).success());
}

#[test]
fn name_too_long_for_derived_names_is_reported() {
    let long = "n".repeat(120);
    let gate = json!({ "onRed": "block", "subject": "build" });
    let items = [item("build", "true", &json!({})), item(&long, "true", &json!({ "gate": gate }))];
    assert_eq!(problems("pipeline", &items), ["bad-rule pattern"]);
}
