//! What people decide about items, each with a key of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::event::Outcome;
use super::format;
use super::name::ItemId;
use super::plan::{ProductKey, Source};
use super::submitted::fingerprint;
use super::time::Moment;

/// What somebody decided about: of each item that the decided one depends on, the digest of each of its products; besides, those of the
/// artifacts and documents that it needs.
pub type About = BTreeMap<Source, BTreeMap<ProductKey, Digest>>;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Yes.
    Approved,
    /// No.
    Rejected,
}

impl Decision {
    /// Returns whether it is a yes.
    pub fn is_approved(self) -> bool {
        self == Self::Approved
    }

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

/// The fields of `item.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemDecided {
    /// The item.
    pub item: ItemId,
    /// Its latest attempt: people make none, so that it is 0.
    pub attempt: u32,
    /// What was decided.
    pub decision: Decision,
    /// What becomes of the item: done if approved, failed if rejected; a vote is done either way, and red if it is a no.
    pub status: Outcome,
    /// About what.
    pub about: About,
    /// The fingerprint of the key that decided.
    #[serde(deserialize_with = "fingerprint")]
    pub by: String,
    /// Why, in its owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The commit in that key's log that says so, whole, where somebody else took it in; absent where the key signed this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl ItemDecided {
    /// Returns whether it leaves the item done although it is a no.
    pub fn is_red(&self) -> bool {
        self.status == Outcome::Done && !self.decision.is_approved()
    }

    /// Returns why an item was rejected; none of one that was approved.
    pub fn reason(&self) -> Option<String> {
        let why = self.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
        (!self.decision.is_approved()).then(|| format!("rejected{why}"))
    }
}

/// The fields of `log.decided`: what a key decided about an item of a run that somebody else conducts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogDecided {
    /// The fingerprint of the key that the log belongs to.
    pub log: String,
    /// The leaf hash of the run's entry 0.
    pub first: Digest,
    /// The item.
    pub item: ItemId,
    /// What was decided.
    pub decision: Decision,
    /// About what.
    pub about: About,
    /// Why, in the key's owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was made, where the entry that holds it is dated later: the log had later entries by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
}

impl LogDecided {
    /// Returns the bytes that the log's tree holds of it.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Returns whether an entry of the run that began with `first` records just this.
    pub fn is_recorded_by(&self, first: Digest, e: &ItemDecided) -> bool {
        let Self { log, first: named, item, decision, about, message, made: _ } = self;
        (named, log, item, decision, about, message) == (&first, &e.by, &e.item, &e.decision, &e.about, &e.message)
    }
}
