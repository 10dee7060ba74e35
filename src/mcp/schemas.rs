//! The schemas that clients read: small, and within the subset that every model's API takes.
//!
//! A model may have to read all schemas in every session. So the schema of an answer has its fields
//! and types, one level deep; the files in `docs/schema/` have the rest. No schema has a list of
//! types, `oneOf`, `const` or a reference, because Gemini refuses them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The schemas of answers, by their forms. A test builds them from the files below `docs/schema/`.
const ANSWERS: &str = include_str!("answers.json");

/// The keywords of a parameter that clients get to see.
const KEYWORDS: [&str; 5] = ["type", "enum", "description", "minimum", "maximum"];

/// Returns the schema of a tool's arguments, from the one that the type of its parameters gives.
///
/// Optional parameters are not required. Other arguments are allowed, because clients add their
/// own.
pub(super) fn input(derived: &JsonObject) -> JsonObject {
    let mut properties = JsonObject::new();
    for (name, parameter) in derived.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(name.clone(), plain(parameter).into());
    }
    object(properties, derived.get("required").cloned())
}

/// Returns a parameter as every client understands it.
fn plain(parameter: &Value) -> JsonObject {
    let mut plain = JsonObject::new();
    for keyword in KEYWORDS {
        if let Some(value) = parameter.get(keyword) {
            plain.insert(keyword.to_owned(), value.clone());
        }
    }
    if let Some(kind) = only_type(parameter) {
        plain.insert("type".to_owned(), kind.into());
    }
    if let Some(words) = parameter["oneOf"].as_array() {
        let words = words.iter().filter_map(|word| word.get("const")).cloned().collect();
        plain.insert("type".to_owned(), "string".into());
        plain.insert("enum".to_owned(), Value::Array(words));
    }
    plain
}

/// Returns the schema of a tool's answer, which has one of these forms or is an error.
pub(super) fn answer(forms: &[&str]) -> JsonObject {
    static READ: LazyLock<BTreeMap<String, JsonObject>> =
        LazyLock::new(|| serde_json::from_str(ANSWERS).expect("a test reads the file"));
    let mut schema = READ.get(&forms.join("+")).expect("a test lists every tool").clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        && properties.contains_key("schema")
    {
        properties.insert("warnings".to_owned(), json!({ "type": "array", "items": { "type": "string" } }));
    }
    schema
}

/// Returns the schema of an object.
fn object(properties: JsonObject, required: Option<Value>) -> JsonObject {
    let mut schema = JsonObject::from_iter([("type".to_owned(), json!("object"))]);
    // Gemini takes an object without properties, but not an empty list of them.
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    schema.extend(required.map(|required| ("required".to_owned(), required)));
    schema
}

/// Returns the one type that a schema allows besides `null`; a set of words is a string.
fn only_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        _ => schema["enum"].as_array().filter(|words| words.iter().all(Value::is_string)).map(|_| "string"),
    }
}
