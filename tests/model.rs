//! The data: what may follow what, and that the document of the format says what is written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ansi;
mod bounds;
mod changes;
mod checkpoint;
mod confinement;
mod decimal;
mod drivers;
mod fields;
mod format;
mod legal;
mod log_recorded;
mod look;
mod natural;
mod order;
mod place;
mod printable;
mod quote;
mod said;

use git_handoff::model::role::every_role;
use std::collections::{BTreeMap, BTreeSet};

use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{
    Again, Event, ItemDropped, ItemEnded, ItemFired, ItemReconciled, Outcome, Product, RunSubmitted,
};
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::plan::{Item, Plan};
use git_handoff::model::state::RunState;
use git_handoff::model::time::Moment;

/// Returns every kind of entry, as the table of the source has them.
pub(crate) fn kinds() -> Vec<&'static str> {
    let (_, rest) = include_str!("../src/model/event.rs").split_once("\nkinds! {\n").unwrap();
    let (table, _) = rest.split_once("\n}\n").unwrap();
    table.lines().filter_map(|line| line.split('"').nth(1)).collect()
}

/// Returns the kinds of entries in the chain of a run.
pub(crate) fn kinds_of_runs() -> BTreeSet<&'static str> {
    let of_run = |kind: &&str| ["run.", "item.", "document."].iter().any(|beginning| kind.starts_with(beginning));
    kinds().into_iter().filter(of_run).collect()
}

/// An item of a made-up plan: what it depends on, by position, and its locks.
pub(crate) type Made = (Vec<usize>, Vec<usize>);

pub(crate) fn name(at: usize) -> ItemId {
    ItemId::parse(&format!("i{at}")).unwrap()
}

/// The state of a run that was just submitted.
pub(crate) fn submitted(items: &[Made]) -> RunState {
    let item = |(at, (on, locks)): (usize, &Made)| Item {
        comment: None,
        id: name(at),
        executor: "command".into(),
        inputs: serde_json::Map::new(),
        depends_on: on.iter().map(|on| name(*on)).collect(),
        protect: Vec::new(),
        on_protected_change: None,
        resource_locks: locks.iter().map(|lock| format!("lock-{lock}")).collect(),
        subagent_shape: None,
        needs: BTreeMap::new(),
        produces: None,
        timeout: None,
        max_attempts: None,
        replaces: None,
        continues: None,
    };
    let plan = Plan {
        comment: None,
        id: RunId::parse("r").unwrap(),
        schema: None,
        queue: "default".into(),
        base: None,
        pattern: None,
        open_ended: false,
        concurrency: None,
        rules: Vec::new(),
        artifacts: BTreeMap::new(),
        items: items.iter().enumerate().map(item).collect(),
    };
    let submitted = RunSubmitted::new(
        Product::from_bytes(b"plan", gix::hash::Kind::Sha1).unwrap(),
        base(),
        every_role(["SHA256:x".into()]),
    );
    RunState::new(submitted, &plan)
}

pub(crate) fn base() -> Oid {
    "0123456789012345678901234567890123456789".parse().unwrap()
}

pub(crate) fn fired(at: usize, attempt: u32) -> Event {
    let manifest = Product::from_bytes(b"manifest", gix::hash::Kind::Sha1).unwrap();
    Event::ItemFired(ItemFired::new(name(at), attempt, manifest, BTreeMap::new()))
}

pub(crate) fn reconciled(at: usize, attempt: u32, status: Outcome) -> Event {
    Event::ItemReconciled(ItemReconciled::new(name(at), attempt, status))
}

pub(crate) fn ended(at: usize, attempt: u32, reason: Again, not_before: Option<Moment>) -> ItemEnded {
    ItemEnded { not_before, ..ItemEnded::new(name(at), attempt, reason) }
}

pub(crate) fn dropped(at: usize, attempt: u32) -> ItemDropped {
    ItemDropped::new(name(at), attempt, "because")
}
