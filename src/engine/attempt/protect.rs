//! Applies the rules of protected files to an attempt.

use super::{Finished, Job, Protect, Verdict};
use crate::git::{protected, verified_stream};
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::plan::ProductKey;
use crate::model::protected::{MOST_CHANGES, OnProtectedChange, PROTECTED_CHANGED, in_words as changes_in_words};
use crate::worktree::host::Host;
use crate::worktree::protect::{Error, Guard};

impl Protect {
    /// Computes the reference state of the protected files.
    pub(super) fn guard(&self, host: &Host, base: Oid) -> Result<Guard, Verdict> {
        Guard::new(&host.store, base, &self.pathspecs, &self.consumed).map_err(|error| match error {
            Error::Reference(conflict @ protected::Error::Conflict(_)) => {
                Verdict::hopeless(format!("protected-conflict: {conflict}"))
            }
            other => failed(&other),
        })
    }
}

/// Returns the verdict if protected files cannot be compared or restored.
pub(super) fn failed(error: &Error) -> Verdict {
    Verdict::from_error("cannot give the protected files their reference state: ", error, Verdict::failed)
}

/// Compares the patch with the reference state and records the changes to protected files. Fails the
/// attempt if the settings say so.
pub(super) fn compare(host: &Host, job: &Job, guard: &Guard, finished: &mut Finished) -> Result<(), Verdict> {
    let patch = finished.products.get(&ProductKey::Patch);
    let patch = patch.map(|patch| verified_stream::read(&host.store, patch.oid, &[patch.sha256])).transpose();
    let changes = guard.changes(patch.map_err(|e| Verdict::failed(in_words(&e)))?).map_err(|e| failed(&e))?;
    finished.reference = Some(guard.tree);
    if changes.is_empty() {
        return Ok(());
    }
    let reason = format!("{PROTECTED_CHANGED}{}", changes_in_words(&changes));
    let effect = job.protect.as_ref().map(|protect| protect.effect).unwrap_or_default();
    if effect == OnProtectedChange::Fail || changes.len() > MOST_CHANGES {
        return Err(Verdict::failed(reason));
    }
    if effect == OnProtectedChange::Red {
        finished.red = Some(match finished.red.take() {
            Some(failed) => format!("{failed}; {reason}"),
            None => reason,
        });
    }
    finished.protected_allowed = effect == OnProtectedChange::Allow;
    finished.protected = changes;
    Ok(())
}
