//! Chains that differ from the remote's chain of the same name.

use std::fmt;

use serde::Serialize;

use crate::git::history;
use crate::git::store::Store;
use crate::ledger::{chain, sign};
use crate::model::digest::Oid;
use crate::model::place::{Kind, Place};

/// A chain that diverges from the remote's.
#[derive(Clone, Debug, Serialize)]
pub struct Diverged {
    /// The kind and name.
    #[serde(flatten)]
    pub place: Place,
    /// Our head.
    pub ours: Oid,
    /// The remote's.
    pub theirs: Oid,
    /// The relation of the two.
    #[serde(skip)]
    pub how: How,
}

/// The relation of two chains of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Unknown, because the remote's head is not in this repository.
    Unknown,
    /// They share the first entry.
    Forked,
    /// They differ in the first entry: two runs or threads of the same name.
    Another,
}

impl Diverged {
    /// Compares our head with the remote's.
    pub(super) fn compare(store: &Store, place: Place, ours: Oid, theirs: Oid) -> Self {
        let how = match (history::first(store, ours), history::first(store, theirs)) {
            _ if !store.contains(theirs) => How::Unknown,
            (Some(a), Some(b)) if a != b && matches!(place.kind, Kind::Run | Kind::Thread) => How::Another,
            _ => How::Forked,
        };
        Self { place, ours, theirs, how }
    }

    /// Returns true if both are continuations of one run.
    pub fn is_driven_twice(&self) -> bool {
        self.how == How::Forked && self.place.kind == Kind::Run
    }

    /// Formats the divergence of each chain.
    pub(super) fn sentence(diverged: &[Self]) -> String {
        diverged.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// Returns true if the first entries differ and are signed by different keys.
pub(super) fn are_by_two(store: &Store, one: Oid, other: Oid) -> bool {
    matches!((read_beginning(one, store), read_beginning(other, store)), (Some(one), Some(other)) if one.0 != other.0 && one.1 != other.1)
}

fn read_beginning(head: Oid, store: &Store) -> Option<(Oid, String)> {
    let first = history::first(store, head)?;
    let entry = chain::decode(store, first).ok()?;
    Some((first, sign::signer(&entry.payload, entry.signature.as_deref()).ok()?))
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
            How::Forked if self.is_driven_twice() => write!(
                f,
                "the run {name:?} was driven twice: the remote has other entries of it, at {theirs}, than there are here, at {ours}"
            ),
            How::Forked => write!(f, "{kind} {name:?} on the remote, at {theirs}, does not go on from ours, at {ours}"),
            How::Unknown => {
                write!(f, "{kind} {name:?} is at {ours} here and at {theirs} on the remote, which is not here")
            }
        }
    }
}
