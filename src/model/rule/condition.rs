//! Conditions on values in documents. Pure.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::values::Values;
use super::{Check, Stop};
use crate::model::json::{self, Found};
use crate::model::name::FilePath;
use crate::model::words::words;

/// A condition on one value of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The JSON document.
    pub document: FilePath,
    /// The JSON pointer of the value (RFC 6901).
    pub pointer: String,
    /// The operator.
    pub op: Op,
    /// The literal.
    pub value: Value,
}

words! {
    as_str
    /// A comparison operator.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Op {
        /// `<`, for numbers.
        Less = "<",
        /// `<=`, for numbers.
        LessOrEqual = "<=",
        /// `==`, for any values; numbers by value.
        Equal = "==",
        /// `!=`, for any values.
        NotEqual = "!=",
        /// `>=`, for numbers.
        GreaterOrEqual = ">=",
        /// `>`, for numbers.
        Greater = ">",
    }
}

impl Condition {
    /// Evaluates a condition on the values of its document.
    pub(crate) fn check(&self, values: &Values) -> Check {
        let value = match values.at(&self.pointer) {
            Err(why) => {
                return Check::or_stop(false, format!("{self}: {} {why}", self.document), Stop::Unfit);
            }
            Ok(None) => {
                return Check::or_short(false, format!("{self}: there is nothing at {:?}", self.pointer));
            }
            Ok(Some(value)) => value,
        };
        let result = self.op.holds(value, &self.value);
        let note = if result.is_none() { ", and no number" } else { "" };
        // A later revision may have another number; a non-number was not meant to be compared.
        let stop = if result.is_none() { Stop::Unfit } else { Stop::No };
        Check::or_stop(result == Some(true), format!("{self}: it is {}{note}", describe_value(value)), stop)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {} {}", self.document, self.pointer, self.op, self.value)
    }
}

impl Op {
    /// Returns true if it compares numbers only.
    pub fn is_of_numbers(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Compares two values, numbers exactly; returns `None` if numbers are required and missing.
    fn holds(self, value: &Found, literal: &Value) -> Option<bool> {
        let order = match (value, literal) {
            // A literal is the shortest decimal form of its double.
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

    /// Returns true if it holds for an ordering.
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

/// Formats a value for messages, truncated.
fn describe_value(value: &Found) -> String {
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
