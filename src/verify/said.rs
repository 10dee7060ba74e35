//! What others said in their own logs and whoever conducts a run took in.
//!
//! Such an entry of a run holds the whole commit of that log, with its signature: whoever took it in can put it there or leave it
//! out, and make none.

use crate::git::codec::{self, Decoded};
use crate::ledger::sign;
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::entry::Event;
use crate::model::name::RunId;
use crate::model::role::Role;
use crate::model::time::Moment;

/// Somebody's statement about a run.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// The fingerprint of the key that made it.
    pub(super) key: String,
    /// When it was made, by its own word.
    pub(super) at: Moment,
    /// The role that it takes.
    pub(super) role: Role,
}

/// Reads a statement: a commit of a log, signed by the log's key. An error says what is wrong with it.
pub fn read(commit: &[u8]) -> Result<(Decoded, String), String> {
    let decoded = codec::decode(commit).map_err(|error| in_words(&error))?;
    let entry = &decoded.entry;
    if decoded.parents.len() != usize::from(entry.seq > 0) || entry.prev.is_some() != (entry.seq > 0) {
        return Err(format!("it is entry {} of its log, and does not follow the entry before that", entry.seq));
    }
    let key = sign::signer(&decoded.payload, decoded.signature.as_deref()).map_err(|error| in_words(&error))?;
    match decoded.entry.event.log() {
        Some(log) if log == key => Ok((decoded, key)),
        Some(log) => Err(format!("it is of the log {log}, and signed by {key}")),
        None => Err("it is of no log".to_owned()),
    }
}

/// Holds an entry of a run against the statement that it takes in; nothing where it takes in none.
pub(super) fn check(run: &RunId, first: Option<Digest>, event: &Event) -> Option<Result<Said, String>> {
    let (said, role) = match event {
        Event::ItemDecided(e) => (e.said.as_ref()?, Role::Approve),
        Event::DocumentWritten(e) => (e.said.as_ref()?, Role::Document),
        _ => return None,
    };
    Some(read(said.as_bytes()).and_then(|(decoded, key)| {
        let entry = &decoded.entry;
        if entry.about.run() != Some(run) {
            return Err(format!("it is about {:?}", entry.about.as_str()));
        }
        let Some(first) = first else { return Err("there is no entry 0 that it could be about".to_owned()) };
        let records = match (&entry.event, event) {
            (Event::LogDecided(said), Event::ItemDecided(e)) => said.is_recorded_by(first, e),
            (Event::LogWritten(said), Event::DocumentWritten(e)) => {
                said.is_recorded_by(first, e) && e.author == entry.actor
            }
            _ => false,
        };
        if !records {
            return Err("it says something else than the entry".to_owned());
        }
        Ok(Said { key, at: entry.event.made().unwrap_or(entry.at), role })
    }))
}
