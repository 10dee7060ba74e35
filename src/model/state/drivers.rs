//! Attempts that drivers of a shared run hold.

use super::{Illegal, RunState};
use crate::model::driver::{DriverId, RunShared};
use crate::model::entry::{ItemEnded, ItemFired};
use crate::model::item_index::ItemIndex;
use crate::model::role::RunDismissed;

impl RunState {
    /// Returns the number of running items.
    pub fn running(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Applies the start of sharing.
    pub(in crate::model) fn share(&mut self, e: &RunShared) -> Result<(), Illegal> {
        if self.shared.is_some() || self.is_ended() || !e.is_sound() {
            return Err(Illegal::WrongSharing);
        }
        self.shared = Some(*e);
        Ok(())
    }

    pub(in crate::model) fn expect_dismissal(&self, e: &RunDismissed) -> Result<(), Illegal> {
        if self.keys.is_dismissable(&e.key) { Ok(()) } else { Err(Illegal::NotDismissable(e.key.clone())) }
    }

    /// Validates that one more item may run, and that its driver is named in a shared run.
    pub(super) fn expect_place_to_run(&self, e: &ItemFired) -> Result<(), Illegal> {
        if self.shared.is_some() && e.driver.is_none() {
            return Err(Illegal::NoDriver(e.item.clone()));
        }
        match self.concurrency {
            Some(most) if self.running() >= most => Err(Illegal::TooManyRunning(e.item.clone(), most)),
            _ => Ok(()),
        }
    }

    /// Validates that an entry names the driver that holds the attempt, if a driver does.
    pub(super) fn expect_holder(&self, at: ItemIndex, driver: Option<&DriverId>) -> Result<(), Illegal> {
        match (&self.items[at].holder, driver) {
            (Some(holder), driver) if driver != Some(&holder.driver) => {
                Err(Illegal::NotHolder(self.graph.item(at).id.clone(), holder.driver.clone()))
            }
            (None, Some(_)) => Err(Illegal::NotHeld(self.graph.item(at).id.clone())),
            _ => Ok(()),
        }
    }

    /// Validates that a lost attempt was held, and is taken by another driver than its own.
    pub(super) fn expect_taker(&self, at: ItemIndex, e: &ItemEnded) -> Result<(), Illegal> {
        if e.driver.is_none() {
            return Err(Illegal::NotHeld(self.graph.item(at).id.clone()));
        }
        if e.taker == e.driver { Err(Illegal::OwnTaker(self.graph.item(at).id.clone())) } else { Ok(()) }
    }
}
