//! Evaluates a rule in the present state of a run. Pure; a function provides documents.

use std::collections::BTreeMap;

use super::document::Revision;
use super::extension::RunConcluded;
use super::grow;
use super::name::{FilePath, ItemId};
use super::plan::Item;
use super::rule::values::Values;
use super::rule::{Check, Rule, Seen, Stop, Then};
use super::state::{CANNOT, RunState};

/// The effect of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Creates these items, ordered by id.
    Create(Vec<Item>),
    /// Records this outcome.
    Conclude(RunConcluded),
}

impl Act {
    /// Returns the created items.
    pub fn items(&self) -> &[Item] {
        match self {
            Self::Create(items) => items,
            Self::Conclude(_) => &[],
        }
    }
}

/// The evaluation of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The rule.
    pub rule: ItemId,
    /// All requirements, met or not.
    pub checks: Vec<Check>,
    /// The effect if all requirements are met; `None` if the rule acts only at submit, or has
    /// nothing to create.
    pub act: Option<Act>,
}

impl Judgement {
    /// Returns true if the rule acts now.
    pub fn fires(&self) -> bool {
        self.act.is_some() && self.checks.iter().all(|check| check.holds)
    }
}

/// Returns the effect of a rule in the present state, if any.
///
/// `read` returns the bytes of a revision; it is called only if they matter.
pub fn acts<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<Act>, E> {
    // Cheapest checks first, because most rules do not act.
    if rule.is_standing()
        || state.has_concluded(rule.id())
        || (matches!(rule.then, Then::Several(_)) && state.rounds(rule.id()) >= rule.when.at_most)
        || !rule.when.items.iter().all(|condition| condition.holds(state))
    {
        return Ok(None);
    }
    let documents = state.latest_documents(rule);
    let Some(act) = act(state, rule, &documents) else { return Ok(None) };
    if !all_hold(&own_checks(state, rule, &act)) || !all_hold(&document_checks(state, rule, &documents, read)?) {
        return Ok(None);
    }
    Ok(Some(act))
}

fn all_hold(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.holds)
}

/// Returns the reason why a rule stopped: its requirements are met, but it has acted as often as
/// allowed, or a document lacks the value at a pointer. `None` if a rule recorded an outcome.
pub fn stopped_short<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Option<String>, E> {
    held_back(state, rule, Stop::Short, read)
}

/// Returns the rules that stopped before the run was done, with reasons. The error names a rule
/// whose document cannot be read.
///
/// Empty for an unfinished run, and for one with a recorded outcome.
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
        let why = match acts(state, rule, &mut read).map_err(|error| (rule.id().clone(), error))? {
            Some(_) if !state.is_ended() => return Ok(BTreeMap::new()),
            Some(act) => is_good.then(|| cut_off(&act)),
            None => held_back(state, rule, Stop::Unfit, &mut read).map_err(|error| (rule.id().clone(), error))?,
        };
        stopped.extend(why.map(|why| (rule.id().clone(), why)));
    }
    Ok(stopped)
}

/// Formats what a rule would have done if the run had not been ended.
fn cut_off(act: &Act) -> String {
    match act {
        Act::Create(items) => {
            let first = items.first().map_or("nothing", |item| item.id.as_str());
            format!("the run was ended before it created {first}")
        }
        Act::Conclude(concluded) => format!("the run was ended before it had it say {}", concluded.outcome),
    }
}

/// Returns what prevents a rule from acting, if every unmet requirement stops it at least this
/// much.
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

/// Returns the conditions that cannot be compared with a document, with rule and reason: `None` if
/// it is not JSON or too large, or the value if it is not a number.
pub fn uncompared(rules: &[Rule], document: &FilePath, bytes: Option<&[u8]>) -> Vec<(ItemId, String)> {
    let values = Values::of_rules(bytes, rules, document);
    let mut uncompared = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.is_standing()) {
        for condition in rule.when.conditions.iter().filter(|condition| condition.document == *document) {
            let check = condition.check(&values);
            if check.stop == Stop::Unfit {
                uncompared.push((rule.id().clone(), check.found));
            }
        }
    }
    uncompared
}

/// Evaluates a rule with all its requirements.
pub fn judge<E>(
    state: &RunState,
    rule: &Rule,
    read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Judgement, E> {
    let documents = state.latest_documents(rule);
    let act = act(state, rule, &documents);
    let mut checks = document_checks(state, rule, &documents, read)?;
    checks.extend(rule.when.items.iter().map(|condition| condition.check(state)));
    if let Some(act) = &act {
        checks.extend(own_checks(state, rule, act));
    }
    Ok(Judgement { rule: rule.id().clone(), checks, act })
}

/// Returns the effect of a rule whose requirements are met.
fn act(state: &RunState, rule: &Rule, documents: &BTreeMap<FilePath, Seen>) -> Option<Act> {
    let conclude = |outcome: &str, detail| {
        let (rule, outcome) = (rule.id().clone(), outcome.to_owned());
        Act::Conclude(RunConcluded { detail, ..RunConcluded::new(rule, outcome) })
    };
    match &rule.then {
        Then::One(_) => rule.item(documents).map(|item| Act::Create(vec![item])),
        Then::Several(several) => match grow::items(state, rule, several) {
            Ok(items) if items.is_empty() => None,
            Ok(items) => Some(Act::Create(items)),
            Err(why) => Some(conclude(CANNOT, Some(why))),
        },
        Then::Outcome(word) => Some(conclude(word, None)),
        Then::Order(_) | Then::Gate(_) => None,
    }
}

/// The requirements that depend on entries only: how often the rule acted.
fn own_checks(state: &RunState, rule: &Rule, act: &Act) -> Vec<Check> {
    let items = match act {
        Act::Create(items) => items,
        Act::Conclude(concluded) => {
            let has_concluded = state.has_concluded(rule.id());
            let not = if has_concluded { "" } else { "not " };
            return vec![Check::new(!has_concluded, format!("{} was {not}said yet", concluded.outcome))];
        }
    };
    let rounds = state.rounds(rule.id());
    let most = rule.when.at_most;
    let found = format!("it created {rounds} of at most {most}");
    // A rule about items is finished once it acted; one about documents continues with the next
    // revision.
    let check = if matches!(rule.then, Then::One(_)) { Check::or_short } else { Check::new };
    let mut checks = vec![check(rounds < most, found)];
    if let (Then::One(_), [item]) = (&rule.then, &items[..])
        && state.graph.position(&item.id).is_some()
    {
        let duplicate = format!("{} was created from these revisions already", item.id);
        checks.push(Check::new(false, duplicate));
    }
    checks
}

fn document_checks<E>(
    state: &RunState,
    rule: &Rule,
    documents: &BTreeMap<FilePath, Seen>,
    mut read: impl FnMut(&FilePath, &Revision) -> Result<Vec<u8>, E>,
) -> Result<Vec<Check>, E> {
    rule.checks(documents, |name| {
        let revision = state.documents.latest(name).expect("it was seen");
        state.values.get(&state.rules, name, revision, || read(name, revision))
    })
}
