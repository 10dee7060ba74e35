//! Reads a run's chain into its state.

use super::{Error, stops};
use crate::git::store::Store;
use crate::git::whole::Whole;
use crate::ledger::chain::{self, Head, Link};
use crate::model::bounds::Meter;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, RunExtended, RunSubmitted};
use crate::model::format::{self, Layout};
use crate::model::graph::Graph;
use crate::model::name::RunId;
use crate::model::plan::{Item, Plan};
use crate::model::rule::{self, Rule};
use crate::model::state::RunState;
use crate::plan;

/// What a run's chain says, without the means to change it.
#[derive(Clone, Debug)]
pub struct View {
    /// The run.
    pub run: RunId,
    /// The end of its chain.
    pub head: Head,
    /// Its entries.
    pub links: Vec<Link>,
    /// Its plan.
    pub plan: Plan,
    /// What the entries come to.
    pub state: RunState,
}

/// Reads a run from a ref of any writer.
///
/// Entries are decoded strictly and the story they tell must be a legal one; whether to trust it is for `verify` to say.
pub fn view(store: &Store, run: &RunId, reference: &str) -> Result<Option<View>, Error> {
    chain::read(store, reference)?.map(|(head, links)| fold(store, run, head, links)).transpose()
}

/// Makes a run of its entries, which were read before.
pub(super) fn of(store: &Store, run: &RunId, reference: &str, links: Vec<Link>) -> Result<View, Error> {
    fold(store, run, chain::end(reference, &links)?, links)
}

/// Folds the entries of a chain into what they come to.
fn fold(store: &Store, run: &RunId, head: Head, links: Vec<Link>) -> Result<View, Error> {
    let (submitted, plan) = first(store, run, &links)?;
    let rules = rules(store, run, links[0].tree, &submitted, &plan)?;
    let mut state = RunState::new(submitted, Graph::new(&plan)).with_rules(rules);
    let layout = state.layout();
    let mut meter = Meter::default();
    for link in &links[1..] {
        let applied = match &link.entry.event {
            Event::RunExtended(e) => state.extend(e, added(store, (run, layout), link, e, &mut meter)?),
            event => state.apply(event),
        };
        applied.map_err(|why| Error::History(run.clone(), link.entry.seq, why))?;
    }
    stops::find_stopped(store, &mut state);
    Ok(View { run: run.clone(), head, links, plan, state })
}

/// Reads the rules in force: the plan's own and those that the queue added at submit.
fn rules(store: &Store, run: &RunId, tree: Oid, submitted: &RunSubmitted, plan: &Plan) -> Result<Vec<Rule>, Error> {
    let Some(digest) = submitted.rules else { return Ok(plan.rules.clone()) };
    let unreadable = || Error::Rules(run.clone());
    let blob = store.blob_at(tree, format::RULES)?.ok_or_else(unreadable)?;
    let bytes = store.read_blob(blob)?;
    let added = plan::parse_rules(&bytes).ok().filter(|_| Digest::of(&bytes) == digest).ok_or_else(unreadable)?;
    rule::together(&plan.rules, added).map_err(|_| unreadable())
}

/// Reads the items that an entry added.
fn added(
    store: &Store,
    (run, layout): (&RunId, Layout),
    link: &Link,
    e: &RunExtended,
    meter: &mut Meter,
) -> Result<Vec<Item>, Error> {
    let mut items = Vec::with_capacity(e.items.len());
    for (id, digest) in &e.items {
        let unreadable = || Error::Item(run.clone(), id.clone());
        let blob = store.blob_at(link.tree, &layout.definition(id))?.ok_or_else(unreadable)?;
        let Whole { bytes, stored, .. } = store.whole(blob)?;
        // All of them are held together.
        meter.add(bytes.len() as u64, stored).map_err(|_| unreadable())?;
        let item = plan::parse_item(&bytes).ok().filter(|_| Digest::of(&bytes) == *digest);
        items.push(item.ok_or_else(unreadable)?);
    }
    Ok(items)
}

fn first(store: &Store, run: &RunId, links: &[Link]) -> Result<(RunSubmitted, Plan), Error> {
    let link = links.first().ok_or_else(|| Error::NotARun(run.clone()))?;
    let Event::RunSubmitted(submitted) = &link.entry.event else { return Err(Error::NotARun(run.clone())) };
    let blob = store.blob_at(link.tree, format::PLAN)?.ok_or_else(|| Error::NotARun(run.clone()))?;
    let plan = plan::parse(&store.read_blob(blob)?).map_err(|_| Error::Plan(run.clone()))?;
    if link.entry.about.run() != Some(run) || plan.id != *run {
        return Err(Error::NotARun(run.clone()));
    }
    Ok((submitted.clone(), plan))
}
