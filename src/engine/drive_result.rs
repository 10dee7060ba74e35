//! How driving a run ended.

use std::collections::BTreeMap;

use crate::model::digest::Digest;
use crate::model::driver::DriverId;
use crate::model::entry::RunSealed;
use crate::model::name::{ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::model::printable;
use crate::run::query::View;
use crate::run::query::list::{self, ItemStatus};
use crate::run::query::shares::{self, Share};
use serde::Serialize;

/// The result of driving a run.
pub struct Driven {
    /// The run as it is now.
    pub view: View,
    /// Whether it was interrupted before the run had settled.
    pub interrupted: bool,
    /// The seal, if the run was sealed now.
    pub sealed: Option<RunSealed>,
    /// The driver of a shared run that this process was.
    pub driver: Option<DriverId>,
    /// The remote that the run was pushed to and that lacks what was done here.
    pub unpushed: Option<String>,
}

/// The result of driving a run, as `run --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DrivenShown<'a> {
    #[cfg_attr(feature = "schemas", schemars(skip))]
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// Whether nothing is left to do.
    pub settled: bool,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Whether it was interrupted before the run had settled.
    pub interrupted: bool,
    /// The root, if the run was sealed now.
    pub root: Option<Digest>,
    /// The rules that stopped before the run was done, each with the reason; absent if none did.
    #[serde(rename = "stoppedShort", skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped_short: BTreeMap<&'a ItemId, &'a str>,
    /// The number of items by status. Red items are counted apart from done ones.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Counts"))]
    pub counts: BTreeMap<&'static str, u64>,
    /// The outcome of its items.
    pub outcome: Outcomes,
    /// The driver that this process was; absent if the run is not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<&'a DriverId>,
    /// The share of each driver in a shared run; absent if the run is not shared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<Share>,
    /// Its items.
    pub items: Vec<ItemStatus>,
}

impl Driven {
    /// Returns what each driver of a shared run did.
    pub fn shares(&self) -> Vec<Share> {
        shares::list(&self.view)
    }

    /// Formats how many items this driver of a shared run did, and how many the others.
    pub fn shares_in_words(&self) -> Option<String> {
        let own = self.driver.as_ref()?;
        let (here, others): (Vec<_>, Vec<_>) = self.shares().into_iter().partition(|share| share.driver == *own);
        let done = here.first().map_or(0, |share| share.items);
        let elsewhere = others.iter().map(|share| {
            let host = share.host.as_deref().unwrap_or("another machine");
            format!("{} on {} ({})", share.items, printable::line(host), share.driver.short())
        });
        let elsewhere: Vec<String> = elsewhere.collect();
        let separator = if elsewhere.is_empty() { "" } else { "; " };
        Some(format!("{done} of {} items here{separator}{}", self.view.state.items.len(), elsewhere.join(", ")))
    }

    /// Returns the result as `run --json` prints it.
    pub fn answer(&self) -> DrivenShown<'_> {
        let state = &self.view.state;
        DrivenShown {
            schema: "git-handoff.run/1",
            run: &self.view.run,
            settled: state.is_settled(),
            sealed: state.sealed,
            interrupted: self.interrupted,
            root: self.sealed.as_ref().map(|sealed| sealed.root),
            stopped_short: state.stopped.iter().map(|(rule, why)| (rule, why.as_str())).collect(),
            counts: list::counts(&self.view),
            outcome: state.outcomes(),
            driver: self.driver.as_ref(),
            drivers: self.shares(),
            items: ItemStatus::all(&self.view),
        }
    }
}
