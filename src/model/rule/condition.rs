//! A condition on what a document says. Pure.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::{Check, MAX_CONDITION_BYTES, Stop};
use crate::model::json::{self, Found};
use crate::model::name::FilePath;

/// A condition on one value of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The document, which is JSON.
    pub document: FilePath,
    /// Where in it the value is: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// How it is compared.
    pub op: Op,
    /// What it is compared with.
    pub value: Value,
}

/// How a value is compared with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`, of two numbers.
    Less,
    /// `<=`, of two numbers.
    LessOrEqual,
    /// `==`, of any two values; numbers by value.
    Equal,
    /// `!=`: not `==`.
    NotEqual,
    /// `>=`, of two numbers.
    GreaterOrEqual,
    /// `>`, of two numbers.
    Greater,
}

/// Holds a document's bytes, or `None` if it is too large to be looked into, against conditions on it.
pub(crate) fn checks(bytes: Option<&[u8]>, conditions: &[&Condition]) -> Vec<Check> {
    match look(bytes, conditions) {
        Ok(found) => conditions.iter().zip(found).map(|(condition, found)| condition.check(found.as_ref())).collect(),
        Err(why) => {
            let unfit = |condition: &&Condition| {
                Check::or_stop(false, format!("{condition}: {} {why}", condition.document), Stop::Unfit)
            };
            conditions.iter().map(unfit).collect()
        }
    }
}

/// Finds the values that conditions ask for in a document's bytes, or says why they cannot be read.
fn look(bytes: Option<&[u8]>, conditions: &[&Condition]) -> Result<Vec<Option<Found>>, String> {
    let bytes = bytes.ok_or_else(|| format!("has more than {MAX_CONDITION_BYTES} bytes"))?;
    let pointers: Vec<&str> = conditions.iter().map(|condition| condition.pointer.as_str()).collect();
    json::look(bytes, &pointers).map_err(|why| format!("is not plain JSON: {why}"))
}

impl Condition {
    /// Holds what stands at its pointer against the condition.
    fn check(&self, found: Option<&Found>) -> Check {
        let Some(value) = found else {
            return Check::or_short(false, format!("{self}: there is nothing at {:?}", self.pointer));
        };
        let held = self.op.holds(value, &self.value);
        let note = if held.is_none() { ", and no number" } else { "" };
        // Another number may come with another revision; what is no number was not meant to be compared.
        let stop = if held.is_none() { Stop::Unfit } else { Stop::No };
        Check::or_stop(held == Some(true), format!("{self}: it is {}{note}", shown(value)), stop)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {} {}", self.document, self.pointer, self.op, self.value)
    }
}

impl Op {
    /// Every operator.
    pub const ALL: [Self; 6] =
        [Self::Less, Self::LessOrEqual, Self::Equal, Self::NotEqual, Self::GreaterOrEqual, Self::Greater];

    /// Returns the operator as rules write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
        }
    }

    /// Returns whether it compares numbers only.
    pub fn is_of_numbers(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Compares, numbers by their exact value; returns `None` if two numbers are needed and there are not two.
    fn holds(self, value: &Found, literal: &Value) -> Option<bool> {
        let order = match (value, literal) {
            // A literal is written as the shortest decimal number that stands for its double.
            (Found::Number(number), Value::Number(literal)) => Some(json::compare(number, &literal.to_string())),
            _ => None,
        };
        let equal = match value {
            Found::Number(_) => order == Some(Ordering::Equal),
            Found::Other(value) => value == literal,
        };
        match self {
            Self::Equal => Some(equal),
            Self::NotEqual => Some(!equal),
            _ => order.map(|order| self.compare(order)),
        }
    }

    /// Returns whether it is true of two values that stand in this order.
    pub(super) fn compare(self, order: Ordering) -> bool {
        match self {
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::GreaterOrEqual => order != Ordering::Less,
            Self::Greater => order == Ordering::Greater,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns a value as it is quoted to people: scalars as they are, up to a length.
fn shown(value: &Found) -> String {
    const MOST: usize = 80;
    let text = match value {
        Found::Other(Value::Array(_)) => "an array".to_owned(),
        Found::Other(Value::Object(_)) => "an object".to_owned(),
        Found::Other(scalar) => scalar.to_string(),
        Found::Number(number) => number.clone(),
    };
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
