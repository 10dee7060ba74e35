//! What becomes of the worktrees of attempts that are over.

use crate::engine::attempt::{self, Finished};
use crate::engine::event::Progress;
use crate::model::causes::in_words;

use super::Driver;

impl Driver<'_> {
    /// Keeps the worktrees of attempts for others, or removes them, unless that would lose work that is neither recorded nor salvaged.
    pub(super) fn dispose(&mut self, ended: Vec<Finished>, recorded: bool, filed: bool) {
        for finished in ended {
            let Some(workspace) = finished.spent else { continue };
            if recorded || (filed && finished.saved) {
                // At once, so that what is dispatched next finds it.
                if let Err(workspace) = workspace.recycle(&self.machine.host) {
                    self.removals.spawn_blocking(move || attempt::remove(*workspace));
                }
            } else {
                let note = attempt::unsaved(&finished.item, finished.attempt, &workspace);
                (self.tell)(Progress::Note(note));
            }
        }
    }

    /// Sees that spent worktrees do not take more room than they may.
    pub(super) fn measure(&mut self) {
        let host = self.machine.host.clone();
        self.removals.spawn_blocking(move || {
            let used = match host.bound() {
                Ok(used) => used?,
                Err(error) => return Some(in_words(&error)),
            };
            let (root, cap) = (host.root.display(), host.cap);
            Some(format!("the worktrees in {root} take {used} bytes, more than the {cap} of handoff.workspace.cap"))
        });
    }
}
