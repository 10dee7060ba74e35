//! The beats of the drivers of a shared run, as far as they tell of items.

use std::collections::BTreeSet;

use crate::model::any_error::AnyError;
use crate::model::name::ItemId;
use crate::repository::Repository;
use crate::run::query::declined::{DeclinedItem, Lack};
use crate::run::query::list::Status;
use crate::run::query::sharing::Sharing;
use crate::run::query::target::unarchived_runs;
use crate::run::query::view::is_sealed;
use crate::run::query::{Target, View};

use super::beats::ReadError;
use super::drivers::{DriverShown, DriverState, DriversShown};
use super::remote_state::LISTED_WITHIN;
use super::sharing;

impl DriversShown {
    fn alive(&self) -> impl Iterator<Item = &DriverShown> {
        self.drivers.iter().filter(|driver| driver.state == DriverState::Alive && !driver.alone)
    }

    /// Returns the items that a driver claimed and did not start when it sent its last beat.
    fn claimed(&self) -> BTreeSet<&ItemId> {
        self.alive().flat_map(|driver| driver.claims.iter().filter(|item| driver.holds.contains(item))).collect()
    }

    /// Returns the items that are ready and that some drivers decline.
    fn declined(&self, view: &View) -> Vec<DeclinedItem> {
        let declined = ready(view).filter_map(|item| {
            let by: Vec<Lack> = self
                .alive()
                .filter_map(|driver| {
                    let declined = driver.declines.iter().find(|declined| declined.items.contains(item))?;
                    Some(Lack { driver: driver.driver.clone(), host: driver.host.clone(), why: declined.why.clone() })
                })
                .collect();
            let by_all = by.len() == self.alive().count();
            (!by.is_empty()).then(|| DeclinedItem { run: self.run.clone(), item: item.clone(), by, by_all })
        });
        declined.collect()
    }
}

impl Repository {
    /// Adds what drivers say in their beats: items that were claimed and not started, and items
    /// that they decline.
    ///
    /// Reads the remote of a shared run that is not sealed.
    pub fn with_beats(&self, mut status: Status, view: &View) -> Result<Status, AnyError> {
        if self.offline || view.state.sealed || view.state.shared.is_none() {
            return Ok(status);
        }
        if Sharing::read(&self.store, &view.run).is_none() {
            return Ok(status);
        }
        let drivers = self.drivers(&view.run)?;
        let claimed = drivers.claimed();
        for item in status.items.iter_mut().filter(|item| item.status == "running" && claimed.contains(&item.id)) {
            item.status = "claimed";
        }
        status.declined = drivers.declined(view);
        Ok(status)
    }

    /// Returns the items of shared runs of this repository that are ready and that every driver
    /// declines. A run whose remote cannot be read is left out.
    pub fn declined_everywhere(&self) -> Result<Vec<DeclinedItem>, AnyError> {
        let mut declined = Vec::new();
        for run in unarchived_runs(&self.store)? {
            let target = Target::own(run.clone());
            if is_sealed(&self.store, &target.reference) || Sharing::read(&self.store, &run).is_none() {
                continue;
            }
            let Ok(view) = target.view(&self.store) else { continue };
            if view.state.shared.is_none() || ready(&view).next().is_none() {
                continue;
            }
            let drivers = match self.drivers_through(&run, |tip| tip.within(LISTED_WITHIN)) {
                Err(error) if is_of_remote(&error) => continue,
                read => read?,
            };
            let run_view = target.view(&self.store)?;
            declined.extend(drivers.declined(&run_view).into_iter().filter(|item| item.by_all));
        }
        Ok(declined)
    }
}

/// Returns true if the remote of a shared run could not be read.
fn is_of_remote(error: &AnyError) -> bool {
    error.is::<sharing::Error>() || error.downcast_ref().is_some_and(|error| !matches!(error, &ReadError::Ref(_)))
}

fn ready(view: &View) -> impl Iterator<Item = &ItemId> {
    let ready = view.state.items.indices().filter(|at| view.state.status(*at) == "ready");
    ready.map(|at| &view.state.graph.item(at).id)
}
