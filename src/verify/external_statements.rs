//! Statements that other keys made in their own logs, and that a run records.
//!
//! Such an entry holds the log's whole commit with its signature. The writer of the run can include
//! or omit a statement, but cannot forge one.

use crate::git::codec::{self, Decoded};
use crate::ledger::sign;
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::entry::Event;
use crate::model::name::RunId;
use crate::model::role::Role;
use crate::model::time::Moment;

#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) key: String,
    /// The time of the statement, as its key claims.
    pub(super) at: Moment,
    pub(super) role: Role,
}

/// Reads a statement: a commit of a log, signed by the log's key.
pub fn read_statement(commit: &[u8]) -> Result<(Decoded, String), String> {
    let decoded = codec::decode(commit).map_err(|error| in_words(&error))?;
    let entry = &decoded.entry;
    if decoded.parents.len() != usize::from(entry.seq > 0) || entry.prev.is_some() != (entry.seq > 0) {
        return Err(format!("it is entry {} of its log, and does not follow the entry before that", entry.seq));
    }
    let key = sign::signer(&decoded.payload, decoded.signature.as_deref()).map_err(|error| in_words(&error))?;
    match decoded.entry.event.log() {
        Some(log) if log == key => Ok((decoded, key)),
        Some(log) => Err(format!("it is of the log {log}, and signed by {key}")),
        None => Err("it is not an entry of a log".to_owned()),
    }
}

/// Compares an entry with the statement that it holds; returns `None` if it holds none.
pub(super) fn check(run: &RunId, first: Option<Digest>, event: &Event) -> Option<Result<Statement, String>> {
    let (statement, role) = match event {
        Event::ItemDecided(e) => (e.said.as_ref()?, Role::Approve),
        Event::DocumentWritten(e) => (e.said.as_ref()?, Role::Document),
        _ => return None,
    };
    Some(read_statement(statement.as_bytes()).and_then(|(decoded, key)| {
        let entry = &decoded.entry;
        if entry.about.run() != Some(run) {
            return Err(format!("it is about {:?}", entry.about.as_str()));
        }
        let Some(first) = first else { return Err("the run has no entry 0".to_owned()) };
        let records = match (&entry.event, event) {
            (Event::LogDecided(decided), Event::ItemDecided(e)) => decided.is_recorded_by(first, e),
            (Event::LogWritten(written), Event::DocumentWritten(e)) => {
                written.is_recorded_by(first, e) && e.author == entry.actor
            }
            _ => false,
        };
        if !records {
            return Err("it differs from the entry".to_owned());
        }
        Ok(Statement { key, at: entry.event.made().unwrap_or(entry.at), role })
    }))
}
