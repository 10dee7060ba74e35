//! Entries of a run as `log --json` prints them.

use serde::Serialize;
use serde_json::Value;

use crate::ledger::chain::Link;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::state::RunState;

/// An entry with its hash and commit: a line of `log`, and part of the output of the tool `watch`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EntryShown {
    /// The entry as it is signed.
    #[serde(flatten)]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::entry::Entry"))]
    entry: Value,
    /// The leaf hash of the entry.
    hash: Digest,
    /// Its commit.
    commit: Oid,
    /// Whether it leaves an item done although its check failed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    red: bool,
    /// False if it leaves an item done without products, although it could have some; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = false)))]
    handed_over: Option<bool>,
}

/// Returns an entry as it is signed, with its result for the item.
pub fn entry_shown(link: &Link, state: &RunState) -> Value {
    let answer = EntryShown {
        entry: link.entry.to_json(),
        hash: link.hash,
        commit: link.commit,
        red: link.entry.event.is_red(),
        handed_over: has_no_products(link, state).then_some(false),
    };
    serde_json::to_value(answer).expect("an entry is a JSON object")
}

/// Returns true if an entry ends an item as done without products, although it could have some.
pub(super) fn has_no_products(link: &Link, state: &RunState) -> bool {
    matches!(&link.entry.event, Event::ItemReconciled(e) if state.ended_with_nothing(e))
}
