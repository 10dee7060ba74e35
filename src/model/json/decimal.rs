//! Compares JSON numbers exactly, with any number of digits.

use std::cmp::Ordering;

/// A parsed number.
struct Decimal<'t> {
    is_negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    /// The number of leading zeros.
    zeros: usize,
    /// The position of the decimal point, from the first non-zero digit.
    point: i64,
}

/// Compares two JSON numbers, such as `917204512345678901` and `0.8`.
///
/// The order is exact if one of them has an exponent below 2^62 in magnitude, as every double has.
pub fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Decimal::read(one), Decimal::read(other));
    match one.sign().cmp(&other.sign()) {
        Ordering::Equal if one.is_negative => other.compare_magnitude(&one),
        Ordering::Equal => one.compare_magnitude(&other),
        order => order,
    }
}

impl<'t> Decimal<'t> {
    fn read(text: &'t str) -> Self {
        let digits = text.strip_prefix('-');
        let (digits, exponent) = split(digits.unwrap_or(text), &['e', 'E']);
        let (whole, fraction) = split(digits, &['.']);
        let (whole, fraction) = (whole.as_bytes(), fraction.as_bytes());
        let zeros = whole.iter().chain(fraction).take_while(|digit| **digit == b'0').count();
        let places = i64::try_from(whole.len()).unwrap_or(i64::MAX) - i64::try_from(zeros).unwrap_or(i64::MAX);
        let point = read_exponent(exponent).saturating_add(places);
        Self { is_negative: text.starts_with('-'), whole, fraction, zeros, point }
    }

    /// Returns the digits from the first non-zero one.
    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied().skip(self.zeros)
    }

    fn sign(&self) -> i8 {
        match (self.digits().next(), self.is_negative) {
            (None, _) => 0,
            (Some(_), true) => -1,
            (Some(_), false) => 1,
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let most = (self.whole.len() + self.fraction.len() - self.zeros)
            .max(other.whole.len() + other.fraction.len() - other.zeros);
        match (self.sign(), other.sign()) {
            (0, 0) => Ordering::Equal,
            _ => self.point.cmp(&other.point).then_with(|| {
                Self::digits(self)
                    .chain(std::iter::repeat(b'0'))
                    .take(most)
                    .cmp(Self::digits(other).chain(std::iter::repeat(b'0')).take(most))
            }),
        }
    }
}

/// Splits a text at the first of some characters, which is omitted.
fn split<'t>(text: &'t str, marks: &[char]) -> (&'t str, &'t str) {
    text.split_once(marks).unwrap_or((text, ""))
}

/// Parses an exponent; limits it to 2^62.
fn read_exponent(text: &str) -> i64 {
    const MOST: i64 = 1 << 62;
    let digits = text.trim_start_matches(['+', '-']);
    let magnitude = digits
        .bytes()
        .fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit.wrapping_sub(b'0'))).min(MOST));
    if text.starts_with('-') { -magnitude } else { magnitude }
}
