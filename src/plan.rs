//! Reads a plan: bytes → [`Plan`].
//!
//! Reading goes by hand through JSON values, not through derived code, so that one pass finds every
//! problem. What could be read is kept as a draft, which lets validation go on past the first one.

mod draft;
mod item;

pub(crate) use draft::{Draft, DraftItem, DraftNeed, ItemPath};

use crate::model::json::{self, JsonPath};
use crate::model::plan::{Item, Plan};
use crate::model::problem::{Code, Problem};

/// The largest plan, in bytes.
pub const MAX_PLAN_BYTES: usize = 32 << 20;

/// Reads a plan, of which nothing is known then but that it is well formed.
///
/// Also how the verifier reads a sealed plan: it was validated against what was registered when and
/// where it was submitted.
pub fn parse(bytes: &[u8]) -> Result<Plan, Vec<Problem>> {
    let mut problems = Vec::new();
    let draft = read(bytes, &mut problems);
    for (index, item) in draft.iter().flat_map(|draft| draft.items.iter().enumerate()) {
        if let Some(item) = item {
            item.check_references(&ItemPath::new(index), &mut problems);
        }
    }
    match draft.and_then(Draft::finish) {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems),
    }
}

/// Reads one normalised item, as [`Item::to_json`] wrote it.
pub fn parse_item(bytes: &[u8]) -> Result<Item, Vec<Problem>> {
    let value = json::parse(bytes)?;
    let mut problems = Vec::new();
    let item = item::read(&value, JsonPath::root(), &mut problems);
    if let Some(item) = &item {
        item.check_references(&ItemPath(JsonPath::root()), &mut problems);
    }
    match item.and_then(DraftItem::finish) {
        Some(item) if problems.is_empty() => Ok(item),
        _ => Err(problems),
    }
}

/// Reads as much of a plan as there is; `None`, and every field missing in the draft, comes with a
/// problem.
pub(crate) fn read(bytes: &[u8], problems: &mut Vec<Problem>) -> Option<Draft> {
    if bytes.len() > MAX_PLAN_BYTES {
        let message = format!("the plan has {} bytes; at most {MAX_PLAN_BYTES} are read", bytes.len());
        problems.push(Problem::new(Code::TooLarge, &JsonPath::root(), message));
        return None;
    }
    let value = json::read(bytes, problems)?;
    draft::read(&value, problems)
}
