//! Follows what other writers append, and records entries of a shared run through its remote.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::git::history;
use crate::git::store::KeepGuard;
use crate::git::{refs, remote};
use crate::ledger::chain::{self, Link};
use crate::ledger::merkle::Frontier;
use crate::model::digest::Oid;
use crate::model::driver::DriverId;
use crate::model::entry::Event;
use crate::model::state::RunState;
use crate::run::operate::beats::{Judge, ReadError};
use crate::run::operate::new_entry::NewEntry;
use crate::run::operate::now;
use crate::run::operate::via::{RunRead, Via};
use crate::run::query::driver_lock::NoDriver;
use crate::run::query::{self, stopped_rules, view};
use crate::verify::{Further, check_applied, check_date, check_next, dispatchers, read_further};

use super::error::BadTip;
use super::{Error, OpenRun, Staged, frontier};

/// A run that is recorded through a remote.
pub(super) struct Shared {
    pub(super) via: Via,
    /// The state at the head, without staged entries.
    pub(super) confirmed: RunState,
    /// How often in a row a lock file at the remote was in the way, and nothing new was read.
    pub(super) locked: u32,
    /// Held while a command records entries of a run that drivers here do not share.
    pub(super) no_driver: Option<NoDriver>,
}

impl OpenRun {
    /// Records entries through a remote from here on. Nothing may be staged.
    pub fn share_via(&mut self, via: Via) -> Result<(), Error> {
        if let Some(tip) = self.head.commit {
            let found = dispatchers(&self.writer.store, &self.state.keys, tip);
            let found = found.map_err(|why| Error::Stranger(self.run.clone(), why))?;
            found.into_iter().for_each(|(item, key)| self.state.keys.set_dispatcher(item, key));
        }
        self.shared = Some(Box::new(Shared { via, confirmed: self.state.clone(), locked: 0, no_driver: None }));
        Ok(())
    }

    /// Keeps drivers of this repository out while entries are recorded through a remote.
    pub(in crate::run::operate) fn keep_drivers_out(&mut self, no_driver: Option<NoDriver>) {
        if let Some(shared) = &mut self.shared {
            shared.no_driver = no_driver;
        }
    }

    /// Returns the remote of a shared run.
    pub fn via(&self) -> Option<&Via> {
        self.shared.as_ref().map(|shared| &shared.via)
    }

    /// Sets the silence after which another driver does not count any more.
    pub fn set_lost_after(&mut self, lost_after: Duration) {
        self.shared.iter_mut().for_each(|shared| shared.via.set_lost_after(lost_after));
    }

    /// Sets since when this driver has something to push, and whether its beats say so.
    pub fn set_waiting(&mut self, since: Option<Instant>, is_announced: bool) {
        self.shared.iter_mut().for_each(|shared| shared.via.set_waiting(since, is_announced));
    }

    /// Sets the keys from which nothing more is taken.
    pub fn set_revoked(&mut self, revoked: BTreeSet<String>) {
        self.revoked = revoked;
    }

    /// Judges which beats of the last read count, by what the chain says.
    pub fn judge_beats(&mut self) {
        let Some(shared) = &mut self.shared else { return };
        let Shared { via, confirmed, .. } = &mut **shared;
        let (store, run, first) = (&self.writer.store, &self.run, self.first);
        via.judge_beats(&Judge { store, run, first, state: confirmed });
    }

    /// Returns the driver that this process is, if it drives a shared run.
    pub fn driver(&self) -> Option<&DriverId> {
        self.via()?.driver()
    }

    /// Folds on the entries that other writers appended to our ref, if nothing is staged.
    pub(super) fn follow_ref(&mut self) -> Result<(), Error> {
        let tip = refs::read(&self.writer.store, &self.head.name)?;
        match (self.head.commit, tip) {
            (Some(known), Some(tip)) if known != tip => {
                let further = read_further(&self.writer.store, &self.run, self.first, &self.state.keys, known, tip);
                match further {
                    Ok(further) => self.fold_on(&further),
                    // Reading everything again finds the same fault, and says which kind it is.
                    Err(_) => self.reload(),
                }
            }
            (known, tip) if known == tip => Ok(()),
            _ => self.reload(),
        }
    }

    /// Reads the remote of a shared run, and folds on the entries that others appended. Returns
    /// their commits. Nothing may be staged.
    pub(super) fn read_remote(&mut self) -> Result<Vec<Oid>, Error> {
        let Some(shared) = &mut self.shared else { return Ok(Vec::new()) };
        let store = self.writer.store.clone();
        let remote = shared.via.tip().remote().to_owned();
        let read = shared.via.read(&store);
        let RunRead { changed, is_gone, guard } = read.map_err(|error| match (error, self.head.commit) {
            (ReadError::Head { head: tip, why }, Some(good)) if tip != good => {
                let limit = if matches!(why, remote::Error::TooLarge(..)) { " (handoff.maxFetchSize)" } else { "" };
                let why = format!("{why}{limit}");
                Error::Poisoned(Box::new(BadTip { run: self.run.clone(), remote, commit: tip, tip, good, why }))
            }
            (ReadError::Remote(why) | ReadError::Head { why, .. }, _) => {
                Error::Unreachable { remote, why: Box::new(why) }
            }
            (ReadError::Ref(error), _) => Error::Ref(error),
        })?;
        let local = refs::read(&store, &self.head.name)?;
        let (Some(known), Some(tip)) = (self.head.commit, changed.or(local)) else {
            return Err(Error::Rewritten(self.run.clone()));
        };
        if is_gone {
            // Like a remote that was set back, it gets our head again.
            let _ = shared.via.swap(None, known, &[]);
            return Ok(Vec::new());
        }
        if known == tip {
            return Ok(Vec::new());
        }
        let keys = &shared.confirmed.keys;
        let further = match read_further(&store, &self.run, self.first, keys, known, tip) {
            Ok(further) => further,
            Err(why) => return self.judge_tip(known, tip, why),
        };
        self.fold_on(&further)?;
        self.move_ref(local, tip, &guard)?;
        Ok(further.into_iter().map(|one| one.commit).collect())
    }

    /// Decides what a head of the remote means that cannot be folded on.
    ///
    /// A remote that was set back to an earlier head gets our head again.
    fn judge_tip(&mut self, known: Oid, tip: Oid, why: String) -> Result<Vec<Oid>, Error> {
        let (store, run) = (&self.writer.store, self.run.clone());
        let Some(shared) = &mut self.shared else { return Ok(Vec::new()) };
        let remote = shared.via.tip().remote().to_owned();
        if history::goes_on(store, known, tip) {
            return Err(Error::Poisoned(Box::new(BadTip { run, remote, commit: tip, tip, good: known, why })));
        }
        if history::goes_on(store, tip, known) {
            // Whatever the answer is, the next read tells.
            let _ = shared.via.swap(Some(tip), known, &[]);
            return Ok(Vec::new());
        }
        Err(Error::Forked(Box::new(BadTip { run, remote, commit: tip, tip, good: known, why })))
    }

    /// Moves our ref to a head that the remote has and this process checked.
    ///
    /// Another process of this repository may have moved it there, or further. The guard keeps the
    /// head's objects meanwhile.
    pub(super) fn move_ref(&self, old: Option<Oid>, new: Oid, _kept: &KeepGuard) -> Result<(), Error> {
        let (store, name) = (&self.writer.store, &self.head.name);
        if let Some(old) = old.filter(|old| *old != new) {
            match refs::advance(store, name, old, new) {
                Ok(()) | Err(refs::Error::LostRace(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Applies entries that other writers appended after the head, if all of them can follow it.
    fn fold_on(&mut self, further: &[Further]) -> Result<(), Error> {
        if further.is_empty() {
            return Ok(());
        }
        debug_assert!(!self.has_staged(), "staged entries would be applied out of order");
        let mut so_far = self.frontier.clone();
        for one in further {
            self.note_cut(&one.entry.event);
            if let Err(why) = self.apply_checked(one, &so_far) {
                self.reload()?;
                return Err(self.poisoned(one, further, &why));
            }
            so_far.push(one.hash);
        }
        for one in further {
            let link = Link { commit: one.commit, tree: one.tree, hash: one.hash, entry: one.entry.clone() };
            self.head.follow(&link);
            self.frontier.push(link.hash);
            if let Some(shared) = &mut self.shared {
                shared.via.note_entry(link.entry.event.author());
            }
        }
        stopped_rules::find_stopped(&self.writer.store, &mut self.state);
        self.generation += 1;
        Ok(())
    }

    /// Applies an entry that another writer appended, if `verify` has nothing against it. `so_far`
    /// are the entries before it. After an error the state has to be reloaded.
    fn apply_checked(&mut self, one: &Further, so_far: &Frontier) -> Result<(), String> {
        let (store, run) = (&self.writer.store, &self.run);
        if self.revoked.contains(&one.key) {
            return Err("the key is revoked here".to_owned());
        }
        check_date(now(&self.writer), self.head.at, &one.entry, &one.key)?;
        check_next(store, run, &self.state, so_far, one)?;
        view::apply(store, run, &mut self.state, one).map_err(|error| error.to_string())?;
        check_applied(store, run, &self.state, one)?;
        match &mut self.shared {
            Some(shared) => view::apply(store, run, &mut shared.confirmed, one).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Returns the error for an entry that cannot follow; `further` are all that were read.
    fn poisoned(&self, one: &Further, further: &[Further], why: &str) -> Error {
        let (run, commit, tip) = (self.run.clone(), one.commit, further.last().map_or(one.commit, |last| last.commit));
        let why = format!("entry {} of the key {}: {why}", one.entry.seq, one.key);
        match (&self.shared, self.head.commit) {
            (Some(shared), Some(good)) => {
                let remote = shared.via.tip().remote().to_owned();
                Error::Poisoned(Box::new(BadTip { run, remote, commit, tip, good, why }))
            }
            _ => Error::Stranger(run, why),
        }
    }

    /// Drops staged entries of a shared run from the state.
    pub(super) fn unstage(&mut self) {
        if let Some(shared) = &self.shared {
            self.staged = Staged::default();
            self.state = shared.confirmed.clone();
        }
    }

    /// Applies entries of ours that the remote accepted to the confirmed state.
    pub(super) fn accept(&mut self, links: &[Link]) {
        let key = self.writer.signer.fingerprint();
        for link in links {
            self.head.follow(link);
            self.frontier.push(link.hash);
        }
        links.iter().for_each(|link| self.note_cut(&link.entry.event));
        let Some(shared) = &mut self.shared else { return };
        // The state has the items that were added; an entry has only their ids.
        let adds = links.iter().any(|link| matches!(link.entry.event, Event::RunExtended(_)));
        let mut applied = links.iter().map(|link| shared.confirmed.apply_signed(&link.entry.event, Some(&key)));
        if adds || applied.any(|applied| applied.is_err()) {
            shared.confirmed = self.state.clone();
        }
        links.iter().for_each(|link| shared.via.note_entry(link.entry.event.author()));
    }

    /// Returns true if an entry is kept after a lost push, as the end of an attempt is. Other
    /// entries of a driver are decided again.
    pub(super) fn survives(&self, new: &NewEntry) -> bool {
        if self.driver().is_none() {
            return true;
        }
        new.is_result()
    }

    /// Reloads a shared run from our ref, after its state was lost.
    pub(super) fn reload_shared(&mut self) -> Result<(), Error> {
        let keys = self.shared.as_ref().map(|shared| shared.confirmed.keys.clone());
        let read = chain::read(&self.writer.store, &self.head.name)?;
        let (_, mut links) = read.ok_or_else(|| query::Error::Unknown(self.run.clone()))?;
        links.truncate(usize::try_from(self.head.entries).expect("a chain in memory has a length that fits"));
        let view = view::from_links(&self.writer.store, &self.run, &self.head.name, links)?;
        (self.frontier, self.state) = (frontier(&view.links), view.state);
        if let (Some(shared), Some(keys)) = (&mut self.shared, keys) {
            self.state.keys = keys;
            shared.confirmed = self.state.clone();
        }
        self.generation += 1;
        Ok(())
    }
}
