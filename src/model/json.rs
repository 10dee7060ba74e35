//! Strict reading of JSON that people wrote: what two readers could understand differently is refused.
//!
//! Beyond RFC 8259 that is: duplicate keys, lone surrogates, invalid UTF-8, numbers that are not
//! finite, and integers beyond ±(2^53−1). A number is an integer by its value, not by its spelling,
//! because canonical JSON (RFC 8785) does not keep the spelling: `1e20` is refused as well.

pub mod changes;
mod decimal;
mod locate;
mod look;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write as _};

use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;

pub use decimal::compare;
pub(crate) use locate::locate;
pub use look::{Found, look};

/// The largest integer that every reader of JSON holds exactly.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The most arrays and objects in one another, with which `serde_json` reads a value.
const MAX_DEPTH: usize = 127;

/// The longest key that a path shows whole, in bytes; so a path stays short whatever it leads to.
const MAX_SHOWN_KEY: usize = 1024;

/// The weight that a document may have whatever its size; see [`most_weight`].
const BASE_WEIGHT: usize = 128 << 20;

/// The weight that it may have for each of its bytes.
const WEIGHT_PER_BYTE: usize = 8;

/// What a value weighs, an array or object that is not empty besides, and a key and a string besides their bytes.
///
/// It is about what they take in memory.
mod weight {
    pub(super) const VALUE: usize = 32;
    pub(super) const ARRAY: usize = 96;
    pub(super) const OBJECT: usize = 512;
    pub(super) const KEY: usize = 128;
    pub(super) const STRING: usize = 32;
}

/// The most that a document of so many bytes may weigh: two bytes can be an empty value, and eight an object with something in it.
///
/// So what is read takes memory in proportion to its bytes, but for a constant, and small documents may hold what they like.
fn most_weight(bytes: usize) -> usize {
    BASE_WEIGHT + WEIGHT_PER_BYTE * bytes
}

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

/// Returns the bytes of a file that a person wrote without the mark of byte order that some editors put first.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns true if a text begins with the mark of byte order of UTF-16.
pub fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
}

/// Reads one JSON document and refuses all that is ambiguous.
pub fn parse(bytes: &[u8]) -> Result<Value, Problems> {
    let mut problems = Problems::default();
    match read(bytes, &mut problems) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Reads one JSON document to check its values against a schema: integers may have 64 bits.
#[cfg(feature = "full")]
pub(crate) fn parse_all(bytes: &[u8]) -> Result<Value, Problems> {
    let mut problems = Problems::default();
    match read_within(bytes, (most_weight(bytes.len()), u64::MAX), &mut problems) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Reads one JSON document as any reader does, without a word against what is ambiguous; only its weight is bounded.
///
/// For what others define, and for what is held against its canonical form afterwards.
pub fn lenient(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let state = State::new(Reading::Lenient, most_weight(bytes.len()), Problems::default());
    state.read(bytes)
}

/// Reads one JSON document as far as it goes, so that its meaning can be checked as well.
///
/// `None` comes with a problem. A value that comes with problems holds the first of duplicate keys
/// and `null` for an unsafe number. The depth is bounded by `serde_json`'s limit of 128, so neither
/// reading nor dropping can exhaust the stack; what is read weighs at most 128 MiB and 8 times its size.
pub fn read(bytes: &[u8], problems: &mut Problems) -> Option<Value> {
    read_within(bytes, (most_weight(bytes.len()), MAX_SAFE_INTEGER), problems)
}

/// Reads a document that weighs at most `most`, with integers of at most this magnitude.
fn read_within(bytes: &[u8], (most, most_integer): (usize, u64), problems: &mut Problems) -> Option<Value> {
    let state = State { most_integer, ..State::new(Reading::Strict, most, std::mem::take(problems)) };
    let outcome = state.read(bytes);
    *problems = state.problems.take();
    match outcome {
        Ok(value) => Some(value),
        Err(_) if state.weight_left.get().is_none() => {
            let message = format!("its values are too many for {} bytes: they weigh more than {most}", bytes.len());
            problems.push(Problem::new(Code::TooLarge, &JsonPath::root(), message));
            None
        }
        Err(error) => {
            let message = match bytes {
                [] => "the file is empty".to_owned(),
                _ if is_utf16(bytes) => "the file is UTF-16, and JSON is UTF-8".to_owned(),
                _ => format!("not valid JSON: {error}"),
            };
            problems.push(Problem::new(Code::NotJson, &state.path(), message));
            None
        }
    }
}

/// Returns whether a number's value is one that every reader holds: from 2^53 on, every float is an integer.
fn is_safe_float(value: f64) -> bool {
    value.abs() < 9_007_199_254_740_992.0
}

/// Where the reader is, and what it met; a failed read leaves the steps at the place of the failure.
struct State {
    reading: Reading,
    /// The largest magnitude of an integer that is no problem.
    most_integer: u64,
    steps: RefCell<Vec<Step>>,
    problems: RefCell<Problems>,
    /// What the rest may weigh; none once there was too much.
    weight_left: Cell<Option<usize>>,
}

/// Whether what is ambiguous is a problem.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Strict,
    /// Of duplicate keys the last counts, and numbers are taken as they are.
    Lenient,
}

enum Step {
    Key(String),
    Index(usize),
}

impl State {
    fn new(reading: Reading, most: usize, problems: Problems) -> Self {
        let (steps, problems) = (RefCell::new(Vec::new()), RefCell::new(problems));
        Self { reading, most_integer: MAX_SAFE_INTEGER, steps, problems, weight_left: Cell::new(Some(most)) }
    }

    fn read(&self, bytes: &[u8]) -> Result<Value, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let value = Seed(self).deserialize(&mut reader)?;
        reader.end().map(|()| value)
    }

    fn path(&self) -> JsonPath {
        let steps = self.steps.borrow();
        steps.iter().fold(JsonPath::root(), |path, step| match step {
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        })
    }

    /// Takes in something of that weight, or fails.
    fn weigh<E: serde::de::Error>(&self, weight: usize) -> Result<(), E> {
        let left = self.weight_left.get().and_then(|left| left.checked_sub(weight));
        self.weight_left.set(left);
        left.map(drop).ok_or_else(|| E::custom("its values are too many for its bytes"))
    }

    fn report(&self, code: Code, message: impl FnOnce() -> String) {
        self.problems.borrow_mut().push_with(|| Problem::new(code, &self.path(), message()));
    }

    fn enter(&self, step: Step) {
        self.steps.borrow_mut().push(step);
    }

    fn leave(&self) {
        self.steps.borrow_mut().pop();
    }

    /// Keeps a number whose value is safe; reports any other.
    fn safe(&self, magnitude_is_safe: bool, text: &dyn fmt::Display, number: Value) -> Value {
        if magnitude_is_safe || self.reading == Reading::Lenient {
            return number;
        }
        self.report(Code::NotJson, || {
            format!("the integer {text} is beyond ±(2^53−1), so readers would disagree about it")
        });
        Value::Null
    }
}

#[derive(Clone, Copy)]
struct Seed<'s>(&'s State);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.0.weigh(weight::VALUE)?;
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
        Ok(self.0.safe(value <= self.0.most_integer, &value, value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        let safe = value.unsigned_abs() <= self.0.most_integer;
        Ok(self.0.safe(safe, &value, value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(self.0.safe(is_safe_float(value), &value, Value::Number(number)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.weigh(weight::STRING + value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.0.weigh(weight::STRING + value.len())?;
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
            if list.is_empty() {
                self.0.weigh(weight::ARRAY)?;
            }
            list.push(value);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.0.weigh(weight::KEY + key.len() + if map.is_empty() { weight::OBJECT } else { 0 })?;
            self.0.enter(Step::Key(key.clone()));
            let value = members.next_value_seed(self)?;
            if self.0.reading == Reading::Strict && map.contains_key(&key) {
                self.0
                    .report(Code::DuplicateKey, || format!("the key {} stands here twice", Value::from(key.as_str())));
            } else {
                map.insert(key, value);
            }
            self.0.leave();
        }
        Ok(Value::Object(map))
    }
}
