//! Parses a plan: bytes → [`Plan`].
//!
//! Parsed by hand from JSON values, so that one pass finds every problem. The parsed parts are kept
//! as a draft, so that validation can continue.

#[cfg(feature = "core")]
pub mod schemas;
pub mod start;
#[cfg(feature = "core")]
pub mod validate;

mod draft;
mod literals;
#[cfg(feature = "core")]
pub(crate) mod near;
#[cfg(feature = "core")]
pub(crate) mod pattern;
mod read;
mod rule;

pub(crate) use draft::{Draft, DraftItem, ItemPath};
pub(crate) use rule::{DraftRule, check_ids, read_rules};

use crate::model::format;
use crate::model::hints;
use crate::model::json::{self, JsonPath};
use crate::model::plan::{Item, Plan};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::rule::Rule;

/// The maximum size of a plan, in bytes.
pub const MAX_PLAN_BYTES: usize = 32 << 20;

/// The absolute maximum number of items, because parsed items need more memory than their text.
pub const MAX_PLAN_ITEMS: usize = 1 << 18;

/// Parses a well-formed plan without validating it.
///
/// The verifier uses this too: a sealed plan was validated at submit against what was registered
/// there.
pub fn parse(bytes: &[u8]) -> Result<Plan, Problems> {
    parse_within(bytes, MAX_PLAN_ITEMS)
}

/// Parses a plan with a maximum number of items.
pub fn parse_within(bytes: &[u8], most: usize) -> Result<Plan, Problems> {
    let mut problems = Problems::default();
    let draft = draft(bytes, most, &mut problems);
    if let Some(draft) = &draft {
        let created = draft.rules.iter().flat_map(|rule| &rule.create);
        draft.items.iter().flatten().for_each(|item| item.check_replaces_nothing(&mut problems));
        draft.items.iter().flatten().chain(created).for_each(|item| item.check_references(&mut problems));
    }
    match draft.and_then(Draft::finish) {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems),
    }
}

/// Returns true if two files have the same canonical JSON.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other || canonical(one).is_some_and(|one| Some(one) == canonical(other))
}

fn canonical(bytes: &[u8]) -> Option<Vec<u8>> {
    json::parse(bytes).ok().map(|value| format::canonical(&value))
}

/// Returns the plan with another id in canonical form, or `None` if it is not an object.
pub fn renamed(bytes: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut value = json::parse(json::unmarked(bytes)).ok()?;
    value.as_object_mut()?.insert("id".to_owned(), id.into());
    Some(format::canonical(&value))
}

/// Parses a normalised item, as written by [`Item::to_json`].
pub fn parse_item(bytes: &[u8]) -> Result<Item, Problems> {
    let value = json::parse(bytes)?;
    let mut problems = Problems::default();
    let item = read::item(&value, JsonPath::root(), &mut problems);
    if let Some(item) = &item {
        item.check_references(&mut problems);
    }
    match item.and_then(DraftItem::finish) {
        Some(item) if problems.is_empty() => Ok(item),
        _ => Err(problems),
    }
}

/// Parses a queue's rules.
pub fn parse_rules(bytes: &[u8]) -> Result<Vec<Rule>, Problems> {
    let value = json::parse(bytes)?;
    let mut problems = Problems::default();
    let drafts = read_rules(&value, &JsonPath::root(), &mut problems);
    literals::check(bytes, &value, &JsonPath::root(), &mut problems);
    check_ids(&[], &drafts, &mut problems);
    drafts.iter().flat_map(|rule| &rule.create).for_each(|item| item.check_references(&mut problems));
    match drafts.into_iter().map(DraftRule::finish).collect::<Option<_>>() {
        Some(rules) if problems.is_empty() => Ok(rules),
        _ => Err(problems),
    }
}

/// Parses a plan as far as possible. A `None`, or a field missing in the draft, comes with a
/// problem. Above the maximum number, no items are parsed.
pub(crate) fn draft(bytes: &[u8], most: usize, problems: &mut Problems) -> Option<Draft> {
    if bytes.len() > MAX_PLAN_BYTES {
        let message = format!("the plan has {} bytes; at most {MAX_PLAN_BYTES} are read", bytes.len());
        problems.push(Problem::new(Code::TooLarge, &JsonPath::root(), message));
        return None;
    }
    let value = json::read(bytes, problems)?;
    let count = value.get("items").and_then(|items| items.as_array()).map_or(0, Vec::len);
    if count > most {
        let message = format!("{count} items; at most {most} are allowed");
        let problem = Problem::new(Code::TooManyItems, &JsonPath::root().key("items"), message);
        // Above the absolute maximum, no setting helps.
        problems.push(if count <= MAX_PLAN_ITEMS { problem.hint(hints::max_items(count)) } else { problem });
        return None;
    }
    if let Some(rules) = value.get("rules") {
        literals::check(bytes, rules, &JsonPath::root().key("rules"), problems);
    }
    read::plan(&value, problems)
}
