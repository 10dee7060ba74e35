//! Shows the driver of a run and what its items wait for, as the lock files say.

use crate::model::state::Phase;
use crate::repository::Repository;
use crate::run::query::list::{Awaited, Driver, Status};
use crate::run::query::{Target, View};

use super::{command, run_lock, slots};

impl Repository {
    /// Returns the status of a run with its driver, and with the locks and queues that its items
    /// wait for.
    ///
    /// Locks are those of this machine, so a fetched run has no driver here.
    pub fn driven_status(&self, target: &Target, view: &View) -> Status {
        let mut status = Status::from_view(view);
        if !target.is_own() || status.sealed {
            return status;
        }
        let common = self.store.common_dir();
        let is_running = view.state.items.iter().any(|item| item.phase == Phase::Running);
        status.driver = match run_lock::holder(&common, &view.run) {
            Some(process) => Some(Driver { alive: true, process: Some(process) }),
            // The drivers of a shared run may be anywhere.
            None if view.state.shared.is_some() => None,
            None => is_running.then_some(Driver { alive: false, process: None }),
        };
        let queue = &view.state.submitted.queue;
        let in_queue = Some(slots::queue_holders(&common, queue))
            .filter(|holders| holders.len() >= command::concurrency(queue, &self.config));
        for item in status.items.iter_mut().filter(|item| item.status == "ready" && !item.awaits_approval) {
            let Some(at) = view.state.graph.position(&item.id) else { continue };
            let on_lock = view.state.graph.item(at).resource_locks.iter().find_map(|key| {
                let holders = slots::lock_holders(&common, key);
                (!holders.is_empty()).then(|| Awaited { kind: "lock", name: key.clone(), holders })
            });
            item.waits_for = on_lock
                .or_else(|| in_queue.clone().map(|holders| Awaited { kind: "queue", name: queue.clone(), holders }));
        }
        status
    }
}
