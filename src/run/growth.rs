//! What adds items to a run after it was submitted: somebody, or its rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::steer::{self, refuse_unless_open};
use super::target::{self, Target};
use super::{Denied, NewEntry, OpenRun, coordinate};
use crate::ledger::chain::Link;
use crate::model::entry::{Cause, Event, RunExtended};
use crate::model::extension::definition;
use crate::model::json::{self, JsonPath};
use crate::model::judge::{Act, Judgement};
use crate::model::name::{ItemId, RunId};
use crate::model::pipeline::{Spec, Unusable};
use crate::model::plan::{Item, Plan};
use crate::model::problem::{Code, Problem};
use crate::model::rule::{Check, Rule};
use crate::model::state::RunState;
use crate::plan;
use crate::plan::validate::{Problems, validate_extension};
use crate::repository::{self, Repository};

/// The items that were added: what `extend --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Extended {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// In the order of their ids; none where the run had all of them.
    pub items: Vec<ItemId>,
}

/// What the rules of a run come to: what `coordinate --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Coordinated {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// Whether what they create was recorded.
    pub recorded: bool,
    /// What they create.
    pub items: Vec<CreatedItem>,
    /// Each rule, as the run stood.
    pub rules: Vec<RuleJudged>,
    /// Whether nothing can be added to the run any more.
    #[serde(skip)]
    pub over: bool,
}

/// An item that a rule creates.
#[derive(Clone, Debug, Serialize)]
pub struct CreatedItem {
    /// The item.
    pub id: ItemId,
    /// The rule.
    pub rule: ItemId,
}

/// What a rule comes to, and why.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleJudged {
    /// The rule.
    pub rule: ItemId,
    /// Whether it does something now.
    pub fires: bool,
    /// What it creates if it does, in the order of the ids.
    pub items: Vec<ItemId>,
    /// What it has the run say if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What it created before.
    pub created: Vec<ItemId>,
    /// How often it may.
    pub at_most: u64,
    /// Everything that it requires, met or not.
    pub checks: Vec<Check>,
}

/// What is to be added to a run: items, and the pipelines that they bring.
type Missing = (Vec<Item>, BTreeMap<String, Spec>);

impl Repository {
    /// Adds the items of a plan that an open-ended run does not have. Problems of the plan are an answer, not a failure.
    pub fn extend<E: From<Error>>(
        &self,
        run: &str,
        bytes: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Extended, Problems>, E> {
        let target = Target::find(&self.store, run).map_err(Error::from)?;
        let view = target.view(&self.store).map_err(Error::from)?;
        refuse_unless_open(&target, &view).map_err(Error::from)?;
        if !view.state.submitted.open_ended {
            return Err(Error::NotOpenEnded(target.run).into());
        }
        let bytes = bytes()?;
        self.gate().check("plan", &bytes).map_err(repository::Error::from).map_err(Error::from)?;
        Ok(self.add(&target.run, &view.plan, json::unmarked(&bytes))?)
    }

    fn add(&self, run: &RunId, submitted: &Plan, bytes: &[u8]) -> Result<Result<Extended, Problems>, Error> {
        let mut open = self.opened(run)?;
        loop {
            if open.state.is_ended() {
                return Err(Error::Ended(run.clone()));
            }
            let (added, pipelines) = match self.missing(&open, submitted, bytes)? {
                Ok(missing) => missing,
                Err(problems) => return Ok(Err(problems)),
            };
            let items = added.iter().map(|item| item.id.clone()).collect();
            // Somebody who appends first may have added the same: then the items are held against the run anew.
            if added.is_empty() || open.propose(&[NewEntry::Extended(Cause::Actor, added, pipelines)])?.is_some() {
                return Ok(Ok(Extended { schema: "git-handoff.extend/1", run: run.clone(), items }));
            }
        }
    }

    /// Returns the items of a plan that the run does not have, in the order of their ids, and the pipelines that they name and it
    /// lacks.
    fn missing(&self, open: &OpenRun, submitted: &Plan, bytes: &[u8]) -> Result<Result<Missing, Problems>, Error> {
        let asked = match plan::parse(bytes) {
            Ok(asked) => asked,
            Err(problems) => return Ok(Err(problems)),
        };
        if asked.id != *open.id() {
            return Err(Error::OtherRun { plan: asked.id, run: open.id().clone() });
        }
        let existing = open.state.graph.items();
        let is_there = |item: &&Item| {
            let known = open.state.graph.position(&item.id).map(|at| &existing[at]);
            known.is_some_and(|known| definition(known) == definition(item))
        };
        let there: BTreeSet<&ItemId> = asked.items.iter().filter(is_there).map(|item| &item.id).collect();
        let pattern = &open.state.submitted.pattern;
        let unread = plan::pattern::unread(pattern, &asked.items, |item| !there.contains(&item.id));
        if !unread.is_empty() {
            return Ok(Err(unread));
        }
        let reserved = reserved(&open.state, &asked.items, |item| !there.contains(&item.id));
        if !reserved.is_empty() {
            return Ok(Err(reserved));
        }
        // What is there with the same content may be said again, and is validated with what is new.
        let others: Vec<Item> = existing.iter().filter(|item| !there.contains(&item.id)).cloned().collect();
        let mut catalog = self.catalog(&open.state.submitted.queue, Vec::new())?;
        catalog.pipelines.sealed.clone_from(&open.state.pipelines);
        let mut items = match validate_extension(submitted, &others, bytes, &catalog) {
            Ok(items) => items,
            Err(problems) => return Ok(Err(problems)),
        };
        items.retain(|item| !there.contains(&item.id));
        items.sort_by(|one, other| one.id.cmp(&other.id));
        let mut pipelines = BTreeMap::new();
        for name in items.iter().filter_map(Item::pipeline).filter(|name| !open.state.pipelines.contains_key(*name)) {
            let spec = catalog.pipelines.find(name)?;
            self.gate().check("pipeline", spec.bytes()).map_err(repository::Error::from)?;
            pipelines.insert(name.to_owned(), spec.clone());
        }
        Ok(Ok((items, pipelines)))
    }

    /// Says what the rules of a run come to as it stands, ours or a fetched one; records nothing.
    pub fn explain_rules(&self, run: &str) -> Result<Coordinated, Error> {
        let target = Target::find(&self.store, run)?;
        let view = target.view(&self.store)?;
        Ok(self.explained(target.run, &view.state)?)
    }

    /// Holds a run's rules against its documents, and adds the items that they create, each exactly once. Of a run that nothing
    /// can be added to, because it is over or was fetched, they are only explained where that will do.
    pub fn coordinate(&self, run: &str, or_explain: bool) -> Result<Coordinated, Error> {
        let target = Target::find(&self.store, run)?;
        let view = target.view(&self.store)?;
        if or_explain && (!target.is_own() || is_over(&view.state)) {
            return Ok(self.explained(target.run, &view.state)?);
        }
        refuse_unless_open(&target, &view)?;
        let mut open = self.opened(&target.run)?;
        let judged = self.judged(target.run, &open.state, Vec::new())?;
        let links = coordinate::apply(&mut open, self.config.max_items)?;
        Ok(Coordinated { recorded: true, items: links.iter().flat_map(created).collect(), ..judged })
    }

    fn explained(&self, run: RunId, state: &RunState) -> Result<Coordinated, coordinate::Error> {
        let due = coordinate::due(&self.store, state)?;
        let created = due.into_iter().flat_map(|due| {
            let of = |id| CreatedItem { id, rule: due.rule.clone() };
            items_of(Some(&due.act)).into_iter().map(of).collect::<Vec<_>>()
        });
        let created = created.collect();
        self.judged(run, state, created)
    }

    fn judged(&self, run: RunId, state: &RunState, items: Vec<CreatedItem>) -> Result<Coordinated, coordinate::Error> {
        let judgements = coordinate::explain(&self.store, state)?;
        let rule = |(judged, rule): (Judgement, &crate::model::rule::Rule)| RuleJudged {
            fires: judged.fires(),
            created: state.created_by(&judged.rule).to_vec(),
            rule: judged.rule,
            items: items_of(judged.act.as_ref()),
            outcome: judged.act.as_ref().and_then(outcome_of),
            at_most: rule.when.at_most,
            checks: judged.checks,
        };
        let rules = judgements.into_iter().zip(&state.rules).map(rule).collect();
        let over = is_over(state);
        Ok(Coordinated { schema: "git-handoff.coordinate/1", run, recorded: false, items, rules, over })
    }
}

/// Returns what is wrong with the ids of items that are to be added: what a rule may still create has none but the rule's.
fn reserved(state: &RunState, items: &[Item], is_new: impl Fn(&Item) -> bool) -> Problems {
    let mut problems = Problems::default();
    let has = |id: &str| ItemId::parse(id).is_ok_and(|id| state.graph.position(&id).is_some());
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_new(item)) {
        let may = |rule: &&Rule| state.rounds(rule.id()) < rule.when.at_most && rule.may_create(&item.id, has);
        if let Some(rule) = state.rules.iter().find(may) {
            let at = JsonPath::root().key("items").index(index).key("id");
            let message =
                format!("the rule {:?} may create an item of this id, so no other can have it", rule.id().as_str());
            problems.push(Problem::new(Code::DuplicateId, &at, message));
        }
    }
    problems
}

/// Returns whether nothing can be added to a run any more.
fn is_over(state: &RunState) -> bool {
    state.sealed || state.is_ended()
}

/// Returns the items that a rule creates.
fn items_of(act: Option<&Act>) -> Vec<ItemId> {
    act.map_or(&[][..], Act::items).iter().map(|item| item.id.clone()).collect()
}

fn outcome_of(act: &Act) -> Option<String> {
    match act {
        Act::Create(_) => None,
        Act::Conclude(concluded) => Some(concluded.outcome.clone()),
    }
}

/// Returns what a rule added, and the rule.
fn created(link: &Link) -> Vec<CreatedItem> {
    match &link.entry.event {
        Event::RunExtended(RunExtended { cause: Cause::Rule(rule), items, .. }) => {
            items.keys().map(|item| CreatedItem { id: item.clone(), rule: rule.clone() }).collect()
        }
        _ => Vec::new(),
    }
}

/// Why nothing is added to a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the plan of the run {:?} is not open-ended, so nobody can add to it", .0.as_str())]
    NotOpenEnded(RunId),
    #[error("the run {:?} was closed or cancelled; nothing can be added", .0.as_str())]
    Ended(RunId),
    #[error("the plan has the id {:?}, and the run is {:?}", plan.as_str(), run.as_str())]
    OtherRun { plan: RunId, run: RunId },
    #[error(transparent)]
    Steer(#[from] steer::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Coordinate(#[from] coordinate::Error),
    #[error(transparent)]
    Run(#[from] super::Error),
    #[error(transparent)]
    Pipeline(#[from] Unusable),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
