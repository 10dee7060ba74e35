//! Errors and their sources.

use std::error::Error;
use std::iter;

use super::printable;

/// Returns an error and its chain of sources, with those that only wrap the next one.
pub fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Returns the messages of an error and its sources, without one that equals the one before it:
/// an error that only wraps another has the same message.
pub fn messages(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut messages: Vec<String> = chain(error).map(ToString::to_string).collect();
    messages.dedup();
    messages
}

/// Joins the messages of an error and its sources with colons, without repetitions.
pub fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for more in messages(error) {
        if text.is_empty() {
            text = more;
        } else if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
    }
    printable::cut(text)
}
