//! O1: is the packet about the task to resume?

use std::collections::BTreeMap;

use crate::thread::packet::Finding;
use crate::thread::packet::quote::quoted;
use crate::thread::packet::words::{Word, clauses};

/// The minimum similarity of two objectives, in percent.
const LIKE: usize = 50;

/// Compares the packet's objective with the given one.
///
/// Similarity is twice the number of common stems over the number of both. An objective whose
/// words, at least two, are all in the other is similar too.
pub(super) fn finding(objective: &str, wanted: &str) -> Option<Finding> {
    let (one, other) = (stems(objective), stems(wanted));
    let common = one.keys().filter(|stem| other.contains_key(*stem)).count();
    let percent = (200 * common).checked_div(one.len() + other.len()).unwrap_or(0);
    let part = common >= 2 && common == one.len().min(other.len());
    if percent >= LIKE || part {
        return None;
    }
    let missing = other.iter().filter(|(stem, _)| !one.contains_key(*stem));
    let missing: Vec<String> = missing.take(6).map(|(_, word)| quoted(word)).collect();
    let what = format!(
        "objective {} is unlike the task {} ({percent}% alike, at least {LIKE}% needed; not in it: {})",
        quoted(objective),
        quoted(wanted),
        missing.join(", ")
    );
    Some(Finding { rule: "O1", field: "objective".into(), what })
}

/// Returns the stems of a text, each with a word.
fn stems(text: &str) -> BTreeMap<String, String> {
    clauses(text).into_iter().flatten().filter(Word::carries).map(|word| (word.stem, word.text)).collect()
}
