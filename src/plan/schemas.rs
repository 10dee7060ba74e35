//! Validation of documents and inputs against registered schemas.
//!
//! Schemas are trusted, values are not. So values have limits of size and depth, patterns match in
//! linear time, and references cannot leave the schema.

use jsonschema::paths::Location;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::model::json;
use crate::model::printable::beginning;
use crate::model::problems::MAX_PROBLEMS;
use crate::model::registered::{Registered, Unreadable};
use crate::model::schema::Schema;

/// The maximum size of a document to validate, in bytes; it is held in memory.
pub const MAX_CHECKED: u64 = 16 << 20;

/// The maximum nesting depth of a value.
///
/// A schema that refers to itself twice doubles the work at each level.
const MAX_DEPTH: usize = 32;

/// The maximum size of a value for which all errors are listed; above it, only the first.
const MAX_COUNTED: usize = 256 << 10;

/// The maximum length of an error and of its path, in bytes.
const MAX_TEXT: usize = 512;

/// The JSON Schemas registered here. Each is read when it is first used.
pub type Schemas = Registered<Schema, Value>;

/// Checks that a schema is registered and valid.
pub fn usable(schemas: &Schemas, schema: &Schema) -> Result<(), Unfit> {
    compiled(schemas, schema).map(drop)
}

/// Validates bytes against a schema.
///
/// They must be unambiguous JSON. The error names the place of the first fault without quoting the
/// document.
pub fn check(schemas: &Schemas, schema: &Schema, bytes: &[u8]) -> Result<(), Unfit> {
    if bytes.len() as u64 > MAX_CHECKED {
        return Err(Unfit::TooLarge(schema.clone()));
    }
    let compiled = compiled(schemas, schema)?;
    let not_json = |problems: crate::model::problems::Problems| {
        Unfit::NotJson(schema.clone(), problems.first().map(ToString::to_string).unwrap_or_default())
    };
    let value = json::parse_all(bytes).map_err(not_json)?;
    let Some(refusal) = compiled.refusal(&value, bytes.len()) else { return Ok(()) };
    // Errors after the first are counted, not shown.
    let more = refusal.more.map(|more| more + refusal.wrong.len().saturating_sub(1));
    let first = refusal.wrong.into_iter().next().unwrap_or_default();
    let place = beginning(first.at.as_str(), MAX_TEXT);
    Err(Unfit::Refused { schema: schema.clone(), place, why: format!("{}{}", first.why, and_more(more)) })
}

fn compiled(schemas: &Schemas, schema: &Schema) -> Result<Compiled, Unfit> {
    let text = schemas.get(schema).ok_or_else(|| Unfit::Unknown(schema.clone()))?;
    let text = text.map_err(|why| Unfit::Unreadable(schema.clone(), why))?;
    Compiled::new(text).map_err(|why| Unfit::BadSchema(schema.clone(), why))
}

/// A compiled schema.
pub(super) struct Compiled(Validator);

/// The reason why a schema rejects a value.
pub(super) struct Refusal {
    /// The first errors, at least one.
    pub(super) wrong: Vec<Wrong>,
    /// The number of other errors, or `None` if they were not counted.
    pub(super) more: Option<usize>,
}

/// An error in a value.
#[derive(Default)]
pub(super) struct Wrong {
    /// The place.
    pub(super) at: Location,
    /// The error, without quoting the value.
    pub(super) why: String,
}

impl Compiled {
    /// Compiles a schema, or returns the reason why it is invalid.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        // Later drafts make `format` optional; here it is always asserted.
        let options = jsonschema::options().should_validate_formats(true);
        let built = options.with_pattern_options(PatternOptions::regex()).build(schema);
        built.map(Self).map_err(|error| masked(&error))
    }

    /// Returns the reason why the schema rejects a value of this JSON size, or `None` if it accepts
    /// it.
    pub(super) fn refusal(&self, value: &Value, size: usize) -> Option<Refusal> {
        if is_deeper(value, MAX_DEPTH) {
            let why = format!("it nests arrays and objects more than {MAX_DEPTH} deep, the most that is checked");
            return Some(Refusal { wrong: vec![Wrong { at: Location::new(), why }], more: Some(0) });
        }
        let wrong = |error: &ValidationError<'_>| Wrong { at: error.instance_path().clone(), why: masked(error) };
        let first = self.0.validate(value).err()?;
        if size > MAX_COUNTED {
            return Some(Refusal { wrong: vec![wrong(&first)], more: None });
        }
        let mut errors = self.0.iter_errors(value);
        let wrong: Vec<Wrong> = errors.by_ref().take(MAX_PROBLEMS).map(|error| wrong(&error)).collect();
        Some(Refusal { wrong, more: Some(errors.count()) })
    }
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let Some(most) = most.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(list) => list.iter().any(|value| is_deeper(value, most)),
        Value::Object(map) => map.values().any(|value| is_deeper(value, most)),
        _ => false,
    }
}

fn masked(error: &ValidationError<'_>) -> String {
    beginning(&error.masked().to_string(), MAX_TEXT)
}

/// The reason why a document does not match its schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unfit {
    #[error("the schema {0} is not registered here")]
    Unknown(Schema),
    #[error("the schema {0} {1}")]
    Unreadable(Schema, Unreadable),
    #[error("the schema {0} is not valid: {1}")]
    BadSchema(Schema, String),
    #[error("it is larger than {MAX_CHECKED} bytes, the most that is checked against a schema, {0}")]
    TooLarge(Schema),
    #[error("it is not {0}: {1}")]
    NotJson(Schema, String),
    #[error("it is not {schema}: {}{why}", at(.place))]
    Refused { schema: Schema, place: String, why: String },
}

/// The empty pointer is the whole document.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("at {place}: ") }
}

fn and_more(more: Option<usize>) -> String {
    match more {
        Some(0) => String::new(),
        Some(more) => format!(" (and {more} more)"),
        None => " (and perhaps more)".to_owned(),
    }
}
