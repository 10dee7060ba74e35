//! Pushes entries of a shared run to its remote, and judges the answers.

use std::thread;

use crate::git::store::KeepGuard;
use crate::git::tip::{Move, Swap};
use crate::ledger::chain::{Appended, Draft, Link};
use crate::run::operate::pace::MOST_TURNS;
use crate::run::operate::via::Via;

use super::{Applying, Error, OpenRun};

/// The number of pushes in a row after which a lock file at the remote counts as left behind.
const MOST_LOCKED: u32 = 4;

impl OpenRun {
    /// Records drafts through the remote, with further refs in the same push if `more` names any.
    ///
    /// Returns `None` if another writer appended first. After that, or an error, the state is that
    /// of the head, and nothing is staged.
    pub(super) fn push_drafts(&mut self, drafts: Vec<Draft>, more: &[Move]) -> Result<Option<Vec<Link>>, Error> {
        match self.writer.append(&self.head, drafts).and_then(Appended::place) {
            Ok((guard, links)) => self.push_links(&guard, links, more),
            Err(error) => {
                self.unstage();
                Err(error.into())
            }
        }
    }

    /// Pushes entries that are written, as [`OpenRun::push_drafts`] does.
    pub(super) fn push_links(
        &mut self,
        guard: &KeepGuard,
        links: Vec<Link>,
        more: &[Move],
    ) -> Result<Option<Vec<Link>>, Error> {
        let Some(shared) = &mut self.shared else { return Ok(None) };
        shared.via.wait_for_gap();
        let old = self.head.commit;
        let Some(new) = links.last().map(|link| link.commit) else { return Ok(Some(links)) };
        let remote = shared.via.tip().remote().to_owned();
        let answer = shared.via.swap(old, new, more);
        if !matches!(answer, Ok(Swap::Locked(_))) {
            shared.locked = 0;
        }
        if let Ok(Swap::Won) = answer {
            self.accept(&links);
            self.move_ref(old, new, guard)?;
            return Ok(Some(links));
        }
        self.unstage();
        if let Ok(Swap::Refused(why)) = answer {
            return Err(Error::PushRefused { remote, why });
        }
        let read = self.read_remote()?;
        if read.contains(&new) {
            return Ok(Some(links));
        }
        match answer {
            Ok(Swap::Lost) => self.wait_for_turn()?,
            Ok(Swap::Locked(why)) => {
                if self.is_lock_left(read.is_empty()) {
                    return Err(Error::Locked { remote, why });
                }
                self.wait_for_turn()?;
            }
            // It may still land. A command of a person tries again.
            Ok(Swap::Unknown(why)) if self.driver().is_some() => return Err(Error::Unanswered { remote, why }),
            Err(error) if self.driver().is_some() => {
                return Err(Error::Unreachable { remote, why: Box::new(error) });
            }
            _ => {}
        }
        Ok(None)
    }

    /// Counts a push that a lock file at the remote stopped. Returns true if no other process seems
    /// to move the ref.
    fn is_lock_left(&mut self, is_nothing_new: bool) -> bool {
        let Some(shared) = &mut self.shared else { return false };
        shared.locked = if is_nothing_new { shared.locked + 1 } else { 0 };
        shared.locked >= MOST_LOCKED
    }

    /// Waits for this writer's turn, and reads again after each wait until nothing new was read. A
    /// driver does other things meanwhile, and asks [`Via::due`].
    fn wait_for_turn(&mut self) -> Result<(), Error> {
        if let Some(shared) = self.shared.as_mut().filter(|shared| shared.via.driver().is_some()) {
            shared.via.await_turn();
            return Ok(());
        }
        for _ in 0..MOST_TURNS {
            thread::sleep(self.via().map(Via::wait).unwrap_or_default());
            if self.read_remote()?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the remote when this driver's turn came. If others pushed meanwhile, the driver waits
    /// for its next turn, and staged entries that a lost push would drop are dropped.
    pub fn read_at_turn(&mut self) -> Result<(), Error> {
        let staged = std::mem::take(&mut self.staged).entries;
        if !staged.is_empty() {
            self.unstage();
        }
        let read = self.read_remote();
        let is_new = read.as_ref().is_ok_and(|commits| !commits.is_empty());
        self.apply(&staged, if is_new { Applying::Kept } else { Applying::Legal })?;
        read?;
        if let Some(shared) = &mut self.shared {
            // The others leave room for the driver that waits longest, so it need not read again.
            if is_new && !shared.via.is_first() { shared.via.await_turn() } else { shared.via.begin_turn() }
        }
        Ok(())
    }
}
