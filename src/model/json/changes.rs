//! How two JSON documents differ, field by field; pure.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::parse;
use crate::model::printable;

/// The most bytes of a document that is read for this.
pub const MOST_READ: usize = 16 << 20;

/// The most changes that are told.
const MOST_CHANGES: usize = 1000;

/// The most bytes that the pointers and values of all changes that are told have as JSON.
const MOST_BYTES: usize = 256 << 10;

/// What became of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// It has another value.
    Changed,
}

/// A field that differs; one that came or went is told with all that it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Where it stands, as RFC 6901 says it; the whole document is the empty pointer.
    pub pointer: String,
    /// What became of it.
    pub kind: Kind,
    /// What it was; absent where it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; absent where it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The fields that differ: those of objects in order of their names, those of arrays by their index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// As many as are told.
    pub told: Vec<Change>,
    /// How many more there are.
    pub more: usize,
    bytes: usize,
}

impl Changes {
    /// Compares two documents; none where one of them is not JSON that everybody reads alike, or too large for this.
    pub fn between(old: &[u8], new: &[u8]) -> Option<Self> {
        if old.len().max(new.len()) > MOST_READ {
            return None;
        }
        Some(Self::of(&parse(old).ok()?, &parse(new).ok()?))
    }

    /// Compares two values.
    pub fn of(old: &Value, new: &Value) -> Self {
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
        let length = |value: Option<&Value>| value.map_or(0, |value| value.to_string().len());
        let bytes = self.bytes + pointer.len() + length(old) + length(new);
        // What is told is the beginning, without a gap.
        if self.more > 0 || self.told.len() == MOST_CHANGES || bytes > MOST_BYTES {
            self.more += 1;
            return;
        }
        self.bytes = bytes;
        self.told.push(Change { pointer: pointer.to_owned(), kind, before: old.cloned(), after: new.cloned() });
    }

    fn objects(&mut self, pointer: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            self.compare(&pointer, old.get(name), new.get(name));
        }
    }

    /// Returns the lines that people read, each with a long value cut short.
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("… and {} more", self.more));
        self.told.iter().map(Change::line).chain(more).collect()
    }
}

/// The most letters of a value, and of a pointer, in a line.
const MOST_LETTERS: usize = 200;

impl Change {
    fn line(&self) -> String {
        let pointer = if self.pointer.is_empty() { "\"\"".to_owned() } else { cut(self.pointer.clone()) };
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or_else(String::new, |value| cut(printable::json(&value.to_string())))
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        match self.kind {
            Kind::Added => format!("+ {pointer}  {after}"),
            Kind::Removed => format!("- {pointer}  {before}"),
            Kind::Changed => format!("~ {pointer}  {before} -> {after}"),
        }
    }
}

/// Returns the beginning of a text that is longer than a line holds.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MOST_LETTERS) {
        text.truncate(at);
        text.push('…');
    }
    text
}
