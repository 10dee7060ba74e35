//! Who drives a run, and what its items wait for, as the locks of drivers say.

use crate::model::state::Phase;
use crate::repository::Repository;
use crate::run::list::{Awaited, Driver, Status};
use crate::run::{Target, View};

use super::{claims, command, hold};

impl Repository {
    /// Says where a run stands, who drives it, and which locks and places in queues its items wait for.
    ///
    /// Locks are those of this machine: of a run that was fetched, nothing is known of its driver.
    pub fn driven_status(&self, target: &Target, view: &View) -> Status {
        let mut status = Status::of(view);
        if !target.is_own() || status.sealed {
            return status;
        }
        let common = self.store.common_dir();
        let is_running = view.state.items.iter().any(|item| item.phase == Phase::Running);
        status.driver = match hold::holder(&common, &view.run) {
            Some(process) => Some(Driver { alive: true, process: Some(process) }),
            None => is_running.then_some(Driver { alive: false, process: None }),
        };
        let queue = &view.state.submitted.queue;
        let places = command::limits(queue, &self.config).concurrency;
        let in_queue = claims::queued(&common, queue);
        for item in status.items.iter_mut().filter(|item| item.status == "ready" && !item.awaits_approval) {
            let Some(at) = view.state.graph.position(&item.id) else { continue };
            let held = view.state.graph.item(at).resource_locks.iter().find_map(|key| {
                let holders = claims::locked_by(&common, key);
                (!holders.is_empty()).then(|| Awaited { kind: "lock", name: key.clone(), holders })
            });
            item.waits_for = held.or_else(|| {
                (in_queue.len() >= places).then(|| Awaited {
                    kind: "queue",
                    name: queue.clone(),
                    holders: in_queue.clone(),
                })
            });
        }
        status
    }
}
