//! Compiled schemas, by the crate `jsonschema`.

use jsonschema::paths::LocationSegment;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::{MAX_TEXT, Refusal, Step, Unusable, Wrong};
use crate::model::printable::beginning;
use crate::model::problems::MAX_PROBLEMS;

/// The maximum nesting depth of a value.
///
/// A schema that refers to itself twice doubles the work at each level.
const MAX_DEPTH: usize = 32;

/// The maximum size of a value for which all errors are listed; above it, only the first.
const MAX_COUNTED: usize = 256 << 10;

/// A compiled schema.
pub(in crate::plan) struct Compiled(Validator);

impl Compiled {
    /// Compiles a schema, or returns the reason why it is invalid.
    pub(in crate::plan) fn new(schema: &Value) -> Result<Self, Unusable> {
        // Later drafts make `format` optional; here it is always asserted.
        let options = jsonschema::options().should_validate_formats(true);
        let built = options.with_pattern_options(PatternOptions::regex()).build(schema);
        built.map(Self).map_err(|error| Unusable::Invalid(masked(&error)))
    }

    /// Returns the reason why the schema rejects a value of this JSON size, or `None` if it accepts
    /// it.
    pub(in crate::plan) fn refusal(&self, value: &Value, size: usize) -> Option<Refusal> {
        if is_deeper(value, MAX_DEPTH) {
            let why = format!("it nests arrays and objects more than {MAX_DEPTH} deep, the most that is checked");
            return Some(Refusal { wrong: vec![Wrong { why, ..Wrong::default() }], more: Some(0) });
        }
        let first = self.0.validate(value).err()?;
        if size > MAX_COUNTED {
            return Some(Refusal { wrong: vec![wrong(&first)], more: None });
        }
        let mut errors = self.0.iter_errors(value);
        let wrong: Vec<Wrong> = errors.by_ref().take(MAX_PROBLEMS).map(|error| wrong(&error)).collect();
        Some(Refusal { wrong, more: Some(errors.count()) })
    }
}

fn wrong(error: &ValidationError<'_>) -> Wrong {
    let place = error.instance_path();
    Wrong {
        place: place.as_str().to_owned(),
        steps: place
            .iter()
            .map(|segment| match segment {
                LocationSegment::Property(key) => Step::Key(key.into_owned()),
                LocationSegment::Index(index) => Step::Index(index),
            })
            .collect(),
        why: masked(error),
    }
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let Some(most) = most.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(list) => list.iter().any(|element| is_deeper(element, most)),
        Value::Object(map) => map.values().any(|element| is_deeper(element, most)),
        _ => false,
    }
}

fn masked(error: &ValidationError<'_>) -> String {
    beginning(&error.masked().to_string(), MAX_TEXT)
}
