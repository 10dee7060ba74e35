//! Compares JSON documents by field. Pure.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::parse;
use crate::model::printable;

/// The maximum size of a document, in bytes.
pub const MOST_READ: usize = 16 << 20;

/// The maximum number of listed changes.
const MOST_CHANGES: usize = 1000;

/// The maximum total size of listed pointers and values as JSON, in bytes.
const MOST_BYTES: usize = 256 << 10;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Added.
    Added,
    /// Removed.
    Removed,
    /// Changed.
    Changed,
}

/// A difference; an added or removed field has its whole value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Change {
    /// The JSON pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// The kind.
    pub kind: Kind,
    /// The old value; absent if added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value; absent if removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The differences, in order of names and indices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The listed ones.
    pub listed: Vec<Change>,
    /// The number of others.
    pub more: usize,
    bytes: usize,
}

impl Changes {
    /// Compares two documents; `None` if one is not unambiguous JSON, or too large.
    pub fn between(old: &[u8], new: &[u8]) -> Option<Self> {
        if old.len().max(new.len()) > MOST_READ {
            return None;
        }
        Some(Self::from_values(&parse(old).ok()?, &parse(new).ok()?))
    }

    /// Compares two values.
    pub fn from_values(old: &Value, new: &Value) -> Self {
        let mut changes = Self::default();
        changes.compare("", Some(old), Some(new));
        changes
    }

    fn compare(&mut self, pointer: &str, old: Option<&Value>, new: Option<&Value>) {
        let kind = match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => return self.objects(pointer, old, new),
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                for at in 0..old.len().max(new.len()) {
                    self.compare(&format!("{pointer}/{at}"), old.get(at), new.get(at));
                }
                return;
            }
            (Some(old), Some(new)) if old == new => return,
            (Some(_), Some(_)) => Kind::Changed,
            (None, Some(_)) => Kind::Added,
            (Some(_), None) => Kind::Removed,
            (None, None) => return,
        };
        let bytes = self.bytes
            + pointer.len()
            + old.map_or(0, |old| old.to_string().len())
            + new.map_or(0, |new| new.to_string().len());
        // The listed ones are the first, without gaps.
        if self.more > 0 || self.listed.len() == MOST_CHANGES || bytes > MOST_BYTES {
            self.more += 1;
            return;
        }
        self.bytes = bytes;
        self.listed.push(Change { pointer: pointer.to_owned(), kind, before: old.cloned(), after: new.cloned() });
    }

    fn objects(&mut self, pointer: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            self.compare(&pointer, old.get(name), new.get(name));
        }
    }

    /// Formats the changes, with truncated values.
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("… and {} more", self.more));
        self.listed.iter().map(Change::line).chain(more).collect()
    }
}

/// The maximum length of a value and of a pointer in a line.
const MOST_LETTERS: usize = 200;

impl Change {
    fn line(&self) -> String {
        let pointer = if self.pointer.is_empty() { "\"\"".to_owned() } else { cut(self.pointer.clone()) };
        let (before, after) = (cut_value(self.before.as_ref()), cut_value(self.after.as_ref()));
        match self.kind {
            Kind::Added => format!("+ {pointer}  {after}"),
            Kind::Removed => format!("- {pointer}  {before}"),
            Kind::Changed => format!("~ {pointer}  {before} -> {after}"),
        }
    }
}

fn cut_value(value: Option<&Value>) -> String {
    value.map_or_else(String::new, |value| cut(printable::json(&value.to_string())))
}

/// Truncates a text for a line.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MOST_LETTERS) {
        text.truncate(at);
        text.push('…');
    }
    text
}
