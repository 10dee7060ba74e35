//! Errors in words, for what keeps one text of them.

use std::error::Error;

use super::printable;

/// Returns what an error says, and what it comes from, each after a colon; nothing twice.
pub fn in_words(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    printable::cut(text)
}
