//! Settings as people make them, with git itself: what each does, what is refused, and the document
//! that is written from their table.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

mod builtin;
mod page;
mod reading;
mod refusing;
mod tracked;

use git_handoff::git::store::Store;
use git_handoff::repository::config::{Config, Error, SETTINGS};

use crate::common::clone::TestClone;

/// Returns what is configured.
fn read(clone: &TestClone) -> Result<Config, Error> {
    Config::read(&Store::discover(&clone.root()).unwrap())
}

/// Returns a setting's name with its placeholder filled in.
fn full_name(name: &str, own: &str) -> String {
    match (name.find('<'), name.rfind('>')) {
        (Some(start), Some(end)) => format!("{}{own}{}", &name[..start], &name[end + 1..]),
        _ => name.to_owned(),
    }
}

/// Returns every name of the table.
fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().flat_map(|group| group.entries).flat_map(|entry| entry.names.iter().copied())
}
