//! Parses rules.
//!
//! Problems of a rule have the code `bad-rule`; problems of its items have the codes of items.

mod then;
mod when;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::json::JsonPath;
use crate::model::name::{ItemId, fold};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::Fields;
use crate::model::rule::{Rule, When, check_id};
use crate::plan::draft::DraftItem;
use then::DraftThen;

/// The maximum number of rules in a list, because parsed rules need more memory than their text.
const MAX_RULES: usize = 10_000;

/// A partly parsed rule.
pub(crate) struct DraftRule {
    at: JsonPath,
    id: Option<String>,
    when: Option<When>,
    then: Option<DraftThen>,
    /// The items that it can create; those without an id have the rule's.
    pub(crate) create: Vec<DraftItem>,
    written: Value,
}

impl DraftRule {
    /// Returns the rule, or `None` if incomplete or invalid.
    pub(crate) fn finish(self) -> Option<Rule> {
        let items = self.create.into_iter().map(DraftItem::finish).collect::<Option<Vec<_>>>()?;
        Some(Rule {
            id: self.id?.parse().ok()?,
            when: self.when?,
            then: self.then?.finish(items)?,
            written: self.written,
        })
    }

    /// Returns the rule as written.
    pub(crate) fn written(&self) -> &Value {
        &self.written
    }

    /// Returns the dependencies that it adds at submit.
    pub(crate) fn order(&self) -> impl Iterator<Item = (&ItemId, &ItemId)> {
        let order = self.then.as_ref().and_then(DraftThen::order).into_iter().flatten();
        order.flat_map(|(item, waits_for)| waits_for.iter().map(move |on| (item, on)))
    }

    /// Returns true if its items have ids that others can reference.
    pub(crate) fn names_items(&self) -> bool {
        matches!(self.then, Some(DraftThen::Several(..)))
    }
}

/// Parses a list of rules.
pub(crate) fn read_rules(rules: &Value, at: &JsonPath, problems: &mut Problems) -> Vec<DraftRule> {
    let Some(list) = rules.as_array() else {
        problems.push(Problem::new(Code::BadRule, at, "expected an array of rules"));
        return Vec::new();
    };
    if list.len() > MAX_RULES {
        let message = format!("{} rules; at most {MAX_RULES} are read", list.len());
        problems.push(Problem::new(Code::BadRule, at, message));
        return Vec::new();
    }
    let each = list.iter().enumerate();
    each.map(|(index, rule)| read_rule(rule, &at.index(index), problems)).collect()
}

/// Reports new rules with a duplicate id, ignoring case.
pub(crate) fn check_ids(known: &[DraftRule], new: &[DraftRule], problems: &mut Problems) {
    let mut known_ids: BTreeMap<String, &str> = BTreeMap::new();
    for (at, rule) in known.iter().chain(new).enumerate() {
        let Some(id) = rule.id.as_deref() else { continue };
        if let Some(other) = known_ids.insert(fold(id), id).filter(|_| at >= known.len()) {
            let message = format!("another rule has the id {other:?}");
            problems.push(Problem::new(Code::BadRule, &rule.at.key("id"), message));
        }
    }
}

fn read_rule(value: &Value, at: &JsonPath, problems: &mut Problems) -> DraftRule {
    let (id, when, then, create) = (None, None, None, Vec::new());
    let mut draft = DraftRule { at: at.clone(), id, when, then, create, written: value.clone() };
    if let Some(fields) = problems.under(Code::BadRule, |own| read_own(value, &mut draft, own)) {
        then::read(&fields, &mut draft, problems);
    }
    draft
}

/// Parses `when`; returns its fields.
fn read_own<'v>(value: &'v Value, draft: &mut DraftRule, own: &mut Problems) -> Option<Fields<'v>> {
    let known = ["id", "when", "create", "forEach", "outcome", "order", "gate"];
    let fields = Fields::read(value, draft.at.clone(), &known, own)?;
    fields.required("id", own);
    let id = fields.string("id", own);
    if let Some(Err(error)) = id.map(check_id) {
        let message = format!("the rule's id, which its items are named after: {error}");
        own.push(Problem::new(Code::BadRule, &fields.at("id"), message));
    }
    draft.id = id.map(str::to_owned);
    // A rule that acts at submit has no conditions.
    let standing = ["order", "gate"].iter().any(|key| fields.get(key).is_some());
    let when = if standing { fields.get("when") } else { fields.required("when", own) };
    draft.when = match when {
        Some(when) => when::read_when(when, fields.at("when"), own),
        None if standing => Some(When { at_most: 1, ..When::default() }),
        None => None,
    };
    Some(fields)
}

/// Parses the id of an item or rule.
fn item_id(text: &str, at: &JsonPath, own: &mut Problems) -> Option<ItemId> {
    ItemId::parse(text).map_err(|error| bad::<()>(at, &error.to_string(), own)).ok()
}

/// Reports a problem of a rule.
fn bad<T>(at: &JsonPath, message: &str, own: &mut Problems) -> Option<T> {
    own.push(Problem::new(Code::BadRule, at, message));
    None
}
