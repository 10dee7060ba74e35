//! Parses JSON objects by field, and reports every problem with its path.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;

use crate::model::json::JsonPath;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;

/// The fields of one object.
///
/// Typed getters return `None` for an absent or wrong field; the latter is reported.
pub(crate) struct Fields<'v> {
    map: &'v Map<String, Value>,
    at: JsonPath,
}

impl<'v> Fields<'v> {
    /// Parses an object; reports another type and unknown fields.
    pub(crate) fn read(value: &'v Value, at: JsonPath, known: &[&str], problems: &mut Problems) -> Option<Self> {
        let Value::Object(map) = value else {
            problems.push_with(|| wrong_type(&at, "an object", value));
            return None;
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            if !problems.keeps_more() {
                problems.count_more(1);
                continue;
            }
            let message = format!("there is no field {key:?} here");
            let problem = Problem::new(Code::UnknownField, &at.key(key), message);
            problems.push_near(problem, key, known.iter().copied());
        }
        Some(Self { map, at })
    }

    /// Parses an object with any keys.
    pub(crate) fn open(map: &'v Map<String, Value>, at: JsonPath) -> Self {
        Self { map, at }
    }

    /// Returns the raw fields.
    pub(crate) fn map(&self) -> &'v Map<String, Value> {
        self.map
    }

    /// Returns the path of a field.
    pub(crate) fn at(&self, key: &str) -> JsonPath {
        self.at.key(key)
    }

    /// Returns a raw field.
    pub(crate) fn get(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key)
    }

    /// Returns a raw field; reports its absence.
    pub(crate) fn required(&self, key: &str, problems: &mut Problems) -> Option<&'v Value> {
        let value = self.get(key);
        if value.is_none() {
            problems
                .push_with(|| Problem::new(Code::MissingField, &self.at(key), format!("the field `{key}` is missing")));
        }
        value
    }

    /// Returns a string, possibly empty.
    pub(crate) fn string(&self, key: &str, problems: &mut Problems) -> Option<&'v str> {
        string(self.get(key)?, &self.at(key), problems)
    }

    /// Returns a non-empty string.
    pub(crate) fn text(&self, key: &str, problems: &mut Problems) -> Option<&'v str> {
        text(self.get(key)?, &self.at(key), problems)
    }

    /// Returns an array.
    pub(crate) fn list(&self, key: &str, problems: &mut Problems) -> Option<&'v [Value]> {
        let value = self.get(key)?;
        if value.as_array().is_none() {
            problems.push_with(|| wrong_type(&self.at(key), "an array", value));
        }
        value.as_array().map(Vec::as_slice)
    }

    /// Returns an object.
    pub(crate) fn object(&self, key: &str, problems: &mut Problems) -> Option<&'v Map<String, Value>> {
        let value = self.get(key)?;
        if value.as_object().is_none() {
            problems.push_with(|| wrong_type(&self.at(key), "an object", value));
        }
        value.as_object()
    }

    /// Returns a boolean.
    pub(crate) fn boolean(&self, key: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.get(key)?;
        if value.as_bool().is_none() {
            problems.push(wrong_type(&self.at(key), "true or false", value));
        }
        value.as_bool()
    }

    /// Returns an integer within a range.
    pub(crate) fn integer(&self, key: &str, range: &RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let value = self.get(key)?;
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("an integer from {} to {}", range.start(), range.end());
            problems.push(wrong_type(&self.at(key), &expected, value));
        }
        number
    }
}

/// Parses a string.
pub(crate) fn string<'v>(value: &'v Value, at: &JsonPath, problems: &mut Problems) -> Option<&'v str> {
    if value.as_str().is_none() {
        problems.push_with(|| wrong_type(at, "a string", value));
    }
    value.as_str()
}

/// Parses a non-empty string.
pub(crate) fn text<'v>(value: &'v Value, at: &JsonPath, problems: &mut Problems) -> Option<&'v str> {
    let text = string(value, at, problems)?;
    if text.is_empty() {
        let message = "expected a string that is not empty";
        problems.push(Problem::new(Code::WrongType, at, message));
        return None;
    }
    Some(text)
}

/// Creates the problem for a wrong type.
pub(crate) fn wrong_type(at: &JsonPath, expected: &str, found: &Value) -> Problem {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    let message = format!("expected {expected}, found {found}");
    Problem::new(Code::WrongType, at, message)
}
