//! Reads one item of a plan.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use crate::model::json::JsonPath;
use crate::model::name::{ItemId, clashes};
use crate::model::plan::{Produced, ProductKey};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, read_products, read_selector, string, text};
use crate::plan::draft::{DraftItem, DraftNeed, ItemPath, read_id, read_key, report_clashes};

const KNOWN: [&str; 10] = [
    "id",
    "executor",
    "inputs",
    "depends_on",
    "resourceLocks",
    "subagentShape",
    "needs",
    "produces",
    "timeout",
    "maxAttempts",
];

/// The longest timeout, in seconds: what fits a clock in nanoseconds many times over.
const MAX_TIMEOUT: u64 = 10 * 365 * 86_400;

/// Reads an item, which is `None` only if it is no object.
pub(crate) fn read(value: &Value, at: JsonPath, problems: &mut Problems) -> Option<DraftItem> {
    let fields = Fields::of(value, at.clone(), &KNOWN, problems)?;
    let id = fields.required("id", problems);
    let id = id.and_then(|id| read_id(id, &fields.at("id"), ItemId::parse, problems));
    Some(read_fields(&fields, at, id, problems))
}

/// Reads what a rule creates: an item that has no id of its own and goes by the rule's.
pub(crate) fn read_template(
    value: &Value,
    at: JsonPath,
    rule: Option<&str>,
    problems: &mut Problems,
) -> Option<DraftItem> {
    let [_, known @ ..] = KNOWN;
    let fields = Fields::of(value, at.clone(), &known, problems)?;
    Some(read_fields(&fields, at, rule.map(str::to_owned), problems))
}

fn read_fields(fields: &Fields<'_>, at: JsonPath, id: Option<String>, problems: &mut Problems) -> DraftItem {
    fields.required("executor", problems);
    let inputs = match fields.get("inputs") {
        Some(_) => fields.object("inputs", problems).cloned(),
        None => Some(Map::new()),
    };
    let known_problems = problems.len();
    let produces = read_produces(fields, problems);
    let products_unread = problems.len() > known_problems;
    let max_attempts = fields.integer("maxAttempts", &(1..=100), problems);
    DraftItem {
        path: ItemPath(at),
        id,
        executor: fields.text("executor", problems).map(str::to_owned),
        inputs,
        depends_on: read_dependencies(fields, problems),
        resource_locks: read_locks(fields, problems),
        subagent_shape: fields.text("subagentShape", problems).map(str::to_owned),
        needs: read_needs(fields, problems),
        produces,
        products_unread,
        timeout: fields.integer("timeout", &(1..=MAX_TIMEOUT), problems),
        max_attempts: max_attempts.and_then(|number| u32::try_from(number).ok()),
    }
}

fn read_dependencies(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Option<String>> {
    let list = fields.list("depends_on", problems).unwrap_or_default();
    let at = fields.at("depends_on");
    let ids = list.iter().enumerate();
    ids.map(|(index, id)| string(id, &at.index(index), problems).map(str::to_owned)).collect()
}

fn read_locks(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let list = fields.list("resourceLocks", problems).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut locks = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = fields.at("resourceLocks").index(index);
        let Some(key) = text(value, &at, problems) else {
            continue;
        };
        if seen.insert(key) {
            locks.push(key.to_owned());
        } else {
            let message = format!("the lock key {key:?} stands here twice");
            problems.push(Problem::new(Code::DuplicateLock, &at, message));
        }
    }
    locks
}

fn read_needs(fields: &Fields<'_>, problems: &mut Problems) -> BTreeMap<String, DraftNeed> {
    let Some(map) = fields.object("needs", problems) else {
        return BTreeMap::new();
    };
    let at = fields.at("needs");
    let mut needs = BTreeMap::new();
    for (key, value) in map {
        read_key(key, &at, problems);
        let Some(need) = Fields::of(value, at.key(key), &["from", "select"], problems) else {
            continue;
        };
        need.required("from", problems);
        let select = need.required("select", problems);
        let need = DraftNeed {
            from: need.string("from", problems).map(str::to_owned),
            select: select.and_then(|select| read_selector(select, &need.at("select"), problems)),
        };
        needs.insert(key.clone(), need);
    }
    report_clashes(map, &at, problems);
    needs
}

fn read_produces(fields: &Fields<'_>, problems: &mut Problems) -> Option<Vec<Produced>> {
    let list = fields.list("produces", problems)?;
    let at = fields.at("produces");
    let products = read_products(list, &at, problems);
    let mut keys = BTreeSet::new();
    for product in &products {
        let key = product.select.product_key();
        if keys.contains(&key) {
            let message = format!("{key} stands here twice");
            problems.push(Problem::new(Code::BadSelector, &at, message));
        }
        keys.insert(key);
    }
    let outputs = keys.iter().filter_map(|key| match key {
        ProductKey::Output(path) => Some(path.as_str()),
        ProductKey::Patch | ProductKey::Document(_) => None,
    });
    for (first, second) in clashes(outputs) {
        let message = format!("the outputs {first:?} and {second:?} cannot stand side by side");
        problems.push(Problem::new(Code::BadSelector, &at, message));
    }
    Some(products)
}
