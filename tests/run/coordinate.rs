//! Rules: what they are, what they create, and that each of it is created exactly once.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod killed;
mod purity;
mod rules;
mod runs;
mod spellings;
mod stopped;
mod stories;

use std::collections::BTreeMap;

use git_handoff::model::digest::Digest;
use git_handoff::model::name::FilePath;
use git_handoff::model::rule::{Rule, Seen};
use serde_json::{Value, json};

/// A rule that creates an item which runs `true`.
fn rule(id: &str, when: &Value) -> Value {
    json!({ "id": id, "when": when, "create": { "executor": "command", "inputs": { "command": ["true"] } } })
}

fn parsed(rule: &Value) -> Rule {
    let rules = git_handoff::plan::parse_rules(json!([rule]).to_string().as_bytes());
    rules.unwrap_or_else(|problems| panic!("{rule}: {problems:?}")).remove(0)
}

fn name(text: &str) -> FilePath {
    FilePath::parse_document(text).unwrap()
}

/// The first revisions of documents with these bytes.
fn document_states(documents: &[(&str, &str)]) -> BTreeMap<FilePath, Seen> {
    let entry = |(document, text): &(&str, &str)| {
        (name(document), Seen { revision: 1, sha256: Digest::compute(text.as_bytes()) })
    };
    documents.iter().map(entry).collect()
}
