//! Shapes of credentials. Pure.
//!
//! The shapes are the rules of gitleaks and some of this project. [`find`] is eager, for displayed
//! text. [`gate`] is certain, for stored data, where a false alarm costs work.

pub mod allow;
pub mod gate;
pub mod patch;
mod rule;
mod search;
mod shapes;
pub mod values;
mod wide;

use std::borrow::Cow;
use std::ops::Range;

use rule::Level;
use serde_json::Value;

/// Finds certain and probable credentials with the names of their shapes; matches may overlap.
pub fn find(text: &[u8]) -> Vec<(Range<usize>, &'static str)> {
    search::find(text, Level::Likely)
}

/// Also finds suspected ones, by a preceding word such as password, for text without much value.
pub fn find_eagerly(text: &[u8]) -> Vec<(Range<usize>, &'static str)> {
    search::find(text, Level::Eager)
}

/// Redacts the credentials in a text.
pub fn redact(text: &str) -> Cow<'_, str> {
    replace(text, merge_overlaps(find(text.as_bytes())))
}

/// Replaces parts of a text by the names of their shapes.
fn replace<'t>(text: &'t str, found: Vec<(Range<usize>, &'static str)>) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::new();
    let mut from = 0;
    for (at, name) in found {
        // Shapes are ASCII, except possibly in a password.
        let start = floor(text, at.start);
        clean.push_str(&text[from..start.max(from)]);
        clean.push_str("[redacted:");
        clean.push_str(name);
        clean.push(']');
        from = ceil(text, at.end);
    }
    clean.push_str(&text[from..]);
    Cow::Owned(clean)
}

/// Also redacts suspected credentials.
pub fn redact_eagerly(text: &str) -> Cow<'_, str> {
    replace(text, merge_overlaps(find_eagerly(text.as_bytes())))
}

/// Redacts the credentials in the texts of an answer.
pub fn redact_json(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(&text).into_owned()),
        Value::Array(values) => values.into_iter().map(redact_json).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, field_value)| (key, redact_json(field_value))).collect(),
        other => other,
    }
}

/// Sorts matches and joins overlapping ones.
pub fn merge_overlaps(mut found: Vec<(Range<usize>, &'static str)>) -> Vec<(Range<usize>, &'static str)> {
    found.sort_by_key(|(at, _)| (at.start, std::cmp::Reverse(at.end)));
    let mut merged: Vec<(Range<usize>, &'static str)> = Vec::new();
    for (at, name) in found {
        match merged.last_mut() {
            Some((last, _)) if at.start < last.end => last.end = last.end.max(at.end),
            _ => merged.push((at, name)),
        }
    }
    merged
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
