//! Validates the arguments of a call against the published schema.

use git_handoff::model::printable::beginning;
use git_handoff::model::problem::nearest;
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;

/// The longest value that an error repeats, in bytes.
const SHOWN: usize = 80;

/// Parameters that are contents: models pass an object where they are to pass its text.
const CONTENTS: [&str; 2] = ["state", "content"];

/// Removes unknown and null arguments.
///
/// Clients add their own arguments, such as Gemini's `wait_for_previous`. Returns notes about names
/// that are probably misspelt parameters.
pub(super) fn take_known(tool: &Tool, arguments: &mut JsonObject) -> Vec<String> {
    let known = parameters(tool);
    let mut notes = Vec::new();
    arguments.retain(|name, value| {
        let is_known = known.is_some_and(|known| known.contains_key(name));
        let names = known.into_iter().flat_map(JsonObject::keys).map(String::as_str);
        if let Some(near) = nearest(name, names).filter(|_| !is_known) {
            notes.push(format!("note: the argument {name:?} was ignored; did you mean {near:?}?"));
        }
        is_known && !value.is_null()
    });
    notes
}

/// Checks that each required argument is there, and each argument of the type that its parameter is
/// described with. Returns the reason if one is not.
///
/// An integral number such as 60.0 becomes an integer where one is required, because some clients
/// know only floats. An object may be given as text, and a text of contents as object or array.
pub(super) fn check(tool: &Tool, arguments: &mut JsonObject) -> Result<(), String> {
    let Some(parameters) = parameters(tool) else { return Ok(()) };
    let required = tool.input_schema.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(name) = required.filter_map(Value::as_str).find(|name| !arguments.contains_key(*name)) {
        return Err(format!("cannot call {}: missing field `{name}`", tool.name));
    }
    for (name, value) in arguments {
        let kind = parameters[name]["type"].as_str().unwrap_or_default();
        if kind == "integer"
            && let Some(whole) = to_integer(value)
        {
            *value = whole.into();
        }
        if CONTENTS.contains(&name.as_str()) && (value.is_object() || value.is_array()) {
            *value = value.to_string().into();
        }
        let fits = match kind {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            _ => value.is_object() || value.is_string(),
        };
        let words = parameters[name]["enum"].as_array();
        if fits && words.is_none_or(|words| words.contains(value)) {
            continue;
        }
        let expected = match (words, kind) {
            (Some(words), _) => format!("one of {}", Value::from(words.clone())),
            (None, "integer") => "an integer of at least 0".to_owned(),
            (None, "object") => "an object".to_owned(),
            (None, kind) => format!("a {kind}"),
        };
        let given = beginning(&value.to_string(), SHOWN);
        return Err(format!("cannot call {}: the argument {name:?} must be {expected}, not {given}", tool.name));
    }
    Ok(())
}

/// Returns the integer that a number with a decimal point is.
fn to_integer(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0)?;
    format!("{number:.0}").parse().ok()
}

fn parameters(tool: &Tool) -> Option<&JsonObject> {
    tool.input_schema.get("properties").and_then(Value::as_object)
}
