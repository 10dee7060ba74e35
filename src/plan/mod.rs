//! Reads a plan: bytes → [`Plan`].
//!
//! Reading goes by hand through JSON values, not through derived code, so that one pass finds every
//! problem. What could be read is kept as a draft, which lets validation go on past the first one.

#[cfg(feature = "full")]
pub mod schemas;
pub mod start;
#[cfg(feature = "full")]
pub mod validate;

mod draft;
mod literals;
#[cfg(feature = "full")]
pub(crate) mod near;
#[cfg(feature = "full")]
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

/// The largest plan, in bytes.
pub const MAX_PLAN_BYTES: usize = 32 << 20;

/// The most items of one plan, whatever more a configuration allows; what is read of each takes more memory than the least
/// that can be written.
pub const MAX_PLAN_ITEMS: usize = 1 << 18;

/// Reads a plan, of which nothing is known then but that it is well formed.
///
/// Also how the verifier reads a sealed plan: it was validated against what was registered when and
/// where it was submitted.
pub fn parse(bytes: &[u8]) -> Result<Plan, Problems> {
    parse_within(bytes, MAX_PLAN_ITEMS)
}

/// Reads a plan of at most so many items.
pub fn parse_within(bytes: &[u8], most: usize) -> Result<Plan, Problems> {
    let mut problems = Problems::default();
    let draft = draft(bytes, most, &mut problems);
    if let Some(draft) = &draft {
        let created = draft.rules.iter().flat_map(|rule| &rule.create);
        draft.items.iter().flatten().chain(created).for_each(|item| item.check_references(&mut problems));
    }
    match draft.and_then(Draft::finish) {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems),
    }
}

/// Returns whether two files hold the same plan, in whatever form: what they say is the same in canonical JSON.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let canonical = |bytes| json::parse(bytes).ok().map(|value| format::canonical(&value));
    one == other || canonical(one).is_some_and(|one| Some(one) == canonical(other))
}

/// Returns the plan under another id, in canonical form; nothing where it is no JSON object.
pub fn renamed(bytes: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut value = json::parse(json::unmarked(bytes)).ok()?;
    value.as_object_mut()?.insert("id".to_owned(), id.into());
    Some(format::canonical(&value))
}

/// Reads one normalised item, as [`Item::to_json`] wrote it.
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

/// Reads the rules that a queue adds to those of a plan.
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

/// Reads as much of a plan as there is; `None`, and every field missing in the draft, comes with a
/// problem. Of more items than may be, none is looked at: what is read of each takes more memory than what is written.
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
        // Beyond what is ever read, no setting helps.
        problems.push(if count <= MAX_PLAN_ITEMS { problem.hint(hints::max_items(count)) } else { problem });
        return None;
    }
    if let Some(rules) = value.get("rules") {
        literals::check(bytes, rules, &JsonPath::root().key("rules"), problems);
    }
    read::plan(&value, problems)
}
