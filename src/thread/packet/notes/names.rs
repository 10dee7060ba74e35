//! Names of the fields in notes: keys of JSON and YAML, headings and labels of Markdown.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::model::packet::FIELDS;
use crate::thread::packet::data::NOTES;

/// The field for a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meaning {
    /// The field, one of [`FIELDS`].
    pub(super) field: &'static str,
    /// The position of the name in the field's list; the first is the field's own.
    pub(super) rank: usize,
}

/// Returns the field for a key.
pub(super) fn of_key(key: &str) -> Option<Meaning> {
    static NAMES: LazyLock<HashMap<&'static str, Meaning>> = LazyLock::new(|| {
        let names = |field: &'static str| NOTES.section(field).iter().enumerate().map(move |name| (field, name));
        FIELDS.into_iter().flat_map(names).map(|(field, (rank, name))| (*name, Meaning { field, rank })).collect()
    });
    NAMES.get(words(key).as_str()).copied()
}

/// Returns the field for a heading or label: `3. Open issues & blockers`, `Completed ✓`.
pub(super) fn of_heading(heading: &str) -> Option<Meaning> {
    let mut parts = vec![heading];
    parts.extend(heading.split(['/', '&', '(', ',', '—', '–', ':', '|']));
    parts.extend(heading.split(" and "));
    parts.into_iter().find_map(|part| of_key(part).or_else(|| of_key(&bare(&words(part)))))
}

/// Splits a name into lower-case words: `nextSteps` and `next_steps` are equal.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len());
    let mut was_lower = false;
    for c in name.chars().filter(|c| !matches!(c, '\'' | '\u{2019}')) {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if ends && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    // Ignores the number of a heading.
    words.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').trim_end().to_owned()
}

/// Strips decorations around a name.
fn bare(name: &str) -> String {
    let mut name = name;
    loop {
        let before = |word: &&str| name.strip_prefix(*word).and_then(|rest| rest.strip_prefix(' '));
        let behind = |word: &&str| name.strip_suffix(*word).and_then(|rest| rest.strip_suffix(' '));
        let leading = NOTES.section("leading").iter().find_map(before);
        match leading.or_else(|| NOTES.section("trailing").iter().find_map(behind)) {
            Some(rest) => name = rest,
            None => return name.to_owned(),
        }
    }
}
