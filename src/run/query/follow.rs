//! Follows a run that another process drives.

use std::time::Duration;

use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;

use super::target::{self, Target};
use super::view::View;

/// How often to poll the ref.
const POLL: Duration = Duration::from_millis(200);

/// After how many polls without a change a settled run is considered over. Its driver seals it, or
/// applies its rules, right after it settled.
const MAX_QUIET_POLLS: usize = 5;

/// Polls a run for new entries.
pub struct Follower<'s> {
    store: &'s Store,
    target: Target,
    tip: Option<Oid>,
    quiet_polls: usize,
}

impl<'s> Follower<'s> {
    /// Returns the follower and the run as it is now.
    pub fn begin(store: &'s Store, target: Target) -> Result<(Self, View), target::Error> {
        let view = target.view(store)?;
        Ok((Self { store, tip: view.head.commit, target, quiet_polls: 0 }, view))
    }

    /// Waits for new entries, and calls `meanwhile` again and again. Returns `None` if the run is
    /// over.
    pub fn next(&mut self, view: &View, meanwhile: &mut dyn FnMut()) -> Result<Option<View>, target::Error> {
        loop {
            if view.state.sealed || (view.state.is_settled() && self.quiet_polls >= MAX_QUIET_POLLS) {
                return Ok(None);
            }
            std::thread::sleep(POLL);
            meanwhile();
            let tip = refs::read(self.store, &self.target.reference)?;
            if tip == self.tip {
                self.quiet_polls += 1;
                continue;
            }
            (self.tip, self.quiet_polls) = (tip, 0);
            return self.target.view(self.store).map(Some);
        }
    }
}
