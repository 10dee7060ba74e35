//! Maps the names in a note to the fields of a packet.

use serde_json::{Map, Value};

use super::names::{self, Meaning};
use crate::model::packet::{FACT_FIELDS, FIELDS, Form, Renamed, holds_something, says_consumption};
use crate::thread::packet::data::NOTES;

/// The fields that are lists.
const LISTS: [&str; 4] = ["completed", "unresolved", "assumptions", "risks"];

/// The content under one name of a note.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// The name as written.
    pub(super) name: String,
    /// The field it means.
    pub(super) meaning: Option<Meaning>,
    /// The content.
    pub(super) value: Value,
}

impl Said {
    /// Returns the content of an object and of nested objects with several fields.
    pub(super) fn by_keys(map: &Map<String, Value>) -> Vec<Self> {
        let mut said = Vec::new();
        for (key, value) in map {
            said.push(Self { name: key.clone(), meaning: names::of_key(key), value: value.clone() });
        }
        let inner = map.iter().filter_map(|(key, value)| Some((key, value.as_object()?)));
        for (key, inner) in inner.filter(|(key, inner)| names::of_key(key).is_none() && fields_named(inner) >= 2) {
            said.extend(inner.iter().filter(|(name, _)| !map.contains_key(*name)).map(|(name, value)| {
                // A nested name never means the field of that name at the top.
                let meaning = names::of_key(name).map(|meaning| Meaning { rank: meaning.rank + 1, ..meaning });
                Self { name: format!("{key}.{name}"), meaning, value: value.clone() }
            }));
        }
        said
    }

    /// Returns true if this is the field's own name.
    fn is_own(&self, form: Form) -> bool {
        self.meaning.is_some_and(|meaning| {
            meaning.rank == 0 && (form == Form::Markdown || FIELDS.contains(&self.name.as_str()))
        })
    }
}

/// Returns the number of fields that an object names.
pub(super) fn fields_named(map: &Map<String, Value>) -> usize {
    FIELDS
        .iter()
        .filter(|field| map.keys().any(|key| names::of_key(key).is_some_and(|known| known.field == **field)))
        .count()
}

/// The fields of a packet, with their names in the note.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// The fields as a packet has them.
    pub(super) map: Map<String, Value>,
    /// The fields under other names.
    pub(super) renamed: Vec<Renamed>,
    /// Unknown names.
    pub(super) unread: Vec<String>,
}

/// Collects the fields of a packet.
///
/// A field's own name takes precedence. Otherwise a text takes the first of the known names, and a
/// list takes all. An entry marked as open or done goes to the corresponding list.
pub(super) fn collect(said: &[Said], form: Form) -> Fields {
    let mut fields = Fields::default();
    let mut used = vec![false; said.len()];
    let mut moved = Moved::default();
    for field in FIELDS {
        let sources = sources(said, field, form);
        if sources.is_empty() {
            continue;
        }
        let names: Vec<String> = sources.iter().map(|at| said[*at].name.clone()).collect();
        if sources.iter().any(|at| !said[*at].is_own(form)) {
            fields.renamed.push(Renamed { field, from: names });
        }
        sources.iter().for_each(|at| used[*at] = true);
        let values: Vec<&Value> = sources.iter().map(|at| &said[*at].value).collect();
        // In JSON, a field under its own name must have the right type.
        let is_strict = form == Form::Json && said[sources[0]].is_own(form);
        let value = if LISTS.contains(&field) {
            list(field, &values, is_strict, &mut moved)
        } else if is_strict {
            values[0].clone()
        } else {
            text(field, values[0], &mut moved)
        };
        fields.map.insert(field.into(), value);
    }
    moved.settle(&mut fields.map);
    for (said, used) in said.iter().zip(used) {
        if FACT_FIELDS.contains(&said.name.as_str()) {
            fields.map.insert(said.name.clone(), said.value.clone());
        } else if !used && said.name != "status" && !says_consumption(&said.name) {
            fields.unread.push(said.name.clone());
        }
    }
    fields
}

/// Returns the content that a field is read from.
fn sources(said: &[Said], field: &str, form: Form) -> Vec<usize> {
    let named: Vec<(usize, &Said, usize)> = said
        .iter()
        .enumerate()
        .filter_map(|(at, said)| Some((at, said, said.meaning.filter(|meaning| meaning.field == field)?.rank)))
        .collect();
    let own: Vec<usize> = named.iter().filter(|(_, said, _)| said.is_own(form)).map(|(at, ..)| *at).collect();
    if !own.is_empty() {
        return if LISTS.contains(&field) { own } else { own[..1].to_vec() };
    }
    let holding = named.into_iter().filter(|(_, said, _)| holds_something(&said.value));
    if LISTS.contains(&field) {
        return holding.map(|(at, ..)| at).collect();
    }
    // A number or object named `task` is not an objective.
    let texts = holding.filter(|(_, said, _)| says_words(&said.value) || field == "updated_at");
    texts.min_by_key(|(at, _, rank)| (*rank, *at)).map(|(at, ..)| at).into_iter().collect()
}

fn says_words(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(char::is_alphabetic),
        Value::Array(list) => list.iter().any(says_words),
        Value::Object(_) => entry_text(value).is_some(),
        _ => false,
    }
}

/// Entries that belong to another list.
#[derive(Debug, Default)]
struct Moved {
    completed: Vec<Value>,
    unresolved: Vec<Value>,
    /// The steps after the first.
    later: Vec<Value>,
}

impl Moved {
    fn settle(self, map: &mut Map<String, Value>) {
        if !self.completed.is_empty() {
            add(map, "completed", self.completed);
        }
        if !self.unresolved.is_empty() {
            add(map, "unresolved", self.unresolved);
        }
        // They count as open work if none is given.
        if !self.later.is_empty() && !map.get("unresolved").is_some_and(holds_something) {
            map.insert("unresolved".into(), Value::Array(self.later));
        }
    }
}

fn add(map: &mut Map<String, Value>, field: &str, more: Vec<Value>) {
    match map.get_mut(field) {
        Some(Value::Array(list)) => list.extend(more),
        _ => drop(map.insert(field.into(), Value::Array(more))),
    }
}

fn list(field: &str, values: &[&Value], is_strict: bool, moved: &mut Moved) -> Value {
    let mut list = Vec::new();
    for value in values {
        let entries = match value {
            Value::Array(entries) => entries.clone(),
            other if is_strict => return (*other).clone(),
            other if !holds_something(other) => Vec::new(),
            Value::Object(map) if entry_text(value).is_none() => {
                map.iter().map(|(key, value)| pair(key, value).unwrap_or_else(|| value.clone())).collect()
            }
            other => vec![(*other).clone()],
        };
        for entry in entries {
            let text = entry_text(&entry).map_or_else(|| entry.clone(), Value::String);
            match (field, done(&entry)) {
                ("completed", Some(false)) => moved.unresolved.push(text),
                ("unresolved", Some(true)) => moved.completed.push(text),
                _ => list.push(text),
            }
        }
    }
    Value::Array(list)
}

fn text(field: &str, value: &Value, moved: &mut Moved) -> Value {
    match value {
        Value::Array(entries) => {
            let mut open = entries.iter().filter(|entry| done(entry) != Some(true) && holds_something(entry));
            let as_text = |entry: &Value| entry_text(entry).map_or_else(|| entry.clone(), Value::String);
            let first = open.next().map_or(Value::Null, as_text);
            if field == "next_action" {
                moved.later.extend(open.map(as_text));
            }
            first
        }
        other => entry_text(other).map_or_else(|| other.clone(), Value::String),
    }
}

/// Returns the text of an entry that is an object.
fn entry_text(entry: &Value) -> Option<String> {
    let map = entry.as_object()?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let Some(said) = NOTES.section("entry text").iter().find_map(|key| text(key)) else {
        return match map.iter().next().filter(|_| map.len() == 1) {
            Some((key, value)) => pair(key, value)?.as_str().map(str::to_owned),
            None => None,
        };
    };
    let more = NOTES.section("entry details").iter().find_map(|key| text(key)).filter(|more| *more != said);
    Some(more.map_or_else(|| said.to_owned(), |more| format!("{said} ({more})")))
}

fn pair(key: &str, value: &Value) -> Option<Value> {
    value.as_str().map(|text| Value::String(format!("{key}: {text}")))
}

/// Returns whether an entry is marked as done or open.
fn done(entry: &Value) -> Option<bool> {
    let said = ["done", "status", "state", "completed"].iter().find_map(|key| entry.get(key))?;
    match said {
        Value::Bool(done) => Some(*done),
        Value::String(word) => {
            let word = word.trim().to_lowercase();
            Some(NOTES.section("done statuses").contains(&word.as_str())).filter(|_| !word.is_empty())
        }
        _ => None,
    }
}
