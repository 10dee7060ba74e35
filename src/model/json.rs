//! Strict reading of JSON that people wrote: what two readers could understand differently is refused.
//!
//! Beyond RFC 8259 that is: duplicate keys, lone surrogates, invalid UTF-8, numbers that are not
//! finite, and integers beyond ±(2^53−1). A number is an integer by its value, not by its spelling,
//! because canonical JSON (RFC 8785) does not keep the spelling: `1e20` is refused as well.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt::{self, Write as _};

use crate::model::problem::{Code, Problem};

/// The largest integer that every reader of JSON holds exactly.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The longest key that a path shows whole, in bytes; so a path stays short whatever it leads to.
const MAX_SHOWN_KEY: usize = 1024;

/// How many problems are kept of one document; paths may be long, and nobody reads more.
const MAX_PROBLEMS: usize = 1000;

/// Where a value stands in a JSON document, as people write it: `items[3].needs["odd key"].from`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonPath(String);

impl JsonPath {
    /// The whole document: the empty path.
    pub fn root() -> Self {
        Self::default()
    }

    /// The member `key` of the object here; bare when it is a plain ASCII identifier, and cut when it
    /// is longer than any name.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        if key.len() > MAX_SHOWN_KEY {
            let beginning: String = key.chars().take(MAX_SHOWN_KEY / 8).collect();
            return self.key(&format!("{beginning}…"));
        }
        let mut path = self.0.clone();
        let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !key.starts_with(|first: char| first.is_ascii_digit())
            && !key.is_empty();
        if !plain {
            path.push('[');
            path.push_str(&Value::from(key).to_string());
            path.push(']');
        } else if path.is_empty() {
            path.push_str(key);
        } else {
            path.push('.');
            path.push_str(key);
        }
        Self(path)
    }

    /// The element `index` of the array here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.0.clone();
        write!(path, "[{index}]").expect("writing to a string does not fail");
        Self(path)
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads one JSON document and refuses all that is ambiguous.
pub fn parse(bytes: &[u8]) -> Result<Value, Vec<Problem>> {
    let mut problems = Vec::new();
    match read(bytes, &mut problems) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Reads one JSON document as far as it goes, so that its meaning can be checked as well.
///
/// `None` comes with a problem. A value that comes with problems holds the first of duplicate keys
/// and `null` for an unsafe number. The depth is bounded by `serde_json`'s limit of 128, so neither
/// reading nor dropping can exhaust the stack.
pub fn read(bytes: &[u8], problems: &mut Vec<Problem>) -> Option<Value> {
    let state = State { steps: RefCell::new(Vec::new()), problems: RefCell::new(Vec::new()) };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let outcome = Seed(&state).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    problems.append(&mut state.problems.take());
    match outcome {
        Ok(value) => Some(value),
        Err(error) => {
            let message =
                if bytes.is_empty() { "the file is empty".to_owned() } else { format!("not valid JSON: {error}") };
            problems.push(Problem::new(Code::NotJson, &state.path(), message));
            None
        }
    }
}

/// Where the reader is, and what it met; a failed read leaves the steps at the place of the failure.
struct State {
    steps: RefCell<Vec<Step>>,
    problems: RefCell<Vec<Problem>>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl State {
    fn path(&self) -> JsonPath {
        let steps = self.steps.borrow();
        steps.iter().fold(JsonPath::root(), |path, step| match step {
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        })
    }

    fn report(&self, code: Code, message: String) {
        if self.problems.borrow().len() >= MAX_PROBLEMS {
            return;
        }
        let problem = Problem::new(code, &self.path(), message);
        self.problems.borrow_mut().push(problem);
    }

    fn enter(&self, step: Step) {
        self.steps.borrow_mut().push(step);
    }

    fn leave(&self) {
        self.steps.borrow_mut().pop();
    }

    /// Keeps a number whose value is safe; reports any other.
    fn safe(&self, magnitude_is_safe: bool, text: &dyn fmt::Display, number: Value) -> Value {
        if magnitude_is_safe {
            return number;
        }
        self.report(
            Code::NotJson,
            format!("the integer {text} is beyond ±(2^53−1), so readers would disagree about it"),
        );
        Value::Null
    }
}

#[derive(Clone, Copy)]
struct Seed<'s>(&'s State);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.0.safe(value <= MAX_SAFE_INTEGER, &value, value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        let safe = value.unsigned_abs() <= MAX_SAFE_INTEGER;
        Ok(self.0.safe(safe, &value, value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        // From 2^53 on, every float is an integer.
        let safe = value.abs() < 9_007_199_254_740_992.0;
        Ok(self.0.safe(safe, &value, Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.0.enter(Step::Index(list.len()));
            let Some(value) = elements.next_element_seed(self)? else {
                self.0.leave();
                return Ok(Value::Array(list));
            };
            self.0.leave();
            list.push(value);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.0.enter(Step::Key(key.clone()));
            let value = members.next_value_seed(self)?;
            if map.contains_key(&key) {
                let message = format!("the key {} stands here twice", Value::from(key.as_str()));
                self.0.report(Code::DuplicateKey, message);
            } else {
                map.insert(key, value);
            }
            self.0.leave();
        }
        Ok(Value::Object(map))
    }
}
