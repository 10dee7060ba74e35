//! The items whose protected files could not be recomputed, with the reasons.

use serde::Serialize;

use super::counted;
use crate::model::name::ItemId;

/// An item whose protected files could not be recomputed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NotRecomputed {
    /// The item.
    pub item: ItemId,
    /// The missing evidence.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["without the base", "without all files of the base", "without all patches", "in a base of this size"])))]
    pub reason: &'static str,
}

/// The reason if the run's base is not here.
pub(super) const NO_BASE: &str = "without the base";
/// The reason if the base is here and a patch is not.
pub(super) const NO_PATCH: &str = "without all patches";
/// The reason if the base is here without files that are needed.
pub(super) const NO_FILES: &str = "without all files of the base";
/// The reason if the base that comes with a bundle exceeds the limits of the format.
pub(super) const TOO_LARGE: &str = "in a base of this size";

impl NotRecomputed {
    /// Returns true if the base was missing, in whole or in part.
    pub fn lacks_base(&self) -> bool {
        [NO_BASE, NO_FILES].contains(&self.reason)
    }

    /// Names the first of some items and the reason, and counts the others; `None` without any.
    pub(in crate::verify) fn in_words(all: &[Self]) -> Option<String> {
        let first = all.first()?;
        let others = match all.len() - 1 {
            0 => String::new(),
            count => format!(" and {}", counted(count, "more item", "more items")),
        };
        Some(format!("{}{others} not recomputed {}", first.item, first.reason))
    }
}
