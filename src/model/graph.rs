//! The dependency graph of a run's items, by position.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::illegal::Illegal;
use super::item_index::{ItemIndex, ItemVec};
use super::name::ItemId;
use super::order::{stuck, topological};
use super::plan::{Item, Plan};

/// The items of a run, the plan's and then added ones, with edges in both directions.
///
/// Edges to missing items, which only a forged plan has, are listed in [`Graph::dangling`].
#[derive(Clone, Debug, Default)]
pub struct Graph {
    items: ItemVec<Item>,
    index: HashMap<ItemId, ItemIndex>,
    dependencies: ItemVec<Vec<ItemIndex>>,
    dependents: ItemVec<Vec<ItemIndex>>,
    dangling: Vec<(ItemIndex, ItemId)>,
}

impl Graph {
    /// Builds the graph of a plan.
    pub fn new(plan: &Plan) -> Self {
        let items = ItemVec::from(plan.items.clone());
        let mut graph = Self {
            index: items.indexed().map(|(at, item)| (item.id.clone(), at)).collect(),
            dependencies: items.map(|_| Vec::new()),
            dependents: items.map(|_| Vec::new()),
            ..Self::default()
        };
        for (at, item) in items.indexed() {
            for dependency in item.dependencies() {
                match graph.index.get(&dependency) {
                    Some(&on) => {
                        graph.dependencies[at].push(on);
                        graph.dependents[on].push(at);
                    }
                    None => graph.dangling.push((at, dependency)),
                }
            }
        }
        graph.items = items;
        graph
    }

    /// Adds dependencies; ignores missing items, as in a forged plan.
    pub(super) fn order_also(&mut self, edges: &BTreeMap<ItemId, Vec<ItemId>>) {
        for (item, waits_for) in edges {
            let Some(at) = self.position(item) else { continue };
            let mut known: HashSet<ItemIndex> = self.dependencies[at].iter().copied().collect();
            for on in waits_for.iter().filter_map(|on| self.index.get(on).copied()) {
                if known.insert(on) {
                    self.dependencies[at].push(on);
                    self.dependents[on].push(at);
                }
            }
        }
    }

    /// Returns the reason why items cannot be added, if any.
    ///
    /// An id must be new, dependencies must exist, and there must be no cycle.
    pub(super) fn would_take(&self, items: &[Item]) -> Result<(), Illegal> {
        let new: HashMap<&ItemId, usize> = items.iter().enumerate().map(|(at, item)| (&item.id, at)).collect();
        let mut edges = Vec::with_capacity(items.len());
        for item in items {
            if self.index.contains_key(&item.id) {
                return Err(Illegal::DuplicateItem(item.id.clone()));
            }
            let dependencies = item.dependencies();
            if let Some(on) = dependencies.iter().find(|id| !self.index.contains_key(*id) && !new.contains_key(*id)) {
                return Err(Illegal::UnknownDependency(item.id.clone(), on.clone()));
            }
            edges.push(dependencies.iter().filter_map(|on| new.get(on).copied()).collect());
        }
        match stuck(&edges) {
            Some(at) => Err(Illegal::Circle(items[at].id.clone())),
            None => Ok(()),
        }
    }

    /// Adds items, or none on an error.
    pub(super) fn extend(&mut self, items: Vec<Item>) -> Result<(), Illegal> {
        self.would_take(&items)?;
        let first = self.items.len();
        self.items.extend(items);
        for (at, item) in self.items.indexed().skip(first) {
            self.index.insert(item.id.clone(), at);
            self.dependencies.push(Vec::new());
            self.dependents.push(Vec::new());
        }
        for (at, item) in self.items.indexed().skip(first) {
            for on in item.dependencies() {
                let on = self.index[&on];
                self.dependencies[at].push(on);
                self.dependents[on].push(at);
            }
        }
        Ok(())
    }

    /// Returns the items: the plan's, then added ones.
    pub fn items(&self) -> &ItemVec<Item> {
        &self.items
    }

    /// Returns the item at a position.
    pub fn item(&self, at: ItemIndex) -> &Item {
        &self.items[at]
    }

    /// Returns an item's position.
    pub fn position(&self, id: &ItemId) -> Option<ItemIndex> {
        self.index.get(id).copied()
    }

    /// Returns the dependencies of an item.
    pub fn dependencies(&self, at: ItemIndex) -> &[ItemIndex] {
        &self.dependencies[at]
    }

    /// Returns the dependents of an item.
    pub fn dependents(&self, at: ItemIndex) -> &[ItemIndex] {
        &self.dependents[at]
    }

    /// Returns all positions in topological order, otherwise in their own order.
    pub fn order(&self) -> Vec<ItemIndex> {
        let waits_for = self.dependencies.iter().map(|on| on.iter().map(|on| on.get()).collect());
        topological(&waits_for.collect::<Vec<_>>()).into_iter().map(ItemIndex::new).collect()
    }

    /// Returns the edges to missing items.
    pub fn dangling(&self) -> &[(ItemIndex, ItemId)] {
        &self.dangling
    }
}
