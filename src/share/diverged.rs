//! Chains of which a remote has another continuation, or that are not the same chain at all.

use std::fmt;

use crate::git::history;
use crate::git::store::Store;
use crate::ledger::{chain, sign};
use crate::model::digest::Oid;
use crate::model::place::{Kind, Place};

/// A chain that the remote has another continuation of.
#[derive(Clone, Debug)]
pub struct Diverged {
    /// What it holds.
    pub place: Place,
    /// Our head.
    pub ours: Oid,
    /// The remote's.
    pub theirs: Oid,
    /// How the two belong together.
    pub how: How,
}

/// How two chains in one place belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The remote's head is not here, so that nobody can tell.
    Unknown,
    /// They begin with the same entry.
    Forked,
    /// They begin with different entries: they are two runs or threads with one name.
    Another,
}

impl Diverged {
    /// Puts the head that a remote has in a place beside ours.
    pub(super) fn of(store: &Store, place: Place, ours: Oid, theirs: Oid) -> Self {
        let how = match (history::first(store, ours), history::first(store, theirs)) {
            _ if !store.contains(theirs) => How::Unknown,
            (Some(a), Some(b)) if a != b && matches!(place.kind, Kind::Run | Kind::Thread) => How::Another,
            _ => How::Forked,
        };
        Self { place, ours, theirs, how }
    }

    /// Says of each chain what the remote has in its place.
    pub(super) fn sentence(diverged: &[Self]) -> String {
        diverged.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// Returns true if two chains begin with different entries, each signed by another key.
pub(super) fn are_by_two(store: &Store, one: Oid, other: Oid) -> bool {
    let begun = |head: Oid| {
        let first = history::first(store, head)?;
        let entry = chain::decode(store, first).ok()?;
        Some((first, sign::signer(&entry.payload, entry.signature.as_deref()).ok()?))
    };
    matches!((begun(one), begun(other)), (Some(one), Some(other)) if one.0 != other.0 && one.1 != other.1)
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.place.kind.word(), &self.place.name);
        let (ours, theirs) = (self.ours, self.theirs);
        match self.how {
            How::Another => write!(
                f,
                "the {kind} {name:?} on the remote is another one: it begins with another entry than the {kind} here"
            ),
            How::Forked => write!(f, "{kind} {name:?} on the remote, at {theirs}, does not go on from ours, at {ours}"),
            How::Unknown => {
                write!(f, "{kind} {name:?} is at {ours} here and at {theirs} on the remote, which is not here")
            }
        }
    }
}
