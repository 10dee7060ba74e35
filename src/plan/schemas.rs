//! Validation of documents and inputs against registered schemas.
//!
//! Schemas are trusted, values are not. So values have limits of size and depth, patterns match in
//! linear time, and references cannot leave the schema.

#[cfg(feature = "schemas")]
mod compiled;
#[cfg(not(feature = "schemas"))]
#[path = "schemas/left_out.rs"]
mod compiled;

use serde_json::Value;

use crate::model::json::{self, JsonPath};
use crate::model::left_out::LeftOut;
use crate::model::printable::beginning;
use crate::model::registered::{Registered, Unreadable};
use crate::model::schema::Schema;

pub(super) use compiled::Compiled;

/// The maximum size of a document to validate, in bytes; it is held in memory.
pub const MAX_CHECKED: u64 = 16 << 20;

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
    let value = json::parse_all(bytes).map_err(|problems| {
        Unfit::NotJson(schema.clone(), problems.first().map(ToString::to_string).unwrap_or_default())
    })?;
    let Some(refusal) = compiled.refusal(&value, bytes.len()) else { return Ok(()) };
    // Errors after the first are counted, not shown.
    let more = refusal.more.map(|more| more + refusal.wrong.len().saturating_sub(1));
    let first = refusal.wrong.into_iter().next().unwrap_or_default();
    let place = beginning(&first.place, MAX_TEXT);
    Err(Unfit::Refused { schema: schema.clone(), place, why: format!("{}{}", first.why, and_more(more)) })
}

fn compiled(schemas: &Schemas, schema: &Schema) -> Result<Compiled, Unfit> {
    let text = schemas.get(schema).ok_or_else(|| Unfit::Unknown(schema.clone()))?;
    let text = text.map_err(|why| Unfit::Unreadable(schema.clone(), why))?;
    Compiled::new(text).map_err(|unusable| match unusable {
        Unusable::Invalid(why) => Unfit::BadSchema(schema.clone(), why),
        Unusable::LeftOut(why) => Unfit::LeftOut(schema.clone(), why),
    })
}

errors! {
    /// The reason why a schema cannot be compiled.
    #[expect(dead_code, reason = "a build makes only one of the two")]
    #[derive(Debug, thiserror::Error)] pub(super) enum Unusable;
    // It is no valid schema.
    Invalid(String): "is not valid: {0}";
    // This build compiles no schemas.
    LeftOut(LeftOut): "cannot be used: {0}";
}

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
    /// The place, as a JSON Pointer.
    pub(super) place: String,
    /// The steps of the place.
    pub(super) steps: Vec<Step>,
    /// The error, without quoting the value.
    pub(super) why: String,
}

/// A step from a value to one of its parts.
#[cfg_attr(not(feature = "schemas"), expect(dead_code, reason = "only the crate `jsonschema` makes them"))]
pub(super) enum Step {
    /// A member of an object.
    Key(String),
    /// An element of an array.
    Index(usize),
}

impl Wrong {
    /// Returns the path of the place in the value at a path.
    pub(super) fn below(&self, path: JsonPath) -> JsonPath {
        self.steps.iter().fold(path, |path, step| match step {
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        })
    }
}

errors! {
    /// The reason why a document does not match its schema.
    #[derive(Debug, thiserror::Error)] pub enum Unfit;
    Unknown(Schema): "the schema {0} is not registered here";
    Unreadable(Schema, Unreadable): "the schema {0} {1}";
    BadSchema(Schema, String): "the schema {0} is not valid: {1}";
    LeftOut(Schema, LeftOut): "the schema {0} cannot be used: {1}";
    TooLarge(Schema): "it is larger than {MAX_CHECKED} bytes, the most that is checked against a schema, {0}";
    NotJson(Schema, String): "it is not {0}: {1}";
    Refused { schema: Schema, place: String, why: String }: "it is not {schema}: {}{why}" [at(.place)];
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
