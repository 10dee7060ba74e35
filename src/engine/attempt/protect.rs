//! Applies the rules of protected files to an attempt.

use std::collections::BTreeSet;

use super::{Job, PendingResult, Verdict};
use crate::git::protected::{self, Consumed};
use crate::git::verified_stream;
use crate::model::outcome::PASSED;
use crate::model::plan::ProductKey;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{
    MOST_CHANGES, OnProtectedChange, PROTECTED_CHANGED, ProtectedChange, in_words as changes_in_words,
};
use crate::worktree::host::Host;
use crate::worktree::protect::{Error, Guard};

/// The protected files of an attempt.
pub(in crate::engine) struct Protect {
    pub(in crate::engine) rules: BTreeSet<ProtectRule>,
    /// The consumed patches that belong to the reference state.
    pub(in crate::engine) consumed: Vec<Consumed>,
    pub(in crate::engine) effect: OnProtectedChange,
    pub(in crate::engine) of_plan: Vec<ProtectRule>,
    pub(in crate::engine) effect_of_plan: OnProtectedChange,
}

/// Computes the reference state of the protected files.
pub(super) fn guard(host: &Host, job: &Job) -> Result<Guard, Verdict> {
    let (rules, consumed) = match &job.protect {
        Some(protect) => (protect.rules.clone(), &protect.consumed[..]),
        None => (BTreeSet::new(), &[][..]),
    };
    let held_out = job.check.held_out.clone();
    let (base, start) = (job.spec.base, job.spec.start.map(|start| start.tree));
    Guard::new(&host.store, base, start, rules, consumed, held_out).map_err(|error| match error {
        Error::Reference(conflict @ protected::Error::Conflict(_)) => {
            Verdict::hopeless(format!("protected-conflict: {conflict}"))
        }
        other => failed(&other),
    })
}

impl Protect {
    /// Returns the effect of changes. Settings cannot allow what the plan protects from.
    fn effect_on(&self, guard: &Guard, changes: &[ProtectedChange]) -> Result<OnProtectedChange, Error> {
        let allows = self.effect == OnProtectedChange::Allow;
        Ok(match self.effect_of_plan {
            _ if !allows || !guard.selects_any_of(&self.of_plan, changes)? => self.effect,
            OnProtectedChange::Fail => OnProtectedChange::Fail,
            _ => OnProtectedChange::Red,
        })
    }
}

/// Returns the verdict if protected files cannot be compared or restored.
pub(super) fn failed(error: &Error) -> Verdict {
    Verdict::from_error("cannot give the protected files their reference state: ", error, Verdict::failed)
}

/// Compares the patch with the reference state and records the changes to protected files. Fails
/// the attempt if the settings say so.
pub(super) fn compare(host: &Host, job: &Job, guard: &Guard, pending: &mut PendingResult) -> Result<(), Verdict> {
    let patch = pending.result.products.get(&ProductKey::Patch);
    let patch = patch.map(|patch| verified_stream::read(&host.store, patch.oid, &[patch.sha256])).transpose();
    let changes = guard.changes(patch?).map_err(|e| failed(&e))?;
    pending.result.reference = guard.tree;
    if changes.is_empty() {
        return Ok(());
    }
    let reason = format!("{PROTECTED_CHANGED}{}", changes_in_words(&changes));
    let effect = match &job.protect {
        Some(protect) => protect.effect_on(guard, &changes).map_err(|e| failed(&e))?,
        None => OnProtectedChange::default(),
    };
    if effect == OnProtectedChange::Fail || changes.len() > MOST_CHANGES {
        return Err(Verdict::failed(reason));
    }
    let judged = effect == OnProtectedChange::Judge && pending.result.verify == Some(PASSED);
    if effect == OnProtectedChange::Red || effect == OnProtectedChange::Judge && !judged {
        pending.result.red = Some(match pending.result.red.take() {
            Some(failed) => format!("{failed}; {reason}"),
            None => reason,
        });
    }
    pending.result.protected_allowed = effect == OnProtectedChange::Allow;
    pending.result.protected_judged = judged;
    pending.result.protected = changes;
    Ok(())
}
