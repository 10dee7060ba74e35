//! The published schema of a plan says what the reader says, as far as a schema can know.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git_handoff::plan::parse;
use git_handoff::plan::validate::Problem;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::codes::Case;
use super::{check, codes, item, plan_of};
use crate::common::{Environment, answers, examples};

/// Replacement values for every value of a plan.
fn others() -> [Value; 9] {
    [
        json!(null),
        json!(true),
        json!(0),
        json!(-1.5),
        json!(""),
        json!(" padded "),
        json!("@other"),
        json!([]),
        json!({}),
    ]
}

/// A plan that has every field, in every form.
fn whole() -> Value {
    let run = json!({"executor": "command", "inputs": {"command": ["true"]}, "replaces": "two"});
    let document = json!({"kind": "document", "name": "review/notes", "schema": "notes@1"});
    json!({
        "$schema": "schema/plan.json", "id": "a run, ünï", "queue": "default", "pattern": "dag", "base": "main", "openEnded": true,
        "artifacts": {"spec.md": "docs/spec.md", "a/b c": "x"},
        "items": [
            item("one/1", &json!({"onProtectedChange": "judge", "resourceLocks": ["l", "m"], "timeout": 315_360_000, "maxAttempts": 100, "produces": [
                {"kind": "patch", "type": "diff"},
                {"kind": "output", "path": "out/a.json", "schema": "n@1", "type": "report"},
                {"kind": "document", "name": "review/notes", "path": "n.json", "schema": "notes@1", "type": "notes"}]})),
            item("two", &json!({"inputs": {"command": "true", "more": [null, 1]}, "depends_on": ["one/1", "one/1"], "needs": {
                "patch": {"from": "one/1", "select": {"kind": "patch"}, "apply": true}, "in/a": {"from": "one/1", "select": {"kind": "output", "path": "out/a.json"}},
                "spec": {"from": "@artifacts", "select": {"kind": "output", "path": "spec.md"}}, "notes": {"from": "@documents", "select": document},
                "made": {"run": "there/other", "from": "x/y", "select": {"kind": "document", "name": "d"}},
                "state": {"thread": "t", "from": "3-0c3b84d1aa07", "select": {"kind": "output", "path": "state"}},
                "packet": {"thread": "origin/t", "select": {"kind": "output", "path": "packet.json"}}}})),
            {"id": "edit", "executor": "dispatch", "inputs": {"subagent": "code-edit", "file": "x"}, "subagentShape": "dev.edit"},
            {"id": "ok", "executor": "approval", "inputs": {"approvers": ["SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg"]}},
            {"id": "plain", "executor": "approval"},
        ],
        "rules": [
            {"id": "first", "when": {"present": ["review/notes"], "absent": ["gone"], "atMost": 10_000, "if": [
                {"document": "review/notes", "pointer": "/score/~0", "op": ">=", "value": 1.5}, {"document": "review/notes", "pointer": "", "op": "!=", "value": null}]},
             "create": run},
            {"id": "second", "when": {"items": [
                {"items": ["two"], "are": "done"}, {"items": ["two"], "are": ["red", "failed"], "op": ">", "value": 0},
                {"items": ["two"], "have": "out/a.json"}, {"createdBy": "first", "count": "rounds", "op": "<", "value": 3}]},
             "forEach": {"outputsOf": "one/1"},
             "create": [
                {"item": {"id": "again-{{key}}-{{n}}", "executor": "command", "inputs": {"command": ["true"]}, "continues": "two",
                          "needs": {"patch": {"from": "one/1", "select": {"kind": "patch"}}}},
                 "optional": ["patch"], "reasons": {"why": "two"},
                 "each": {"outputsOf": "one/1", "key": "all/{{key}}", "from": "one/1", "select": {"kind": "patch"}, "survivors": true}},
                {"again": "two"}]},
            {"id": "third", "when": {}, "outcome": "needs-review"},
            {"id": "fourth", "order": {"two": ["one/1"]}},
            {"id": "fifth", "gate": {"item": "two", "blocks": true, "votes": false}},
        ],
    })
}

/// Says what is wrong with a plan by its form alone, as the reader finds it.
fn read(plan: &Value) -> Vec<String> {
    let problems = parse(plan.to_string().as_bytes()).err().into_iter().flatten();
    problems.map(|problem: Problem| problem.to_string()).collect()
}

/// Returns the pointers of all values of a plan.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, child)| {
            places(child, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), all);
        }),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, element)| places(element, &format!("{at}/{index}"), all));
        }
        _ => {}
    }
}

/// Returns every plan that differs from one in one value, field or name.
fn mutants(plan: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut pointers = Vec::new();
    places(plan, "", &mut pointers);
    let with = |at: &str, change: &dyn Fn(&mut Value)| {
        let mut other = plan.clone();
        change(other.pointer_mut(at).expect("there is a value"));
        other
    };
    for at in &pointers {
        all.extend(others().iter().map(|new| with(at, &|value| *value = new.clone())));
        match plan.pointer(at).expect("there is a value") {
            Value::Object(map) => {
                all.push(with(at, &|value| value["unknown"] = json!("x")));
                for key in map.keys() {
                    all.push(with(at, &|value| drop(value.as_object_mut().expect("it is an object").remove(key))));
                    for name in ["../x", "a//b", "x/.GIT", "\u{a0}x", "x\u{7}"] {
                        all.push(with(at, &|value| {
                            let second_map = value.as_object_mut().expect("it is an object");
                            let inner = second_map.remove(key).expect("it is there");
                            second_map.insert(name.to_owned(), inner);
                        }));
                    }
                }
            }
            Value::Array(list) if !list.is_empty() => {
                all.push(with(at, &|value| {
                    let second_list = value.as_array_mut().expect("it is an array");
                    second_list.push(second_list[0].clone());
                }));
            }
            Value::String(text) => {
                for new in [
                    format!("{text}\n"),
                    format!("{text}/.."),
                    format!("{text}@1"),
                    text.to_uppercase(),
                    format!("{text}.git/a"),
                ] {
                    all.push(with(at, &|value| *value = json!(new)));
                }
            }
            Value::Number(_) => {
                all.extend([1_u64 << 52, 101, 10_001].map(|new| with(at, &|value| *value = json!(new))));
            }
            _ => {}
        }
    }
    all
}

/// Returns whether a problem is one that no schema can know: of two values that differ in a way
/// that JSON does not, or that stand in different places.
fn is_beyond(problem: &str) -> bool {
    let beyond = [
        "stands here twice",
        "cannot stand side by side",
        "cannot be files side by side",
        "another rule has the id",
        "would wait for itself",
        "can never be both absent and there",
        "bytes a segment",
        "128 bytes",
        "form C",
    ];
    beyond.iter().any(|words| problem.contains(words))
}

#[test]
fn the_schema_refuses_nothing_that_the_reader_takes_and_takes_nothing_that_it_refuses() {
    let schema = answers::published("plan");
    let whole = whole();
    assert_eq!(read(&whole), [""; 0]);
    assert!(schema.is_valid(&whole), "{:?}", wrong(&schema, &whole));
    let (mut refused, mut accepted) = (0, 0);
    for plan in mutants(&whole) {
        let (problems, found) = (read(&plan), wrong(&schema, &plan));
        if problems.is_empty() {
            // The schema includes the executors' required inputs, but nothing specific to a
            // repository.
            let known = found.is_empty() || check(&plan).is_err();
            assert!(known, "the reader takes, and the schema refuses: {found:?}\n{plan}");
            accepted += 1;
        } else if !problems.iter().all(|problem| is_beyond(problem)) {
            assert!(!found.is_empty(), "the reader refuses, and the schema takes: {problems:?}\n{plan}");
            refused += 1;
        }
    }
    assert!(refused > 1000 && accepted > 500, "{refused} refused, {accepted} taken");
}

#[test]
fn schema_matches_the_table_of_codes() {
    let schema = answers::published("plan");
    let mut unseen = BTreeSet::new();
    for Case(plan, lines) in codes::all() {
        if schema.is_valid(&plan) {
            unseen.extend(lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()));
        }
    }
    // Names of other items and of what is registered, one of which may be meant without a name;
    // types of edges; names by their bytes; paths of one place.
    let beyond = [
        "bad-id",
        "bad-input-key",
        "bad-pathspec",
        "bad-selector",
        "cycle",
        "duplicate-id",
        "inputs-schema",
        "missing-field",
        "self-dependency",
        "type-mismatch",
        "undeclared-product",
        "unknown-dependency",
        "unknown-executor",
        "unknown-pipeline",
        "unknown-producer",
        "unknown-queue",
        "unknown-shape",
        "unknown-subagent",
    ];
    assert_eq!(unseen, beyond.map(str::to_owned).into());
}

#[test]
fn validate_and_the_schema_agree_on_examples_and_on_what_is_broken() {
    let schema = answers::published("plan");
    for folder in fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(text) = fs::read_to_string(folder.join("plan.json")) else { continue };
        let env = Environment::example(folder.file_name().unwrap().to_str().unwrap());
        assert_eq!(list_problems(&env, &text), json!([]), "{}", folder.display());
        assert_eq!(wrong(&schema, &serde_json::from_str(&text).unwrap()), [""; 0], "{}", folder.display());
    }
    let env = Environment::example("handoff-dag");
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/plan.md")).unwrap();
    let plan_text = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    env.write("repo/docs/spec.md", "# Spec\n");
    let mut plan: Value = serde_json::from_str(plan_text).unwrap();
    plan["$schema"] = json!("docs/schema/plan.json");
    assert_eq!(list_problems(&env, &plan.to_string()), json!([]));
    assert_eq!(wrong(&schema, &plan), [""; 0]);
    let broken = [
        ("unknown-field", json!({"id": "r", "itmes": []})),
        ("wrong-type", json!({"$schema": 1, "id": "r", "items": [item("a", &json!({}))]})),
        ("bad-id", json!({"id": "a/b", "items": [item("a", &json!({}))]})),
        ("reserved-id", plan_of(&[item("@a", &json!({}))])),
        ("unknown-field", plan_of(&[item("a", &json!({"dependsOn": []}))])),
        ("unknown-field", plan_of(&[item("a", &json!({"replaces": "b"}))])),
        ("wrong-type", plan_of(&[item("a", &json!({"maxAttempts": 0}))])),
        ("missing-field", plan_of(&[json!({"id": "a", "executor": "command"})])),
        ("wrong-type", plan_of(&[item("a", &json!({"inputs": {"command": " "}}))])),
        ("unknown-field", plan_of(&[json!({"id": "a", "executor": "approval", "timeout": 1})])),
        ("no-items", plan_of(&[])),
        ("bad-pattern", json!({"id": "r", "pattern": "pipes", "items": [item("a", &json!({}))]})),
        ("bad-rule", json!({"id": "r", "rules": [{"id": "p", "when": {}}], "items": [item("a", &json!({}))]})),
    ];
    for (code, broken_plan) in broken {
        let problems = list_problems(&env, &broken_plan.to_string());
        assert!(problems.as_array().unwrap().iter().any(|problem| problem["code"] == code), "{code}: {problems}");
        assert!(!schema.is_valid(&broken_plan), "the schema takes {broken_plan}");
    }
}

/// Returns what `validate` says is wrong with a plan.
fn list_problems(env: &Environment, plan: &str) -> Value {
    env.write("repo/asked.json", plan);
    let output = env.handoff(["validate", "--json", "asked.json"]);
    serde_json::from_str::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))["problems"]
        .clone()
}

fn wrong(schema: &Validator, plan: &Value) -> Vec<String> {
    schema.iter_errors(plan).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
