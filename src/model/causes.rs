//! Errors and their sources.

use std::error::Error;
use std::iter;

use super::printable;

/// Returns an error and its chain of sources.
pub fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Joins the messages of an error and its sources with colons, without repetitions.
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
