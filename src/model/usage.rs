//! The tokens and the price of a worker's model, as the worker reports them.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::words::as_text;

/// The number of decimal places of a price.
const PLACES: usize = 9;

/// The parts of a dollar that a price counts.
const PARTS: u128 = 1_000_000_000;

/// The most dollars of one price, exclusive.
const MOST: u128 = 1_000_000_000;

/// The use of one attempt, or of several together. Nothing verifies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(extend("minProperties" = 1)))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// The tokens that its models read, including those from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The tokens that its models wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The tokens of the input that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
}

impl Usage {
    /// Returns true if it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Sum for Usage {
    /// Adds each number over the parts that know it. Tokens beyond 2^64−1 stay there.
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        fn add<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(both(one, other)),
                (one, other) => one.or(other),
            }
        }
        parts.fold(Self::default(), |all, part| Self {
            input_tokens: add(all.input_tokens, part.input_tokens, u64::saturating_add),
            output_tokens: add(all.output_tokens, part.output_tokens, u64::saturating_add),
            cached_tokens: add(all.cached_tokens, part.cached_tokens, u64::saturating_add),
            cost_usd: add(all.cost_usd, part.cost_usd, |one, other| Dollars(one.0.saturating_add(other.0))),
        })
    }
}

/// A price in US dollars, exact to 10^-9 dollars.
///
/// Its text is a decimal number without superfluous zeros, such as `0.03115`, `12` or `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u128);

as_text!(Dollars);

impl Dollars {
    /// Rounds a number of dollars. Returns `None` if it is negative, no number, or 10^9 or more.
    pub fn rounded(dollars: f64) -> Option<Self> {
        let dollars = Some(dollars).filter(|dollars| dollars.is_finite() && *dollars >= 0.0)?.abs();
        // Through text, which is exact; a cast to an integer is not.
        let text = format!("{dollars:.PLACES$}");
        let (whole, parts) = text.split_once('.')?;
        let all = whole.parse::<u128>().ok()?.checked_mul(PARTS)?.checked_add(parts.parse().ok()?)?;
        (all < MOST * PARTS).then_some(Self(all))
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PARTS, self.0 % PARTS);
        let parts = format!("{parts:0PLACES$}");
        match parts.trim_end_matches('0') {
            "" => write!(out, "{whole}"),
            parts => write!(out, "{whole}.{parts}"),
        }
    }
}

impl FromStr for Dollars {
    type Err = NoPrice;

    fn from_str(text: &str) -> Result<Self, NoPrice> {
        let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
        if !is_number(whole) || !is_number(&format!("{parts}0")) || parts.len() > PLACES || whole.len() > PLACES {
            return Err(NoPrice(text.chars().take(40).collect()));
        }
        let all = format!("{whole}{parts:0<PLACES$}")
            .parse()
            .map(Self)
            .map_err(|_| NoPrice(text.chars().take(40).collect()))?;
        // One price has one text.
        if all.to_string() == text { Ok(all) } else { Err(NoPrice(text.chars().take(40).collect())) }
    }
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A text is no price.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no price in dollars: it has at most 9 digits before and after the point, and no superfluous zeros")]
pub struct NoPrice(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_one_text() {
        for text in ["0", "0.03115", "12", "999999999.999999999", "0.000000001", "1.1"] {
            assert_eq!(text.parse::<Dollars>().unwrap().to_string(), text);
        }
        for text in [
            "",
            ".",
            ".5",
            "5.",
            "0.10",
            "00",
            "01",
            "1.0",
            "-1",
            "+1",
            "1e3",
            "0.0000000001",
            "1000000000",
            " 1",
            "1,5",
        ] {
            assert!(text.parse::<Dollars>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_float_is_rounded_to_a_price() {
        for (float, text) in
            [(0.031_149_999_999_999_994, "0.03115"), (0.0, "0"), (-0.0, "0"), (1e-12, "0"), (2.5, "2.5")]
        {
            assert_eq!(Dollars::rounded(float).unwrap().to_string(), text);
        }
        for float in [-0.1, f64::NAN, f64::INFINITY, 1e9, 1e300] {
            assert_eq!(Dollars::rounded(float), None, "{float}");
        }
    }

    #[test]
    fn sums_are_exact() {
        let all: Usage = std::iter::repeat_n(price("0.1"), 10).chain([price("0.000000001")]).sum();
        assert_eq!(all.cost_usd.unwrap().to_string(), "1.000000001");
        let tokens = Usage { input_tokens: Some((1 << 53) - 1), ..Usage::default() };
        assert_eq!([tokens; 3].into_iter().sum::<Usage>().input_tokens, Some(3 * ((1 << 53) - 1)));
        assert!([Usage::default(); 2].into_iter().sum::<Usage>().is_empty());
    }

    fn price(text: &str) -> Usage {
        Usage { cost_usd: Some(text.parse().unwrap()), ..Usage::default() }
    }
}
