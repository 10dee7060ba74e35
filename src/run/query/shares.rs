//! Counts the items of a shared run that each driver did.

use std::collections::BTreeMap;

use serde::Serialize;

use super::View;
use crate::model::driver::DriverId;
use crate::model::entry::Event;
use crate::model::name::ItemId;

/// The share of one driver in a shared run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Share {
    /// The driver.
    pub driver: DriverId,
    /// The name of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The number of items whose last attempt it ended.
    pub items: u64,
}

/// Returns what each driver of a run did, the one with most items first.
pub fn list(view: &View) -> Vec<Share> {
    let mut hosts: BTreeMap<&DriverId, Option<&str>> = BTreeMap::new();
    let mut ended: BTreeMap<&ItemId, &DriverId> = BTreeMap::new();
    for link in &view.links {
        match &link.entry.event {
            Event::ItemFired(fired) => hosts.extend(fired.driver.iter().map(|driver| (driver, fired.host()))),
            Event::ItemReconciled(end) => ended.extend(end.driver.iter().map(|driver| (&end.item, driver))),
            _ => {}
        }
    }
    let mut shares: Vec<Share> = hosts
        .into_iter()
        .map(|(driver, host)| Share {
            driver: driver.clone(),
            host: host.map(str::to_owned),
            items: ended.values().filter(|ended| **ended == driver).count() as u64,
        })
        .collect();
    shares.sort_by_key(|counted| std::cmp::Reverse(counted.items));
    shares
}
