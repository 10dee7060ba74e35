//! Plans: what is accepted, what is refused, and that every problem is reported at once.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

mod codes;
mod graphs;
mod json;
mod located;
mod names;
mod schema;

use git_handoff::model::catalog::{Catalog, Shape};
use git_handoff::model::digest::Digest;
use git_handoff::model::graph::Graph;
use git_handoff::model::name::{FilePath, ItemId};
use git_handoff::model::plan::{Need, Selector, Source};
use git_handoff::plan::validate::{Problem, Problems, ValidPlan, validate, validate_extension};
use git_handoff::plan::{parse, parse_item};
use serde_json::{Value, json};

use crate::common::assert_output;

/// The two worked examples of the plan format.
const FANOUT: &str = r#"{ "id": "fanout-1", "queue": "default", "items": [
  { "id": "edit-alpha", "executor": "dispatch", "inputs": { "subagent": "code-edit", "workerInput": { "file": "alpha.ts" } }, "depends_on": [], "resourceLocks": ["fixture/alpha.ts"] },
  { "id": "edit-beta", "executor": "dispatch", "inputs": { "subagent": "code-edit", "workerInput": { "file": "beta.ts" } }, "depends_on": [], "resourceLocks": ["fixture/beta.ts"] },
  { "id": "edit-shared", "executor": "dispatch", "inputs": { "subagent": "code-edit", "workerInput": { "file": "shared.ts" } }, "depends_on": [], "resourceLocks": ["fixture/shared.ts"] },
  { "id": "verify", "executor": "dispatch", "inputs": { "subagent": "verify" }, "depends_on": ["edit-alpha", "edit-beta", "edit-shared"], "resourceLocks": [] } ]}"#;
const HANDOFF: &str = r#"{ "id": "handoff-dag-1", "queue": "default", "items": [
  { "id": "edit-a", "executor": "dispatch", "inputs": { "subagent": "code-edit", "workerInput": { "file": "src/main.ts" } }, "depends_on": [], "resourceLocks": [] },
  { "id": "apply-patch", "executor": "dispatch", "inputs": { "subagent": "apply-patch" }, "depends_on": [], "resourceLocks": [], "needs": { "patch": { "from": "edit-a", "select": { "kind": "patch" } } } } ]}"#;

fn catalog() -> Catalog {
    let shape = |value: Value| Shape::from_json(&value).expect("a valid shape");
    let edit = shape(json!({
        "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}},
        "produces": [{"kind": "patch", "type": "patch-ref"}],
    }));
    let write = shape(json!({"produces": [{"kind": "document", "name": "n", "schema": "n@1", "path": "n.json"}]}));
    let load = shape(json!({"consumes": {"rows": "dataset-ref", "patch": "patch-ref"}}));
    Catalog {
        subagents: ["apply-patch", "code-edit", "verify"].map(str::to_owned).into(),
        shapes: [("dev.edit".to_owned(), edit), ("data.load".to_owned(), load), ("doc.write".to_owned(), write)].into(),
        schemas: [("n@1", json!({})), ("notes@1", json!({"type": "object"})), ("broken@1", json!({"type": "nothing"}))]
            .map(|(schema, text)| (schema.parse().expect("a schema"), text))
            .into(),
        ..Catalog::default()
    }
}

fn check(plan: &Value) -> Result<ValidPlan, Problems> {
    validate(plan.to_string().as_bytes(), &catalog())
}

/// An item that runs `true`, with what `more` says besides.
fn item(id: &str, more: &Value) -> Value {
    let mut item = json!({"id": id, "executor": "command", "inputs": {"command": ["true"]}});
    for (key, value) in more.as_object().expect("an object") {
        item[key] = value.clone();
    }
    item
}

fn plan_of(items: &[Value]) -> Value {
    json!({"id": "r", "items": items})
}

fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {}", problem.code, problem.path)).collect()
}

#[test]
fn the_worked_examples_are_valid() {
    let fanout = validate(FANOUT.as_bytes(), &catalog()).unwrap();
    assert_eq!(fanout.bytes(), FANOUT.as_bytes());
    assert_eq!(fanout.plan().items[3].depends_on.len(), 3);
    let graph = Graph::new(fanout.plan());
    let waiting = graph.dependents(graph.position(&ItemId::parse("edit-beta").unwrap()).unwrap());
    assert_eq!(waiting, [graph.position(&ItemId::parse("verify").unwrap()).unwrap()]);

    let handoff = validate(HANDOFF.as_bytes(), &catalog()).unwrap();
    let apply = handoff.plan().items.iter().find(|item| item.id.as_str() == "apply-patch").unwrap();
    assert!(apply.depends_on.is_empty());
    assert_eq!(apply.dependencies(), [ItemId::parse("edit-a").unwrap()]);
    assert_eq!(apply.to_json()["depends_on"], json!(["edit-a"]));
    assert_eq!(Digest::compute(handoff.bytes()), Digest::compute(HANDOFF.as_bytes()));
    assert_eq!(&parse(HANDOFF.as_bytes()).unwrap(), handoff.plan());
}

#[test]
fn defaults_are_filled_in_and_the_normalised_item_reads_back() {
    let plan = json!({"id": "r", "openEnded": true, "artifacts": {"spec.md": "docs/spec.md"}, "items": [
        item("a", &json!({"produces": [
            {"kind": "patch", "type": "patch-ref"}, {"kind": "output", "path": "x/y.bin"},
            {"kind": "document", "name": "notes", "schema": "notes@1", "path": "notes.json"}]})),
        item("b", &json!({"depends_on": ["a", "a"], "timeout": 30, "maxAttempts": 3, "resourceLocks": ["l"],
            "subagentShape": "data.load", "needs": {
                "z": {"from": "a", "select": {"kind": "output", "path": "x/y.bin"}},
                "patch": {"from": "a", "select": {"kind": "patch"}},
                "notes": {"from": "a", "select": {"kind": "document", "name": "notes", "schema": "notes@1"}},
                "any": {"from": "@documents", "select": {"kind": "document", "name": "other"}},
                "spec": {"from": "@artifacts", "select": {"kind": "output", "path": "spec.md"}}}})),
    ]});
    let valid = check(&plan).unwrap();
    let second_plan = valid.plan();
    assert_eq!((second_plan.queue.as_str(), second_plan.open_ended), ("default", true));
    for item in &second_plan.items {
        let json = item.to_json();
        let read = parse_item(json.to_string().as_bytes()).unwrap();
        assert_eq!(read.to_json(), json);
    }
    assert_output!("normalised_item", serde_json::to_string_pretty(&second_plan.items[1].to_json()).unwrap());
}

#[test]
fn the_file_that_becomes_a_document_can_be_had_as_an_output_as_well() {
    let plan = |path: &str| {
        let document = json!({"produces": [{"kind": "document", "name": "n", "schema": "n@1", "path": "n.json"}]});
        let need = json!({"needs": {"k": {"from": "a", "select": {"kind": "output", "path": path}}}});
        check(&plan_of(&[item("a", &document), item("b", &need)]))
    };
    plan("n.json").unwrap();
    assert_eq!(lines(&plan("m.json").unwrap_err()), ["undeclared-product items[1].needs.k.select"]);
}

#[test]
fn a_need_has_one_form_in_json() {
    let json = json!({"from": "@documents", "select": {"kind": "document", "name": "n", "schema": "n@1"}});
    let need: Need = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(need.from, Source::Documents);
    assert_eq!(serde_json::to_value(&need).unwrap(), json);
    assert_eq!(need.to_json(), json);
    for wrong in [
        json!({"from": "@nobody", "select": {"kind": "patch"}}),
        json!({"from": "a", "select": {"kind": "patch", "path": "x"}}),
        json!({"from": "a", "select": {"kind": "output", "path": "../x"}}),
        json!({"from": "a", "select": {"kind": "patch"}, "more": 1}),
    ] {
        assert!(serde_json::from_value::<Need>(wrong.clone()).is_err(), "{wrong}");
    }
    let key = Selector::Output { path: FilePath::parse("a/b").unwrap() }.product_key();
    assert_eq!(key.to_string(), "outputs/a/b");
    assert_eq!("outputs/a/b".parse(), Ok(key));
    assert!("outputs/../b".parse::<git_handoff::model::plan::ProductKey>().is_err());
}

#[test]
fn a_plan_names_schemas_by_whole_versions() {
    let of = |field: &str, schema: &str| match field {
        "select" => json!({"needs": {"k": {"from": "@documents", "select":
            {"kind": "document", "name": "n", "schema": schema}}}}),
        _ => json!({"produces": [{"kind": "document", "name": "n", "schema": schema, "path": "n.json"}]}),
    };
    let check = |field: &str, schema: &str| check(&plan_of(&[item("a", &of(field, schema))]));
    for (schema, form) in [
        ("n@^1", "n@1"),
        ("n@1.0.0", "n@1"),
        ("n@>=1, <3", "n@1"),
        ("n@01", "n@1"),
        ("n@0", "n@N"),
        ("n@*", "n@N"),
        ("n@2147483648", "n@N"),
    ] {
        for field in ["select", "produces"] {
            let problems = check(field, schema).expect_err(schema);
            let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
            let why = format!(
                "{schema:?} is no schema: write {form}; versions are whole numbers from 1 and are wanted by equality"
            );
            assert_eq!(messages, [why.as_str()], "{field}");
        }
    }
    check("produces", "n@1").unwrap();
    check("produces", "n").unwrap_err();
    for name in ["n", "n@1", "n@2147483647"] {
        check("select", name).unwrap();
    }
}

#[test]
fn problems_of_form_and_of_meaning_are_reported_together() {
    let plan = json!({"id": "", "queue": "defualt", "items": [
        item("a", &json!({"depends_on": ["b"], "need": {}})),
        item("b", &json!({"depends_on": ["a"], "timeout": 0})),
        item("@c", &json!({"executor": "comand"})),
        item("d", &json!({"depends_on": ["@c", "bb"], "needs": {
            "../x": {"from": "ghost", "select": {"kind": "patch"}}, "odd key": {"from": "d"}}})),
        7,
    ]});
    assert_eq!(
        lines(&check(&plan).unwrap_err()),
        [
            "bad-id id",
            "unknown-field items[0].need",
            "wrong-type items[1].timeout",
            "reserved-id items[2].id",
            "bad-input-key items[3].needs[\"../x\"]",
            "missing-field items[3].needs[\"odd key\"].select",
            "wrong-type items[4]",
            "unknown-queue queue",
            "unknown-dependency items[3].depends_on[1]",
            "unknown-producer items[3].needs[\"../x\"].from",
            "self-dependency items[3].needs[\"odd key\"].from",
            "cycle items[0]",
            "unknown-executor items[2].executor",
        ]
    );
}

#[test]
fn a_reference_that_nothing_can_answer_to_is_reported_even_unvalidated() {
    let more = json!({"depends_on": ["@x"], "needs": {"k": {"from": "", "select": {"kind": "patch"}}}});
    let plan = plan_of(&[item("a", &more)]).to_string();
    let expected = ["bad-id items[0].depends_on[0]", "bad-id items[0].needs.k.from"];
    assert_eq!(lines(&parse(plan.as_bytes()).unwrap_err()), expected);
    let item = item("a", &more).to_string();
    assert_eq!(lines(&parse_item(item.as_bytes()).unwrap_err()), ["bad-id depends_on[0]", "bad-id needs.k.from"]);
}

#[test]
fn plan_text_cannot_control_a_terminal() {
    let hostile = "a\u{1b}]0;x\u{7}\u{9b}2J";
    let plan = json!({"id": hostile, hostile: 1, "items": [
        item(hostile, &json!({"depends_on": [hostile, "b"]})), item("b", &json!({"depends_on": [hostile]}))]});
    let problems = check(&plan).unwrap_err();
    assert_eq!(problems.len(), 5);
    for problem in problems {
        assert!(!format!("{problem} {:?}", problem.hint).contains(char::is_control), "{problem}");
    }
}

#[test]
fn extension_is_checked_against_existing_items() {
    let submitted = check(&plan_of(&[item("a", &json!({})), item("b", &json!({}))])).unwrap();
    let submitted = submitted.plan();
    let extend = |items: &[Value]| {
        let bytes = plan_of(items).to_string();
        validate_extension(submitted, &submitted.items, bytes.as_bytes(), &catalog())
    };
    let added = extend(&[item("c", &json!({"depends_on": ["a", "d"]})), item("d", &json!({}))]);
    assert_eq!(added.unwrap().len(), 2);
    let refused = extend(&[item("x", &json!({})), item("A", &json!({"depends_on": ["ghost"]}))]);
    assert_eq!(lines(&refused.unwrap_err()), ["duplicate-id items[1].id", "unknown-dependency items[1].depends_on[0]"]);
}
