//! Reads rules.
//!
//! Everything that is wrong with a rule itself has the code `bad-rule`; the item that it creates is read as an item, and has
//! the codes of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, fold};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, string};
use crate::model::rule::{Condition, Op, Rule, When, check_id};
use crate::plan::draft::DraftItem;
use crate::plan::read;

/// The most rules in one list; what is read of each takes more memory than the least that can be written.
const MAX_RULES: usize = 10_000;

/// The most items that a rule may be allowed to create.
const MAX_CREATED: u64 = 10_000;

/// A rule as far as it could be read.
pub(crate) struct DraftRule {
    at: JsonPath,
    id: Option<String>,
    when: Option<When>,
    /// What it creates, under the rule's own id.
    pub(crate) create: Option<DraftItem>,
    written: Value,
}

impl DraftRule {
    /// The rule; `None` if anything of it is missing or no valid name.
    pub(crate) fn finish(self) -> Option<Rule> {
        Some(Rule { when: self.when?, create: self.create?.finish()?, written: self.written })
    }
}

/// Reads a list of rules.
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

/// Reports new rules with an id that another has, letter case aside.
pub(crate) fn check_ids(known: &[DraftRule], new: &[DraftRule], problems: &mut Problems) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (at, rule) in known.iter().chain(new).enumerate() {
        let Some(id) = rule.id.as_deref() else { continue };
        if let Some(other) = taken.insert(fold(id), id).filter(|_| at >= known.len()) {
            let message = format!("another rule has the id {other:?}");
            problems.push(Problem::new(Code::BadRule, &rule.at.key("id"), message));
        }
    }
}

fn read_rule(value: &Value, at: &JsonPath, problems: &mut Problems) -> DraftRule {
    let mut draft = DraftRule { at: at.clone(), id: None, when: None, create: None, written: value.clone() };
    if let Some(create) = problems.under(Code::BadRule, |own| read_own(value, &mut draft, own)) {
        draft.create = read::template(create, at.key("create"), draft.id.as_deref(), problems);
    }
    draft
}

/// Reads what is the rule's own; returns what it creates.
fn read_own<'v>(value: &'v Value, draft: &mut DraftRule, own: &mut Problems) -> Option<&'v Value> {
    let fields = Fields::of(value, draft.at.clone(), &["id", "when", "create"], own)?;
    fields.required("id", own);
    let id = fields.string("id", own);
    if let Some(Err(error)) = id.map(check_id) {
        let message = format!("the rule's id, which its items are named after: {error}");
        own.push(Problem::new(Code::BadRule, &fields.at("id"), message));
    }
    draft.id = id.map(str::to_owned);
    if let Some(when) = fields.required("when", own) {
        draft.when = read_when(when, fields.at("when"), own);
    }
    fields.required("create", own)
}

/// Reads `when`, which is absent in the draft only if it is no object.
fn read_when(value: &Value, at: JsonPath, own: &mut Problems) -> Option<When> {
    let fields = Fields::of(value, at, &["present", "absent", "if", "atMost"], own)?;
    let present = read_documents(&fields, "present", own);
    let absent = read_documents(&fields, "absent", own);
    let list = fields.list("if", own).unwrap_or_default();
    let conditions: Vec<Condition> = list
        .iter()
        .enumerate()
        .filter_map(|(index, value)| read_condition(value, fields.at("if").index(index), own))
        .collect();
    let never: BTreeSet<&FilePath> = absent.iter().collect();
    let mut needed = present.iter().chain(conditions.iter().map(|condition| &condition.document));
    if let Some(name) = needed.find(|name| never.contains(name)) {
        let message = format!("the document {name:?} can never be both absent and there");
        own.push(Problem::new(Code::BadRule, &fields.at("absent"), message));
    }
    let at_most = fields.integer("atMost", &(1..=MAX_CREATED), own).unwrap_or(1);
    Some(When { present, absent, conditions, at_most })
}

fn read_documents(fields: &Fields<'_>, key: &str, own: &mut Problems) -> Vec<FilePath> {
    let list = fields.list(key, own).unwrap_or_default();
    let at = fields.at(key);
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, value) in list.iter().enumerate() {
        let at = at.index(index);
        let Some(name) = read_document(value, &at, own) else { continue };
        if !seen.insert(name.clone()) {
            own.push(Problem::new(Code::BadRule, &at, format!("the document {name:?} stands here twice")));
        }
        names.push(name);
    }
    names
}

fn read_document(value: &Value, at: &JsonPath, own: &mut Problems) -> Option<FilePath> {
    let name = FilePath::parse_document(string(value, at, own)?);
    name.map_err(|error| own.push(Problem::new(Code::BadRule, at, format!("the document's name: {error}")))).ok()
}

fn read_condition(value: &Value, at: JsonPath, own: &mut Problems) -> Option<Condition> {
    let fields = Fields::of(value, at, &["document", "pointer", "op", "value"], own)?;
    let document = fields.required("document", own);
    let document = document.and_then(|name| read_document(name, &fields.at("document"), own));
    let pointer = fields.required("pointer", own);
    let pointer = pointer.and_then(|pointer| string(pointer, &fields.at("pointer"), own));
    if pointer.is_some_and(|pointer| !is_pointer(pointer)) {
        let message = "a JSON pointer is empty or begins with `/`, and `~` stands only in `~0` and `~1`";
        own.push(Problem::new(Code::BadRule, &fields.at("pointer"), message));
    }
    fields.required("op", own);
    let op = fields.string("op", own).and_then(|text| read_op(text, &fields, own));
    let literal = fields.required("value", own);
    if let Some(literal) = literal {
        let wrong = match op {
            _ if literal.is_array() || literal.is_object() => Some("a string, a number, true, false or null"),
            Some(op) if op.is_of_numbers() && !literal.is_number() => Some("a number, as this operator compares"),
            _ => None,
        };
        own.extend(wrong.map(|wanted| crate::model::read::wrong_type(&fields.at("value"), wanted, literal)));
    }
    Some(Condition { document: document?, pointer: pointer?.to_owned(), op: op?, value: literal?.clone() })
}

fn read_op(text: &str, fields: &Fields<'_>, own: &mut Problems) -> Option<Op> {
    let op = Op::ALL.into_iter().find(|op| op.as_str() == text);
    if op.is_none() {
        let known = Op::ALL.map(Op::as_str).join(" ");
        let message = format!("there is no operator {text:?}; there are {known}");
        own.push(Problem::new(Code::BadRule, &fields.at("op"), message));
    }
    op
}

fn is_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    escapes && (text.is_empty() || text.starts_with('/'))
}
