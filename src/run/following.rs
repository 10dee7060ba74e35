//! A run that somebody else drives, followed while it goes on.

use std::time::Duration;

use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;

use super::target::{self, Target};
use super::view::View;

/// How often the ref is looked at.
const POLL: Duration = Duration::from_millis(200);

/// How often in a row nothing may have happened in a run that has settled, before it is taken to be left as it is: whoever drives it
/// seals it, or lets its rules add to it, at once.
const QUIET: usize = 5;

/// A run that is looked at again and again.
pub struct Following<'s> {
    store: &'s Store,
    target: Target,
    tip: Option<Oid>,
    quiet: usize,
}

impl<'s> Following<'s> {
    /// Begins with a run as it is.
    pub fn begin(store: &'s Store, target: Target) -> Result<(Self, View), target::Error> {
        let view = target.view(store)?;
        Ok((Self { store, tip: view.head.commit, target, quiet: 0 }, view))
    }

    /// Waits until there is more of the run than this; nothing where it is over.
    pub fn next(&mut self, view: &View) -> Result<Option<View>, target::Error> {
        loop {
            if view.state.sealed || (view.state.is_settled() && self.quiet >= QUIET) {
                return Ok(None);
            }
            std::thread::sleep(POLL);
            let tip = refs::read(self.store, &self.target.reference)?;
            if tip == self.tip {
                self.quiet += 1;
                continue;
            }
            (self.tip, self.quiet) = (tip, 0);
            return self.target.view(self.store).map(Some);
        }
    }
}
