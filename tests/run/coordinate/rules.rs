//! Rules and their meaning.

use std::convert::Infallible;
use std::sync::Arc;

use git_handoff::model::catalog::Catalog;
use git_handoff::model::problems::Problems;
use git_handoff::model::rule::values::Values;
use git_handoff::plan::validate::validate;
use serde_json::{Value, json};

use super::{document_states, name, parsed, rule};
use crate::common::repo::item;

/// Validates a plan of one item with these rules.
fn problems(rules: &Value, queue: Option<&str>) -> Vec<String> {
    let plan = json!({ "id": "r", "rules": rules, "items": [
        { "id": "a", "executor": "command", "inputs": { "command": ["true"] },
          "produces": [{ "kind": "document", "name": "made", "path": "made" }] }] });
    let catalog = Catalog { queue_rules: queue.map(|run_rules| run_rules.as_bytes().to_vec()), ..Catalog::default() };
    match validate(plan.to_string().as_bytes(), &catalog) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| format!("{} {}", problem.code, problem.path)).collect(),
    }
}

#[test]
fn invalid_rule_is_reported_with_its_position() {
    let when = |when: Value| rule("p", &when);
    let condition = |more: Value| {
        let mut condition = json!({ "document": "d", "pointer": "/a", "op": "<", "value": 8 });
        for (key, value) in more.as_object().unwrap() {
            condition[key] = value.clone();
        }
        when(json!({ "if": [condition] }))
    };
    let create = |create: Value| json!({ "id": "p", "when": {}, "create": create });
    let cases: Vec<(Value, &[&str])> = vec![
        (when(json!({})), &[]),
        (json!({ "id": "p", "when": {} }), &["bad-rule rules[0].create"]),
        (json!({ "id": "p", "create": {} }), &["bad-rule rules[0].when", "missing-field rules[0].create.executor"]),
        (rule("", &json!({})), &["bad-rule rules[0].id"]),
        (rule("@p", &json!({})), &["bad-rule rules[0].id"]),
        (rule(&"x".repeat(116), &json!({})), &["bad-rule rules[0].id"]),
        (rule(&"x".repeat(115), &json!({})), &[]),
        (when(json!({ "presnt": [] })), &["bad-rule rules[0].when.presnt"]),
        (when(json!({ "present": "d" })), &["bad-rule rules[0].when.present"]),
        (when(json!({ "present": ["a/../b"] })), &["bad-rule rules[0].when.present[0]"]),
        (when(json!({ "present": ["d", "d"] })), &["bad-rule rules[0].when.present[1]"]),
        (when(json!({ "present": ["d"], "absent": ["d"] })), &["bad-rule rules[0].when.absent"]),
        (when(json!({ "atMost": 0 })), &["bad-rule rules[0].when.atMost"]),
        (when(json!({ "atMost": 1.5 })), &["bad-rule rules[0].when.atMost"]),
        (condition(json!({})), &[]),
        (condition(json!({ "op": "=" })), &["bad-rule rules[0].when.if[0].op"]),
        (condition(json!({ "value": "8" })), &["bad-rule rules[0].when.if[0].value"]),
        (condition(json!({ "value": [8], "op": "==" })), &["bad-rule rules[0].when.if[0].value"]),
        (condition(json!({ "pointer": "score" })), &["bad-rule rules[0].when.if[0].pointer"]),
        (condition(json!({ "pointer": "/a~2b" })), &["bad-rule rules[0].when.if[0].pointer"]),
        (
            when(json!({ "if": [{}] })),
            &[
                "bad-rule rules[0].when.if[0].document",
                "bad-rule rules[0].when.if[0].pointer",
                "bad-rule rules[0].when.if[0].op",
                "bad-rule rules[0].when.if[0].value",
            ],
        ),
        (when(json!({ "items": [{}] })), &["bad-rule rules[0].when.items[0].items"]),
        (when(json!({ "items": [{ "items": [], "are": "done" }] })), &["bad-rule rules[0].when.items[0].items"]),
        (
            when(json!({ "items": [{ "items": ["a"], "createdBy": "b", "are": "done" }] })),
            &["bad-rule rules[0].when.items[0].items"],
        ),
        (when(json!({ "items": [{ "items": ["a"], "are": "fine" }] })), &["bad-rule rules[0].when.items[0].are"]),
        (when(json!({ "items": [{ "items": ["a"], "count": "rounds" }] })), &["bad-rule rules[0].when.items[0].are"]),
        (when(json!({ "items": [{ "items": ["a"], "count": "outputs" }] })), &["bad-rule rules[0].when.items[0].op"]),
        (
            when(json!({ "items": [{ "items": ["a"], "are": "done", "op": "<" }] })),
            &["bad-rule rules[0].when.items[0].op"],
        ),
        (
            when(json!({ "items": [{ "items": vec!["a"; 1_001], "are": "done" }] })),
            &["bad-rule rules[0].when.items[0].items"],
        ),
        (
            when(json!({ "items": vec![json!({ "items": ["a"], "are": "done" }); 21] })),
            &["bad-rule rules[0].when.items"],
        ),
        (json!({ "id": "p", "when": {}, "outcome": "So" }), &["bad-rule rules[0].outcome"]),
        (json!({ "id": "p", "when": {}, "outcome": "so", "gate": { "item": "a" } }), &["bad-rule rules[0].gate"]),
        (json!({ "id": "p", "when": {}, "outcome": "so", "forEach": {} }), &["bad-rule rules[0].forEach"]),
        (json!({ "id": "p", "order": { "a": "b" } }), &["bad-rule rules[0].order.a"]),
        (json!({ "id": "p", "gate": {} }), &["bad-rule rules[0].gate.item"]),
        (create(json!([{ "again": "a", "item": {} }])), &["bad-rule rules[0].create[0]"]),
        (create(json!([{}])), &["bad-rule rules[0].create[0].item"]),
        (create(json!([{ "item": { "id": "x" } }])), &["missing-field rules[0].create[0].item.executor"]),
        (
            create(json!({ "id": "x", "executor": "command", "inputs": { "command": "true" } })),
            &["unknown-field rules[0].create.id"],
        ),
        (create(json!({ "executor": "nobody" })), &["unknown-executor rules[0].create.executor"]),
        (
            create(json!({ "executor": "command", "inputs": { "command": "true" }, "depends_on": ["ghost"] })),
            &["unknown-dependency rules[0].create.depends_on[0]"],
        ),
        (
            create(json!({ "executor": "command", "inputs": { "command": "true" }, "depends_on": ["p"] })),
            &["unknown-dependency rules[0].create.depends_on[0]"],
        ),
        (
            create(json!({ "executor": "command", "inputs": { "command": "true" },
            "needs": { "x": { "from": "a", "select": { "kind": "document", "name": "other" } } } })),
            &["undeclared-product rules[0].create.needs.x.select"],
        ),
        (
            create(json!({ "executor": "command", "inputs": { "command": "true" },
            "produces": [{ "kind": "document", "name": "made/x", "path": "m" }] })),
            &["bad-selector rules[0].create.produces"],
        ),
    ];
    for (rule, expected) in cases {
        assert_eq!(problems(&json!([rule]), None), expected, "{rule}");
    }
    assert_eq!(problems(&json!({}), None), ["bad-rule rules"]);
    assert_eq!(problems(&json!([rule("p", &json!({})), rule("P", &json!({}))]), None), ["bad-rule rules[1].id"]);
}

#[test]
fn rules_of_a_queue_are_validated_too() {
    let own = json!([rule("p", &json!({}))]);
    assert!(problems(&own, Some(&json!([rule("q", &json!({}))]).to_string())).is_empty());
    assert_eq!(problems(&own, Some("[{}")), ["bad-rule queue.rules"]);
    assert_eq!(problems(&own, Some("{}")), ["bad-rule queue.rules"]);
    assert_eq!(problems(&own, Some(&json!([rule("P", &json!({}))]).to_string())), ["bad-rule queue.rules[0].id"]);
    let unknown = json!([{ "id": "q", "when": {}, "create": { "executor": "nobody" } }]);
    assert_eq!(problems(&own, Some(&unknown.to_string())), ["unknown-executor queue.rules[0].create.executor"]);
}

/// Whether a condition holds of a document `d` with this text.
fn holds(document: &str, pointer: &str, op: &str, value: &Value) -> bool {
    let condition = json!({ "document": "d", "pointer": pointer, "op": op, "value": value });
    let rule = parsed(&rule("p", &json!({ "if": [condition] })));
    let read = |_: &_| Ok::<_, Infallible>(Arc::new(Values::read(Some(document.as_bytes()), [pointer].into_iter())));
    rule.checks(&document_states(&[("d", document)]), read).unwrap().iter().all(|check| check.holds)
}

#[test]
fn every_operator_compares_as_documented() {
    let of_numbers = [("<", [true, false, false]), ("<=", [true, true, false]), ("==", [false, true, false])]
        .into_iter()
        .chain([("!=", [true, false, true]), (">=", [false, true, true]), (">", [false, false, true])]);
    for (op, expected) in of_numbers {
        let found = ["7.5", "8.0", "9"].map(|number| holds(&format!("{{\"a\":{number}}}"), "/a", op, &json!(8)));
        assert_eq!(found, expected, "{op}");
        for other in ["\"8\"", "null", "true", "[8]", "{}"] {
            let is_other = holds(&format!("{{\"a\":{other}}}"), "/a", op, &json!(8));
            assert_eq!(is_other, op == "!=", "{other} {op} 8");
        }
    }
    for scalar in [json!("x"), json!(true), json!(null), json!(-0.5)] {
        let document = json!({ "a": scalar }).to_string();
        assert!(holds(&document, "/a", "==", &scalar) && !holds(&document, "/a", "!=", &scalar), "{scalar}");
        assert!(!holds(&document, "/a", "==", &json!("y")), "{scalar}");
    }
}

#[test]
fn incomparable_values_do_not_match() {
    let equal = |document: &str, pointer: &str| {
        holds(document, pointer, "==", &json!(1)) || holds(document, pointer, "!=", &json!(2))
    };
    assert!(equal("{\"a\":{\"b\":[0,1]}}", "/a/b/1") && equal("1", "") && equal("{\"~/\":1}", "/~0~1"));
    let nested = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);
    assert!(equal(&nested(127), &"/0".repeat(127)));
    let deep = nested(128);
    for (document, pointer) in [
        (deep.as_str(), ""),
        ("{\"a\":1}", "/b"),
        ("[1]", "/01"),
        ("[1]", "/-"),
        ("", ""),
        ("{\"a\":1", "/a"),
        ("{\"a\":1,\"a\":1}", "/a"),
        ("{\"a\":1,\"b\":NaN}", "/a"),
        ("{\"a\":1,\"b\":\"\\ud800\"}", "/a"),
    ] {
        assert!(!equal(document, pointer), "{document} {pointer}");
    }
    let large = parsed(&rule("p", &json!({ "if": [{ "document": "d", "pointer": "", "op": "==", "value": 1 }] })));
    let checks = large
        .checks(&document_states(&[("d", "1")]), |_: &_| {
            Ok::<_, Infallible>(Arc::new(Values::read(None, [""].into_iter())))
        })
        .unwrap();
    assert!(!checks[0].holds, "{checks:?}");
    insta::assert_snapshot!(checks[0].found, @"d == 1: d has more than 16777216 bytes");
}

#[test]
fn numbers_compare_exactly_however_long_they_are() {
    let long = "{\"id\":917204512345678901,\"score\":0.9,\"huge\":1e400,\"close\":0.80000000000000000000001}";
    for (pointer, op, value, expected) in [
        ("/score", ">=", 0.8, true),
        ("/score", "==", 0.9, true),
        ("/id", ">", 9_007_199_254_740_991.0, true),
        ("/id", "<", 0.0, false),
        ("/huge", ">", 1e15, true),
        ("/huge", "<=", 1e15, false),
        ("/close", ">", 0.8, true),
        ("/close", "==", 0.8, false),
        ("/close", "!=", 0.8, true),
        ("/close", "<", 0.9, true),
    ] {
        assert_eq!(holds(long, pointer, op, &json!(value)), expected, "{pointer} {op} {value}");
    }
    for (number, equal) in [("0.80", 0.8), ("8e-1", 0.8), ("-0.0", 0.0), ("1e3", 1000.0), ("1e-400", 0.0)] {
        assert_eq!(holds(number, "", "==", &json!(equal)), number != "1e-400", "{number}");
    }
}

#[test]
fn a_literal_that_would_be_compared_as_another_number_is_refused() {
    let refusals = |value: &str| {
        let when = json!({ "if": [{ "document": "d", "pointer": "", "op": ">=", "value": "VALUE" }] });
        let plan = json!({ "id": "r", "items": [item("a", "true")], "rules": [rule("p", &when)] });
        let plan = plan.to_string().replace("\"VALUE\"", value);
        let problems = git_handoff::plan::parse(plan.as_bytes()).map(drop).err();
        let own = format!("[{}]", rule("p", &when)).replace("\"VALUE\"", value);
        let in_queue = git_handoff::plan::parse_rules(own.as_bytes()).map(drop).err();
        let join =
            |listed_problems: Problems| listed_problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        (problems.map(join), in_queue.map(join))
    };
    for fine in ["0.8", "0.80", "8e-1", "0.30000000000000004", "9007199254740991", "-0.0", "5e-324", "1e3"] {
        assert_eq!(refusals(fine), (None, None), "{fine}");
    }
    for (lost, read) in [
        ("0.12345678901234567890", "0.12345678901234568"),
        ("1.0000000000000000001", "1.0"),
        ("1e-400", "0.0"),
        ("4503599627370495.3", "4503599627370495.5"),
    ] {
        let why =
            format!("[0].when.if[0].value: the number {lost} has too many digits: it would be compared as {read}");
        assert_eq!(
            refusals(lost),
            (Some(format!("bad-rule at rules{why}")), Some(format!("bad-rule at {why}"))),
            "{lost}"
        );
    }
    let why = refusals("917204512345678901").0.unwrap();
    insta::assert_snapshot!(why, @"not-json at rules[0].when.if[0].value: the integer 917204512345678901 is beyond ±(2^53−1), so readers would disagree about it; bad-rule at rules[0].when.if[0].value: expected a number, as this operator compares, found null");
}

#[test]
fn document_without_conditions_only_needs_to_exist() {
    let rule = parsed(&rule("p", &json!({ "present": ["a", "b/c"], "absent": ["d"] })));
    let fires = |documents: &[(&str, &str)]| {
        let read = |_: &_| -> Result<_, Infallible> { panic!("nothing is read") };
        rule.checks(&document_states(documents), read).unwrap().iter().all(|check| check.holds)
    };
    assert!(fires(&[("a", "1"), ("b/c", "1"), ("e", "1")]));
    assert!(!fires(&[("a", "1")]));
    assert!(!fires(&[("a", "1"), ("b/c", "1"), ("d", "1")]));
}

#[test]
fn created_item_id_depends_on_rule_and_documents() {
    let rule = parsed(&rule("p", &json!({ "present": ["a"], "absent": ["gone"] })));
    let id = |documents: &[(&str, &str)]| rule.item(&document_states(documents)).unwrap().id.to_string();
    // The vector of docs/reference/format.md.
    assert_eq!(id(&[("a", "1")]), "p-73da8b753180");
    let text = std::fs::read_to_string("docs/reference/format.md").unwrap();
    let definition = git_handoff::model::extension::definition(&rule.item(&document_states(&[("a", "1")])).unwrap());
    assert!(text.contains(std::str::from_utf8(&definition).unwrap()));
    assert_eq!(id(&[("a", "1"), ("unlooked", "x")]), id(&[("a", "1")]));
    assert_ne!(id(&[("a", "2")]), id(&[("a", "1")]));
    let mut second = document_states(&[("a", "1")]);
    second.get_mut(&name("a")).unwrap().revision = 2;
    assert_ne!(rule.item(&second).unwrap().id.to_string(), id(&[("a", "1")]));
}
