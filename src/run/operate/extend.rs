//! Adds items to a submitted run, by an actor or by its rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ledger::chain::Link;
use crate::model::any_error::AnyError;
use crate::model::entry::{Cause, Event, RunExtended};
use crate::model::extension::definition;
use crate::model::json::{self, JsonPath};
use crate::model::judge::Act;
use crate::model::name::{ItemId, RunId};
use crate::model::pipeline::Spec;
use crate::model::plan::{Item, Plan};
use crate::model::problem::{Code, Problem};
use crate::model::rule::Check;
use crate::model::state::RunState;
use crate::plan;
use crate::plan::validate::{Problems, validate_extension};
use crate::repository::Repository;
use crate::run::query::target::Target;

use super::steer::refuse_unless_open;
use super::{NewEntry, OpenRun, coordinate};

/// The added items, as `extend --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.extend/1")]
pub struct Extended {
    /// The run.
    pub run: RunId,
    /// In the order of their ids. Empty if the run had all of them.
    pub items: Vec<ItemId>,
}

/// The results of the rules, as `coordinate --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.coordinate/1")]
pub struct Coordinated {
    /// The run.
    pub run: RunId,
    /// Whether the items were recorded.
    pub recorded: bool,
    /// The items that they create.
    pub items: Vec<CreatedItem>,
    /// All rules, as the run was before.
    pub rules: Vec<RuleJudged>,
    /// Whether nothing can be added to the run.
    #[serde(skip)]
    pub over: bool,
}

/// An item that a rule creates.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CreatedItem {
    /// The item.
    pub id: ItemId,
    /// The rule.
    pub rule: ItemId,
}

/// The result of a rule.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleJudged {
    /// The rule.
    pub rule: ItemId,
    /// Whether it has an action now.
    pub fires: bool,
    /// The items that it would create, in the order of their ids.
    pub items: Vec<ItemId>,
    /// The outcome that it would record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The items that it created before.
    pub created: Vec<ItemId>,
    /// How often it can act.
    pub at_most: u64,
    /// All its conditions, met or not.
    pub checks: Vec<Check>,
}

/// The items to add, and the pipelines that they name.
type Missing = (Vec<Item>, BTreeMap<String, Spec>);

impl Repository {
    /// Adds items of a plan to an open-ended run that lacks them. Problems of the plan are a
    /// result, not an error.
    pub fn extend<E: From<AnyError>>(
        &self,
        run: &str,
        bytes: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Extended, Problems>, E> {
        let target = Target::find(&self.store, run).map_err(AnyError::from)?;
        let view = target.view(&self.store).map_err(AnyError::from)?;
        refuse_unless_open(&target, &view)?;
        if !view.state.open_ended {
            return Err(AnyError::from(Error::NotOpenEnded(target.run)).into());
        }
        let bytes = bytes()?;
        self.gate().check("plan", &bytes).map_err(AnyError::from)?;
        Ok(self.add(&target.run, &view.plan, json::unmarked(&bytes))?)
    }

    fn add(&self, run: &RunId, submitted: &Plan, bytes: &[u8]) -> Result<Result<Extended, Problems>, AnyError> {
        let mut open = self.opened(run)?;
        loop {
            if open.state.is_ended() {
                return Err(Error::Ended(run.clone()).into());
            }
            let (added, pipelines) = match self.missing(&open, submitted, bytes)? {
                Ok(missing) => missing,
                Err(problems) => return Ok(Err(problems)),
            };
            let items = added.iter().map(|item| item.id.clone()).collect();
            // If another writer appended first, it may have added the same items.
            let is_done = added.is_empty() || {
                let entry = NewEntry::extended(Cause::Actor, added, &pipelines, self.store.hash_kind())?;
                open.propose(&[entry])?.is_some()
            };
            if is_done {
                return Ok(Ok(Extended { run: run.clone(), items }));
            }
        }
    }

    /// Returns the items of a plan that the run lacks, in the order of their ids, and the pipelines
    /// that they name and it lacks.
    fn missing(&self, open: &OpenRun, submitted: &Plan, bytes: &[u8]) -> Result<Result<Missing, Problems>, AnyError> {
        let extended = match plan::parse(bytes) {
            Ok(extended) => extended,
            Err(problems) => return Ok(Err(problems)),
        };
        if extended.id != *open.id() {
            return Err(Error::OtherRun { plan: extended.id, run: open.id().clone() }.into());
        }
        let existing = open.state.graph.items();
        let there: BTreeSet<&ItemId> = extended
            .items
            .iter()
            .filter(|item| {
                let known = open.state.graph.position(&item.id).map(|at| &existing[at]);
                known.is_some_and(|known| definition(known) == definition(item))
            })
            .map(|item| &item.id)
            .collect();
        let pattern = &open.state.submitted.pattern;
        let unread = plan::pattern::unread(pattern, &extended.items, |item| !there.contains(&item.id));
        if !unread.is_empty() {
            return Ok(Err(unread));
        }
        let reserved = reserved(&open.state, &extended.items, |item| !there.contains(&item.id));
        if !reserved.is_empty() {
            return Ok(Err(reserved));
        }
        // An item that exists with the same content can be repeated. It is validated with the new
        // ones.
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
            self.gate().check("pipeline", spec.bytes())?;
            pipelines.insert(name.to_owned(), spec.clone());
        }
        Ok(Ok((items, pipelines)))
    }

    /// Explains the rules of a run, ours or a fetched one, and records nothing.
    pub fn explain_rules(&self, run: &str) -> Result<Coordinated, AnyError> {
        let target = Target::find(&self.store, run)?;
        let view = target.view(&self.store)?;
        Ok(self.explained(target.run, &view.state)?)
    }

    /// Applies the rules of a run, and records the items that they create. With `or_explain`, only
    /// explains the rules of a run that is over or was fetched.
    pub fn coordinate(&self, run: &str, or_explain: bool) -> Result<Coordinated, AnyError> {
        let target = Target::find(&self.store, run)?;
        let view = target.view(&self.store)?;
        if or_explain && (!target.is_own() || is_over(&view.state)) {
            return Ok(self.explained(target.run, &view.state)?);
        }
        refuse_unless_open(&target, &view)?;
        let mut open = self.opened(&target.run)?;
        let judged = self.judged(target.run, &open.state)?;
        let links = coordinate::apply(&mut open, self.config.max_items)?;
        Ok(Coordinated { recorded: true, items: links.iter().flat_map(created).collect(), ..judged })
    }

    fn explained(&self, run: RunId, state: &RunState) -> Result<Coordinated, coordinate::Error> {
        let mut explained = self.judged(run, state)?;
        let due = explained.rules.iter().filter(|rule| rule.fires && !explained.over);
        explained.items = due
            .flat_map(|rule| {
                rule.items.iter().map(|id| CreatedItem { id: id.clone(), rule: rule.rule.clone() }).collect::<Vec<_>>()
            })
            .collect();
        Ok(explained)
    }

    fn judged(&self, run: RunId, state: &RunState) -> Result<Coordinated, coordinate::Error> {
        let judgements = coordinate::explain(&self.store, state)?;
        let rules = judgements
            .into_iter()
            .zip(&state.rules)
            .map(|(judged, rule)| RuleJudged {
                fires: judged.fires(),
                created: state.created_by(&judged.rule).to_vec(),
                rule: judged.rule,
                items: judged.act.iter().flat_map(Act::items).map(|item| item.id.clone()).collect(),
                outcome: judged.act.as_ref().and_then(outcome_of),
                at_most: rule.when.at_most,
                checks: judged.checks,
            })
            .collect();
        Ok(Coordinated { run, recorded: false, items: Vec::new(), rules, over: is_over(state) })
    }
}

/// Returns problems for ids that a rule may still use for its own items.
fn reserved(state: &RunState, items: &[Item], is_new: impl Fn(&Item) -> bool) -> Problems {
    let mut problems = Problems::default();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_new(item)) {
        if let Some(rule) = state.rules.iter().find(|rule| {
            state.rounds(rule.id()) < rule.when.at_most
                && rule.may_create(&item.id, |id: &str| {
                    ItemId::parse(id).is_ok_and(|id| state.graph.position(&id).is_some())
                })
        }) {
            let at = JsonPath::root().key("items").index(index).key("id");
            let message =
                format!("the rule {:?} may create an item of this id, so no other can have it", rule.id().as_str());
            problems.push(Problem::new(Code::DuplicateId, &at, message));
        }
    }
    problems
}

/// Returns true if nothing can be added to a run.
fn is_over(state: &RunState) -> bool {
    state.sealed || state.is_ended()
}

fn outcome_of(act: &Act) -> Option<String> {
    match act {
        Act::Create(_) => None,
        Act::Conclude(concluded) => Some(concluded.outcome.clone()),
    }
}

/// Returns the items that a rule added.
fn created(link: &Link) -> Vec<CreatedItem> {
    match &link.entry.event {
        Event::RunExtended(RunExtended { cause: Cause::Rule(rule), items, .. }) => {
            items.keys().map(|item| CreatedItem { id: item.clone(), rule: rule.clone() }).collect()
        }
        _ => Vec::new(),
    }
}

errors! {
    /// Failures to add to a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NotOpenEnded(RunId) "not-open-ended": "cannot add to the run {:?}: its plan is not open-ended" [.0.as_str()];
    Ended(RunId) "ended": "cannot add to the run {:?}: it was closed or cancelled" [.0.as_str()];
    OtherRun { plan: RunId, run: RunId } "other-run":
        "the plan has the id {:?}, but the run is {:?}" [plan.as_str(), run.as_str()];
}
