//! Entries of a run as `log` prints them: with what each comes to for its item.

use serde_json::Value;

use crate::ledger::chain::Link;
use crate::model::entry::Event;
use crate::model::state::RunState;

/// Returns an entry of a run as `log --json` prints it: as it is signed, and with what it comes to for its item.
pub fn entry_shown(link: &Link, state: &RunState) -> Value {
    let mut shown = link.to_json();
    if link.entry.event.is_red() {
        shown["red"] = true.into();
    }
    if is_empty(link, state) {
        shown["handedOver"] = false.into();
    }
    shown
}

/// Returns whether an entry ends an item as done that handed over nothing, although it could have.
pub(super) fn is_empty(link: &Link, state: &RunState) -> bool {
    matches!(&link.entry.event, Event::ItemReconciled(e) if state.ended_with_nothing(e))
}
