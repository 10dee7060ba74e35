//! Parses the fields of a packet, and collects faults.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Claims, FACT_FIELDS, FIELDS, Fault, MAX_LIST, Packet, Passage};
use crate::model::json::JsonPath;
use crate::model::printable::is_invisible;
use crate::model::read::wrong_type;

/// Fields that mark the token as used or revoked if `true`.
const CONSUMED_FLAGS: [&str; 6] = [
    "consumed",
    "resume_token_consumed",
    "token_consumed",
    "invalidated",
    "resume_token_invalidated",
    "token_invalidated",
];
/// Fields that mark it if not empty.
const CONSUMED_MOMENTS: [&str; 6] = [
    "consumed_at",
    "resume_token_consumed_at",
    "token_consumed_at",
    "invalidated_at",
    "resume_token_invalidated_at",
    "token_invalidated_at",
];
/// Fields that mark it if they have one of [`CONSUMED_WORDS`].
const CONSUMED_STATUSES: [&str; 4] = ["resume_token_status", "resume_token_state", "token_status", "status"];
/// Status words for a used or revoked token.
const CONSUMED_WORDS: [&str; 7] = ["consumed", "used", "spent", "invalidated", "invalid", "revoked", "expired"];

/// Lists that may quote others.
const QUOTING: [&str; 4] = ["completed", "unresolved", "assumptions", "risks"];
/// Suffixes of other fields that may quote others.
const QUOTING_WORDS: [&str; 28] = [
    "context",
    "detail",
    "details",
    "diff",
    "error",
    "errors",
    "evidence",
    "excerpt",
    "excerpts",
    "history",
    "log",
    "logs",
    "message",
    "messages",
    "note",
    "notes",
    "observation",
    "observations",
    "output",
    "outputs",
    "quotation",
    "quotations",
    "quote",
    "quotes",
    "stderr",
    "stdout",
    "trace",
    "transcript",
];

/// The maximum length of a text's path, in bytes.
const LONGEST_PATH: usize = 256;

/// Parses the fields of a packet; if all are empty, returns the fault of each.
pub fn read_fields(map: &Map<String, Value>) -> Result<Packet, String> {
    let packet = fields(map);
    if FIELDS.iter().any(|field| map.get(*field).is_some_and(holds_something)) {
        return Ok(packet);
    }
    let faults = packet.faults.iter().filter(|fault| FIELDS.contains(&fault.field.as_str()));
    Err(faults.map(|fault| format!("{} {}", fault.field, fault.what)).collect::<Vec<_>>().join("; "))
}

fn fields(map: &Map<String, Value>) -> Packet {
    let mut faults = Vec::new();
    let mut reader = Reader { map, faults: &mut faults };
    let mut packet = Packet {
        objective: reader.text("objective"),
        completed: reader.list("completed"),
        unresolved: reader.list("unresolved"),
        assumptions: reader.list("assumptions"),
        next_action: reader.text("next_action"),
        risks: reader.list("risks"),
        updated_at: reader.text("updated_at"),
        resume_token: reader.text("resume_token"),
        claims: reader.claims(),
        ..Packet::default()
    };
    let known = |key: &&String| {
        let known = [&CONSUMED_FLAGS[..], &CONSUMED_MOMENTS, &CONSUMED_STATUSES, &FIELDS, &FACT_FIELDS];
        known.iter().any(|names| names.contains(&key.as_str()))
    };
    packet.unknown = map.keys().filter(|key| !known(key)).cloned().collect();
    packet.faults = faults;
    packet
}

struct Reader<'a> {
    map: &'a Map<String, Value>,
    faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, field: &str, what: impl Into<String>) {
        self.faults.push(Fault { field: field.into(), what: what.into() });
    }

    fn wrong(&mut self, field: &str, expected: &str, found: &Value) {
        let problem = wrong_type(&JsonPath::root(), expected, found);
        self.fault(field, problem.message);
    }

    fn text(&mut self, field: &str) -> Option<String> {
        match self.map.get(field) {
            None => self.fault(field, "is missing"),
            Some(value) if is_empty(value) => self.fault(field, "is empty"),
            Some(Value::String(text)) => return Some(text.clone()),
            Some(other) => self.wrong(field, "a string", other),
        }
        None
    }

    fn list(&mut self, field: &str) -> Vec<String> {
        match self.map.get(field) {
            None => self.fault(field, "is missing"),
            Some(value) if is_empty(value) => self.fault(field, "is empty"),
            Some(Value::Array(list)) => return self.entries(field, list),
            Some(other) => self.wrong(field, "a list of strings", other),
        }
        Vec::new()
    }

    fn entries(&mut self, field: &str, list: &[Value]) -> Vec<String> {
        if list.len() > MAX_LIST {
            self.fault(field, format!("has {} entries, more than {MAX_LIST}", list.len()));
        }
        let mut entries = Vec::new();
        for (at, value) in list.iter().take(MAX_LIST).enumerate() {
            match value {
                value if is_empty(value) => self.fault(&format!("{field}[{at}]"), "is empty"),
                Value::String(text) => entries.push(text.clone()),
                other => self.wrong(&format!("{field}[{at}]"), "a string", other),
            }
        }
        entries
    }

    fn claims(&mut self) -> Claims {
        let items = self.read_mapping("items", "id", "status").map(|items| {
            items.into_iter().map(|(item, status)| (item, status.unwrap_or_else(|| "done".into()))).collect()
        });
        let documents = self.read_mapping("documents", "name", "sha256");
        Claims { branch: self.branch(), commits: self.commits(), run: self.run(), items, documents }
    }

    /// Parses the branch; tools write nothing or null for a detached `HEAD`.
    fn branch(&mut self) -> Option<String> {
        match self.map.get("branch").filter(|value| !is_empty(value))? {
            Value::String(branch) => Some(branch.clone()),
            other => {
                self.wrong("branch", "the name of a branch", other);
                None
            }
        }
    }

    fn commits(&mut self) -> Option<Vec<String>> {
        match self.map.get("commits")? {
            Value::Array(list) => Some(self.entries("commits", list)),
            other => {
                self.wrong("commits", "a list of commit ids", other);
                Some(Vec::new())
            }
        }
    }

    fn run(&mut self) -> Option<String> {
        match self.map.get("run")? {
            Value::String(run) => Some(run.clone()),
            other => {
                self.wrong("run", "a run's id", other);
                Some(String::new())
            }
        }
    }

    /// Parses named things with optional details: a list of names or objects, or one object.
    fn read_mapping(&mut self, field: &str, name: &str, value_key: &str) -> Option<BTreeMap<String, Option<String>>> {
        let mut entries = BTreeMap::new();
        match self.map.get(field)? {
            Value::Object(map) => {
                for (key, value) in map.iter().take(MAX_LIST) {
                    let text = value.as_str().map(str::to_owned);
                    if text.is_none() && !value.is_null() {
                        self.wrong(&format!("{field}.{key}"), "a string", value);
                    }
                    entries.insert(key.clone(), text);
                }
            }
            Value::Array(list) => {
                if list.len() > MAX_LIST {
                    self.fault(field, format!("has {} entries, more than {MAX_LIST}", list.len()));
                }
                for (at, value) in list.iter().take(MAX_LIST).enumerate() {
                    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
                    match value.as_str().map(str::to_owned) {
                        Some(plain) => drop(entries.insert(plain, None)),
                        None => match text(name) {
                            Some(key) => drop(entries.insert(key, text(value_key))),
                            None => self.wrong(&format!("{field}[{at}]"), "a name", value),
                        },
                    }
                }
            }
            other => self.wrong(field, "a list of names", other),
        }
        Some(entries)
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c)),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if a value is not empty.
fn holds_something(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(|element| !is_empty(element)),
        other => !is_empty(other),
    }
}

/// Returns the field that marks the token as used, at the top or one level below.
pub fn consumed(map: &Map<String, Value>) -> Option<String> {
    let inner = map.iter().filter_map(|(key, value)| Some((format!("{key}."), value.as_object()?)));
    let mut maps = std::iter::once((String::new(), map)).chain(inner);
    maps.find_map(|(before, fields)| {
        let found = fields.iter().find(|(key, value)| says_consumed(key, value))?;
        Some(format!("{before}{}", found.0))
    })
}

/// Returns true if a field with this name can mark the token as used.
pub fn says_consumption(key: &str) -> bool {
    CONSUMED_FLAGS.contains(&key) || CONSUMED_MOMENTS.contains(&key) || CONSUMED_STATUSES[..3].contains(&key)
}

fn says_consumed(key: &str, value: &Value) -> bool {
    let word = || value.as_str().map(|word| word.trim().to_lowercase());
    if CONSUMED_FLAGS.contains(&key) {
        return value == &Value::Bool(true)
            || word().is_some_and(|word| word == "true")
            || word().is_some_and(|word| word == "yes");
    }
    if CONSUMED_MOMENTS.contains(&key) {
        return !is_empty(value) && value != &Value::Bool(false);
    }
    CONSUMED_STATUSES.contains(&key) && word().is_some_and(|word| CONSUMED_WORDS.contains(&word.as_str()))
}

/// Returns true if a field with this name may quote: a list of ours, or by its last word (`ciLog`,
/// `build_output`).
pub fn may_quote(key: &str) -> bool {
    let mut parts = key.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    let last = parts.next_back().unwrap_or_default();
    let word = &last[last.rfind(char::is_uppercase).unwrap_or(0)..];
    QUOTING.contains(&key)
        || QUOTING_WORDS.contains(&word.to_lowercase().as_str())
        || QUOTING_WORDS.contains(&last.to_lowercase().as_str())
}

/// Returns every string and object key of a value, with paths.
pub fn passages(value: &Value) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut open = vec![(JsonPath::root(), value, false)];
    while let Some((path, current, quotes)) = open.pop() {
        let pointer = path.to_string();
        // Limits paths, because many deep strings would need unbounded memory.
        let below = |next: JsonPath| if pointer.len() > LONGEST_PATH { path.clone() } else { next };
        match current {
            Value::String(text) => found.push(Passage { quotes, ..Passage::new(&pointer, text.clone()) }),
            Value::Array(list) => {
                open.extend(
                    list.iter().enumerate().rev().map(|(at, element)| (below(path.index(at)), element, quotes)),
                );
            }
            Value::Object(map) => {
                let place = if pointer.is_empty() { "the packet" } else { &pointer };
                found.extend(
                    map.keys()
                        .filter(|key| !FIELDS.contains(&key.as_str()) && !FACT_FIELDS.contains(&key.as_str()))
                        .map(|key| Passage::new(&format!("a key of {place}"), key.clone())),
                );
                open.extend(map.iter().rev().map(|(key, field)| (below(path.key(key)), field, may_quote(key))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}
