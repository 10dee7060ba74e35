//! Parses the fields of a plan, and reports all problems.
//!
//! The tables in [`crate::model::plan`] name the reader of each field.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, NameError, RunId, clashes};
use crate::model::plan::{DraftNeed, Item, Need, Plan, read_need, read_products};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::protect_rule::{self, ProtectRule};
use crate::model::protected::{OnProtectedChange, pathspec_fault};
use crate::model::read::{self, Fields};
use crate::plan::draft::{Draft, DraftItem, DraftProducts, ItemPath};
use crate::plan::rule::{DraftRule, check_ids, read_rules};

/// The field with the exceptions of a rule of protected files.
const EXCEPT: &str = "except";

/// The maximum timeout in seconds, far within a clock in nanoseconds.
pub(super) const MAX_TIMEOUT: u64 = 10 * 365 * 86_400;

/// Parses a plan.
pub(super) fn plan(value: &Value, problems: &mut Problems) -> Option<Draft> {
    let fields = Fields::read(value, JsonPath::root(), Plan::FIELDS, problems)?;
    let id = id(&fields, RunId::parse, problems);
    Some(Draft::read(&fields, id, problems))
}

/// Parses an item, or returns `None` if it is not an object.
pub(super) fn item(value: &Value, at: JsonPath, problems: &mut Problems) -> Option<DraftItem> {
    let fields = Fields::read(value, at.clone(), Item::FIELDS, problems)?;
    let id = id(&fields, ItemId::parse, problems);
    Some(DraftItem::read(&fields, ItemPath(at), id, problems))
}

/// Parses a rule's item, which has the rule's id.
pub(super) fn template(value: &Value, at: JsonPath, rule: Option<&str>, problems: &mut Problems) -> Option<DraftItem> {
    let fields = Fields::read(value, at.clone(), &Item::FIELDS[1..], problems)?;
    Some(DraftItem::read(&fields, ItemPath(at), rule.map(str::to_owned), problems))
}

/// Parses an id; keeps it if it is a string.
fn id<T>(fields: &Fields<'_>, parse: fn(&str) -> Result<T, NameError>, problems: &mut Problems) -> Option<String> {
    let at = fields.at("id");
    let id = read::string(fields.required("id", problems)?, &at, problems)?;
    if let Err(error) = parse(id) {
        let code = match error {
            NameError::Reserved => Code::ReservedId,
            _ => Code::BadId,
        };
        problems.push(Problem::new(code, &at, error.to_string()));
    }
    Some(id.to_owned())
}

pub(super) fn text(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<String> {
    fields.text(key, problems).map(str::to_owned)
}

/// Creates a reader for text with a default.
pub(super) fn text_or(default: &str) -> impl Fn(&Fields<'_>, &str, &mut Problems) -> Option<String> {
    move |fields, key, problems| Some(fields.text(key, problems).unwrap_or(default).to_owned())
}

pub(super) fn string(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<String> {
    fields.string(key, problems).map(str::to_owned)
}

/// Parses a boolean; `false` if absent.
pub(super) fn boolean(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> bool {
    fields.boolean(key, problems).unwrap_or(false)
}

/// Creates a reader for an integer within a range.
pub(super) fn integer<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&Fields<'_>, &str, &mut Problems) -> Option<T> {
    move |fields, key, problems| fields.integer(key, &range, problems).and_then(|number| T::try_from(number).ok())
}

/// Parses any object; empty if absent.
pub(super) fn object(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<Map<String, Value>> {
    match fields.get(key) {
        Some(_) => fields.object(key, problems).cloned(),
        None => Some(Map::new()),
    }
}

/// Parses a list of strings.
pub(super) fn strings(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<Option<String>> {
    let list = fields.list(key, problems).unwrap_or_default();
    let at = fields.at(key);
    let strings = list.iter().enumerate();
    strings.map(|(index, value)| read::string(value, &at.index(index), problems).map(str::to_owned)).collect()
}

pub(super) fn locks(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<Option<String>> {
    let list = fields.list(key, problems).unwrap_or_default();
    let mut distinct = BTreeSet::new();
    let mut locks = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = fields.at(key).index(index);
        let Some(lock) = read::text(value, &at, problems) else {
            continue;
        };
        if distinct.insert(lock) {
            locks.push(Some(lock.to_owned()));
        } else {
            let message = format!("the lock key {lock:?} stands here twice");
            problems.push(Problem::new(Code::DuplicateLock, &at, message));
        }
    }
    locks
}

/// Parses the rules of protected files: one rule of exceptions, or an array of pathspecs and such
/// rules.
pub(super) fn protect(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<Option<ProtectRule>> {
    let at = fields.at(key);
    if let Some(value @ Value::Object(_)) = fields.get(key) {
        return bounded(vec![exceptions(value, &at, problems)], &at, problems);
    }
    let list = fields.list(key, problems).unwrap_or_default().iter().enumerate();
    let rules: Vec<_> = list.map(|(index, value)| one_rule(value, &at.index(index), problems)).collect();
    bounded(rules, &at, problems)
}

fn bounded(rules: Vec<Option<ProtectRule>>, at: &JsonPath, problems: &mut Problems) -> Vec<Option<ProtectRule>> {
    if !protect_rule::are_bounded(rules.iter().flatten()) {
        problems.push(Problem::new(Code::BadPathspec, at, protect_rule::limits_in_words()));
    }
    rules
}

fn one_rule(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<ProtectRule> {
    match value {
        Value::Object(_) => exceptions(value, at, problems),
        _ => pathspec(value, at, problems).map(ProtectRule::Pathspec),
    }
}

fn exceptions(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<ProtectRule> {
    let fields = Fields::read(value, at.clone(), &[EXCEPT], problems)?;
    fields.required(EXCEPT, problems);
    let list = fields.list(EXCEPT, problems)?.iter().enumerate();
    let except = list.map(|(index, entry)| pathspec(entry, &fields.at(EXCEPT).index(index), problems));
    Some(ProtectRule::Except { except: except.collect::<Option<_>>()? })
}

fn pathspec(value: &Value, at: &JsonPath, problems: &mut Problems) -> Option<String> {
    let pathspec = read::text(value, at, problems)?;
    if let Some(fault) = pathspec_fault(pathspec) {
        let message = format!("the pathspec {pathspec:?} {fault}");
        problems.push(Problem::new(Code::BadPathspec, at, message));
        return None;
    }
    Some(pathspec.to_owned())
}

/// Parses the effect of a change to a protected file. Only settings can allow such changes.
pub(super) fn on_protected_change(
    fields: &Fields<'_>,
    key: &str,
    problems: &mut Problems,
) -> Option<OnProtectedChange> {
    match fields.text(key, problems)? {
        "red" => Some(OnProtectedChange::Red),
        "fail" => Some(OnProtectedChange::Fail),
        "judge" => Some(OnProtectedChange::Judge),
        other => {
            let message = format!("expected red, fail or judge, found {other:?}");
            problems.push(Problem::new(Code::WrongType, &fields.at(key), message));
            None
        }
    }
}

pub(super) fn needs(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> BTreeMap<String, DraftNeed> {
    let Some(map) = fields.object(key, problems) else {
        return BTreeMap::new();
    };
    let at = fields.at(key);
    let mut needs = BTreeMap::new();
    for (name, value) in map {
        file_key(name, &at, problems);
        if let Some(need) = Fields::read(value, at.key(name), Need::FIELDS, problems) {
            needs.insert(name.clone(), read_need(&need, problems));
        }
    }
    report_clashes(map, &at, problems);
    needs
}

pub(super) fn products(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> DraftProducts {
    let known_problems = problems.len();
    let Some(list) = fields.list(key, problems) else {
        return DraftProducts { read: None, unread: problems.len() > known_problems };
    };
    let at = fields.at(key);
    let products = read_products(list, &at, problems);
    let mut keys = BTreeSet::new();
    for product in &products {
        let product_key = product.select.product_key();
        if keys.contains(&product_key) {
            let message = format!("{product_key} stands here twice");
            problems.push(Problem::new(Code::BadSelector, &at, message));
        }
        keys.insert(product_key);
    }
    let outputs = keys.iter().filter_map(|known_key| known_key.output().map(FilePath::as_str));
    for (first, second) in clashes(outputs) {
        let message = format!("the outputs {first:?} and {second:?} cannot stand side by side");
        problems.push(Problem::new(Code::BadSelector, &at, message));
    }
    DraftProducts { read: Some(products), unread: problems.len() > known_problems }
}

pub(super) fn rules(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<DraftRule> {
    let rules = fields.get(key).map_or_else(Vec::new, |rules| read_rules(rules, &fields.at(key), problems));
    check_ids(&[], &rules, problems);
    rules
}

pub(super) fn artifacts(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> BTreeMap<String, Option<String>> {
    let Some(map) = fields.object(key, problems) else {
        return BTreeMap::new();
    };
    let at = fields.at(key);
    let mut artifacts = BTreeMap::new();
    for (name, value) in map {
        let path = file_key(name, &at, problems);
        let file = read::text(value, &at.key(name), problems);
        artifacts.extend(path.zip(file).map(|(path, file)| (path.to_string(), Some(file.to_owned()))));
    }
    report_clashes(map, &at, problems);
    artifacts
}

/// Parses the items, one for each element.
pub(super) fn items(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<Option<DraftItem>> {
    let Some(list) = fields.list(key, problems) else {
        return Vec::new();
    };
    if list.is_empty() {
        let message = "a plan has at least one item";
        problems.push(Problem::new(Code::NoItems, &fields.at(key), message));
    }
    let items = list.iter().enumerate();
    items.map(|(index, value)| item(value, fields.at(key).index(index), problems)).collect()
}

/// Validates a key that becomes a file.
fn file_key(key: &str, at: &JsonPath, problems: &mut Problems) -> Option<FilePath> {
    let path = FilePath::parse(key);
    if let Err(error) = &path {
        let problem = Problem::new(Code::BadInputKey, &at.key(key), error.to_string());
        problems.push(problem);
    }
    path.ok()
}

/// Reports clashing keys.
fn report_clashes(map: &Map<String, Value>, at: &JsonPath, problems: &mut Problems) {
    // Invalid paths were already reported, and may have any length.
    let paths = map.keys().filter(|key| FilePath::parse(key).is_ok());
    for (first, second) in clashes(paths.map(String::as_str)) {
        let message = format!("the keys {first:?} and {second:?} cannot be files side by side everywhere");
        problems.push(Problem::new(Code::BadInputKey, &at.key(&second), message));
    }
}
