//! Decisions of people about items.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::format;
use super::name::ItemId;
use super::outcome::Outcome;
use super::plan::{ProductKey, Source};
use super::submitted::fingerprint;
use super::time::Moment;
use super::words::words;

/// The subject of a decision: the digests of all products of the item's dependencies, and of the
/// artifacts and documents it needs.
pub type About = BTreeMap<Source, BTreeMap<ProductKey, Digest>>;

words! {
    word
    /// The decision.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Decision {
        /// Approved.
        Approved = "approved",
        /// Rejected.
        Rejected = "rejected",
    }
}

impl Decision {
    /// Returns true if approved.
    pub fn is_approved(self) -> bool {
        self == Self::Approved
    }
}

/// The fields of `item.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ItemDecided {
    /// The item.
    pub item: ItemId,
    /// Its latest attempt; always 0, because people make no attempts.
    pub attempt: u32,
    /// The decision.
    pub decision: Decision,
    /// The result: done if approved, failed if rejected. A vote is always done, and red if
    /// negative.
    pub status: Outcome,
    /// The subject.
    pub about: About,
    /// The fingerprint of the key that decided.
    #[serde(deserialize_with = "fingerprint")]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub by: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The commit of the statement in that key's log; absent if the key signed this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl ItemDecided {
    /// Returns the decision of a key that signs the entry itself.
    pub fn new(item: ItemId, decision: Decision, status: Outcome, about: About, by: String) -> Self {
        Self { item, attempt: 0, decision, status, about, by, message: None, said: None }
    }

    /// Returns true for a negative vote, which leaves the item done.
    pub fn is_red(&self) -> bool {
        self.status == Outcome::Done && !self.decision.is_approved()
    }

    /// Returns the reason of a rejection, or `None` for an approval.
    pub fn reason(&self) -> Option<String> {
        let why = self.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
        (!self.decision.is_approved()).then(|| format!("rejected{why}"))
    }
}

/// The fields of `log.decided`: a decision about an item of a run that another key drives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogDecided {
    /// The fingerprint of the log's key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub log: String,
    /// The leaf hash of the run's entry 0.
    pub first: Digest,
    /// The item.
    pub item: ItemId,
    /// The decision.
    pub decision: Decision,
    /// The subject.
    pub about: About,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The time of the decision, if earlier than the entry's, because the log had later entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
}

impl LogDecided {
    /// Returns a decision without a message, which is dated by its entry.
    pub fn new(log: String, first: Digest, item: ItemId, decision: Decision, about: About) -> Self {
        Self { log, first, item, decision, about, message: None, made: None }
    }

    /// Returns the bytes in the log's tree.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Returns true if an entry of the run beginning with `first` records exactly this.
    pub fn is_recorded_by(&self, first: Digest, e: &ItemDecided) -> bool {
        let Self { log, first: claimed_first, item, decision, about, message, made: _ } = self;
        (claimed_first, log, item, decision, about, message)
            == (&first, &e.by, &e.item, &e.decision, &e.about, &e.message)
    }
}
