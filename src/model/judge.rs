//! What a rule comes to in a run as it stands. Pure: documents are read through a function.

use std::collections::BTreeMap;

use super::document::Revision;
use super::name::{FilePath, ItemId};
use super::plan::Item;
use super::rule::{Check, MAX_CONDITION_BYTES, Rule, Seen};
use super::state::RunState;

/// A rule held against a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The rule.
    pub rule: ItemId,
    /// Everything that it requires, met or not.
    pub checks: Vec<Check>,
    /// What it creates if all of it is met.
    pub item: Item,
}

impl Judgement {
    /// Returns whether the rule creates its item now.
    pub fn fires(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Returns what a rule creates in a run as it stands, if anything.
///
/// `read` gives the bytes of a revision; it is asked only where they decide.
pub fn creates<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<Item>, E> {
    let seen = state.seen(rule);
    let item = rule.item(&seen);
    if !own_checks(state, rule, &item).iter().all(|check| check.holds) {
        return Ok(None);
    }
    let checks = document_checks(state, rule, &seen, read)?;
    Ok(checks.iter().all(|check| check.holds).then_some(item))
}

/// Holds a rule against a run as it stands, with everything that it requires.
pub fn judge<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Judgement, E> {
    let seen = state.seen(rule);
    let item = rule.item(&seen);
    let mut checks = document_checks(state, rule, &seen, read)?;
    checks.extend(own_checks(state, rule, &item));
    Ok(Judgement { rule: rule.id().clone(), checks, item })
}

/// What depends on the entries alone: how much the rule has created.
fn own_checks(state: &RunState, rule: &Rule, item: &Item) -> Vec<Check> {
    let created = state.created_by(rule.id()).len() as u64;
    let most = rule.when.at_most;
    let mut checks = vec![Check { holds: created < most, found: format!("it created {created} of at most {most}") }];
    if state.graph.position(&item.id).is_some() {
        let found = format!("{} was created from these revisions already", item.id);
        checks.push(Check { holds: false, found });
    }
    checks
}

fn document_checks<E>(
    state: &RunState,
    rule: &Rule,
    seen: &BTreeMap<FilePath, Seen>,
    mut read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Vec<Check>, E> {
    rule.checks(seen, |name| {
        let revision = state.documents.latest(name).filter(|revision| revision.product.size <= MAX_CONDITION_BYTES);
        revision.map(|revision| read(name, revision)).transpose()
    })
}
