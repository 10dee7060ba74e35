//! Generates the schema of a type as the documentation shows it.

use std::mem;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::model::formats;

/// The prefix and suffix of the names of forms.
const FORM: (&str, &str) = ("git-handoff.", "/1");

/// The place of definitions in a schema.
const DEFINITIONS: &str = "#/$defs/";

/// Returns the schema of an answer, in one document.
///
/// The schema describes what the program writes: a field that may be left out is never null. Other
/// fields are allowed, because later versions may add some.
pub(super) fn whole<T: JsonSchema>(name: Option<&str>) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    let mut definitions = match schema.as_object_mut().and_then(|schema| schema.remove("$defs")) {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let mut keys = Map::new();
    for one in definitions.values_mut().chain([&mut schema]) {
        tidy(one, &mut keys);
    }
    for (key, is) in keys {
        definitions.entry(key).or_insert(is);
    }
    if let Some(name) = name {
        add_tag(&mut schema, name);
        schema["title"] = format!("{}{name}{}", FORM.0, FORM.1).into();
    }
    let renamed = definitions.into_iter().map(|(key, mut definition)| match short(&key) {
        Some(short) => {
            add_tag(&mut definition, short);
            (short.to_owned(), definition)
        }
        None => (key, definition),
    });
    let by_short_name: Map<String, Value> = renamed.collect();
    if !by_short_name.is_empty() {
        schema["$defs"] = by_short_name.into();
    }
    schema
}

/// Returns the short name of a form.
fn short(name: &str) -> Option<&str> {
    name.strip_prefix(FORM.0)?.strip_suffix(FORM.1)
}

/// Adds the field `schema` to the schema of a form. Schemars ignores the tag of a struct.
fn add_tag(schema: &mut Value, name: &str) {
    schema["properties"]["schema"] = json!({ "const": format!("{}{name}{}", FORM.0, FORM.1) });
    match &mut schema["required"] {
        Value::Array(required) => {
            required.retain(|one| one != "schema");
            required.insert(0, "schema".into());
        }
        other => *other = json!(["schema"]),
    }
}

/// Reduces a schema to the keywords that say something, at any depth. Collects the formats of the
/// keys of maps.
fn tidy(schema: &mut Value, keys: &mut Map<String, Value>) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| tidy(one, keys)),
        Value::Object(fields) => {
            for (keyword, value) in fields.iter_mut() {
                if matches!(keyword.as_str(), "properties" | "patternProperties") {
                    value.as_object_mut().into_iter().flatten().for_each(|(_, one)| tidy(one, keys));
                } else if !matches!(keyword.as_str(), "const" | "enum" | "required") {
                    tidy(value, keys);
                }
            }
            tidy_keywords(fields, keys);
        }
        _ => {}
    }
}

fn tidy_keywords(fields: &mut Map<String, Value>, keys: &mut Map<String, Value>) {
    for keyword in ["default", "format", "title"] {
        fields.remove(keyword);
    }
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        if fields.get(keyword) == Some(&Value::Bool(false)) {
            fields.remove(keyword);
        }
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = plain(text);
    }
    if let Some(Value::String(reference)) = fields.get_mut("$ref") {
        let name = reference.strip_prefix(DEFINITIONS).map(|name| name.replace("~1", "/").replace("~0", "~"));
        if let Some(name) = name.as_deref().and_then(short) {
            *reference = format!("{DEFINITIONS}{name}");
        }
    }
    drop_skipped(fields);
    name_keys(fields, keys);
    join_words(fields);
    drop_nulls(fields);
}

/// Drops what serde skips in a variant: schemars lists it as neither read nor written.
fn drop_skipped(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    let is_skipped = |property: &Value| property["readOnly"] == true && property["writeOnly"] == true;
    let skipped: Vec<String> =
        properties.iter().filter(|(_, property)| is_skipped(property)).map(|(name, _)| name.clone()).collect();
    properties.retain(|name, _| !skipped.contains(name));
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|one| !skipped.iter().any(|name| one == name));
    }
}

/// Describes the keys of a map by their format.
fn name_keys(fields: &mut Map<String, Value>, keys: &mut Map<String, Value>) {
    let Some(Value::Object(patterns)) = fields.remove("patternProperties") else { return };
    for (pattern, value) in patterns {
        let names = formats::with_pattern(&pattern).map(|(name, schema)| {
            keys.insert(name.to_owned(), schema);
            json!({ "$ref": format!("{DEFINITIONS}{name}") })
        });
        fields.insert("propertyNames".to_owned(), names.unwrap_or_else(|| json!({ "pattern": pattern })));
        fields.insert("additionalProperties".to_owned(), value);
    }
}

/// Lists the words of an enum without data in one `enum`.
fn join_words(fields: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = fields.get("oneOf") else { return };
    let words: Option<Vec<Vec<Value>>> = choices.iter().map(words).collect();
    if let Some(words) = words {
        fields.remove("oneOf");
        fields.insert("type".to_owned(), "string".into());
        fields.insert("enum".to_owned(), words.concat().into());
    }
}

/// Returns the words of a choice, or `None` if it is no choice of words.
fn words(choice: &Value) -> Option<Vec<Value>> {
    let words = match (&choice["const"], &choice["enum"]) {
        (word @ Value::String(_), _) => vec![word.clone()],
        (_, Value::Array(words)) => words.clone(),
        _ => return None,
    };
    (choice["type"] == "string").then_some(words)
}

/// Refuses null in fields that may be left out.
fn drop_nulls(fields: &mut Map<String, Value>) {
    let required = fields.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        let Some(property) = property.as_object_mut() else { continue };
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|one| one != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(words)) = property.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
            if let [only] = choices.as_mut_slice() {
                let only = mem::take(only);
                property.remove("anyOf");
                for (keyword, value) in only.as_object().cloned().unwrap_or_default() {
                    property.entry(keyword).or_insert(value);
                }
            }
        }
    }
}

/// Returns a doc comment as a text: without line breaks inside a paragraph, and without links.
fn plain(text: &str) -> String {
    let paragraphs: Vec<String> = text.split("\n\n").map(|part| part.replace('\n', " ")).collect();
    let mut rest = paragraphs.join("\n\n");
    let mut plain = String::new();
    while let Some((before, inside)) = rest.split_once("[`") {
        let Some((name, after)) = inside.split_once("`]") else { break };
        plain.extend([before, "`", name, "`"]);
        let end = after.strip_prefix('(').and_then(|link| link.find(')'));
        rest = end.map_or(after, |end| &after[end + 2..]).to_owned();
    }
    plain + &rest
}
