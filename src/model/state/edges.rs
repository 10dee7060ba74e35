//! Dependencies, consumed patches, and replacements.

use std::collections::{BTreeMap, BTreeSet};

use super::{Phase, RunState};
use crate::model::entry::{InputRef, Product};
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{ProductKey, Selector, Source};

/// The state of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is done.
    Met,
    /// It may still get done.
    Open,
    /// It will not get done as things are.
    Lost,
}

impl RunState {
    /// Returns the state of a dependency.
    ///
    /// A red blocking gate is lost for its dependents, except those that need one of its outputs,
    /// which explain the verdict.
    pub fn edge(&self, at: ItemIndex, on: ItemIndex) -> Edge {
        match self.items[on].phase {
            Phase::Done if self.blocks(on) && !self.needs_output(at, on) => Edge::Lost,
            Phase::Done => Edge::Met,
            phase if phase.is_terminal() => Edge::Lost,
            _ => Edge::Open,
        }
    }

    /// Returns true for a gate, whose failed check is not retried.
    pub fn is_gate(&self, at: ItemIndex) -> bool {
        self.gates.contains_key(&self.graph.item(at).id)
    }

    /// Returns true if dependents are lost when the check fails, except those that need an output.
    pub fn would_block(&self, at: ItemIndex) -> bool {
        self.gates.get(&self.graph.item(at).id).is_some_and(|gate| gate.blocks)
    }

    /// Returns true if an item needs an output of another.
    pub fn needs_output(&self, at: ItemIndex, on: ItemIndex) -> bool {
        let from = &self.graph.item(on).id;
        self.graph.item(at).needs.values().any(|need| match (&need.from, &need.select) {
            (Source::Item(id), Selector::Output { .. }) => id == from,
            _ => false,
        })
    }

    /// Returns true if an item counts as red: it is not replaced, and its check is not a vote.
    pub fn is_red(&self, at: ItemIndex) -> bool {
        self.items[at].red
            && !self.is_superseded(at)
            && !self.gates.get(&self.graph.item(at).id).is_some_and(|gate| gate.votes)
    }

    /// Returns the items whose patches an item consumed.
    pub fn given(&self, at: ItemIndex) -> Vec<ItemIndex> {
        self.producers_of_patches(&self.items[at].inputs)
    }

    fn producers_of_patches(&self, inputs: &BTreeMap<FilePath, InputRef>) -> Vec<ItemIndex> {
        let patches = inputs.values().filter(|input| input.select == Selector::Patch);
        let producers = patches.filter_map(|input| match &input.from {
            Source::Item(id) => self.graph.position(id),
            Source::Artifacts | Source::Documents | Source::Elsewhere(_) => None,
        });
        producers.collect()
    }

    /// Returns the items whose patches are applied before an item begins, without duplicates:
    /// ordered by the keys of its needs, and each after the items that it began on itself.
    pub fn applied(&self, at: ItemIndex) -> Vec<ItemIndex> {
        let (mut all, mut listed) = (Vec::new(), BTreeSet::new());
        let mut open: Vec<(ItemIndex, bool)> = self.applies(at).into_iter().rev().map(|on| (on, false)).collect();
        while let Some((current, is_after)) = open.pop() {
            if is_after {
                all.push(current);
            } else if listed.insert(current) {
                open.push((current, true));
                open.extend(self.applies(current).into_iter().rev().map(|on| (on, false)));
            }
        }
        all
    }

    fn applies(&self, at: ItemIndex) -> Vec<ItemIndex> {
        let needs = self.graph.item(at).needs.values().filter(|need| need.apply);
        let producers = needs.filter_map(|need| match &need.from {
            Source::Item(id) => self.graph.position(id),
            Source::Artifacts | Source::Documents | Source::Elsewhere(_) => None,
        });
        producers.collect()
    }

    /// Returns the patches that form the reference state of an item's protected files: those of
    /// items that it consumes, begins on or continues. The items are done and green now, and their
    /// changes to protected files were not judged.
    pub fn reference_patches(
        &self,
        at: ItemIndex,
        inputs: &BTreeMap<FilePath, InputRef>,
    ) -> BTreeMap<ItemIndex, Product> {
        let continued = self.graph.item(at).continues.as_ref().and_then(|id| self.graph.position(id));
        let consumed = self.producers_of_patches(inputs).into_iter().chain(self.applied(at)).chain(continued);
        consumed.filter_map(|producer| self.green_patch(producer)).collect()
    }

    /// Returns the patch of a green item.
    fn green_patch(&self, at: ItemIndex) -> Option<(ItemIndex, Product)> {
        // Judged changes are not approved, so they do not change what later checks rest on.
        let item = Some(&self.items[at]).filter(|item| item.phase == Phase::Done && !item.red && !item.judged)?;
        Some((at, *item.products.get(&ProductKey::Patch)?))
    }

    /// Returns patches in the order of the graph, each with the positions of those among them that
    /// it includes. Takes time in proportion to the plan.
    pub fn in_order(&self, patches: &BTreeMap<ItemIndex, Product>) -> Vec<(ItemIndex, Product, BTreeSet<usize>)> {
        let order: Vec<ItemIndex> = self.graph.order().into_iter().filter(|at| patches.contains_key(at)).collect();
        order
            .iter()
            .map(|at| {
                let included = self.built_upon(*at);
                (*at, patches[at], (0..order.len()).filter(|nth| included.contains(&order[*nth])).collect())
            })
            .collect()
    }

    /// Makes the items green that are red only because of changes to protected files, if the
    /// approval depends on them.
    pub(super) fn clear_protected(&mut self, approval: ItemIndex, by: &str) {
        for on in self.graph.dependencies(approval).to_vec() {
            let item = &mut self.items[on];
            if item.red && item.clearable {
                item.red = false;
                item.approved_by = Some(by.to_owned());
            }
        }
    }

    /// Returns the items whose patches an item consumed, directly or indirectly: its patch includes
    /// their changes.
    pub fn built_upon(&self, at: ItemIndex) -> BTreeSet<ItemIndex> {
        let (mut all, mut next) = (BTreeSet::new(), vec![at]);
        while let Some(before) = next.pop() {
            next.extend(self.given(before).into_iter().filter(|producer| all.insert(*producer)));
        }
        all
    }

    fn blocks(&self, on: ItemIndex) -> bool {
        self.items[on].red && self.would_block(on)
    }

    /// Returns true if an item was replaced.
    pub fn is_superseded(&self, at: ItemIndex) -> bool {
        self.replaced_by(at).is_some()
    }

    /// Returns the replacement of an item.
    pub fn replaced_by(&self, at: ItemIndex) -> Option<&ItemId> {
        let id = &self.graph.item(at).id;
        let next = self.successors.get(id)?;
        let replaces = &self.graph.item(self.graph.position(next)?).replaces;
        (replaces.as_ref() == Some(id)).then_some(next)
    }

    /// Returns the newest replacement of an item, or the item itself.
    pub fn newest(&self, id: &ItemId) -> Option<ItemIndex> {
        self.graph.position(id).map(|at| self.lines.newest(at))
    }

    /// Returns the id of the newest replacement of an item, or its own.
    pub fn newest_id<'a>(&'a self, id: &'a ItemId) -> &'a ItemId {
        self.newest(id).map_or(id, |at| &self.graph.item(at).id)
    }

    /// Returns the outputs of an item, by path.
    pub fn outputs(&self, at: ItemIndex) -> impl Iterator<Item = (&FilePath, &Product)> {
        self.items[at].products.iter().filter_map(|(key, product)| Some((key.output()?, product)))
    }

    /// Returns one output of an item.
    pub fn output(&self, at: ItemIndex, path: &FilePath) -> Option<&Product> {
        self.items[at].products.get(&ProductKey::Output(path.clone()))
    }
}
