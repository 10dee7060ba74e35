//! Natural order: `map-2` before `map-10`. Pure.

use std::cmp::Ordering;

/// Compares two names, with runs of digits as numbers.
pub fn compare(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one, other);
    loop {
        let (left, right) = (Part::take(&mut a), Part::take(&mut b));
        match (left, right) {
            // Orders names that differ only in leading zeros.
            (None, None) => return one.cmp(other),
            (left, right) => match left.cmp(&right) {
                Ordering::Equal => {}
                different => return different,
            },
        }
    }
}

/// A part of a name: a number, or other letters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'n> {
    /// Digits without leading zeros; more digits mean a larger number.
    Number(usize, &'n str),
    Letters(&'n str),
}

impl<'n> Part<'n> {
    /// Splits off the first part of a name, or returns `None` if it is empty.
    fn take(name: &mut &'n str) -> Option<Self> {
        let is_number = name.starts_with(|c: char| c.is_ascii_digit());
        let end = name.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(name.len());
        let (part, rest) = name.split_at(end);
        *name = rest;
        match (part.is_empty(), is_number) {
            (true, _) => None,
            (false, true) => {
                let digits = part.trim_start_matches('0');
                Some(Self::Number(digits.len(), digits))
            }
            (false, false) => Some(Self::Letters(part)),
        }
    }
}
