//! What items wait for, what they build on, and which one stands for another.

use std::collections::BTreeSet;

use super::{Phase, RunState};
use crate::model::entry::Product;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Need, ProductKey, Selector, Source};

/// How it stands with a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is done.
    Met,
    /// It may still be.
    Open,
    /// It will not be, as things stand.
    Lost,
}

impl RunState {
    /// Returns how it stands with a dependency of an item.
    ///
    /// A gate that blocks and is red is lost for whoever depends on it, but for those that need one of its outputs: they are there to
    /// say why.
    pub fn edge(&self, at: usize, on: usize) -> Edge {
        match self.items[on].phase {
            Phase::Done if self.blocks(on) && !self.needs_output(at, on) => Edge::Lost,
            Phase::Done => Edge::Met,
            phase if phase.is_terminal() => Edge::Lost,
            _ => Edge::Open,
        }
    }

    /// Returns whether an item's check is a verdict: it is not tried again because of it.
    pub fn is_gate(&self, at: usize) -> bool {
        self.gates.contains_key(&self.graph.item(at).id)
    }

    /// Returns whether what depends on an item is lost if its check fails, but for those that need one of its outputs.
    pub fn would_block(&self, at: usize) -> bool {
        self.gates.get(&self.graph.item(at).id).is_some_and(|gate| gate.blocks)
    }

    /// Returns whether an item needs an output of another.
    pub fn needs_output(&self, at: usize, on: usize) -> bool {
        let from = &self.graph.item(on).id;
        let is_output = |need: &Need| match (&need.from, &need.select) {
            (Source::Item(id), Selector::Output { .. }) => id == from,
            _ => false,
        };
        self.graph.item(at).needs.values().any(is_output)
    }

    /// Returns whether an item is red by its own account: it counts, and its check is not one of several votes.
    pub fn is_red(&self, at: usize) -> bool {
        let votes = || self.gates.get(&self.graph.item(at).id).is_some_and(|gate| gate.votes);
        self.items[at].red && !self.is_superseded(at) && !votes()
    }

    /// Returns the positions of the items whose patches an item was given.
    pub fn given(&self, at: usize) -> Vec<usize> {
        let patches = self.items[at].inputs.values().filter(|input| input.select == Selector::Patch);
        let producers = patches.filter_map(|input| match &input.from {
            Source::Item(id) => self.graph.position(id),
            Source::Artifacts | Source::Documents | Source::Elsewhere(_) => None,
        });
        producers.collect()
    }

    /// Returns the items whose patches an item was given, and those that these were given: what they changed is in its patch.
    pub fn built_upon(&self, at: usize) -> BTreeSet<usize> {
        let (mut all, mut next) = (BTreeSet::new(), vec![at]);
        while let Some(at) = next.pop() {
            next.extend(self.given(at).into_iter().filter(|producer| all.insert(*producer)));
        }
        all
    }

    fn blocks(&self, on: usize) -> bool {
        self.items[on].red && self.would_block(on)
    }

    /// Returns whether another item has taken the place of one, which then does not count.
    pub fn is_superseded(&self, at: usize) -> bool {
        self.replaced_by(at).is_some()
    }

    /// Returns the item that has taken the place of one.
    pub fn replaced_by(&self, at: usize) -> Option<&ItemId> {
        let id = &self.graph.item(at).id;
        let next = self.successors.get(id)?;
        let replaces = &self.graph.item(self.graph.position(next)?).replaces;
        (replaces.as_ref() == Some(id)).then_some(next)
    }

    /// Returns the item that stands for another now, or that one itself, by its position.
    pub fn newest(&self, id: &ItemId) -> Option<usize> {
        self.graph.position(id).map(|at| self.lines.newest(at))
    }

    /// Returns the id of the item that stands for another now, or its own.
    pub fn newest_id<'a>(&'a self, id: &'a ItemId) -> &'a ItemId {
        self.newest(id).map_or(id, |at| &self.graph.item(at).id)
    }

    /// Returns the outputs of an item, in the order of their paths.
    pub fn outputs(&self, at: usize) -> impl Iterator<Item = (&FilePath, &Product)> {
        self.items[at].products.iter().filter_map(|(key, product)| Some((key.output()?, product)))
    }

    /// Returns one output of an item.
    pub fn output(&self, at: usize, path: &FilePath) -> Option<&Product> {
        self.items[at].products.get(&ProductKey::Output(path.clone()))
    }
}
