//! The beats of the drivers of a shared run: read from its remote, and judged.
//!
//! Anyone who may push can put anything on the refs of drivers. No value there stops a reader, and
//! only a beat of this run and driver, by a key that may drive, is a sign of life.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::git::store::{KeepGuard, Store};
use crate::git::tip::{Copy, Tip};
use crate::git::{refs, remote};
use crate::ledger::beat;
use crate::model::beat::Beat;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::DriverId;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::role::Role;
use crate::model::state::RunState;
use crate::model::time::Moment;

/// Reads the chain of a shared run and the refs of its drivers.
#[derive(Default)]
pub(super) struct Reader {
    /// The values that git's checks refused. While the remote has one of them, beats are fetched
    /// apart from the chain.
    refused: BTreeSet<Oid>,
}

/// The refs of a shared run on its remote.
pub(super) struct Reading {
    /// The head of the chain, if our ref differs.
    pub(super) head: Option<Oid>,
    /// The values of the drivers' refs. An object that git's checks refused is not here.
    pub(super) values: BTreeMap<DriverId, Oid>,
    /// Keeps the fetched objects until a ref reaches them.
    pub(super) guard: KeepGuard,
}

impl Reader {
    /// Fetches the chain and the beats, and moves our copies of the beats.
    pub(super) fn read(&mut self, tip: &Tip, store: &Store, run: &RunId) -> Result<Reading, ReadError> {
        if self.refused.is_empty() {
            match read_together(tip, store, run) {
                Err(ReadError::Remote(why)) if why.refuses_objects() => {}
                read => return read,
            }
        }
        self.read_apart(tip, store, run)
    }

    /// Fetches the chain alone, and then the beats that git's checks let pass.
    fn read_apart(&mut self, tip: &Tip, store: &Store, run: &RunId) -> Result<Reading, ReadError> {
        let (name, folder) = (format::run_ref(run), format::driver_refs(run));
        let mut read = tip.read(&[same(&name)])?;
        let listed = tip.list(&[&format!("{folder}*")])?;
        let found = listed.iter().filter_map(|(path, value)| Some((driver_of(&folder, path)?, *value)));
        let values: BTreeMap<DriverId, Oid> = found.collect();
        let present: BTreeSet<Oid> = values.values().copied().collect();
        self.refused.retain(|oid| present.contains(oid));
        let oids: Vec<Oid> =
            present.into_iter().filter(|oid| !self.refused.contains(oid) && !store.contains(*oid)).collect();
        self.fetch(tip, &oids, &mut read.guard)?;
        let copies: BTreeMap<String, Oid> = refs::list(store, &folder)?.into_iter().collect();
        for old_name in copies.keys().filter(|path| !listed.contains_key(*path)) {
            keep_beat(store, old_name, None)?;
        }
        for (path, value) in &listed {
            if !self.refused.contains(value) && copies.get(path) != Some(value) {
                keep_beat(store, path, Some(*value))?;
            }
        }
        Ok(Reading { head: read.changed.get(&name).copied().flatten(), values, guard: read.guard })
    }

    /// Fetches objects, and finds by halves those that git's checks refuse.
    fn fetch(&mut self, tip: &Tip, oids: &[Oid], guard: &mut KeepGuard) -> Result<(), remote::Error> {
        if oids.is_empty() {
            return Ok(());
        }
        match (tip.fetch(oids), oids) {
            (Ok(more), _) => guard.join(more),
            (Err(why), [one]) if why.refuses_objects() => drop(self.refused.insert(*one)),
            (Err(why), _) if why.refuses_objects() => {
                let (first, second) = oids.split_at(oids.len() / 2);
                self.fetch(tip, first, guard)?;
                self.fetch(tip, second, guard)?;
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }
}

/// Fetches the chain and the beats in one call.
fn read_together(tip: &Tip, store: &Store, run: &RunId) -> Result<Reading, ReadError> {
    let (name, folder) = (format::run_ref(run), format::driver_refs(run));
    let read = tip.read(&[same(&name), same(&format!("{folder}*"))])?;
    for (changed_name, value) in read.changed.iter().filter(|(path, _)| path.starts_with(&folder)) {
        keep_beat(store, changed_name, *value)?;
    }
    let copies = refs::list(store, &folder)?.into_iter();
    let values = copies.filter_map(|(copy_name, value)| Some((driver_of(&folder, &copy_name)?, value))).collect();
    Ok(Reading { head: read.changed.get(&name).copied().flatten(), values, guard: read.guard })
}

fn same(name: &str) -> Copy {
    Copy { theirs: name.to_owned(), ours: name.to_owned() }
}

fn driver_of(folder: &str, name: &str) -> Option<DriverId> {
    name.strip_prefix(folder).and_then(DriverId::parse)
}

/// Moves our copy of a beat to the value that a remote shows.
fn keep_beat(store: &Store, name: &str, value: Option<Oid>) -> Result<(), refs::Error> {
    match (value, refs::read_stored(store, name)?) {
        (Some(beat), _) => refs::set(store, name, beat),
        (None, Some(old)) => refs::delete(store, name, old),
        (None, None) => Ok(()),
    }
}

/// A run, as far as its chain says which beats count.
pub(super) struct Judge<'a> {
    pub(super) store: &'a Store,
    pub(super) run: &'a RunId,
    /// The leaf hash of entry 0.
    pub(super) first: Digest,
    pub(super) state: &'a RunState,
}

/// A beat or a fence that counts.
pub(super) struct Sign {
    pub(super) beat: Beat,
    /// The key that signed it.
    pub(super) key: String,
}

impl Judge<'_> {
    /// Reads the value of a driver's ref, or returns `None` if it does not count.
    pub(super) fn sign(&self, driver: &DriverId, value: Oid) -> Option<Sign> {
        // An object that cannot be read is no sign of life.
        let (beat, key) = beat::read(self.store, value).ok().flatten()?;
        let is_of_driver = beat.run == *self.run && beat.first == self.first && beat.driver == *driver;
        (is_of_driver && self.may_sign(&beat, &key)).then_some(Sign { beat, key })
    }

    /// Returns true for the key that dispatched what the driver holds. If it holds nothing, or for
    /// a fence, every key with the role `work` counts.
    fn may_sign(&self, beat: &Beat, key: &str) -> bool {
        let state = self.state;
        let dispatchers: BTreeSet<&str> = state
            .items
            .indices()
            .filter(|at| state.items[*at].holder.as_ref().is_some_and(|holder| holder.driver == beat.driver))
            .filter_map(|at| state.keys.dispatcher(&state.graph.item(at).id))
            .collect();
        if beat.taker.is_some() || dispatchers.is_empty() {
            state.keys.has(key, Role::Work)
        } else {
            dispatchers.contains(key)
        }
    }
}

impl Sign {
    /// Returns the place of a beat among those of its driver, or `None` for a fence.
    pub(super) fn mark(&self) -> Option<Mark> {
        Some(Mark { number: self.beat.beat?, at: self.beat.at })
    }
}

/// The place of a beat among those of its driver. A replayed beat has no higher one than the
/// highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Mark {
    number: u64,
    /// Tells apart beats of one number: one may be accepted although its answer was lost.
    at: Moment,
}

errors! {
    /// Failures to read the remote of a shared run.
    #[derive(Debug, thiserror::Error)] pub(super) enum ReadError;
    // The objects of the run's head at the remote were refused here.
    Head { head: Oid, #[source] why: remote::Error }: "{why}";
    #[from] Remote(remote::Error), Ref(refs::Error);
}
