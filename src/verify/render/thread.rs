//! Reports on threads, as text and as JSON.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::model::digest::Oid;
use crate::model::name::ThreadId;
use crate::model::printable::{Painted, line};
use crate::model::thread::{CheckpointId, SourceCheckpoint};
use crate::verify::report::{MISMATCH, UNKNOWN_KEY};
use crate::verify::{Ancestor, SignerSeen, State, ThreadReport, ThreadRows};

use super::answer::RowShown;
use super::{row_line, title_line};

/// The report on a thread: the output of `thread verify` for each, and of `verify --bundle`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.thread-verify/1")]
pub(in crate::verify) struct ThreadReportShown<'a> {
    /// The thread.
    #[cfg_attr(feature = "schemas", schemars(with = "String"))]
    thread: &'a ThreadId,
    /// The remote of a fetched thread; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<&'a str>,
    /// True if nothing failed and nothing was missing.
    intact: bool,
    /// The first row that failed; `mismatch` if only the key is not the expected one; `incomplete`
    /// if evidence is elsewhere.
    #[cfg_attr(feature = "schemas", schemars(extend(
        "enum" = ["chain", "signature", "anchor", "lineage", "content", "mismatch", "incomplete", null]
    )))]
    failure: Option<&'static str>,
    /// The number of readable entries.
    entries: u64,
    /// The number of checkpoints.
    checkpoints: u64,
    /// Every row, by its name.
    checks: ThreadRows<RowShown<'a>>,
    /// The keys that signed, in order of appearance.
    signers: &'a [SignerSeen],
    /// The checkpoints of other threads that it descends from, the nearest first.
    lineage: &'a [Ancestor],
    /// True if it, or a thread that it descends from, was adopted although its key was unknown.
    accepted_unknown_signer: bool,
}

/// A checkpoint of another thread, from which a thread descends.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(in crate::verify) struct AncestorShown<'a> {
    /// The thread.
    thread_id: &'a ThreadId,
    /// The checkpoint.
    checkpoint_id: &'a CheckpointId,
    /// Its commit.
    commit: Oid,
    /// The step by which the thread began with it.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["adopted", "forked"])))]
    how: &'static str,
    /// The key of that thread.
    signer: &'a SignerSeen,
    /// True if it was adopted although its key was unknown.
    accepted_unknown_signer: bool,
}

impl Serialize for Ancestor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SourceCheckpoint { thread, checkpoint, commit } = &self.source;
        let answer = AncestorShown {
            thread_id: thread,
            checkpoint_id: checkpoint,
            commit: *commit,
            how: if self.adopted { "adopted" } else { "forked" },
            signer: &self.signer,
            accepted_unknown_signer: self.accepted_unknown,
        };
        answer.serialize(serializer)
    }
}

impl ThreadReport {
    /// Returns the report as `git-handoff.thread-verify/1`.
    pub fn to_json(&self) -> Value {
        let answer = ThreadReportShown {
            thread: &self.thread,
            remote: self.remote.as_deref(),
            intact: self.intact,
            failure: self.failure,
            entries: self.entries,
            checkpoints: self.checkpoints,
            checks: self.rows.map_ref(RowShown::from),
            signers: &self.signers,
            lineage: &self.lineage,
            accepted_unknown_signer: self.accepted_unknown(),
        };
        serde_json::to_value(answer).expect("every report can be written as JSON")
    }

    /// Returns the report as lines of text, optionally in colour.
    pub fn painted(&self, color: bool) -> Painted {
        let trusted = self.signers.iter().all(|signer| signer.trusted);
        let state = match self.intact {
            false => State::Failed,
            true if !trusted => State::NotApplicable,
            true => State::Ok,
        };
        let headline = match self.failure {
            None if !trusted => UNKNOWN_KEY,
            None => "INTACT",
            Some("incomplete") => "INCOMPLETE",
            Some("mismatch") => MISMATCH,
            Some(_) if self.distrust => "UNTRUSTED",
            Some(_) => "TAMPERED",
        };
        let pinned = if self.pinned_clock { "  clock pinned" } else { "" };
        let place = self.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
        let title = line(&format!("git handoff thread verify · {place}{}", self.thread));
        let mut text = title_line(&title, state, headline, color).words(pinned).end();
        for row in self.rows.iter() {
            text = row_line(text, row, color);
            if row.name == "lineage" {
                for ancestor in &self.lineage {
                    text = text.words(&format!("             {ancestor}")).end();
                }
            }
        }
        text
    }
}

impl fmt::Display for Ancestor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.adopted { "adopted" } else { "forked" };
        write!(f, "{how} from {}, by {}", self.source, self.signer.fingerprint)?;
        if let Some(principal) = &self.signer.principal {
            write!(f, " of {principal}")?;
        }
        f.write_str(if self.accepted_unknown { "; an unknown key was accepted with it" } else { "" })
    }
}
