//! Every code, at the right path.

use super::{catalog, check, item, lines, plan_of};
use git_handoff::model::catalog::{Catalog, Shape};
use git_handoff::model::pipeline::Spec;
use git_handoff::plan::validate::{Code, validate};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One plan, and all that is wrong with it.
pub(super) struct Case(pub(super) Value, pub(super) &'static [&'static str]);

/// Returns all of them.
pub(super) fn all() -> impl Iterator<Item = Case> {
    form().into_iter().chain(needs()).chain(registered())
}

fn one(more: &Value) -> Value {
    plan_of(&[item("a", more)])
}

/// An item `a` with `produces`, and an item `b` that needs `select` of it.
fn pair(more: &Value, from: &str, select: &Value) -> Value {
    let needs = json!({"needs": {"k": {"from": from, "select": select}}});
    plan_of(&[item("a", more), item("b", &needs)])
}

fn form() -> Vec<Case> {
    let mut unknown = one(&json!({}));
    unknown["itmes"] = json!([]);
    let long = "x".repeat(129);
    vec![
        Case(json!([]), &["wrong-type "]),
        Case(json!({}), &["missing-field id", "missing-field items"]),
        Case(json!({"id": "r", "items": []}), &["no-items items"]),
        Case(json!({"id": "r", "items": "x"}), &["wrong-type items"]),
        Case(json!({"id": "r", "items": [{}]}), &["missing-field items[0].id", "missing-field items[0].executor"]),
        Case(unknown, &["unknown-field itmes"]),
        Case(json!({"id": "a/b", "items": [item("x", &json!({}))]}), &["bad-id id"]),
        Case(json!({"id": "@r", "items": [item("x", &json!({}))]}), &["reserved-id id"]),
        Case(plan_of(&[item(&long, &json!({}))]), &["bad-id items[0].id"]),
        Case(plan_of(&[item("e\u{301}", &json!({}))]), &["bad-id items[0].id"]),
        Case(one(&json!({"queue": null})), &["unknown-field items[0].queue"]),
        Case(one(&json!({"depends_on": null})), &["wrong-type items[0].depends_on"]),
        Case(one(&json!({"resourceLocks": [""]})), &["wrong-type items[0].resourceLocks[0]"]),
        Case(one(&json!({"resourceLocks": ["l", "m", "l"]})), &["duplicate-lock items[0].resourceLocks[2]"]),
        Case(one(&json!({"protect": ["tests", "../x"]})), &["bad-pathspec items[0].protect[1]"]),
        Case(one(&json!({"maxAttempts": 101})), &["wrong-type items[0].maxAttempts"]),
        Case(one(&json!({"timeout": 1.5})), &["wrong-type items[0].timeout"]),
        Case(json!({"id": "r", "openEnded": 1, "items": [item("x", &json!({}))]}), &["wrong-type openEnded"]),
        Case(
            json!({"id": "r", "rules": [3, {"id": "p"}, {"id": "p", "when": {}, "create": {}}], "items": [item("x", &json!({}))]}),
            &[
                "bad-rule rules[0]",
                "bad-rule rules[1].when",
                "bad-rule rules[1].create",
                "missing-field rules[2].create.executor",
                "bad-rule rules[2].id",
            ],
        ),
        Case(json!({"id": "r", "pattern": "pipes", "items": [item("x", &json!({}))]}), &["bad-pattern pattern"]),
        Case(
            plan_of(&[item("a", &json!({})), item("a", &json!({})), item("A", &json!({}))]),
            &["duplicate-id items[1].id", "duplicate-id items[2].id"],
        ),
    ]
}

fn needs() -> Vec<Case> {
    let key = |keys: &[&str]| {
        let need = json!({"from": "@documents", "select": {"kind": "document", "name": "n"}});
        let needs: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), need.clone())).collect();
        one(&json!({"needs": needs}))
    };
    let document = json!({"produces": [{"kind": "document", "name": "n", "schema": "n@1", "path": "n.json"}]});
    vec![
        Case(key(&[""]), &["bad-input-key items[0].needs[\"\"]"]),
        Case(key(&["a/.GIT/b"]), &["bad-input-key items[0].needs[\"a/.GIT/b\"]"]),
        Case(key(&["x", "X"]), &["bad-input-key items[0].needs.x"]),
        Case(key(&["x", "X/y"]), &["bad-input-key items[0].needs[\"X/y\"]"]),
        Case(pair(&json!({}), "ghost", &json!({"kind": "patch"})), &["unknown-producer items[1].needs.k.from"]),
        Case(pair(&json!({}), "@artefacts", &json!({"kind": "patch"})), &["unknown-producer items[1].needs.k.from"]),
        Case(pair(&json!({}), "b", &json!({"kind": "patch"})), &["self-dependency items[1].needs.k.from"]),
        Case(pair(&json!({}), "a", &json!({"kind": "bogus"})), &["bad-selector items[1].needs.k.select.kind"]),
        Case(pair(&json!({}), "a", &json!({"kind": "output"})), &["bad-selector items[1].needs.k.select.path"]),
        Case(
            pair(&json!({}), "a", &json!({"kind": "output", "path": "/etc"})),
            &["bad-selector items[1].needs.k.select.path"],
        ),
        Case(
            pair(&json!({}), "a", &json!({"kind": "document", "name": "n"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        Case(pair(&json!({}), "@artifacts", &json!({"kind": "patch"})), &["bad-selector items[1].needs.k.select"]),
        Case(pair(&json!({}), "@documents", &json!({"kind": "patch"})), &["bad-selector items[1].needs.k.select"]),
        Case(
            pair(&json!({}), "@artifacts", &json!({"kind": "output", "path": "s"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        Case(
            pair(&json!({"produces": [{"kind": "patch"}]}), "a", &json!({"kind": "output", "path": "s"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        Case(
            pair(&json!({"subagentShape": "dev.edit"}), "a", &json!({"kind": "output", "path": "s"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        Case(
            pair(&document, "a", &json!({"kind": "document", "name": "n", "schema": "m@1"})),
            &["type-mismatch items[1].needs.k"],
        ),
        Case(
            pair(&document, "a", &json!({"kind": "document", "name": "n", "schema": "n@2"})),
            &["type-mismatch items[1].needs.k"],
        ),
        Case(
            pair(&document, "a", &json!({"kind": "document", "name": "n", "schema": "n@one"})),
            &["bad-selector items[1].needs.k.select.schema"],
        ),
        Case(
            pair(&document, "a", &json!({"kind": "output", "path": "m.json"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        // A reader elsewhere does not have the shape.
        Case(
            pair(&json!({"subagentShape": "doc.write"}), "a", &json!({"kind": "document", "name": "n"})),
            &["undeclared-product items[1].needs.k.select"],
        ),
        Case(
            one(&json!({"produces": [{"kind": "document", "name": "n"}]})),
            &["bad-selector items[0].produces[0].path"],
        ),
        Case(
            one(&json!({"produces": [{"kind": "document", "name": "n", "schema": "n", "path": "n.json"}]})),
            &["bad-selector items[0].produces[0].schema"],
        ),
        Case(
            one(&json!({"produces": [{"kind": "document", "name": "n", "schema": "n@2", "path": "n.json"},
                {"kind": "document", "name": "m", "schema": "broken@1", "path": "m.json"}]})),
            &["unknown-shape items[0].produces[0].schema", "inputs-schema items[0].produces[1].schema"],
        ),
        Case(one(&json!({"produces": [{"kind": "patch"}, {"kind": "patch"}]})), &["bad-selector items[0].produces"]),
        Case(
            json!({"id": "r", "artifacts": {"../x": "f", "y": ""}, "items": [item("a", &json!({}))]}),
            &["bad-input-key artifacts[\"../x\"]", "wrong-type artifacts.y"],
        ),
    ]
}

fn registered() -> Vec<Case> {
    let load = json!({"subagentShape": "data.load", "needs": {"rows": {"from": "a", "select": {"kind": "patch"}}}});
    vec![
        Case(
            plan_of(&[item("a", &json!({"subagentShape": "dev.edit"})), item("b", &load)]),
            &["type-mismatch items[1].needs.rows"],
        ),
        Case(one(&json!({"executor": "dispatch"})), &["missing-field items[0].inputs.subagent"]),
        Case(
            one(&json!({"executor": "dispatch", "inputs": {"subagent": "verfiy"}})),
            &["unknown-subagent items[0].inputs.subagent"],
        ),
        Case(
            one(
                &json!({"executor": "dispatch", "inputs": {"subagent": "code-edit", "env": {"ANTHROPIC_BASE_URL": "http://x"}}}),
            ),
            &["reserved-key items[0].inputs.env"],
        ),
        Case(one(&json!({"executor": "k8s"})), &["unknown-executor items[0].executor"]),
        Case(one(&json!({"inputs": {}})), &["missing-field items[0].inputs.command"]),
        Case(one(&json!({"inputs": {"command": []}})), &["wrong-type items[0].inputs.command"]),
        Case(one(&json!({"inputs": {"command": ["true", 1]}})), &["wrong-type items[0].inputs.command"]),
        Case(one(&json!({"subagentShape": "dev.eidt"})), &["unknown-shape items[0].subagentShape"]),
        Case(
            one(&json!({"inputs": {"command": "true", "pipeline": "p"}})),
            &["unknown-pipeline items[0].inputs.pipeline"],
        ),
        Case(
            one(&json!({"inputs": {"command": "true", "inputRefs": {}}})),
            &["reserved-key items[0].inputs.inputRefs"],
        ),
        Case(
            one(&json!({"inputs": {"command": "true", "file": 1}, "subagentShape": "dev.edit"})),
            &["inputs-schema items[0].inputs.file"],
        ),
        Case(json!({"id": "r", "queue": "q", "items": [item("a", &json!({}))]}), &["unknown-queue queue"]),
        Case(plan_of(&[item("a", &json!({"depends_on": ["a"]}))]), &["self-dependency items[0].depends_on[0]"]),
        Case(plan_of(&[item("a", &json!({"depends_on": ["c"]}))]), &["unknown-dependency items[0].depends_on[0]"]),
        Case(
            plan_of(&[item("a", &json!({"depends_on": ["b"]})), item("b", &json!({"depends_on": ["a"]}))]),
            &["cycle items[0]"],
        ),
    ]
}

/// The problems that no plan of the tables has: those of other limits or of the bytes.
fn elsewhere() -> Vec<String> {
    let plan = plan_of(&[item("a", &json!({})), item("b", &json!({}))]).to_string();
    let tight =
        Catalog { reserved_in_base: ["inputs".into(), "outputs/x".into(), "inputs2/y".into()].into(), ..catalog() };
    let mut found = lines(&validate(plan.as_bytes(), &tight).unwrap_err());
    // Where there are too many items, nothing else is looked at.
    found.extend(lines(&validate(plan.as_bytes(), &Catalog { max_items: 1, ..tight }).unwrap_err()));
    let twice = plan.replacen("\"id\"", "\"id\":\"r\",\"id\"", 1);
    found.extend(lines(&validate(twice.as_bytes(), &catalog()).unwrap_err()));
    found.extend(lines(&validate(b"", &catalog()).unwrap_err()));
    let large = vec![b' '; 33 << 20];
    found.extend(lines(&validate(&large, &catalog()).unwrap_err()));
    found
}

#[test]
fn every_code_is_reported_where_it_belongs() {
    let mut reported = BTreeSet::new();
    for Case(plan, expected) in all() {
        let problems = check(&plan).expect_err(&plan.to_string());
        assert_eq!(lines(&problems), expected, "{plan}");
        reported.extend(problems.iter().map(|problem| problem.code.as_str().to_owned()));
    }
    let elsewhere = elsewhere();
    assert_eq!(
        elsewhere,
        [
            "reserved-path base",
            "reserved-path base",
            "too-many-items items",
            "duplicate-key id",
            "not-json ",
            "too-large "
        ]
    );
    reported.extend(elsewhere.iter().map(|line| line.split(' ').next().unwrap().to_owned()));
    // Sources outside the run are checked against the repository: see `elsewhere`.
    reported.insert("bad-source".to_owned());
    // Bases and files are looked for there too: see `plan::located`.
    reported.extend(["missing-base".to_owned(), "missing-artifact".to_owned()]);
    // Problems of a pipeline's file are reported when it is read.
    let of_pipeline = Spec::parse(br#"{"schemaVersion":1,"id":"a.b","blocks":[]}"#).expect_err("it has no block");
    assert_eq!(lines(&of_pipeline), ["bad-pipeline blocks"]);
    reported.insert("bad-pipeline".to_owned());
    let all: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(reported, all);
}

#[test]
fn problems_have_one_form_in_json() {
    let problems = check(&one(&json!({"executor": "comand"}))).unwrap_err();
    let expected = json!([{
        "code": "unknown-executor", "path": "items[0].executor",
        "message": "no executor \"comand\" is registered here", "hint": "did you mean `command`?",
    }]);
    assert_eq!(serde_json::to_value(problems).unwrap(), expected);
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}

#[test]
fn a_mismatch_names_the_edge() {
    let Case(plan, _) = registered().remove(0);
    let problems = check(&plan).unwrap_err();
    assert_eq!(problems[0].message, "a -> b (rows): patch is patch-ref, and dataset-ref is wanted");
}

#[test]
fn a_shape_is_read_strictly() {
    let wrong = json!({"inputShema": {}, "produces": [{"kind": "patch", "typ": "x"}], "consumes": {"k": 1}});
    assert_eq!(
        lines(&Shape::from_json(&wrong).unwrap_err()),
        ["unknown-field inputShema", "unknown-field produces[0].typ", "wrong-type consumes.k"]
    );
}

#[test]
fn a_schema_that_is_none_is_a_problem_not_a_crash() {
    let shape = Shape::from_json(&json!({"inputSchema": {"type": "nonsense"}})).unwrap();
    let catalog = Catalog { shapes: [("s".to_owned(), shape)].into(), ..catalog() };
    let plan = one(&json!({"subagentShape": "s"})).to_string();
    assert_eq!(lines(&validate(plan.as_bytes(), &catalog).unwrap_err()), ["inputs-schema items[0].subagentShape"]);
}
