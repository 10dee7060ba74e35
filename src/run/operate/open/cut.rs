//! Attempts that were ended on another machine, whose workers may still run there.

use std::collections::BTreeMap;

use crate::ledger::chain;
use crate::model::driver::{Because, DriverId};
use crate::model::entry::Event;
use crate::model::graph::Graph;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;

use super::{Error, OpenRun};

impl OpenRun {
    /// Records that an event ends an attempt of another driver, whose worker may still run.
    pub(super) fn note_cut(&mut self, event: &Event) {
        let Some(shared) = &mut self.shared else { return };
        let Some(at) = ended_by_others(event).and_then(|item| shared.confirmed.graph.position(item)) else { return };
        let holder = shared.confirmed.items[at].holder.as_ref();
        if holder.is_some_and(|holder| Some(&holder.driver) != shared.via.driver()) {
            shared.via.note_cut(at);
        }
    }

    /// Ignores the beats of drivers that have ended.
    pub fn forget_drivers(&mut self, ended: &[DriverId]) {
        self.shared.iter_mut().for_each(|shared| shared.via.forget(ended));
    }

    /// Records the same for the entries from before this driver started.
    ///
    /// Their age is unknown, so they count from now on. Workers of `predecessors`, the earlier
    /// drivers of this repository, have ended.
    pub fn recall_cut(&mut self, predecessors: &[DriverId]) -> Result<(), Error> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let graph = &shared.confirmed.graph;
        if graph.items().iter().all(|item| item.resource_locks.is_empty()) {
            return Ok(());
        }
        let Some((_, links)) = chain::read(&self.writer.store, &self.head.name)? else { return Ok(()) };
        let events = links.iter().map(|link| &link.entry.event);
        cut(events, graph, predecessors).into_iter().for_each(|at| shared.via.note_cut(at));
        Ok(())
    }
}

/// Returns the items whose attempts were ended by others than their drivers, and whose locks no
/// driver has taken since.
fn cut<'a>(events: impl Iterator<Item = &'a Event>, graph: &Graph, predecessors: &[DriverId]) -> Vec<ItemIndex> {
    let (mut holders, mut cut) = (BTreeMap::new(), Vec::new());
    for event in events {
        let Some(at) = event.item().and_then(|(item, _)| graph.position(item)) else { continue };
        match event {
            Event::ItemFired(e) => {
                // Its driver waited for the lock.
                cut.retain(|cut| {
                    !graph.item(*cut).resource_locks.iter().any(|lock| graph.item(at).resource_locks.contains(lock))
                });
                holders.insert(at, e.driver.as_ref());
            }
            _ if ended_by_others(event).is_some() => {
                let holder = holders.remove(&at).flatten();
                cut.extend(holder.filter(|holder| !predecessors.contains(holder)).map(|_| at));
            }
            _ => drop(holders.remove(&at)),
        }
    }
    cut
}

/// Returns the item whose running attempt an event ends before its driver knows.
fn ended_by_others(event: &Event) -> Option<&ItemId> {
    match event {
        Event::ItemCancelled(e) => Some(&e.item),
        Event::ItemRequeued(e) if e.because == Some(Because::Dismissed) => Some(&e.item),
        _ => None,
    }
}
