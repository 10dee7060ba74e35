//! Lists the attempts of a run with their times.

use serde::Serialize;

use crate::ledger::chain::Link;
use crate::model::driver::DriverId;
use crate::model::entry::Event;
use crate::model::name::ItemId;
use crate::model::time::Moment;

use super::View;

/// An attempt of an item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttemptShown<'a> {
    /// The item.
    pub item: &'a ItemId,
    /// Its number.
    pub attempt: u32,
    /// The actor of its dispatch.
    pub actor: &'a str,
    /// The driver that dispatched it, in a shared run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<&'a DriverId>,
    /// The name of that driver's host, by its own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// The job of the engine that started that driver, by its own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<&'a str>,
    /// The time of its dispatch.
    pub started_at: Moment,
    /// `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// `running`, or the status that its end gave the item.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["running", "done", "failed", "pending", "skipped", "cancelled"])))]
    pub status: &'static str,
    /// Whether it ended red; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// The entry of its dispatch.
    #[serde(skip)]
    pub fired: &'a Link,
    /// The entry of its end, or `None` while it runs.
    #[serde(skip)]
    pub ended: Option<&'a Link>,
}

impl<'a> AttemptShown<'a> {
    /// Returns the attempts of all items, in the order of their dispatches.
    pub fn all(view: &'a View) -> Vec<Self> {
        let mut attempts: Vec<Self> = Vec::new();
        let mut running = view.state.items.map(|_| None::<usize>);
        for link in &view.links {
            let Some((item, attempt)) = link.entry.event.item() else { continue };
            let Some(at) = view.state.graph.position(item) else { continue };
            if let Event::ItemFired(e) = &link.entry.event {
                running[at] = Some(attempts.len());
                attempts.push(Self {
                    item,
                    attempt,
                    actor: &link.entry.actor,
                    driver: e.driver.as_ref(),
                    host: e.host(),
                    job: e.job(),
                    started_at: link.entry.at,
                    ended_at: None,
                    status: "running",
                    red: false,
                    fired: link,
                    ended: None,
                });
            } else if let Some(open) = running[at].take() {
                let open = &mut attempts[open];
                open.ended = Some(link);
                open.ended_at = Some(link.entry.at);
                open.status = link.entry.event.shown_status().unwrap_or("pending");
                open.red = link.entry.event.is_red();
            }
        }
        attempts
    }
}
