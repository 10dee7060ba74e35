//! The other side: reads a schema and values, and answers for each. Runs within the bounds, and is ended at them.

use std::io::{self, Read, Write};

use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::json;
use crate::model::printable::beginning;
use crate::model::problems::MAX_PROBLEMS;

use super::bounds;

/// The largest value of which everything that is wrong is told; of a larger one the first thing is.
const MAX_COUNTED: usize = 256 << 10;

/// The longest text in an answer, in bytes; also the most of a place.
const MAX_SAID: usize = 1024;

/// What is said of one value, or of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The schema is one; this comes first.
    Usable,
    /// The schema accepts it.
    Fits,
    /// It is not JSON, or JSON that readers understand differently.
    NotJson(String),
    /// The schema refuses it.
    Refused {
        /// What is wrong: the first thing, and as many more as can be told.
        wrong: Vec<Wrong>,
        /// How much more is wrong; none where that was not counted.
        more: Option<usize>,
    },
    /// The schema is none.
    BadSchema(String),
}

/// One thing that is wrong with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// Where: the keys, as strings, and the indices, as numbers, that lead there.
    pub at: Vec<Value>,
    /// What, without quoting the value.
    pub why: String,
}

impl Wrong {
    /// Returns the place as a JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let token = |step: &Value| match step {
            Value::String(key) => key.replace('~', "~0").replace('/', "~1"),
            other => other.to_string(),
        };
        self.at.iter().flat_map(|step| ["/".to_owned(), token(step)]).collect()
    }
}

/// Answers: a line of JSON for the schema, and, if it is one, a line for each value.
///
/// The bounds are entered first, so this is for a process that does nothing else. `input` is the schema and then the values, each
/// after the number of its bytes, eight of them, the lowest first.
pub fn serve(input: &mut dyn Read, output: &mut dyn Write) -> io::Result<()> {
    bounds::enter();
    let Some(schema) = piece(input)? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    // What is registered was read as JSON.
    let schema: Value = serde_json::from_slice(&schema)?;
    // Later drafts leave `format` to the reader: here it counts in all of them.
    let schema = match jsonschema::options().should_validate_formats(true).build(&schema) {
        Ok(schema) => schema,
        Err(error) => return answer(output, &Answer::BadSchema(cut(&error.masked().to_string()))),
    };
    answer(output, &Answer::Usable)?;
    let mut room = MAX_PROBLEMS;
    while let Some(bytes) = piece(input)? {
        let said = judge(&schema, &bytes, room);
        if let Answer::Refused { wrong, .. } = &said {
            room = room.saturating_sub(wrong.len());
        }
        answer(output, &said)?;
    }
    Ok(())
}

fn judge(schema: &Validator, bytes: &[u8], room: usize) -> Answer {
    let value = match json::parse_all(bytes) {
        Ok(value) => value,
        Err(problems) => return Answer::NotJson(problems.first().map(ToString::to_string).unwrap_or_default()),
    };
    if schema.is_valid(&value) {
        return Answer::Fits;
    }
    if bytes.len() > MAX_COUNTED {
        let first = schema.validate(&value).err();
        return refused(first.iter().map(told).collect(), None);
    }
    let mut errors = schema.iter_errors(&value);
    let wrong = errors.by_ref().take(room.max(1)).map(|error| told(&error)).collect();
    refused(wrong, Some(errors.count()))
}

/// Refuses a value, for one reason at least: what is refused never looks like what is accepted.
fn refused(mut wrong: Vec<Wrong>, more: Option<usize>) -> Answer {
    if wrong.is_empty() {
        wrong.push(Wrong { at: Vec::new(), why: "the schema refuses it".to_owned() });
    }
    Answer::Refused { wrong, more }
}

fn told(error: &ValidationError<'_>) -> Wrong {
    let mut left = MAX_SAID;
    let mut at = Vec::new();
    for step in error.instance_path() {
        let step = match step {
            LocationSegment::Property(key) => Value::from(cut(&key)),
            LocationSegment::Index(index) => Value::from(index),
        };
        let length = step.as_str().map_or(0, str::len) + 8;
        if length > left {
            at.push(Value::from("…"));
            break;
        }
        left -= length;
        at.push(step);
    }
    Wrong { at, why: cut(&error.masked().to_string()) }
}

fn cut(text: &str) -> String {
    beginning(text, MAX_SAID / 2)
}

fn answer(output: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    serde_json::to_writer(&mut *output, answer)?;
    output.write_all(b"\n")?;
    // What was found of this value counts, whatever the next one does.
    output.flush()
}

/// Reads what comes next; none at the end.
fn piece(input: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    let mut first = [0];
    if input.read(&mut first)? == 0 {
        return Ok(None);
    }
    length[0] = first[0];
    input.read_exact(&mut length[1..])?;
    let mut bytes = vec![0; usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?];
    input.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}
