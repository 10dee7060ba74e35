//! Reads a run's chain into its state.
use crate::git::bounded_read::Whole;
use crate::git::refs;
use crate::git::store::{self, Store};
use crate::ledger::chain::{self, Head, Link};
use crate::model::bounds::Meter;
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunExtended, RunSubmitted};
use crate::model::name::{ItemId, RunId};
use crate::model::plan::{Item, Plan};
use crate::model::rule::{self, Rule};
use crate::model::state::{Illegal, RunState};
use crate::plan;
use crate::verify::Further;

use super::stopped_rules;

/// A run as its chain describes it, read-only.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct View {
    pub run: RunId,
    pub head: Head,
    pub links: Vec<Link>,
    pub plan: Plan,
    pub state: RunState,
}

/// Reads a run from a ref of any writer, or returns `None` if the ref does not exist.
///
/// Entries are decoded strictly, and each must be a legal successor of those before it. Whether to
/// trust them is decided by `verify`.
pub fn view(store: &Store, run: &RunId, reference: &str) -> Result<Option<View>, Error> {
    chain::read(store, reference)?.map(|(head, links)| fold(store, run, head, links)).transpose()
}

/// Reads a run from entries that were read before.
pub(crate) fn from_links(store: &Store, run: &RunId, reference: &str, links: Vec<Link>) -> Result<View, Error> {
    fold(store, run, chain::end(reference, &links)?, links)
}

fn fold(store: &Store, run: &RunId, head: Head, links: Vec<Link>) -> Result<View, Error> {
    let (submitted, plan) = first(store, run, &links)?;
    let rules = rules(store, run, &submitted, &plan)?;
    let mut state = RunState::new(submitted, &plan).with_rules(rules);
    let mut meter = Meter::default();
    for link in &links[1..] {
        let applied = match &link.entry.event {
            Event::RunExtended(e) => state.extend(e, items(store, run, e, &mut meter)?),
            event => state.apply(event),
        };
        applied.map_err(|why| Error::History(run.clone(), link.entry.seq, why))?;
        state.note_allowance(&link.entry.event, Some(&link.entry.actor));
    }
    stopped_rules::find_stopped(store, &mut state);
    Ok(View { run: run.clone(), head, links, plan, state })
}

/// Applies an entry that another writer appended.
pub(crate) fn apply(store: &Store, run: &RunId, state: &mut RunState, one: &Further) -> Result<(), Error> {
    let applied = match &one.entry.event {
        Event::RunExtended(e) => state.extend(e, items(store, run, e, &mut Meter::default())?),
        event => state.apply_signed(event, Some(&one.key)),
    };
    applied.map_err(|why| Error::History(run.clone(), one.entry.seq, why))
}

/// Reads the items that an entry added. All of them are in memory together, so the meter bounds
/// their sum.
fn items(store: &Store, run: &RunId, e: &RunExtended, meter: &mut Meter) -> Result<Vec<Item>, Error> {
    let mut items = Vec::with_capacity(e.items.len());
    for (id, product) in &e.items {
        let Whole { bytes, stored, .. } = store.whole(product.oid)?;
        let is_named = meter.add(bytes.len() as u64, stored).is_ok() && Digest::compute(&bytes) == product.sha256;
        let item = plan::parse_item(&bytes).ok().filter(|_| is_named);
        items.push(item.ok_or_else(|| Error::Item(run.clone(), id.clone()))?);
    }
    Ok(items)
}

/// Reads the rules in force: those of the plan, and those that the queue added at submit.
fn rules(store: &Store, run: &RunId, submitted: &RunSubmitted, plan: &Plan) -> Result<Vec<Rule>, Error> {
    let Some(product) = submitted.rules else { return Ok(plan.rules.clone()) };
    let bytes = store.read_blob(product.oid)?;
    let added = plan::parse_rules(&bytes)
        .ok()
        .filter(|_| Digest::compute(&bytes) == product.sha256)
        .ok_or_else(|| Error::Rules(run.clone()))?;
    rule::together(&plan.rules, added).map_err(|_| Error::Rules(run.clone()))
}

fn first(store: &Store, run: &RunId, links: &[Link]) -> Result<(RunSubmitted, Plan), Error> {
    let link = links.first().ok_or_else(|| Error::NotARun(run.clone()))?;
    let Event::RunSubmitted(submitted) = &link.entry.event else { return Err(Error::NotARun(run.clone())) };
    let plan = plan::parse(&store.read_blob(submitted.plan.oid)?).map_err(|_| Error::Plan(run.clone()))?;
    if link.entry.about.run() != Some(run) || plan.id != *run {
        return Err(Error::NotARun(run.clone()));
    }
    Ok((submitted.clone(), plan))
}

/// Returns true if a chain ends with a seal, and false if it cannot be read.
pub fn is_sealed(store: &Store, reference: &str) -> bool {
    let tip = refs::read(store, reference).ok().flatten();
    let entry = tip.and_then(|tip| chain::decode(store, tip).ok());
    entry.is_some_and(|decoded| matches!(decoded.entry.event, Event::RunSealed(_)))
}

errors! {
    /// Failures to read a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unknown(RunId) "unknown-run": "there is no run {0:?} here";
    NotARun(RunId) "not-a-run": "the ref of the run {0:?} holds something else";
    Plan(RunId) "not-a-run": "the plan of the run {0:?} cannot be read";
    Rules(RunId) "not-a-run": "the rules of the run {0:?} cannot be read";
    Item(RunId, ItemId) "not-a-run": "the item {1:?} that was added to the run {0:?} cannot be read";
    History(RunId, u64, #[source] Illegal) "not-a-run": "the run {0:?} is not valid from entry {1} on: {2}";
    #[from] Chain(chain::Error), Store(store::Error);
}
