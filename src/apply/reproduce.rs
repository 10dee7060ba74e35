//! Compares the tree of a commit with the run's base plus the products of items.

use serde::Serialize;

use crate::git::merge::Scratch;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::item_index::ItemIndex;
use crate::run::query::VerifiedRun;

use super::{Change, Error, parts};

/// The comparison of a commit with the products.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Reproduced {
    /// The comparison of the trees.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["same", "different"])))]
    pub result: &'static str,
    /// The commit.
    pub commit: Oid,
    /// The files that differ: `A` if only the commit has the file, `D` if only the products have
    /// it.
    pub differences: Vec<Change>,
}

impl Reproduced {
    /// Returns true if the trees are equal.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Composes the products of an item, or of all done items in the order of `apply`, on the run's
/// base, and compares the result with a commit. Writes nothing into the repository.
pub fn reproduce(store: &Store, run: &VerifiedRun, only: Option<ItemIndex>, commit: Oid) -> Result<Reproduced, Error> {
    let base = run.state.submitted.base;
    if !store.contains(base) {
        return Err(Error::NoBase(base));
    }
    let chosen = parts::chosen(run, only)?;
    let scratch = Scratch::isolated(store, base)?;
    let parts = parts::read(store, &scratch, run, &chosen, false)?;
    let joined = parts::join(&scratch, run, &parts)?;
    if let Some(conflict) = joined.conflicts.into_iter().next() {
        return Err(Error::Incomposable(conflict.item, conflict.paths.join(", ")));
    }
    let composed = joined.steps.last().map_or(scratch.base(), |step| step.tree);
    let changes = scratch.changes(composed, scratch.tree_of(commit)?)?;
    let differences: Vec<Change> = changes.into_iter().map(|(change, path)| Change { change, path }).collect();
    let result = if differences.is_empty() { "same" } else { "different" };
    Ok(Reproduced { result, commit, differences })
}
