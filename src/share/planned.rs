//! What a push is about to do to each ref of the remote.

use std::collections::BTreeSet;

use crate::git::history;
use crate::git::store::{Kept, Store};
use crate::model::digest::Oid;
use crate::model::log_name::LogName;

use super::diverged::How;
use super::push::{Error, Moved, Pushed, Status};
use super::rival::{Found, Remotely};
use super::{Diverged, Place};

/// What a push is about to do.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// The folder of refs on the remote.
    folder: &'a str,
    pub(super) pushed: Pushed,
    diverged: Vec<Diverged>,
    /// Logs that make way for another's, each with its new name.
    pub(super) renamed: Vec<(LogName, LogName)>,
    /// The places of the logs that go.
    pub(super) logs: BTreeSet<Place>,
}

impl<'a> Plan<'a> {
    /// Plans nothing yet, for a remote that keeps runs and logs in this folder.
    pub(super) fn new(folder: &'a str) -> Self {
        Self { folder, ..Self::default() }
    }

    pub(super) fn add(&mut self, place: Place, old: Option<Oid>, new: Oid, status: Status) {
        self.pushed.moved.push(Moved { to: place.below(self.folder), place, old, new, status });
    }

    /// Holds something of ours against what the remote has in its place. `held` says that it goes within an archive.
    pub(super) fn take(
        &mut self,
        there: &Remotely<'_>,
        (place, new, held): (Place, Oid, bool),
        kept: &mut Kept,
    ) -> Result<(), Error> {
        let (store, old) = (there.store, there.has.get(&place).copied());
        let (found, rival) = there.look(&place, new, kept)?;
        self.pushed.rivals.extend(rival);
        match found {
            Found::Apart => {
                self.diverged.extend(old.map(|theirs| Diverged::of(store, place, new, theirs)));
            }
            Found::Blocked => {}
            Found::Stands(status) => {
                let goes = held && old.is_some_and(|old| history::goes_on(store, old, new));
                if !held || goes {
                    self.add(place, old, new, if goes { Status::Archived } else { status });
                }
            }
            Found::Beside(to, status) => {
                self.renamed.extend(LogName::parse(&place.name).map(|from| (from, to.clone())));
                let place = Place::of_log(&to);
                // It has both names after a crash, and goes under the one that is written.
                if !self.logs.contains(&place) {
                    let old = there.has.get(&place).copied();
                    self.add(place, old, new, status);
                }
            }
        }
        Ok(())
    }

    /// Returns true, and notes it, if a run is another one than that which lies under its name in an archive of the remote.
    pub(super) fn is_another(&mut self, store: &Store, place: &Place, ours: Oid, theirs: Oid) -> bool {
        let diverged = Diverged::of(store, place.clone(), ours, theirs);
        let is_another = diverged.how == How::Another;
        self.diverged.extend(is_another.then_some(diverged));
        is_another
    }

    /// Leaves out what the remote has another run or thread for, and what belongs to it; returns whether there is any.
    ///
    /// Of one that lies in an archive of ours nothing can be left out: it is refused, with all else.
    pub(super) fn leave_out_others(&mut self, archived: &BTreeSet<Place>) -> bool {
        let diverged = std::mem::take(&mut self.diverged);
        let is_other = |one: &Diverged| one.how == How::Another && !archived.contains(&one.place);
        let (others, refused) = diverged.into_iter().partition(is_other);
        (self.pushed.others, self.diverged) = (others, refused);
        // Transcripts and time stamps belong to the run.
        let others = &self.pushed.others;
        let stays = |place: &Place| !place.kind.is_chain() && others.iter().any(|other| other.place.name == place.name);
        self.pushed.moved.retain(|moved| !stays(&moved.place));
        !self.pushed.others.is_empty()
    }

    pub(super) fn refuse_apart(&mut self) -> Result<(), Error> {
        let diverged = std::mem::take(&mut self.diverged);
        if diverged.is_empty() { Ok(()) } else { Err(Error::Diverged(diverged)) }
    }
}
