//! O1: is the packet about the task to resume?

use crate::thread::packet::Finding;
use crate::thread::packet::quote::quoted;
use crate::thread::packet::vocabulary::same;
use crate::thread::packet::words::{Word, clauses};

/// The minimum similarity of two objectives, in percent.
const LIKE: usize = 50;

/// Compares the packet's objective with the given one.
///
/// Similarity is twice the number of common words over the number of both. An objective whose
/// words, at least two, are all in the other is similar too.
pub(super) fn finding(objective: &str, expected: &str) -> Option<Finding> {
    let (one, other) = (words(objective), words(expected));
    let common = one.iter().filter(|word| has(&other, word)).count();
    let percent = (200 * common).checked_div(one.len() + other.len()).unwrap_or(0);
    let part = common >= 2 && common == one.len().min(other.len());
    if percent >= LIKE || part {
        return None;
    }
    let missing = other.iter().filter(|word| !has(&one, word));
    let missing: Vec<String> = missing.take(6).map(|word| quoted(&word.text)).collect();
    let what = format!(
        "objective {} is unlike the task {} ({percent}% alike, at least {LIKE}% needed; not in it: {})",
        quoted(objective),
        quoted(expected),
        missing.join(", ")
    );
    Some(Finding { rule: "O1", field: "objective".into(), what })
}

/// Returns the significant words of a text, each once.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for word in clauses(text).into_iter().flatten().filter(Word::carries) {
        if !has(&words, &word) {
            words.push(word);
        }
    }
    words
}

fn has(words: &[Word], searched: &Word) -> bool {
    words.iter().any(|word| same(&word.form, &searched.form))
}
