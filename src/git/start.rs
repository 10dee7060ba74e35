//! The trees that items of a run begin on: the base with the patches that they apply.

use std::collections::BTreeMap;

use super::merge::{self, Scratch};
use super::program;
use crate::model::digest::Oid;
use crate::model::entry::Product;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::model::state::RunState;

/// Computes the trees that items begin on and result in.
///
/// The result of an item is the tree that it begins on with its own patch.
pub struct Starts<'s> {
    scratch: &'s Scratch,
    state: &'s RunState,
    /// The two trees of each item, once computed.
    known: BTreeMap<ItemIndex, Trees>,
}

/// The trees of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trees {
    /// The tree that it begins on.
    pub start: Oid,
    /// The start with the item's patch.
    pub result: Oid,
}

impl<'s> Starts<'s> {
    /// Creates one for a run whose base `scratch` has.
    pub fn new(scratch: &'s Scratch, state: &'s RunState) -> Self {
        Self { scratch, state, known: BTreeMap::new() }
    }

    /// Returns the tree that an item begins on. `read` returns the bytes of a patch.
    pub fn start<E>(
        &mut self,
        at: ItemIndex,
        read: &impl Fn(ItemIndex, Product) -> Result<Vec<u8>, E>,
    ) -> Result<Oid, Error<E>> {
        let applied = self.state.applied(at);
        for on in &applied {
            self.trees(*on, read)?;
        }
        self.merged(&applied)
    }

    /// Returns the trees of an item that is done and has a patch. Those of the items that it begins
    /// on are computed first.
    pub fn trees<E>(
        &mut self,
        at: ItemIndex,
        read: &impl Fn(ItemIndex, Product) -> Result<Vec<u8>, E>,
    ) -> Result<Trees, Error<E>> {
        // Items are listed after those that they begin on, so no step needs an unknown tree.
        let mut all = self.state.applied(at);
        all.push(at);
        for position in all {
            if self.known.contains_key(&position) {
                continue;
            }
            let start = self.merged(&self.state.applied(position))?;
            let id = || self.state.graph.item(position).id.clone();
            let product =
                self.state.items[position].products.get(&ProductKey::Patch).ok_or_else(|| Error::NoPatch(id()))?;
            let patch = read(position, *product).map_err(Error::Read)?;
            let result = self.scratch.patched_on(start, patch).map_err(|error| Error::Patch(id(), error))?;
            self.known.insert(position, Trees { start, result });
        }
        Ok(self.known[&at])
    }

    /// Applies the patches of some items to the base, each three-way: over the tree that it was
    /// made on.
    ///
    /// The trees of all of them must be known, as they are once those of an item that begins on
    /// them are.
    pub fn merged<E>(&self, items: &[ItemIndex]) -> Result<Oid, Error<E>> {
        let mut tree = self.scratch.base();
        for at in items {
            let Trees { start, result } = self.known[at];
            tree = match self.scratch.merge(start, tree, result)? {
                Ok(merged) => merged,
                Err(paths) => return Err(Error::Conflict(self.state.graph.item(*at).id.clone(), paths)),
            };
        }
        Ok(tree)
    }
}

/// Why the tree that an item begins on cannot be computed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error<E> {
    #[error("the patch of {:?} and earlier ones change {} in different ways", .0.as_str(), .1.join(", "))]
    Conflict(ItemId, Vec<String>),
    #[error("the item {:?} has no patch", .0.as_str())]
    NoPatch(ItemId),
    #[error("the patch of {:?} does not apply to the tree that it was made on", .0.as_str())]
    Patch(ItemId, #[source] program::Error),
    #[error("{0}")]
    Merge(#[from] merge::Error),
    #[error("cannot read a patch")]
    Read(E),
}
