//! Finds values in a large JSON document without holding it in memory.
//!
//! Numbers are kept as text, so that any length can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use crate::model::printable::beginning;

/// The maximum length of a quoted document, key and pointer, in bytes. Messages are sealed, so they
/// quote only enough to recognise invalid JSON, such as `-Infinity`.
const MAX_QUOTED: usize = 12;
const MAX_KEY: usize = 40;
const MAX_POINTER: usize = 200;

/// A found value.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A number, as written.
    Number(String),
    /// Any other value, without the contents of arrays and objects.
    Other(Value),
}

/// Returns the value at each JSON pointer, or the reason and place why the document cannot be
/// parsed.
///
/// The document must be JSON in UTF-8 without duplicate keys and lone surrogates. Only the keys of
/// the objects around a place are held in memory.
pub fn look(bytes: &[u8], pointers: &[&str]) -> Result<Vec<Option<Found>>, String> {
    let mut spots = Spot::default();
    for (at, pointer) in pointers.iter().enumerate() {
        spots.add(at, pointer);
    }
    let mut scan = Scan { bytes, at: 0, steps: Vec::new(), found: vec![None; pointers.len()] };
    let read = scan.value(Some(&spots)).and_then(|()| scan.end());
    match read {
        Ok(()) => Ok(scan.found),
        Err(why) => Err(scan.place(&why)),
    }
}

/// A place in the document, with requested places below it.
#[derive(Default)]
struct Spot {
    below: BTreeMap<String, Spot>,
    /// The indices of the pointers to this place.
    indices: Vec<usize>,
}

impl Spot {
    fn add(&mut self, at: usize, pointer: &str) {
        let mut place = self;
        // The first part is the empty text before the first slash.
        for (depth, token) in pointer.split('/').skip(1).enumerate() {
            // No parsable document is this deep.
            if depth > MAX_DEPTH {
                return;
            }
            place = place.below.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
        }
        place.indices.push(at);
    }
}

/// A walk over the text of a document.
struct Scan<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The path of the present value.
    steps: Vec<String>,
    found: Vec<Option<Found>>,
}

impl Scan<'_> {
    /// Reads a value, and records it if requested.
    fn value(&mut self, place: Option<&Spot>) -> Result<(), String> {
        self.space();
        let is_wanted = place.is_some_and(|place| !place.indices.is_empty());
        let found = match self.peek() {
            Some(b'{') => self.object(place).map(|()| Found::Other(Value::Object(Map::new())))?,
            Some(b'[') => self.array(place).map(|()| Found::Other(Value::Array(Vec::new())))?,
            Some(b'"') => Found::Other(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => {
                let text = self.number()?;
                Found::Number(if is_wanted { text.to_owned() } else { String::new() })
            }
            _ => Found::Other(self.word()?),
        };
        for at in place.iter().flat_map(|place| &place.indices) {
            self.found[*at] = Some(found.clone());
        }
        Ok(())
    }

    fn object(&mut self, place: Option<&Spot>) -> Result<(), String> {
        let mut keys = BTreeSet::new();
        self.open()?;
        let mut more = !self.passes(b'}');
        while more {
            self.space();
            let key = if self.peek() == Some(b'"') { self.string()? } else { return Err(self.unexpected()) };
            if keys.contains(&key) {
                return Err(format!("the key {} stands there twice", Value::from(beginning(&key, MAX_KEY))));
            }
            self.steps.push(key);
            if !self.passes(b':') {
                return Err(self.unexpected());
            }
            self.value(place.and_then(|place| self.steps.last().and_then(|name| place.below.get(name))))?;
            keys.extend(self.steps.pop());
            more = self.goes_on(b'}')?;
        }
        Ok(())
    }

    fn array(&mut self, place: Option<&Spot>) -> Result<(), String> {
        let below = place.filter(|place| !place.below.is_empty());
        self.open()?;
        let mut more = !self.passes(b']');
        let mut index = 0_usize;
        while more {
            self.steps.push(index.to_string());
            self.value(below.and_then(|parent| self.steps.last().and_then(|step| parent.below.get(step))))?;
            self.steps.pop();
            index += 1;
            more = self.goes_on(b']')?;
        }
        Ok(())
    }

    /// Reads an opening bracket.
    fn open(&mut self) -> Result<(), String> {
        self.at += 1;
        let is_too_deep = self.steps.len() >= MAX_DEPTH;
        if is_too_deep { Err(format!("more than {MAX_DEPTH} arrays and objects in one another")) } else { Ok(()) }
    }

    /// Reads a comma, and returns true, or a closing bracket.
    fn goes_on(&mut self, end: u8) -> Result<bool, String> {
        if self.passes(b',') {
            return Ok(true);
        }
        if self.passes(end) { Ok(false) } else { Err(self.unexpected()) }
    }

    /// Reads a string.
    fn string(&mut self) -> Result<String, String> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err("the document ends within a text".to_owned()),
            }
        }
        self.at += 1;
        let read = serde_json::from_slice(&self.bytes[begin..self.at]);
        read.map_err(|_| {
            self.at = begin;
            "a text that is no JSON in UTF-8".to_owned()
        })
    }

    /// Reads a number.
    fn number(&mut self) -> Result<&str, String> {
        let begin = self.at;
        let is_one = self.is_number();
        if !is_one || self.peek().is_some_and(is_of_word) {
            self.at = begin;
            return Err(self.unexpected());
        }
        std::str::from_utf8(&self.bytes[begin..self.at]).map_err(|error| error.to_string())
    }

    /// Reads a number as far as it is valid; returns false if a part is missing.
    fn is_number(&mut self) -> bool {
        self.at += usize::from(self.peek() == Some(b'-'));
        let leads_with_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut is_one = whole == 1 || whole > 1 && !leads_with_zero;
        if self.peek() == Some(b'.') {
            self.at += 1;
            is_one &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            is_one &= self.digits() > 0;
        }
        is_one
    }

    /// Reads digits; returns their number.
    fn digits(&mut self) -> usize {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - begin
    }

    /// Reads `null`, `true` or `false`.
    fn word(&mut self) -> Result<Value, String> {
        let value = match self.quoted() {
            b"null" => Value::Null,
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            _ => return Err(self.unexpected()),
        };
        self.at += self.quoted().len();
        Ok(value)
    }

    /// Requires the end of the document.
    fn end(&mut self) -> Result<(), String> {
        self.space();
        if self.at < self.bytes.len() { Err(self.unexpected()) } else { Ok(()) }
    }

    /// Creates the error for unexpected text.
    fn unexpected(&self) -> String {
        let quoted = match (self.quoted(), self.bytes.get(self.at..)) {
            (_, None | Some([])) => return "the document ends too early".to_owned(),
            ([], Some(rest)) => String::from_utf8_lossy(&rest[..rest.len().min(4)]).chars().take(1).collect(),
            (word, _) => beginning(&String::from_utf8_lossy(word), MAX_QUOTED),
        };
        format!("{} is not JSON", Value::from(quoted))
    }

    /// Returns the word or number at this position.
    fn quoted(&self) -> &[u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_of_word(**byte)).count();
        &rest[..length]
    }

    /// Adds the place to a message.
    fn place(&self, why: &str) -> String {
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        if self.steps.is_empty() {
            return format!("{why}, on line {line}");
        }
        let pointer: String =
            self.steps.iter().flat_map(|step| ["/".to_owned(), step.replace('~', "~0").replace('/', "~1")]).collect();
        format!("{why}, at {}, on line {line}", beginning(&pointer, MAX_POINTER))
    }

    fn passes(&mut self, byte: u8) -> bool {
        self.space();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// Returns true for bytes of words and numbers.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}
