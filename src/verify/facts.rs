//! What a report repeats of a run, as its entries tell it: verdicts aside.

use std::collections::BTreeMap;

use crate::ledger::merkle::TreeHead;
use crate::model::decision::Decision;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::name::ItemId;
use crate::model::place::Place;

use super::pipelines::{self, Told};
use super::{Case, root};

/// What a report repeats of the run, verdicts aside.
pub(super) struct Facts {
    pub(super) run: String,
    pub(super) remote: Option<String>,
    pub(super) sealed: bool,
    pub(super) entries: u64,
    pub(super) root: Option<Digest>,
    pub(super) so_far: Option<TreeHead>,
    pub(super) plan: Option<Digest>,
    pub(super) rules: Option<Digest>,
    pub(super) pipelines: BTreeMap<String, Digest>,
    pub(super) blocks: Vec<Told>,
    pub(super) base: Option<Oid>,
    pub(super) actor: Option<String>,
    pub(super) pinned_clock: bool,
    pub(super) decisions: Vec<Decided>,
}

/// What somebody decided about an item.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The item.
    pub item: ItemId,
    /// What was decided.
    pub decision: Decision,
    /// The key that decided; whether it did, row signature says.
    pub by: String,
}

/// Returns what people decided, by entries in their order.
pub(super) fn decisions<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<Decided> {
    let decided = events.filter_map(|event| match event {
        Event::ItemDecided(e) => Some(Decided { item: e.item.clone(), decision: e.decision, by: e.by.clone() }),
        _ => None,
    });
    decided.collect()
}

impl Facts {
    /// Reads them off a run in a repository.
    pub(super) fn of(case: &Case<'_>) -> Self {
        let submitted = case.chain.submitted();
        Self {
            run: case.run.to_string(),
            remote: Place::fetched(case.reference).map(|(remote, _)| remote.to_owned()),
            sealed: case.seal().is_some(),
            entries: case.chain.links.len() as u64,
            root: case.seal().filter(|_| !case.chain.cut).map(|seal| root::over(case, seal)),
            so_far: root::so_far(case),
            plan: submitted.map(|e| e.plan),
            rules: submitted.and_then(|e| e.rules),
            pipelines: pipelines::named(&case.chain).into_iter().map(|(name, is)| (name.to_owned(), is)).collect(),
            blocks: Told::all(&case.chain),
            base: submitted.map(|e| e.base),
            actor: submitted.and(case.chain.links.first()).map(|link| link.entry.actor.clone()),
            pinned_clock: case.chain.links.iter().any(|link| link.entry.pinned),
            decisions: decisions(case.chain.links.iter().map(|link| &link.entry.event)),
        }
    }
}
