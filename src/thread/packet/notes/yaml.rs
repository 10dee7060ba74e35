//! Parses YAML into JSON values, as far as a packet needs it.
//!
//! Every plain scalar is a string, except null and booleans, so that a date, a commit id or `no`
//! stays as written. Aliases are refused, because they can expand a small file.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Value};

use crate::model::json::JsonPath;
use crate::model::printable::cut;

/// The maximum nesting depth.
const MOST_DEEP: usize = 64;

/// The reason why a text is not accepted as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct Error {
    line: usize,
    what: String,
}

impl From<ScanError> for Error {
    fn from(error: ScanError) -> Self {
        Self { line: error.marker().line(), what: cut(error.info().to_owned()) }
    }
}

impl Error {
    /// Adds a line offset to the error.
    pub(super) fn below(self, lines: usize) -> Self {
        Self { line: self.line + lines, ..self }
    }
}

/// An unfinished list or object.
enum Open {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

/// Parses the only document of a text.
pub(super) fn read(text: &str) -> Result<Value, Error> {
    let mut open: Vec<Open> = Vec::new();
    let mut document = None;
    for event in Parser::new_from_str(text) {
        let (event, at) = event?;
        let error = |what: String| Err(Error { line: at.start.line(), what });
        let value = match event {
            Event::DocumentStart(_) if document.is_some() => return error("a second document begins".into()),
            Event::Alias(_) => return error("an alias (*NAME) is not allowed: write the text out".into()),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= MOST_DEEP => {
                return error(format!("more than {MOST_DEEP} lists and objects stand in each other"));
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Object(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Value::Array(list),
                Some(Open::Object(map, _)) => Value::Object(map),
                None => continue,
            },
            Event::Scalar(text, style, ..) => scalar(&text, style),
            _ => continue,
        };
        if let Some(whole) = put(&mut open, value, at)? {
            document = Some(whole);
        }
    }
    Ok(document.unwrap_or(Value::Null))
}

/// Adds a value to its parent; returns it if it is the document.
fn put(open: &mut [Open], value: Value, at: Span) -> Result<Option<Value>, Error> {
    let error = |what: String| Err(Error { line: at.start.line(), what });
    match open.last_mut() {
        None => return Ok(Some(value)),
        Some(Open::List(list)) => list.push(value),
        Some(Open::Object(map, key)) => match (key.take(), value) {
            (Some(name), value) => {
                map.insert(name, value);
            }
            (None, Value::String(name)) if map.contains_key(&name) => {
                return error(format!("{} stands here twice", JsonPath::root().key(&name)));
            }
            (None, Value::String(name)) => *key = Some(name),
            (None, Value::Bool(name)) => *key = Some(name.to_string()),
            (None, _) => return error("a key is no text".into()),
        },
    }
    Ok(None)
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" if style == ScalarStyle::Plain => Value::Null,
        "true" | "True" | "TRUE" if style == ScalarStyle::Plain => Value::Bool(true),
        "false" | "False" | "FALSE" if style == ScalarStyle::Plain => Value::Bool(false),
        text => Value::String(text.to_owned()),
    }
}

/// Returns possible comments with their lines, because a reader of the file sees them.
pub(super) fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let is_mark = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
        let mark = line.match_indices('#').map(|(at, _)| at).find(|at| is_mark(*at))?;
        Some((at + 1, line[mark..].trim_start_matches('#').trim())).filter(|(_, comment)| !comment.is_empty())
    })
}
