//! The schemas of answers, generated from their types: `HANDOFF_UPDATE_DOCS=1 cargo test docs::`
//! writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git_handoff::answers;
use serde_json::Value;

use crate::common;

/// Schemas of files that people or programs write, which no type describes as a whole.
const BY_HAND: [&str; 3] = ["attempt", "packet", "plan"];

/// The longest line of a value that is not broken, in bytes.
const WIDTH: usize = 140;

/// The order of keywords; others come before the definitions.
const ORDER: [&str; 5] = ["$schema", "title", "description", "type", "required"];

#[test]
fn the_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let update = std::env::var_os("HANDOFF_UPDATE_DOCS").is_some();
    let mut wrong = Vec::new();
    let mut expected = BTreeSet::from(BY_HAND.map(str::to_owned));
    for form in answers::list() {
        assert!(expected.insert(form.name.to_owned()), "{} is listed twice", form.name);
        let path = folder.join(format!("{}.json", form.name));
        let text = print(&form.schema(), 0, true) + "\n";
        if update {
            fs::write(&path, text).unwrap();
        } else if fs::read_to_string(&path).ok().is_none_or(|found| found != text) {
            wrong.push(form.name);
        }
    }
    assert!(wrong.is_empty(), "HANDOFF_UPDATE_DOCS=1 cargo test docs::schemas writes {wrong:?}");
    assert_eq!(expected, common::answers::schemas());
}

#[test]
fn every_field_of_an_answer_is_described() {
    let mut missing = Vec::new();
    for form in answers::list() {
        let schema = form.schema();
        let parts = schema["$defs"].as_object().into_iter().flatten().map(|(name, part)| (name.as_str(), part));
        for (name, part) in parts.chain([("", &schema)]) {
            assert!(
                name.is_empty() || part["description"].is_string() || part["oneOf"].is_array(),
                "{}: {name}",
                form.name
            );
            let tags = ["schema", "kind", "run", "thread", "archive"];
            for (field, is) in part["properties"].as_object().into_iter().flatten() {
                if is["description"].as_str().is_none_or(str::is_empty) && !tags.contains(&field.as_str()) {
                    missing.push(format!("{}: {name}.{field}", form.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "fields without a doc comment: {missing:#?}");
}

/// Prints a schema so that people can read it: short values on one line, keywords in a fixed order.
fn print(value: &Value, depth: usize, keywords: bool) -> String {
    let indent = "  ".repeat(depth);
    let line = in_one_line(value, keywords);
    if depth > 0 && indent.len() + line.len() <= WIDTH {
        return line;
    }
    let (open, close, items): (_, _, Vec<String>) = match value {
        Value::Object(fields) => {
            let items = sorted(fields, keywords).into_iter().map(|(name, inner)| {
                format!("{}: {}", Value::from(name), print(inner, depth + 1, !is_map(name, keywords)))
            });
            ("{", "}", items.collect())
        }
        Value::Array(all) => ("[", "]", all.iter().map(|inner| print(inner, depth + 1, true)).collect()),
        _ => return line,
    };
    format!("{open}\n  {indent}{}\n{indent}{close}", items.join(&format!(",\n  {indent}")))
}

fn in_one_line(value: &Value, keywords: bool) -> String {
    match value {
        Value::Object(fields) => {
            let items = sorted(fields, keywords)
                .into_iter()
                .map(|(name, inner)| format!("{}: {}", Value::from(name), in_one_line(inner, !is_map(name, keywords))));
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        Value::Array(all) => {
            format!("[{}]", all.iter().map(|inner| in_one_line(inner, true)).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns true for a keyword whose value has names of its own.
fn is_map(name: &str, keywords: bool) -> bool {
    keywords && matches!(name, "properties" | "$defs")
}

/// Returns the fields in the order in which they are printed.
fn sorted(fields: &serde_json::Map<String, Value>, keywords: bool) -> Vec<(&str, &Value)> {
    let mut all: Vec<_> = fields.iter().map(|(name, inner)| (name.as_str(), inner)).collect();
    if keywords {
        let place = |name: &str| match ORDER.iter().position(|one| *one == name) {
            Some(place) => place,
            None if name == "$defs" => ORDER.len() + 1,
            None => ORDER.len(),
        };
        all.sort_by_key(|(name, _)| place(name));
    }
    all
}
