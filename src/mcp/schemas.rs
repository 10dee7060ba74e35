//! The schemas that clients read: small, and within the subset that every model's API takes.
//!
//! A model may have to read all schemas in every session. So the schema of an answer has its fields
//! and types, one level deep; the whole schema is in `docs/schema/`. No schema has a list of
//! types, `oneOf`, `const` or a reference, because Gemini refuses them.

use std::sync::LazyLock;

use git_handoff::answers;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

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
///
/// An error adds only the name of its form.
pub(super) fn answer(forms: &[&str]) -> JsonObject {
    static ERROR: LazyLock<Value> = LazyLock::new(|| schema("error"));
    let mut properties = JsonObject::new();
    for form in forms {
        let whole = schema(form);
        for (name, field) in whole["properties"].as_object().into_iter().flatten() {
            add(&mut properties, name, shallow(&whole, field));
        }
    }
    add(&mut properties, "schema", shallow(&ERROR, &ERROR["properties"]["schema"]));
    properties.insert("warnings".to_owned(), json!({ "type": "array", "items": { "type": "string" } }));
    object(properties, None)
}

/// Returns the whole schema of a form.
fn schema(form: &str) -> Value {
    answers::schema(form).expect("every tool answers with a form of the list")
}

/// Adds a field; one that several forms have allows what any of them allows.
fn add(properties: &mut JsonObject, name: &str, field: Value) {
    let field = match properties.get(name) {
        Some(before) if *before != field => match (before["enum"].as_array(), field["enum"].as_array()) {
            (Some(one), Some(other)) => json!({ "type": "string", "enum": ([one.as_slice(), other].concat()) }),
            _ if before["type"] == field["type"] => json!({ "type": before["type"] }),
            _ => json!({}),
        },
        _ => field,
    };
    properties.insert(name.to_owned(), field);
}

/// Returns the type of a field, without its contents. A field of several types gets no type.
fn shallow(whole: &Value, field: &Value) -> Value {
    if let Some(text) = field["const"].as_str() {
        return json!({ "type": "string", "enum": [text] });
    }
    let field = resolved(whole, field);
    match field["type"].as_str() {
        // Gemini refuses an array without a schema of its items.
        Some("array") => {
            let items = resolved(whole, &field["items"]);
            let kind = items["type"].as_str().map_or_else(|| json!({}), |kind| json!({ "type": kind }));
            json!({ "type": "array", "items": kind })
        }
        Some(kind) => json!({ "type": kind }),
        None => json!({}),
    }
}

/// Returns the schema that a reference names, or the schema itself; another file is an object.
fn resolved(whole: &Value, schema: &Value) -> Value {
    let Some(reference) = schema["$ref"].as_str() else { return schema.clone() };
    match reference.strip_prefix("#/$defs/") {
        Some(name) => resolved(whole, &whole["$defs"][name]),
        None => json!({ "type": "object" }),
    }
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
