//! Names of the fields in headings of Markdown notes.

use crate::model::packet::FIELDS;

/// Other names of each field, in its order.
const OTHER_NAMES: [&[&str]; FIELDS.len()] = [
    &["goal", "task"],
    &["done", "what was done"],
    &["open", "open issues", "open questions", "blockers", "remaining"],
    &["decisions", "constraints"],
    &["next", "next step", "next steps"],
    &["known risks", "gotchas"],
    &["updated", "last updated", "date"],
    &["handoff id", "continuity token"],
];

/// Returns the field that a heading names, in any case, with spaces or underscores.
pub(super) fn field(heading: &str) -> Option<&'static str> {
    let key = key(heading);
    FIELDS
        .into_iter()
        .zip(OTHER_NAMES)
        .find(|(field, names)| *field == key || names.contains(&key.replace('_', " ").as_str()))
        .map(|(field, _)| field)
}

/// Returns a heading in the form of a key.
pub(super) fn key(heading: &str) -> String {
    heading.trim().trim_end_matches(':').to_lowercase().replace([' ', '-'], "_")
}
