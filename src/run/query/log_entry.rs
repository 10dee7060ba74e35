//! Entries of a run as `log --json` prints them.

use serde_json::Value;

use crate::ledger::chain::Link;
use crate::model::entry::Event;
use crate::model::state::RunState;

/// Returns an entry as it is signed, with its result for the item.
pub fn entry_shown(link: &Link, state: &RunState) -> Value {
    let mut value = link.to_json();
    if link.entry.event.is_red() {
        value["red"] = true.into();
    }
    if has_no_products(link, state) {
        value["handedOver"] = false.into();
    }
    value
}

/// Returns true if an entry ends an item as done without products, although it could have some.
pub(super) fn has_no_products(link: &Link, state: &RunState) -> bool {
    matches!(&link.entry.event, Event::ItemReconciled(e) if state.ended_with_nothing(e))
}
