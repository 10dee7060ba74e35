//! The schemas of tools: small, and within the subset of JSON Schema that every model's API takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Client, repository};

/// The keywords of the subset, as Gemini's API documents it.
const KEYWORDS: [&str; 8] = ["type", "properties", "required", "items", "enum", "description", "minimum", "maximum"];

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// The most bytes of the whole list of tools, which is some 6,000 tokens.
const LIST: usize = 24_000;

/// Returns what is wrong with a schema, at any depth.
fn wrong(at: &str, schema: &Value, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        return found.push(format!("{at}: {schema} is no object"));
    };
    for (keyword, value) in keywords {
        let fits = match keyword.as_str() {
            "type" => value.as_str().is_some_and(|kind| TYPES.contains(&kind)),
            "enum" => {
                schema["type"] == "string" && value.as_array().is_some_and(|words| words.iter().all(Value::is_string))
            }
            "items" => schema["type"] == "array",
            "properties" => value.as_object().is_some_and(|properties| !properties.is_empty()),
            other => KEYWORDS.contains(&other),
        };
        if !fits {
            found.push(format!("{at}: {keyword}: {value}"));
        }
    }
    if schema["type"] == "array" && !schema["items"].is_object() {
        found.push(format!("{at}: an array without items"));
    }
    if let Some(items) = keywords.get("items") {
        wrong(&format!("{at}[]"), items, found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        wrong(&format!("{at}.{name}"), property, found);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if schema["properties"].get(name.as_str().unwrap_or_default()).is_none() {
            found.push(format!("{at}: {name} is required and not described"));
        }
    }
}

#[test]
fn every_schema_is_within_the_subset_that_all_models_take() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let answer = client.ask("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().expect("a list");
    let mut found = Vec::new();
    for tool in tools {
        for which in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[which]["type"], "object", "{tool}");
            wrong(&format!("{} {which}", tool["name"]), &tool[which], &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // A choice is an enum of strings, and an object is of one type.
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).expect("it is a tool");
    assert_eq!(find("checkpoint")["inputSchema"]["properties"]["encoding"]["enum"], json!(["utf-8", "base64"]));
    assert_eq!(find("submit")["inputSchema"]["properties"]["plan"]["type"], "object");
    assert_eq!(find("submit")["inputSchema"]["required"], json!(["plan"]));
    let forms = &find("status")["outputSchema"]["properties"]["schema"]["enum"];
    assert_eq!(*forms, json!(["git-handoff.status/1", "git-handoff.runs/1", "git-handoff.error/1"]));
    client.end();
}

#[test]
fn the_check_of_schemas_sees_what_models_refuse() {
    for schema in [
        json!({"type": ["string", "null"]}),
        json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
        json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/A"}}}}),
        json!({"type": "integer", "enum": [1, 2]}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "integer", "format": "uint64"}),
    ] {
        let mut found = Vec::new();
        wrong("", &schema, &mut found);
        assert!(!found.is_empty(), "{schema}");
    }
}

#[test]
fn the_list_of_tools_is_small() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let answer = client.ask("tools/list", &json!({}));
    let bytes = answer["result"].to_string().len();
    assert!(bytes < LIST, "the list of tools has {bytes} bytes");
    client.end();
}

/// Builds the schemas of answers from the published files, and compares. For a new tool, add its
/// forms to `answers.json` first.
///
/// A model may have to read all of them at the start of each session. So the schema of an answer
/// names its fields and their types, one level deep; the files below `docs/schema/` describe the
/// rest. Of the fields of errors, only the name of the form is listed.
#[test]
fn the_schemas_of_answers_are_those_that_are_published() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp/answers.json");
    let expected: BTreeMap<String, Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let made: BTreeMap<String, Value> = expected.keys().map(|forms| (forms.clone(), answer(forms))).collect();
    if std::env::var_os("HANDOFF_UPDATE_DOCS").is_some() {
        let mut text = String::from("{");
        for (at, (forms, schema)) in made.iter().enumerate() {
            write!(text, "{}\n{}: {schema}", if at == 0 { "" } else { "," }, json!(forms)).unwrap();
        }
        std::fs::write(&path, text + "\n}\n").unwrap();
    } else {
        assert_eq!(expected, made);
    }
}

fn answer(forms: &str) -> Value {
    let mut properties = Map::new();
    for form in forms.split('+') {
        for (name, field) in published(form)["properties"].as_object().into_iter().flatten() {
            add(&mut properties, name, shallow(form, field));
        }
    }
    add(&mut properties, "schema", shallow("error", &published("error")["properties"]["schema"]));
    json!({ "type": "object", "properties": properties })
}

/// Adds a field; one that several forms have allows what any of them allows.
fn add(properties: &mut Map<String, Value>, name: &str, field: Value) {
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

/// Returns the type of a field of a published form, without its contents. A field of several types
/// gets no type.
fn shallow(file: &str, field: &Value) -> Value {
    if let Some(text) = field["const"].as_str() {
        return json!({ "type": "string", "enum": [text] });
    }
    let field = resolved(file, field);
    match only_type(&field).as_deref() {
        // An array without a schema of its items is refused by Gemini.
        Some("array") => {
            let kind = only_type(&resolved(file, &field["items"]));
            json!({ "type": "array", "items": kind.map_or_else(|| json!({}), |kind| json!({ "type": kind })) })
        }
        Some(kind) => json!({ "type": kind }),
        None => json!({}),
    }
}

/// Returns the schema that a reference names, or the schema itself; a whole file is an object.
fn resolved(file: &str, schema: &Value) -> Value {
    let Some(reference) = schema["$ref"].as_str() else { return schema.clone() };
    let Some((to, definition)) = reference.split_once("#/$defs/") else { return json!({ "type": "object" }) };
    let to = if to.is_empty() { file } else { to.trim_end_matches(".json") };
    resolved(to, &published(to)["$defs"][definition])
}

/// Returns the only type of a schema; a set of words is a string.
fn only_type(schema: &Value) -> Option<String> {
    let words = schema["enum"].as_array().filter(|words| words.iter().all(Value::is_string));
    schema["type"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| words.filter(|_| schema["type"].is_null()).map(|_| "string".to_owned()))
}

fn published(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("it is JSON")
}
