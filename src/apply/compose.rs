//! Computes the tree that a run's items make of any tree, without moving refs, to compare it with a
//! commit.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::git::merge::Scratch;
use crate::git::start::Starts;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::item_index::ItemIndex;
use crate::run::query::VerifiedRun;

use super::parts::{self, Part};
use super::{Error, Step};

/// A run whose items can be applied to trees.
pub struct Composer {
    store: Store,
    run: Rc<VerifiedRun>,
    scratch: Scratch,
    known: BTreeMap<ItemIndex, Part>,
}

impl Composer {
    /// `store` is the one for new trees; it also sees the run's objects.
    pub fn new(store: &Store, run: Rc<VerifiedRun>) -> Result<Self, Error> {
        let base = run.state.submitted.base;
        if !store.contains(base) {
            return Err(Error::NoBase(base));
        }
        Ok(Self { store: store.clone(), run, scratch: Scratch::new(store, base)?, known: BTreeMap::new() })
    }

    /// Returns the run.
    pub fn run(&self) -> &VerifiedRun {
        &self.run
    }

    /// Applies items to a tree as `apply` does, or returns `None` if they conflict.
    pub fn onto(&mut self, items: &BTreeSet<ItemIndex>, onto: Oid) -> Result<Option<Vec<Step>>, Error> {
        let given: BTreeSet<ItemIndex> = items.iter().flat_map(|at| self.run.state.given(*at)).collect();
        let (mut together, mut starts) = (Vec::new(), Starts::new(&self.scratch, &self.run.state));
        for at in self.run.state.graph.order().into_iter().filter(|at| items.contains(at) || given.contains(at)) {
            let part = match self.known.get(&at) {
                Some(part) => part.clone(),
                None => parts::part(&self.store, &mut starts, &self.run, at, true)?,
            };
            self.known.insert(at, part.clone());
            together.push((at, part.chosen(items.contains(&at))));
        }
        let joined = parts::join(&self.scratch, &self.run, &together)?;
        if !joined.conflicts.is_empty() {
            return Ok(None);
        }
        let applied = parts::transplant(&self.scratch, &self.run, &together, joined, onto)?;
        Ok(Some(applied.steps).filter(|steps| applied.conflicts.is_empty() && !steps.is_empty()))
    }
}
