//! Errors and what they come from.

use std::error::Error;
use std::iter;

use super::printable;

/// Returns an error, what it comes from, what that comes from, and so on.
pub fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Returns what an error says, and what it comes from, each after a colon; nothing twice.
///
/// For what keeps one text of it.
pub fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in chain(error) {
        let more = cause.to_string();
        if text.is_empty() {
            text = more;
        } else if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
    }
    printable::cut(text)
}
