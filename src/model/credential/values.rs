//! Finds given secret values in their various forms.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use base64ct::{Base64Unpadded, Base64UrlUnpadded, Encoding as _};
use regex::bytes::{Regex, RegexBuilder};

/// The minimum length of a value, because short ones occur everywhere.
const SHORTEST: usize = 4;

/// The minimum number of base64 characters of a partial match.
const SHORTEST_BASE64: usize = 6;

/// The maximum length of a value to search in other forms.
const LONGEST_ENCODED: usize = 16 << 10;

/// Secret values to find: literally, in base64 at any offset, in hexadecimal, and escaped as in
/// URLs, forms and JSON.
#[derive(Clone, Debug, Default)]
pub struct Values {
    pattern: Option<Regex>,
    longest: usize,
}

impl Values {
    /// Creates a search for values; each line of a multi-line value is a value.
    pub fn new(values: &[Vec<u8>]) -> Self {
        let lines = values.iter().flat_map(|value| value.split(|byte| matches!(byte, b'\n' | b'\r')));
        let mut lines: Vec<&[u8]> = lines.filter(|line| line.len() >= SHORTEST).collect();
        // If one value is a prefix of another, finds the longer one.
        lines.sort_by_key(|line| (std::cmp::Reverse(line.len()), *line));
        lines.dedup();
        let longest = lines.first().map_or(0, |line| line.len());
        let forms: Vec<String> = lines.iter().flat_map(|line| forms(line)).collect();
        let pattern = (!forms.is_empty()).then(|| {
            let pattern = format!("(?-u:{})", forms.join("|"));
            let mut builder = RegexBuilder::new(&pattern);
            builder.size_limit(usize::MAX).build().expect("escaped bytes are a pattern")
        });
        Self { pattern, longest }
    }

    /// Returns the length of the longest form in bytes.
    pub fn longest(&self) -> usize {
        // An escaped byte in JSON has six.
        if self.longest > LONGEST_ENCODED { self.longest } else { 6 * self.longest }
    }

    /// Finds the values in a text.
    pub fn find<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        self.pattern.iter().flat_map(move |pattern| pattern.find_iter(text).map(|found| found.range()))
    }
}

/// Returns patterns for the forms of one value.
fn forms(value: &[u8]) -> Vec<String> {
    if value.len() > LONGEST_ENCODED {
        return vec![value.iter().fold(String::new(), |pattern, byte| pattern + &literal(*byte))];
    }
    let hex = value.iter().map(|byte| format!("(?i:{byte:02x})")).collect::<Vec<_>>().join("(?:[ :]|\\\\x)?");
    let mut forms = vec![escaped(value), hex];
    forms.extend(base64(value));
    forms
}

/// Returns a pattern for the value with any characters escaped.
fn escaped(value: &[u8]) -> String {
    let mut pattern = String::new();
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            let raw: String = bytes.iter().map(|byte| literal(*byte)).collect();
            let percent = bytes.iter().map(|byte| format!("%(?i:{byte:02x})")).collect::<Vec<_>>().concat();
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            let json = units.map(|unit| format!("\\\\+u(?i:{unit:04x})")).collect::<Vec<_>>().concat();
            let _ = write!(pattern, "(?:{raw}|{percent}|{json}");
            match c {
                ' ' => pattern.push_str("|\\+"),
                '"' | '/' | '\\' | '\'' => _ = write!(pattern, "|\\\\+{raw}"),
                '\t' => pattern.push_str("|\\\\+t"),
                _ => {}
            }
            pattern.push(')');
        }
        for byte in chunk.invalid() {
            let _ = write!(pattern, "(?:{}|%(?i:{byte:02x}))", literal(*byte));
        }
    }
    pattern
}

/// Returns patterns for the value in base64: for each of the three offsets, the characters
/// independent of their neighbours, and adjacent ones with some of its bits.
fn base64(value: &[u8]) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value);
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for (encoded, any) in [
            (Base64Unpadded::encode_string(&bytes), "[A-Za-z0-9+/]"),
            (Base64UrlUnpadded::encode_string(&bytes), "[A-Za-z0-9_-]"),
        ] {
            let stable = &encoded[from..to];
            let first = if before > 0 { format!("{any}?") } else { String::new() };
            let last = if bytes.len() * 8 % 6 > 0 { format!("{any}?") } else { String::new() };
            if stable.len() >= SHORTEST_BASE64 {
                forms.insert(format!("{first}{}{last}={{0,2}}", text(stable)));
            } else if before == 0 {
                // A short value is found only by itself.
                forms.insert(format!("{}={{0,2}}", text(&encoded)));
            }
        }
    }
    forms
}

fn text(text: &str) -> String {
    text.bytes().map(literal).collect()
}

/// Returns a pattern that matches exactly this byte.
fn literal(byte: u8) -> String {
    format!(r"\x{byte:02x}")
}
