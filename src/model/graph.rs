//! The items of a run with their dependency edges, by position.

use std::collections::HashMap;

use super::name::ItemId;
use super::plan::{Item, Plan};

/// The items of a run in plan order, with the edges between them in both directions.
///
/// Positions are indices into [`Graph::items`]. Built from plans that were validated; an edge to an item that is not there,
/// which only a forged plan can have, is listed in [`Graph::dangling`] and otherwise left out.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    items: Vec<Item>,
    index: HashMap<ItemId, usize>,
    dependencies: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    dangling: Vec<(usize, ItemId)>,
}

impl Graph {
    /// Builds the graph of a plan.
    pub fn new(plan: &Plan) -> Self {
        let items = plan.items.clone();
        let index: HashMap<ItemId, usize> = items.iter().enumerate().map(|(at, item)| (item.id.clone(), at)).collect();
        let mut graph = Self {
            dependencies: vec![Vec::new(); items.len()],
            dependents: vec![Vec::new(); items.len()],
            index,
            ..Self::default()
        };
        for (at, item) in items.iter().enumerate() {
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

    /// Returns the items in plan order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the item at a position.
    pub fn item(&self, at: usize) -> &Item {
        &self.items[at]
    }

    /// Returns an item's position.
    pub fn position(&self, id: &ItemId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Returns the positions that an item waits for.
    pub fn dependencies(&self, at: usize) -> &[usize] {
        &self.dependencies[at]
    }

    /// Returns the positions that wait for an item.
    pub fn dependents(&self, at: usize) -> &[usize] {
        &self.dependents[at]
    }

    /// Returns the edges to items that do not exist.
    pub fn dangling(&self) -> &[(usize, ItemId)] {
        &self.dangling
    }
}
