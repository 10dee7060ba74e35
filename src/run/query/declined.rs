//! Items of a shared run that machines leave to others, because they lack something.

use serde::Serialize;

use crate::model::driver::DriverId;
use crate::model::name::{ItemId, RunId};
use crate::model::printable;

/// An item that drivers of a shared run decline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeclinedItem {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The drivers that decline it.
    pub by: Vec<Lack>,
    /// Whether these are all drivers that live.
    pub by_all: bool,
}

/// Something that a driver's machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Lack {
    /// The driver.
    pub driver: DriverId,
    /// The name of its host; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The thing, in words.
    pub why: String,
}

impl DeclinedItem {
    /// Formats which machine lacks what.
    pub fn in_words(&self) -> String {
        let whom = if self.by_all { "declined by every driver" } else { "declined" };
        let lacks: Vec<String> = self.by.iter().map(Lack::in_words).collect();
        format!("{}: {whom}: {}", self.item, lacks.join("; "))
    }
}

impl Lack {
    fn in_words(&self) -> String {
        let host = self.host.as_deref().map(|host| format!(" on {}", printable::line(host))).unwrap_or_default();
        format!("driver {}{host} lacks: {}", self.driver.short(), printable::line(&self.why))
    }
}
