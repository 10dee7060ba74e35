//! The schemas that clients read: small, and within the subset that every model's API takes.
//!
//! A model may have to read all of them whenever a session begins. So the schema of an answer names its fields and their types, one
//! level deep; the files below `docs/schema/` describe the rest. No schema has a list of types, `oneOf`, `const` or a reference:
//! Gemini refuses them.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// The form of every error.
const FAILED: &str = "error";

macro_rules! published {
    ($($name:literal),* $(,)?) => {
        /// The files below `docs/schema/` that describe answers of tools, each under its name.
        const PUBLISHED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../docs/schema/", $name, ".json")))),*];
    };
}

published! {
    "adopt",
    "check",
    "checkpoint",
    "common",
    "descriptor",
    "diff",
    "document",
    "document-content",
    "document-log",
    "documents",
    "error",
    "fetch",
    "fork",
    "piece",
    "push",
    "resume",
    "rollback",
    "runs",
    "schemas",
    "status",
    "subagents",
    "submit",
    "thread-verify",
    "threads",
    "validate",
    "verify",
    "watch",
}

/// The keywords of a parameter that clients get to see.
const KEYWORDS: [&str; 5] = ["type", "enum", "description", "minimum", "maximum"];

/// Returns the schema of a tool's arguments, from the one that the type of its parameters gives.
///
/// An optional parameter is one that is not required. Other arguments are allowed: clients add their own.
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
///
/// The fields of errors are left out, but for the name of their form: any answer may have more fields than its schema names.
pub(super) fn answer(forms: &[&str]) -> JsonObject {
    let mut properties = JsonObject::new();
    for form in forms {
        for (name, field) in published(form)["properties"].as_object().into_iter().flatten() {
            let field = shallow(form, field);
            let merged = match properties.get(name) {
                Some(before) if *before != field => merge(before, &field),
                _ => field,
            };
            properties.insert(name.clone(), merged);
        }
    }
    let failed = shallow(FAILED, &published(FAILED)["properties"]["schema"]);
    let merged = properties.get("schema").map_or_else(|| failed.clone(), |schema| merge(schema, &failed));
    properties.insert("schema".to_owned(), merged);
    object(properties, None)
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

/// Returns a schema that allows what either allows: the words of both, or anything.
fn merge(one: &Value, other: &Value) -> Value {
    match (one["enum"].as_array(), other["enum"].as_array()) {
        (Some(one), Some(other)) => {
            let words = [one.as_slice(), other].concat();
            json!({ "type": "string", "enum": words })
        }
        _ if one["type"] == other["type"] => json!({ "type": one["type"] }),
        _ => json!({}),
    }
}

/// Returns the type of a field of a published form, with nothing below it; a field of several types gets none.
fn shallow(file: &str, field: &Value) -> Value {
    if let Some(text) = field["const"].as_str() {
        return json!({ "type": "string", "enum": [text] });
    }
    let field = resolved(file, field);
    let mut shallow = Map::new();
    if let Some(kind) = only_type(&field).filter(|_| !is_nullable(&field)) {
        shallow.insert("type".to_owned(), kind.into());
        // An array without a schema of its items is refused by Gemini.
        if kind == "array" {
            let items = resolved(file, &field["items"]);
            let kind = only_type(&items).filter(|_| !is_nullable(&items));
            shallow.insert("items".to_owned(), kind.map_or_else(|| json!({}), |kind| json!({ "type": kind })));
        }
    }
    shallow.into()
}

/// Returns the schema that a reference names, or the schema itself; a whole file is an object.
fn resolved(file: &str, schema: &Value) -> Value {
    let Some(reference) = schema["$ref"].as_str() else { return schema.clone() };
    let Some((to, definition)) = reference.split_once("#/$defs/") else { return json!({ "type": "object" }) };
    let to = if to.is_empty() { file } else { to.trim_end_matches(".json") };
    resolved(to, &published(to)["$defs"][definition])
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

/// Returns true if a schema allows `null`, which no type of the subset does.
fn is_nullable(schema: &Value) -> bool {
    schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
}

/// Reads a published schema.
fn published(name: &str) -> Value {
    let (_, text) = PUBLISHED.iter().find(|(known, _)| *known == name).expect("every form that tools answer is listed");
    serde_json::from_str(text).expect("a test reads every published schema")
}
