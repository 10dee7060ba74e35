//! Finds numbers in conditions of rules that lose digits when parsed.

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::json::{self, Found, JsonPath};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;

/// Reports each `value` that differs from its parsed and sealed number.
///
/// A number is parsed as a double and sealed in its shortest decimal form, so digits after the
/// seventeenth would be lost. `bytes` is the document with `rules` at the path `at`.
pub(super) fn check(bytes: &[u8], rules: &Value, at: &JsonPath, problems: &mut Problems) {
    let above = if at.to_string().is_empty() { "" } else { "/rules" };
    let mut literals: Vec<(String, JsonPath, String)> = Vec::new();
    for (nth, rule) in rules.as_array().into_iter().flatten().enumerate() {
        let conditions = rule
            .get("when")
            .map(|when| when.get("if").and_then(Value::as_array).cloned().unwrap_or_default())
            .unwrap_or_default();
        for (place, condition) in conditions.iter().enumerate() {
            if let Some(Value::Number(number)) = condition.get("value") {
                let pointer = format!("{above}/{nth}/when/if/{place}/value");
                let path = at.index(nth).key("when").key("if").index(place).key("value");
                literals.push((pointer, path, number.to_string()));
            }
        }
    }
    let pointers: Vec<&str> = literals.iter().map(|(pointer, _, _)| pointer.as_str()).collect();
    // An unreadable document was already refused.
    let found = if pointers.is_empty() { Vec::new() } else { json::look(bytes, &pointers).unwrap_or_default() };
    for ((_, path, read), result) in literals.iter().zip(found) {
        if let Some(Found::Number(written)) = result
            && json::compare(&written, read) != Ordering::Equal
        {
            let message = format!("the number {written} has too many digits: it would be compared as {read}");
            problems.push(Problem::new(Code::BadRule, path, message));
        }
    }
}
