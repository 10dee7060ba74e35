//! The registered schemas of documents, and whether bytes are what one of them says. Pure.

use jsonschema::Validator;
use serde_json::Value;

use crate::model::json;
use crate::model::registered::{Registered, Unreadable};
use crate::model::schema::Schema;

/// The largest document that is checked against a schema, in bytes: it is held in memory for that.
pub const MAX_CHECKED: u64 = 16 << 20;

/// The JSON Schemas that are registered here; whether one can be read and is valid shows when it is used.
pub type Schemas = Registered<Schema, Value>;

/// Makes sure that documents can be checked against a schema.
pub fn usable(known: &Schemas, schema: &Schema) -> Result<(), Unfit> {
    compile(known, schema).map(drop)
}

/// Makes sure that bytes are what a schema says.
///
/// They must be JSON that all readers understand in the same way. The first thing that is wrong is told, by its place and
/// without quoting the document.
pub fn check(known: &Schemas, schema: &Schema, bytes: &[u8]) -> Result<(), Unfit> {
    let validator = compile(known, schema)?;
    if bytes.len() as u64 > MAX_CHECKED {
        return Err(Unfit::TooLarge(schema.clone()));
    }
    let value = json::parse(bytes).map_err(|problems| {
        Unfit::NotJson(schema.clone(), problems.first().map(ToString::to_string).unwrap_or_default())
    })?;
    let mut errors = validator.iter_errors(&value);
    let Some(first) = errors.next() else { return Ok(()) };
    let place = first.instance_path().to_string();
    let why = first.masked().to_string();
    Err(Unfit::Refused { schema: schema.clone(), place, why, more: errors.count() })
}

fn compile(known: &Schemas, schema: &Schema) -> Result<Validator, Unfit> {
    let text = known.get(schema).ok_or_else(|| Unfit::Unknown(schema.clone()))?;
    let text = text.map_err(|why| Unfit::Unreadable(schema.clone(), why))?;
    jsonschema::validator_for(text).map_err(|error| Unfit::BadSchema(schema.clone(), error.masked().to_string()))
}

/// Why a document is not what it claims to be.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There is nothing to check it against.
    #[error("the schema {0} is not registered here")]
    Unknown(Schema),
    /// What is registered as the schema cannot be read.
    #[error("the schema {0} {1}")]
    Unreadable(Schema, Unreadable),
    /// The schema is none.
    #[error("the schema {0} is not valid: {1}")]
    BadSchema(Schema, String),
    /// It is too large.
    #[error("it is larger than {MAX_CHECKED} bytes, the most that is checked against a schema, {0}")]
    TooLarge(Schema),
    /// Schemas are about JSON.
    #[error("it is not {0}: {1}")]
    NotJson(Schema, String),
    /// The schema refuses it.
    #[error("it is not {schema}: {}{why}{}", at(.place), and_more(*.more))]
    Refused {
        /// The schema.
        schema: Schema,
        /// The JSON pointer of what is wrong.
        place: String,
        /// What is wrong there.
        why: String,
        /// How much more is wrong.
        more: usize,
    },
}

/// The empty pointer is the whole document.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("at {place}: ") }
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}
