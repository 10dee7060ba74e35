//! Strict parsing of JSON that refuses ambiguous input.
//!
//! In addition to RFC 8259, refuses duplicate keys, lone surrogates, invalid UTF-8, infinite
//! numbers, and integers beyond ±(2^53−1). A number's value decides whether it is an integer,
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

/// The largest integer that all JSON readers represent exactly.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The maximum nesting depth, as in `serde_json`.
const MAX_DEPTH: usize = 127;

/// The maximum length of a key in a path, in bytes.
const MAX_SHOWN_KEY: usize = 1024;

/// The weight allowed for any document; see [`most_weight`].
const BASE_WEIGHT: usize = 128 << 20;

/// The additional weight for each byte.
const WEIGHT_PER_BYTE: usize = 8;

/// The weight of a value, the additional weight of a non-empty array or object, and of a key and
/// string besides its bytes.
///
/// Approximately their size in memory.
mod weight {
    pub(super) const VALUE: usize = 32;
    pub(super) const ARRAY: usize = 96;
    pub(super) const OBJECT: usize = 512;
    pub(super) const KEY: usize = 128;
    pub(super) const STRING: usize = 32;
}

/// Returns the maximum weight of a document: two bytes can be an empty value, and eight a non-empty
/// object.
///
/// So memory is proportional to size plus a constant, and small documents are not restricted.
fn most_weight(bytes: usize) -> usize {
    BASE_WEIGHT + WEIGHT_PER_BYTE * bytes
}

/// The path of a value: `items[3].needs["odd key"].from`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonPath(String);

impl JsonPath {
    /// Returns the empty path, for the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the path of a member; bare if the key is a plain ASCII identifier, and truncated if
    /// long.
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

    /// Returns the path of an element.
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

/// Strips a byte order mark.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns true if a text begins with a UTF-16 byte order mark.
pub fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
}

/// Parses a document and refuses ambiguities.
pub fn parse(bytes: &[u8]) -> Result<Value, Problems> {
    let mut problems = Problems::default();
    match read(bytes, &mut problems) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Parses a document for schema validation: integers may have 64 bits.
#[cfg(feature = "core")]
pub(crate) fn parse_all(bytes: &[u8]) -> Result<Value, Problems> {
    let mut problems = Problems::default();
    match read_within(bytes, most_weight(bytes.len()), u64::MAX, &mut problems) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Parses a document without refusing ambiguities; limits its weight.
///
/// For foreign formats, and for data that is then compared with its canonical form.
pub fn lenient(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let state = State::new(Reading::Lenient, most_weight(bytes.len()), Problems::default());
    state.read(bytes)
}

/// Parses a document as far as possible, for further validation.
///
/// `None` comes with a problem. A value with problems has the first of duplicate keys, and `null`
/// for an unsafe number. The depth limit of `serde_json` is 128, so the stack is safe; the weight
/// is limited to 128 MiB and 8 times the size.
pub fn read(bytes: &[u8], problems: &mut Problems) -> Option<Value> {
    read_within(bytes, most_weight(bytes.len()), MAX_SAFE_INTEGER, problems)
}

/// Parses a document up to a weight, with a maximum magnitude of integers.
fn read_within(bytes: &[u8], most: usize, most_integer: u64, problems: &mut Problems) -> Option<Value> {
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

/// Returns true if all readers represent a number exactly: from 2^53 on, every float is an integer.
fn is_safe_float(value: f64) -> bool {
    value.abs() < 9_007_199_254_740_992.0
}

/// The parser's path and problems; after a failure, the path of the failure.
struct State {
    reading: Reading,
    /// The maximum magnitude of an integer.
    most_integer: u64,
    steps: RefCell<Vec<Step>>,
    problems: RefCell<Problems>,
    /// The remaining weight; `None` after exceeding it.
    weight_left: Cell<Option<usize>>,
}

/// Whether ambiguities are problems.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Strict,
    /// Otherwise the last of duplicate keys counts, and numbers are not checked.
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

    /// Adds weight, or fails.
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

    /// Keeps a safe number; reports others.
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
