//! Plans the changes to a remote's refs.

use std::collections::BTreeSet;

use crate::git::history;
use crate::git::store::{KeepGuard, Store};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;

use super::compare::{Found, How, RemoteRefs};
use super::push::{Error, Moved, Pushed, Status};
use super::{Diverged, Place};

/// The planned changes.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// The folder of the remote's refs.
    folder: &'a str,
    pub(super) pushed: Pushed,
    diverged: Vec<Diverged>,
    /// Logs of ours to rename, with their new names.
    pub(super) renamed: Vec<(LogName, LogName)>,
    /// The places of the logs to push.
    pub(super) logs: BTreeSet<Place>,
}

impl<'a> Plan<'a> {
    /// Creates an empty plan for a remote with this folder of refs.
    pub(super) fn new(folder: &'a str) -> Self {
        Self { folder, ..Self::default() }
    }

    pub(super) fn add(&mut self, place: Place, old: Option<Oid>, new: Oid, status: Status) {
        self.pushed.moved.push(Moved { to: place.below(self.folder), place, old, new, status });
    }

    /// Compares our object with the remote's. `is_archived` means that a pushed archive contains
    /// it.
    pub(super) fn take(
        &mut self,
        there: &RemoteRefs<'_>,
        place: Place,
        new: Oid,
        is_archived: bool,
        guard: &mut KeepGuard,
    ) -> Result<(), AnyError> {
        let (store, old) = (there.store, there.has.get(&place).copied());
        let (found, rival) = there.look(&place, new, guard)?;
        self.pushed.rivals.extend(rival);
        match found {
            Found::Apart => {
                self.diverged.extend(old.map(|theirs| Diverged::compare(store, place, new, theirs)));
            }
            Found::Blocked => {}
            Found::Stands(status) => {
                let goes = is_archived && old.is_some_and(|old| history::goes_on(store, old, new));
                if !is_archived || goes {
                    self.add(place, old, new, if goes { Status::Archived } else { status });
                }
            }
            Found::Beside(to, status) => {
                self.renamed.extend(LogName::parse(&place.name).map(|from| (from, to.clone())));
                let renamed = Place::of_log(&to);
                // After a crash it has both names and keeps the written one.
                if !self.logs.contains(&renamed) {
                    let before = there.has.get(&renamed).copied();
                    self.add(renamed, before, new, status);
                }
            }
        }
        Ok(())
    }

    /// Returns true, and records it, if the remote has a different run of this name in an archive.
    pub(super) fn is_another(&mut self, store: &Store, place: &Place, ours: Oid, theirs: Oid) -> bool {
        let diverged = Diverged::compare(store, place.clone(), ours, theirs);
        let is_another = diverged.how == How::Another;
        self.diverged.extend(is_another.then_some(diverged));
        is_another
    }

    /// Removes runs and threads of whose names the remote has others, with their related refs;
    /// returns true if there were any.
    ///
    /// A run in an archive of ours cannot be left out; then the whole push is refused.
    pub(super) fn leave_out_others(&mut self, archived: &BTreeSet<Place>) -> bool {
        let diverged = std::mem::take(&mut self.diverged);
        let (others, refused) =
            diverged.into_iter().partition(|one| one.how == How::Another && !archived.contains(&one.place));
        (self.pushed.others, self.diverged) = (others, refused);
        // Transcripts and time stamps are left out with their run or thread.
        let left_out = &self.pushed.others;
        self.pushed.moved.retain(|moved| !left_out.iter().any(|other| moved.place.belongs_to(&other.place)));
        !self.pushed.others.is_empty()
    }

    pub(super) fn refuse_apart(&mut self) -> Result<(), AnyError> {
        let diverged = std::mem::take(&mut self.diverged);
        if diverged.is_empty() { Ok(()) } else { Err(Error::Diverged(diverged).into()) }
    }
}
