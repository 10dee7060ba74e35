//! Recycles or removes the worktrees of ended attempts.

use crate::engine::attempt;
use crate::engine::event::Progress;
use crate::engine::finished_attempt::FinishedAttempt;
use crate::model::causes::in_words;

use super::Driver;

impl Driver<'_> {
    /// Recycles or removes worktrees, except those with work that is neither recorded nor salvaged.
    pub(super) fn dispose(&mut self, ended: Vec<FinishedAttempt>, recorded: bool, filed: bool) {
        for finished in ended {
            let Some(workspace) = finished.spent else { continue };
            if recorded || (filed && finished.result.worktree.as_ref().is_some_and(|left| left.saved)) {
                // This runs at once, so that the next dispatch can use the worktree.
                if let Err(workspace) = workspace.recycle(&self.machine.host) {
                    self.removals.spawn_blocking(move || attempt::remove(*workspace));
                }
            } else {
                let note = attempt::unsaved(&finished.result.item, finished.result.attempt, &workspace.dir);
                (self.tell)(Progress::Note(note));
            }
        }
    }

    /// Removes spent worktrees that take more space than allowed, and reports if that is not
    /// enough.
    pub(super) fn measure(&mut self) {
        let host = self.machine.host.clone();
        self.removals.spawn_blocking(move || {
            let used = match host.bound() {
                Ok(used) => used?,
                Err(error) => return Some(in_words(&error)),
            };
            let (root, cap) = (host.settings.root.display(), host.cap);
            Some(format!("the worktrees in {root} take {used} bytes, more than the {cap} of handoff.workspace.cap"))
        });
    }
}
