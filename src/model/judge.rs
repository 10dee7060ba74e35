//! What a rule comes to in a run as it stands. Pure: documents are read through a function.

use std::collections::BTreeMap;

use super::document::Revision;
use super::extension::RunConcluded;
use super::grow;
use super::name::{FilePath, ItemId};
use super::plan::Item;
use super::rule::{Check, MAX_CONDITION_BYTES, Rule, Seen, Stop, Then, condition};
use super::state::{CANNOT, RunState};

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// It creates these, in the order of their ids.
    Create(Vec<Item>),
    /// It has the run say this.
    Conclude(RunConcluded),
}

impl Act {
    /// Returns the items that it creates.
    pub fn items(&self) -> &[Item] {
        match self {
            Self::Create(items) => items,
            Self::Conclude(_) => &[],
        }
    }
}

/// A rule held against a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The rule.
    pub rule: ItemId,
    /// Everything that it requires, met or not.
    pub checks: Vec<Check>,
    /// What it does if all of it is met; nothing where it did all it does at submit, or there is nothing to create it for.
    pub act: Option<Act>,
}

impl Judgement {
    /// Returns whether the rule does something now.
    pub fn fires(&self) -> bool {
        self.act.is_some() && self.checks.iter().all(|check| check.holds)
    }
}

/// Returns what a rule does in a run as it stands, if anything.
///
/// `read` gives the bytes of a revision; it is asked only where they decide.
pub fn acts<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<Act>, E> {
    let every = |checks: &[Check]| checks.iter().all(|check| check.holds);
    // The cheapest first: most rules are looked at most often for nothing.
    let is_over = || matches!(rule.then, Then::Several(_)) && state.rounds(rule.id()) >= rule.when.at_most;
    if rule.is_standing()
        || state.has_concluded(rule.id())
        || is_over()
        || !rule.when.items.iter().all(|condition| condition.holds(state))
    {
        return Ok(None);
    }
    let seen = state.seen(rule);
    let Some(act) = act(state, rule, &seen) else { return Ok(None) };
    if !every(&own_checks(state, rule, &act)) || !every(&document_checks(state, rule, &seen, read)?) {
        return Ok(None);
    }
    Ok(Some(act))
}

/// Returns why a rule stopped short in a run as it stands: all that it requires holds, but that it did as often as it may what it would do,
/// or that there is nothing where it looks in a document. A run that said something of itself told what came of it.
pub fn stopped_short<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<String>, E> {
    held_back(state, rule, Stop::Short, read)
}

/// Returns the rules that stopped before a run was done, each with the reason; an error names the rule whose document
/// cannot be read.
///
/// Nothing has stopped in a run that goes on, or that said something of itself: that tells what came of it.
pub fn stopped<E>(
    state: &RunState,
    mut read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<BTreeMap<ItemId, String>, (ItemId, E)> {
    let mut stopped = BTreeMap::new();
    if !state.is_settled() || state.has_said() {
        return Ok(stopped);
    }
    let is_good = state.outcomes().are_items_green();
    for rule in &state.rules {
        let unread = |error| (rule.id().clone(), error);
        let why = match acts(state, rule, &mut read).map_err(unread)? {
            Some(_) if !state.is_ended() => return Ok(BTreeMap::new()),
            Some(act) => is_good.then(|| cut_off(&act)),
            None => held_back(state, rule, Stop::Unfit, &mut read).map_err(unread)?,
        };
        stopped.extend(why.map(|why| (rule.id().clone(), why)));
    }
    Ok(stopped)
}

/// Says what a rule would have done if the run had not been ended.
fn cut_off(act: &Act) -> String {
    match act {
        Act::Create(items) => {
            let first = items.first().map_or("nothing", |item| item.id.as_str());
            format!("the run was ended before it created {first}")
        }
        Act::Conclude(concluded) => format!("the run was ended before it had it say {}", concluded.outcome),
    }
}

/// Returns what keeps a rule from doing something, if each requirement that is not met stops it at least this much.
fn held_back<E>(
    state: &RunState,
    rule: &Rule,
    least: Stop,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<String>, E> {
    let done = matches!(rule.then, Then::Several(_)) && state.rounds(rule.id()) >= rule.when.at_most;
    if rule.is_standing() || rule.documents().is_empty() || done || state.has_said() {
        return Ok(None);
    }
    let judged = judge(state, rule, read)?;
    let mut missed = judged.checks.iter().filter(|check| !check.holds).peekable();
    let why = missed.peek().map(|check| check.found.clone());
    Ok(why.filter(|_| judged.act.is_some() && missed.all(|check| check.stop >= least)))
}

/// Returns the conditions on a document that cannot be compared with these bytes, each with its rule and the reason: the
/// document is no JSON or too large (`None`), or the value is no number and is compared as one.
pub fn uncompared(rules: &[Rule], document: &FilePath, bytes: Option<&[u8]>) -> Vec<(ItemId, String)> {
    let mut uncompared = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.is_standing()) {
        let conditions = rule.when.conditions.iter().filter(|condition| condition.document == *document);
        for check in condition::checks(bytes, &conditions.collect::<Vec<_>>()) {
            if check.stop == Stop::Unfit {
                uncompared.push((rule.id().clone(), check.found));
            }
        }
    }
    uncompared
}

/// Holds a rule against a run as it stands, with everything that it requires.
pub fn judge<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Judgement, E> {
    let seen = state.seen(rule);
    let act = act(state, rule, &seen);
    let mut checks = document_checks(state, rule, &seen, read)?;
    checks.extend(rule.when.items.iter().map(|condition| condition.check(state)));
    if let Some(act) = &act {
        checks.extend(own_checks(state, rule, act));
    }
    Ok(Judgement { rule: rule.id().clone(), checks, act })
}

/// Returns what a rule does where everything holds that it requires.
fn act(state: &RunState, rule: &Rule, seen: &BTreeMap<FilePath, Seen>) -> Option<Act> {
    let conclude = |outcome: &str, detail| {
        let (rule, outcome) = (rule.id().clone(), outcome.to_owned());
        Act::Conclude(RunConcluded { rule, outcome, detail })
    };
    match &rule.then {
        Then::One(_) => rule.item(seen).map(|item| Act::Create(vec![item])),
        Then::Several(several) => match grow::items(state, rule, several) {
            Ok(items) if items.is_empty() => None,
            Ok(items) => Some(Act::Create(items)),
            Err(why) => Some(conclude(CANNOT, Some(why))),
        },
        Then::Outcome(word) => Some(conclude(word, None)),
        Then::Order(_) | Then::Gate(_) => None,
    }
}

/// What depends on the entries alone: how much the rule has done.
fn own_checks(state: &RunState, rule: &Rule, act: &Act) -> Vec<Check> {
    let items = match act {
        Act::Create(items) => items,
        Act::Conclude(concluded) => {
            let said = state.has_concluded(rule.id());
            let not = if said { "" } else { "not " };
            return vec![Check::new(!said, format!("{} was {not}said yet", concluded.outcome))];
        }
    };
    let rounds = state.rounds(rule.id());
    let most = rule.when.at_most;
    let found = format!("it created {rounds} of at most {most}");
    // What goes by items alone is over when it did what it does; what goes by documents would go on with the next revision.
    let check = if matches!(rule.then, Then::One(_)) { Check::or_short } else { Check::new };
    let mut checks = vec![check(rounds < most, found)];
    if let (Then::One(_), [item]) = (&rule.then, &items[..])
        && state.graph.position(&item.id).is_some()
    {
        let found = format!("{} was created from these revisions already", item.id);
        checks.push(Check::new(false, found));
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
