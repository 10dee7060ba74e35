//! The result of an attempt, as plain data, and the state that it is made from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::check::StoredCheck;
use super::job::Job;
use super::stored_transcript::StoredTranscript;
use super::verdict::Verdict;
use crate::git::store;
use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Exit, Product, Verified};
use crate::model::name::{ItemId, RunId};
use crate::model::pipeline::BlockEnded;
use crate::model::plan::ProductKey;
use crate::model::protected::ProtectedChange;
use crate::worktree::capture::Captured;
use crate::worktree::workspace::Workspace;

/// The result of an attempt.
///
/// The objects that it names are kept by the packs in `keeps`, whose `.keep` files the driver takes
/// over ([`KeepGuard::take_over`](store::KeepGuard::take_over)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptResult {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The end: done, interrupted, or an object with failed, shortage or crashed.
    pub verdict: Verdict,
    /// The exit of the last command.
    pub exit: Option<Exit>,
    /// Its length in milliseconds.
    pub duration_ms: u64,
    /// The products by key.
    pub products: BTreeMap<ProductKey, Product>,
    /// The verdict of the check.
    pub verify: Option<Verified>,
    /// Why the item is red, if it is done.
    pub red: Option<String>,
    /// The tree with the reference state of the protected files.
    pub reference: Option<Oid>,
    /// The changes of the patch to protected files.
    pub protected: Vec<ProtectedChange>,
    /// Whether these changes are allowed.
    pub protected_allowed: bool,
    /// Whether a check that passed judged these changes.
    pub protected_judged: bool,
    /// The run of the check after the work.
    pub check: Option<StoredCheck>,
    /// The run of the check before the work.
    pub check_before: Option<StoredCheck>,
    /// The worker's own summary.
    pub summary: Option<String>,
    /// The worker's claims about itself.
    pub claims: Option<Reported>,
    /// Paths that its agent left behind and the patch omits.
    pub excluded: Vec<String>,
    /// The results of its pipeline's blocks.
    pub blocks: Vec<BlockEnded>,
    /// The output of the attempt.
    pub transcript: Option<StoredTranscript>,
    /// The work of an attempt without products, as a tree.
    pub salvaged: Option<Oid>,
    /// The commits that the work does not contain, as a bundle of git's in a blob.
    pub commits: Option<Oid>,
    /// The worktree that is left, or `None`.
    pub worktree: Option<LeftWorktree>,
    /// The packs that keep its objects, by the names of their files without extensions.
    pub keeps: Vec<String>,
    /// Notes for the operator.
    pub notes: Vec<String>,
}

/// The worktree that an attempt leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LeftWorktree {
    /// The attempt's folder.
    pub path: PathBuf,
    /// Whether it can be removed once the end of the attempt is recorded.
    pub spent: bool,
    /// Whether all work is salvaged, so that it can be removed even if recording fails.
    pub saved: bool,
}

/// A patch, or none if nothing changed, that was checked in a fresh worktree.
pub(super) struct CheckedFresh {
    pub(super) patch: Option<Digest>,
}

/// The state of an attempt while it runs.
pub(in crate::engine) struct PendingResult {
    pub(in crate::engine) result: AttemptResult,
    /// The patch that was checked in a fresh worktree.
    pub(super) checked_fresh: Option<CheckedFresh>,
    /// Those of the claims that a known agent printed.
    pub(super) reported: Option<Reported>,
    /// The products that the pipeline captured, which replace a capture at the end.
    pub(super) captured: Option<Captured>,
    /// The worktree, for the next attempt here.
    pub(super) spent: Option<Workspace>,
    /// Keeps the objects until they are handed over.
    pub(super) guard: store::KeepGuard,
}

/// An ended attempt: its result, and its worktree as the executing side can use it again.
pub(in crate::engine) struct Ended {
    pub(in crate::engine) result: AttemptResult,
    pub(in crate::engine) spent: Option<Workspace>,
}

impl AttemptResult {
    /// Returns the result of an attempt that has not begun.
    pub(in crate::engine) fn not_begun(run: RunId, item: ItemId, attempt: u32) -> Self {
        Self {
            run,
            item,
            attempt,
            verdict: Verdict::Interrupted,
            exit: None,
            duration_ms: 0,
            products: BTreeMap::new(),
            verify: None,
            red: None,
            reference: None,
            protected: Vec::new(),
            protected_allowed: false,
            protected_judged: false,
            check: None,
            check_before: None,
            summary: None,
            claims: None,
            excluded: Vec::new(),
            blocks: Vec::new(),
            transcript: None,
            salvaged: None,
            commits: None,
            worktree: None,
            keeps: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets its durations to zero.
    pub(in crate::engine) fn forget_times(&mut self) {
        self.duration_ms = 0;
        self.blocks.iter_mut().for_each(|block| block.duration_ms = 0);
        let checks = self.check.iter_mut().chain(&mut self.check_before);
        checks.for_each(|check| check.run.duration_ms = 0);
    }
}

impl Ended {
    /// Returns the end of an attempt that left nothing.
    pub(in crate::engine) fn without_work(result: AttemptResult, verdict: Verdict) -> Self {
        Self { result: AttemptResult { verdict, ..result }, spent: None }
    }
}

impl PendingResult {
    /// Returns the state of an attempt that has not begun.
    pub(super) fn not_begun(job: &Job) -> Self {
        let result = AttemptResult::not_begun(job.spec.run.clone(), job.spec.item.clone(), job.spec.attempt);
        Self {
            result: AttemptResult { notes: job.spec.notes.clone(), ..result },
            checked_fresh: None,
            reported: None,
            captured: None,
            spent: None,
            guard: store::KeepGuard::default(),
        }
    }

    /// Returns true if the patch differs from the one that a fresh worktree was checked with.
    pub(super) fn is_patch_changed(&self) -> bool {
        let patch = self.result.products.get(&ProductKey::Patch).map(|patch| patch.sha256);
        self.checked_fresh.as_ref().is_some_and(|checked| checked.patch != patch)
    }

    /// Ends the attempt: its result names the packs that keep its objects.
    pub(super) fn end(mut self) -> Ended {
        match self.guard.hand_over() {
            Ok(names) => self.result.keeps = names,
            Err(error) => {
                let verdict = Verdict::from_error("cannot keep the products: ", &error, Verdict::failed);
                (self.result.verdict, self.result.products) = (verdict, BTreeMap::new());
            }
        }
        Ended { result: self.result, spent: self.spent }
    }
}
