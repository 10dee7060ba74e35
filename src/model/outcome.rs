//! The end of an item: the exit, check and transcript of its command, and its products.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::claims::{Claims, says_nothing};
use super::digest::{Digest, Oid};
use super::driver::DriverId;
use super::event::Product;
use super::name::ItemId;
use super::pipeline::BlockEnded;
use super::plan::ProductKey;
use super::protected::{self, ProtectedChange};
use super::reused::Reused;
use super::usage::Usage;

/// The final status of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The executor exited with 0 and its products are recorded.
    Done,
    /// Anything else.
    Failed,
}

/// The exit of a process; exactly one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The outcome of checking a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Whether the check passed.
    pub passed: bool,
    /// The origin of the check.
    pub by: VerifiedBy,
}

/// A check of this program that passed. Its protected files had their reference state.
pub const PASSED: Verified = Verified { passed: true, by: VerifiedBy::Command };

/// The origin of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum VerifiedBy {
    /// The configured verify command.
    Command,
    /// The item itself, in its result file: a claim.
    #[serde(rename = "self")]
    Itself,
}

/// One run of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRun {
    /// The command, with credentials removed.
    pub argv: Vec<String>,
    /// Its exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// The digest and size of its output; the bytes may be deleted.
    pub output: Transcript,
    /// The number of protected files that differed from their reference state and were replaced;
    /// absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restored: u64,
    /// The digest of the held-out files laid over the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Digest>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How far the record of an end reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The products are those of a commit that was made before; nothing of its making is recorded.
    Claimed,
}

/// The digest and size of a transcript; its bytes may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// The digest of the transcript as kept.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// The fields of `item.reconciled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemReconciled {
    /// The item.
    pub item: ItemId,
    /// The attempt; 0 if nothing was dispatched.
    pub attempt: u32,
    /// The result.
    pub status: Outcome,
    /// `claimed` if less than the whole work is recorded: a commit that was made before; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The exit of the process; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Milliseconds from dispatch to the end of capture.
    pub duration_ms: u64,
    /// The products; empty unless done.
    pub products: BTreeMap<ProductKey, Product>,
    /// The result of the check, by the verify command or the item itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verified>,
    /// The run of the check after the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRun>,
    /// The run of the check before the work, which had to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_before: Option<CheckRun>,
    /// The captured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Transcript>,
    /// The source of reused products, if nothing was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// The results of the pipeline's blocks; empty without a pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockEnded>,
    /// The tokens and the price, by the worker's own word.
    #[serde(default, skip_serializing_if = "says_nothing")]
    pub usage: Option<Usage>,
    /// The worker's claims about the attempt.
    #[serde(default, skip_serializing_if = "says_nothing")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<super::formats::Stated>"))]
    pub claims: Option<Box<Claims>>,
    /// The tree of the base with the reference state of the protected files, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Oid>,
    /// The changes of the patch to protected files, sorted by path.
    #[serde(default, deserialize_with = "protected::in_order", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub protected: Vec<ProtectedChange>,
    /// True if the settings allow these changes, so that they do not make the item red.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub protected_allowed: bool,
    /// True if a check that passed judged these changes, so that they do not make the item red.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub protected_judged: bool,
    /// The driver that held the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverId>,
}

impl ItemReconciled {
    /// Returns an end with nothing but its status.
    pub fn new(item: ItemId, attempt: u32, status: Outcome) -> Self {
        Self {
            item,
            attempt,
            status,
            grade: None,
            reason: None,
            exit: None,
            duration_ms: 0,
            products: BTreeMap::new(),
            verify: None,
            check: None,
            check_before: None,
            transcript: None,
            reused: None,
            blocks: Vec::new(),
            usage: None,
            claims: None,
            reference: None,
            protected: Vec::new(),
            protected_allowed: false,
            protected_judged: false,
            driver: None,
        }
    }

    /// Returns what people read of it: the reason, or the first line of the summary of a done item.
    pub(super) fn details(&self) -> Option<&str> {
        let claimed = self.summary().filter(|_| self.status == Outcome::Done);
        self.reason.as_deref().or_else(|| claimed.and_then(|summary| summary.lines().next()))
    }

    /// Returns the worker's own account of its work.
    pub fn summary(&self) -> Option<&str> {
        self.claims.as_ref()?.summary.as_deref()
    }

    /// Returns the run of the check, before or after the work.
    pub fn check(&self, before: bool) -> Option<&CheckRun> {
        if before { self.check_before.as_ref() } else { self.check.as_ref() }
    }
}
