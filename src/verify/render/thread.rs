//! Reports on threads, as text and as JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::model::printable::{Painted, line};
use crate::verify::report::{MISMATCH, UNKNOWN_KEY};
use crate::verify::{Ancestor, State, ThreadReport};

use super::{checks, row_line, title_line};

impl ThreadReport {
    /// Returns the report as `git-handoff.thread-verify/1`.
    pub fn to_json(&self) -> Value {
        let mut report = json!({
            "schema": "git-handoff.thread-verify/1",
            "thread": self.thread,
            "intact": self.intact,
            "failure": self.failure,
            "entries": self.entries,
            "checkpoints": self.checkpoints,
            "checks": checks(self.rows.iter()),
            "signers": self.signers,
            "lineage": self.lineage.iter().map(Ancestor::to_json).collect::<Vec<_>>(),
            "accepted_unknown_signer": self.accepted_unknown(),
        });
        if let Some(remote) = &self.remote {
            report["remote"] = json!(remote);
        }
        report
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

impl Ancestor {
    /// Returns the JSON form.
    pub fn to_json(&self) -> Value {
        json!({
            "thread_id": self.source.thread,
            "checkpoint_id": self.source.checkpoint,
            "commit": self.source.commit,
            "how": if self.adopted { "adopted" } else { "forked" },
            "signer": self.signer,
            "accepted_unknown_signer": self.accepted_unknown,
        })
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
