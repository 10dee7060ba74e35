//! The registered schemas of documents and inputs, and whether values are what one says.
//!
//! A JSON Schema is a program: a few bytes can ask for any time and any memory. So none is compiled or followed in this process.
//! Another one is started for it, of the program's own file, which first takes away from itself what it may not have; it looks
//! at nothing but what it is given, and no reference in a schema leads out of it.

mod apart;
mod bounds;
mod judge;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::registered::{Registered, Unreadable};
use crate::model::schema::Schema;

pub use apart::{COMMAND, Failed};
pub use judge::{Answer, Wrong, serve};

/// The largest document that is checked against a schema, in bytes: it is held in memory for that.
pub const MAX_CHECKED: u64 = 16 << 20;

/// What is registered here; whether a schema can be read and is valid shows when it is used.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// The JSON Schemas.
    pub known: Registered<Schema, Value>,
    /// The program that is started for each check, `git-handoff` itself; without one, none can be made, and nothing that has a
    /// schema is accepted.
    pub checker: Option<PathBuf>,
}

/// Makes sure that documents can be checked against a schema.
pub fn usable(schemas: &Schemas, schema: &Schema) -> Result<(), Unfit> {
    ask(schemas, schema, &[]).map(drop)
}

/// Makes sure that bytes are what a schema says.
///
/// They must be JSON that all readers understand in the same way. The first thing that is wrong is told, by its place and
/// without quoting the document.
pub fn check(schemas: &Schemas, schema: &Schema, bytes: &[u8]) -> Result<(), Unfit> {
    if bytes.len() as u64 > MAX_CHECKED {
        return Err(Unfit::TooLarge(schema.clone()));
    }
    match ask(schemas, schema, &[bytes])?.pop() {
        Some(Answer::Fits) => Ok(()),
        Some(Answer::NotJson(why)) => Err(Unfit::NotJson(schema.clone(), why)),
        Some(Answer::Refused { wrong, more }) => {
            // Whatever more was told is counted with what was not.
            let more = more.map(|more| more + wrong.len().saturating_sub(1));
            let first = wrong.into_iter().next().unwrap_or_default();
            let why = format!("{}{}", first.why, and_more(more));
            Err(Unfit::Refused { schema: schema.clone(), place: first.pointer(), why })
        }
        Some(Answer::Usable | Answer::BadSchema(_)) | None => Err(Unfit::Failed(schema.clone(), Failed::Silent)),
    }
}

/// Returns the answers to values, in their order.
fn ask(schemas: &Schemas, schema: &Schema, values: &[&[u8]]) -> Result<Vec<Answer>, Unfit> {
    let text = schemas.known.get(schema).ok_or_else(|| Unfit::Unknown(schema.clone()))?;
    let text = text.map_err(|why| Unfit::Unreadable(schema.clone(), why))?;
    let held = hold(schemas.checker.as_deref(), text, values);
    match (held.usable, held.failed) {
        (Err(why), _) => Err(Unfit::BadSchema(schema.clone(), why)),
        (Ok(()), Some(failed)) => Err(Unfit::Failed(schema.clone(), failed)),
        (Ok(()), None) => Ok(held.answers),
    }
}

/// What came of holding values against a schema.
#[derive(Debug)]
pub struct Held {
    /// Whether the schema is one, or why not.
    pub usable: Result<(), String>,
    /// The answers, in the order of the values.
    pub answers: Vec<Answer>,
    /// What happened over the first value that has no answer, or already over the schema.
    pub failed: Option<Failed>,
}

/// Holds values against a schema, in a process of its own and all of them within the bounds of one.
pub fn hold(checker: Option<&Path>, schema: &Value, values: &[&[u8]]) -> Held {
    let Some(checker) = checker else {
        return Held { usable: Ok(()), answers: Vec::new(), failed: Some(Failed::NoChecker) };
    };
    let (answers, failed) = apart::ask(checker, &schema.to_string(), values);
    let mut answers = answers.into_iter();
    let usable = match answers.next() {
        Some(Answer::BadSchema(why)) => Err(why),
        _ => Ok(()),
    };
    Held { usable, answers: answers.collect(), failed }
}

/// Why a document is not what it claims to be.
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
    #[error("it could not be checked against the schema {0}")]
    Failed(Schema, #[source] Failed),
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
