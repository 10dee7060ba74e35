//! What a run took from outside itself, and whose word stands for that: the items that were not run, and the products that were sealed
//! at submit.

use crate::model::digest::Digest;
use crate::model::name::{RunId, ThreadId};
use crate::model::thread::CheckpointId;
use crate::model::time::Moment;

use super::Case;
use super::objects::Fault;
use super::{continues, imports, reuse};

/// One thing that was taken.
pub(super) struct Taken {
    /// What it is, and of which entry.
    pub(super) whose: String,
    pub(super) kind: Kind,
    /// What the evidence shows, or what is wrong with it.
    pub(super) found: Result<Shown, Wrong>,
}

/// What was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One product.
    Product,
    /// The whole of an item.
    Item,
    /// A run that is continued: the items of it are taken one by one.
    Run,
}

/// What evidence shows that holds.
pub(super) struct Shown {
    /// The keys that signed, of a run those that began and sealed it, each with when it did, by its own word.
    pub(super) keys: Vec<(String, Moment)>,
    /// What it was taken from.
    pub(super) from: Origin,
}

/// What something was taken from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A run.
    Run {
        /// Its name.
        run: RunId,
        /// The leaf hash of its entry 0.
        first: Digest,
        /// The root that the seal says.
        root: Digest,
        /// The number of entries that the root is over, where the run was not sealed.
        open: Option<u64>,
    },
    /// A checkpoint.
    Thread {
        /// Its thread.
        thread: ThreadId,
        /// Its name.
        checkpoint: CheckpointId,
        /// Its entry.
        entry: SignedEntry,
    },
}

/// An entry that somebody signed, and what it follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SignedEntry {
    /// Its place in the thread.
    pub(super) seq: u64,
    /// Its leaf hash.
    pub(super) hash: Digest,
    /// That of the entry before it; none of a first one.
    pub(super) prev: Option<Digest>,
    /// The key that signed it.
    pub(super) key: String,
}

/// Why something cannot be taken for what it is said to be.
#[derive(Clone)]
pub(super) enum Wrong {
    /// What is there says something else.
    Differs(String),
    /// It cannot be read.
    Fault(Fault),
}

/// Looks at all that a run took.
pub(super) fn examine(case: &Case<'_>) -> Vec<Taken> {
    let continued = continues::examine(case);
    let mut taken: Vec<Taken> = continues::taken(case, continued.as_ref()).into_iter().collect();
    taken.extend(imports::examine(case));
    taken.extend(reuse::examine(case, continued.as_ref()));
    taken
}
