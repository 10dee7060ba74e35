//! Parses the effect of a rule.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{DraftRule, bad, item_id};
use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, Selector, read_selector};
use crate::model::problem::Code;
use crate::model::problems::Problems;
use crate::model::read::{Fields, string};
use crate::model::rule::{Each, Gate, Made, Several, Template, Then};
use crate::plan::read;

/// The maximum number of templates of a rule.
const MAX_TEMPLATES: usize = 1_000;

/// A partly parsed effect; its items are separate, in order.
pub(super) enum DraftThen {
    One,
    Several(Vec<DraftMade>, Option<ItemId>),
    Whole(Then),
}

/// One of the created items.
pub(super) enum DraftMade {
    /// The next of the items.
    Template {
        optional: BTreeSet<FilePath>,
        each: Option<Each>,
        reasons: BTreeMap<String, ItemId>,
    },
    Again(ItemId),
}

impl DraftThen {
    /// Returns the dependencies that it adds at submit.
    pub(super) fn order(&self) -> Option<&BTreeMap<ItemId, Vec<ItemId>>> {
        match self {
            Self::Whole(Then::Order(order)) => Some(order),
            _ => None,
        }
    }

    pub(super) fn finish(self, items: Vec<Item>) -> Option<Then> {
        let mut items = items.into_iter();
        Some(match self {
            Self::One => Then::One(Box::new(items.next()?)),
            Self::Whole(then) => then,
            Self::Several(made, for_each) => {
                let finished = made.into_iter().map(|made| {
                    Some(match made {
                        DraftMade::Again(item) => Made::Again(item),
                        DraftMade::Template { optional, each, reasons } => {
                            Made::Template(Box::new(Template { item: items.next()?, optional, each, reasons }))
                        }
                    })
                });
                Then::Several(Several { made: finished.collect::<Option<_>>()?, for_each })
            }
        })
    }
}

/// Parses the only effect of a rule.
pub(super) fn read(fields: &Fields<'_>, draft: &mut DraftRule, problems: &mut Problems) {
    let present: Vec<&str> =
        ["create", "outcome", "order", "gate"].into_iter().filter(|key| fields.get(key).is_some()).collect();
    draft.then = match present[..] {
        ["create"] => read_create(fields, draft, problems),
        ["outcome"] => problems.under(Code::BadRule, |own| {
            Some(DraftThen::Whole(Then::Outcome(word(fields.string("outcome", own)?, &fields.at("outcome"), own)?)))
        }),
        ["order"] => problems.under(Code::BadRule, |own| Some(DraftThen::Whole(Then::Order(read_order(fields, own)?)))),
        ["gate"] => problems.under(Code::BadRule, |own| Some(DraftThen::Whole(Then::Gate(read_gate(fields, own)?)))),
        [] => problems.under(Code::BadRule, |own| {
            fields.required("create", own);
            None
        }),
        _ => problems.under(Code::BadRule, |own| {
            bad(&fields.at(present[1]), &format!("a rule does one thing, and this one has `{}`", present[0]), own)
        }),
    };
    if fields.get("forEach").is_some() && !matches!(draft.then, Some(DraftThen::Several(..)) | None) {
        problems.under(Code::BadRule, |own| {
            bad::<()>(&fields.at("forEach"), "it goes with a list of items in `create`", own)
        });
    }
}

fn read_create(fields: &Fields<'_>, draft: &mut DraftRule, problems: &mut Problems) -> Option<DraftThen> {
    let create = fields.get("create")?;
    let at = fields.at("create");
    let Value::Array(list) = create else {
        draft.create.extend(read::template(create, at, draft.id.as_deref(), problems));
        return Some(DraftThen::One);
    };
    let for_each = match fields.get("forEach") {
        None => None,
        Some(value) => Some(problems.under(Code::BadRule, |own| {
            let fields = Fields::read(value, fields.at("forEach"), &["outputsOf"], own)?;
            fields.required("outputsOf", own);
            item_id(fields.string("outputsOf", own)?, &fields.at("outputsOf"), own)
        })?),
    };
    if list.len() > MAX_TEMPLATES {
        let message = format!("{} templates; at most {MAX_TEMPLATES} are read", list.len());
        problems.under(Code::BadRule, |own| bad::<()>(&at, &message, own));
        return None;
    }
    let mut made = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        made.push(read_made(value, &at.index(index), draft, problems)?);
    }
    Some(DraftThen::Several(made, for_each))
}

fn read_made(value: &Value, at: &JsonPath, draft: &mut DraftRule, problems: &mut Problems) -> Option<DraftMade> {
    let known = ["item", "optional", "each", "reasons", "again"];
    let fields = problems.under(Code::BadRule, |own| Fields::read(value, at.clone(), &known, own))?;
    if fields.get("again").is_some() {
        return problems.under(Code::BadRule, |own| {
            if fields.map().len() > 1 {
                return bad(at, "`again` stands alone", own);
            }
            item_id(fields.string("again", own)?, &fields.at("again"), own).map(DraftMade::Again)
        });
    }
    let item = problems.under(Code::BadRule, |own| fields.required("item", own))?;
    draft.create.extend(read::item(item, fields.at("item"), problems));
    problems.under(Code::BadRule, |own| {
        let optional = fields.list("optional", own).unwrap_or_default().iter().enumerate();
        let optional = optional.map(|(index, entry)| path(entry, &fields.at("optional").index(index), own));
        let optional = optional.collect::<Option<_>>()?;
        let each = match fields.get("each") {
            None => None,
            Some(each) => Some(read_each(each, fields.at("each"), own)?),
        };
        let mut reasons = BTreeMap::new();
        for (key, entry) in fields.object("reasons", own).into_iter().flatten() {
            let reason_at = fields.at("reasons").key(key);
            reasons.insert(key.clone(), item_id(string(entry, &reason_at, own)?, &reason_at, own)?);
        }
        Some(DraftMade::Template { optional, each, reasons })
    })
}

fn read_each(value: &Value, at: JsonPath, own: &mut Problems) -> Option<Each> {
    let fields = Fields::read(value, at, &["outputsOf", "key", "from", "select", "survivors"], own)?;
    ["outputsOf", "key", "from", "select"].iter().for_each(|key| _ = fields.required(key, own));
    let outputs_of = item_id(fields.string("outputsOf", own)?, &fields.at("outputsOf"), own)?;
    let from = item_id(fields.string("from", own)?, &fields.at("from"), own)?;
    let select: Selector = read_selector(fields.get("select")?, &fields.at("select"), own)?;
    let survivors = fields.boolean("survivors", own).unwrap_or(false);
    Some(Each { outputs_of, key: path(fields.get("key")?, &fields.at("key"), own)?, from, select, survivors })
}

fn read_order(fields: &Fields<'_>, own: &mut Problems) -> Option<BTreeMap<ItemId, Vec<ItemId>>> {
    let mut order = BTreeMap::new();
    for (item, waits_for) in fields.object("order", own)? {
        let at = fields.at("order").key(item);
        let Some(list) = waits_for.as_array() else { return bad(&at, "expected a list of ids", own) };
        let ids = list.iter().enumerate().map(|(index, id)| {
            let at = at.index(index);
            item_id(string(id, &at, own)?, &at, own)
        });
        let ids: Vec<ItemId> = ids.collect::<Option<_>>()?;
        let item = item_id(item, &at, own)?;
        if ids.contains(&item) {
            return bad(&at, &format!("the item {:?} would wait for itself", item.as_str()), own);
        }
        order.insert(item, ids);
    }
    Some(order)
}

fn read_gate(fields: &Fields<'_>, own: &mut Problems) -> Option<Gate> {
    let fields = Fields::read(fields.get("gate")?, fields.at("gate"), &["item", "blocks", "votes"], own)?;
    fields.required("item", own);
    let item = item_id(fields.string("item", own)?, &fields.at("item"), own)?;
    let [blocks, votes] = ["blocks", "votes"].map(|key| fields.boolean(key, own).unwrap_or(false));
    Some(Gate { item, blocks, votes })
}

fn path(value: &Value, at: &JsonPath, own: &mut Problems) -> Option<FilePath> {
    FilePath::parse(string(value, at, own)?).map_err(|error| bad::<()>(at, &error.to_string(), own)).ok()
}

/// Validates the word of an outcome.
fn word(text: &str, at: &JsonPath, own: &mut Problems) -> Option<String> {
    let plain = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if text.is_empty() || !plain {
        return bad(at, "an outcome is a word of lower-case letters and hyphens, of at most 64 bytes", own);
    }
    Some(text.to_owned())
}
