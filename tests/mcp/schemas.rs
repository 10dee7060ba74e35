//! The schemas of tools: small, and within the subset of JSON Schema that every model's API takes.

use serde_json::{Value, json};

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
    // The fields of an answer have their types, and the fields of all forms of a tool are there.
    let fields = &find("status")["outputSchema"]["properties"];
    assert_eq!(fields["items"], json!({"type": "array", "items": {"type": "object"}}));
    assert_eq!([&fields["run"], &fields["runs"]["type"]], [&json!({"type": "string"}), &json!("array")]);
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
