//! Parses the conditions of a rule.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{bad, item_id};
use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, string, wrong_type};
use crate::model::rule::{Became, Condition, ItemCondition, Of, Op, Quantity, When};

/// The maximum number of items that a rule may create.
const MAX_CREATED: u64 = 10_000;

/// The maximum number of conditions on items of a rule, and of items in one, because a verifier
/// evaluates all of them in every round.
const MAX_CONDITIONS: usize = 20;
const MAX_NAMED: usize = 1_000;

/// Parses `when`; absent in the draft only if it is not an object.
pub(super) fn read_when(value: &Value, at: JsonPath, own: &mut Problems) -> Option<When> {
    let fields = Fields::read(value, at, &["present", "absent", "if", "items", "atMost"], own)?;
    let present = read_documents(&fields, "present", own);
    let absent = read_documents(&fields, "absent", own);
    let list = fields.list("if", own).unwrap_or_default();
    let conditions: Vec<Condition> = list
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| read_condition(entry, fields.at("if").index(index), own))
        .collect();
    let never: BTreeSet<&FilePath> = absent.iter().collect();
    let mut needed = present.iter().chain(conditions.iter().map(|condition| &condition.document));
    if let Some(name) = needed.find(|name| never.contains(name)) {
        let message = format!("the document {name:?} can never be both absent and there");
        own.push(Problem::new(Code::BadRule, &fields.at("absent"), message));
    }
    let at_most = fields.integer("atMost", &(1..=MAX_CREATED), own).unwrap_or(1);
    let conditions_read = fields.list("items", own).unwrap_or_default();
    if conditions_read.len() > MAX_CONDITIONS {
        let message = format!("{} conditions on items; at most {MAX_CONDITIONS} are read", conditions_read.len());
        return bad(&fields.at("items"), &message, own);
    }
    let items = conditions_read.iter().enumerate();
    let items =
        items.filter_map(|(index, entry)| read_item_condition(entry, fields.at("items").index(index), own)).collect();
    Some(When { present, absent, conditions, items, at_most })
}

/// Parses a condition on items.
fn read_item_condition(value: &Value, at: JsonPath, own: &mut Problems) -> Option<ItemCondition> {
    let fields = Fields::read(value, at, &["items", "createdBy", "are", "have", "count", "op", "value"], own)?;
    let many = fields.get("items").and_then(Value::as_array).is_some_and(|list| list.len() > MAX_NAMED);
    if many {
        return bad(&fields.at("items"), &format!("a condition names at most {MAX_NAMED} items"), own);
    }
    let of = match (fields.list("items", own), fields.string("createdBy", own)) {
        (Some(list), None) if !list.is_empty() => Of::Items(read_ids(list, &fields.at("items"), own)?),
        (None, Some(rule)) => Of::CreatedBy(item_id(rule, &fields.at("createdBy"), own)?),
        _ => {
            return bad(
                &fields.at("items"),
                "either `items`, which is a list of ids, or `createdBy`, which is a rule",
                own,
            );
        }
    };
    let quantity = match (fields.get("are"), fields.get("have"), fields.get("count")) {
        (Some(words), None, None) => Quantity::Are(read_words(words, &fields.at("are"), own)?),
        (None, Some(path), None) => {
            let path = FilePath::parse(string(path, &fields.at("have"), own)?);
            Quantity::Have(path.map_err(|error| bad::<()>(&fields.at("have"), &error.to_string(), own)).ok()?)
        }
        (None, None, Some(Value::String(what))) if what == "outputs" => Quantity::Outputs,
        (None, None, Some(Value::String(what))) if what == "attempts" => Quantity::Attempts,
        (None, None, Some(Value::String(what))) if what == "rounds" && matches!(of, Of::CreatedBy(_)) => {
            Quantity::Rounds
        }
        _ => {
            let expected = "one of `are`, which is what became of them, `have`, which is an output, and `count`, which is \
                 \"outputs\", \"attempts\" or, of a rule, \"rounds\"";
            return bad(&fields.at("are"), expected, own);
        }
    };
    let op = fields.string("op", own).map(|text| read_op(text, &fields, own));
    let number = fields.integer("value", &(0..=u64::from(u32::MAX)), own);
    let compared = match (op, number) {
        (None, None) => None,
        (Some(op), Some(number)) => Some((op?, number)),
        _ => return bad(&fields.at("op"), "`op` and `value` come together", own),
    };
    if compared.is_none() && matches!(quantity, Quantity::Outputs | Quantity::Attempts | Quantity::Rounds) {
        return bad(&fields.at("op"), "what is counted is compared with something: `op` and `value`", own);
    }
    Some(ItemCondition { of, quantity, compared })
}

fn read_ids(list: &[Value], at: &JsonPath, own: &mut Problems) -> Option<Vec<ItemId>> {
    let ids = list.iter().enumerate().map(|(index, value)| {
        let at = at.index(index);
        item_id(string(value, &at, own)?, &at, own)
    });
    ids.collect()
}

/// Parses one or several status words.
fn read_words(value: &Value, at: &JsonPath, own: &mut Problems) -> Option<Vec<Became>> {
    let words = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let known = Became::ALL.map(Became::as_str).join(" ");
    let read: Option<Vec<Became>> =
        words.iter().map(|word| Became::ALL.into_iter().find(|state| *word == state.as_str())).collect();
    match read {
        Some(ids) if !ids.is_empty() => Some(ids),
        _ => bad(at, &format!("what became of items is said by some of these words: {known}"), own),
    }
}

fn read_documents(fields: &Fields<'_>, key: &str, own: &mut Problems) -> Vec<FilePath> {
    let list = fields.list(key, own).unwrap_or_default();
    let at = fields.at(key);
    let (mut names, mut distinct) = (Vec::new(), BTreeSet::new());
    for (index, value) in list.iter().enumerate() {
        let at = at.index(index);
        let Some(name) = read_document(value, &at, own) else { continue };
        if !distinct.insert(name.clone()) {
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
    let fields = Fields::read(value, at, &["document", "pointer", "op", "value"], own)?;
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
        own.extend(wrong.map(|expected| wrong_type(&fields.at("value"), expected, literal)));
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
