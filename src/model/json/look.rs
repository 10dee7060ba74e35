//! Looks into JSON without holding it: finds the values at some places of a document that may be large.
//!
//! Numbers are kept as they are written, so that none is too long to be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use crate::model::printable::beginning;

/// The most bytes that a message quotes of a document, of a key, and of a pointer. Messages are sealed,
/// so they quote as little of a text that is no JSON as tells what it is, such as `-Infinity`.
const MAX_QUOTED: usize = 12;
const MAX_KEY: usize = 40;
const MAX_POINTER: usize = 200;

/// A value that stands at a place that was looked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// A number, as it is written.
    Number(String),
    /// Any other value; an array or object is given without its contents.
    Other(Value),
}

/// Returns the value at each JSON pointer, or what keeps the document from being read, and where.
///
/// The document is JSON in UTF-8 without duplicate keys and lone surrogates. Only the keys of the
/// objects around a place are held in memory.
pub(crate) fn look(bytes: &[u8], pointers: &[&str]) -> Result<Vec<Option<Found>>, String> {
    let mut wanted = Spot::default();
    for (at, pointer) in pointers.iter().enumerate() {
        wanted.add(at, pointer);
    }
    let mut scan = Scan { bytes, at: 0, steps: Vec::new(), found: vec![None; pointers.len()] };
    let read = scan.value(Some(&wanted)).and_then(|()| scan.end());
    match read {
        Ok(()) => Ok(scan.found),
        Err(why) => Err(scan.place(&why)),
    }
}

/// A place in the document, with the places below it that are looked for.
#[derive(Default)]
struct Spot {
    below: BTreeMap<String, Spot>,
    /// The indices of the pointers that lead here.
    wanted: Vec<usize>,
}

impl Spot {
    fn add(&mut self, at: usize, pointer: &str) {
        let mut place = self;
        // The first piece is the empty text before the first slash.
        for (depth, token) in pointer.split('/').skip(1).enumerate() {
            // No document that can be read is as deep.
            if depth > MAX_DEPTH {
                return;
            }
            place = place.below.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
        }
        place.wanted.push(at);
    }
}

/// A walk over the text of a document.
struct Scan<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The keys and indices that lead to the value that is read.
    steps: Vec<String>,
    found: Vec<Option<Found>>,
}

impl Scan<'_> {
    /// Reads the value here, and notes it if its place is looked for.
    fn value(&mut self, place: Option<&Spot>) -> Result<(), String> {
        self.space();
        let is_wanted = place.is_some_and(|place| !place.wanted.is_empty());
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
        for at in place.iter().flat_map(|place| &place.wanted) {
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
            self.value(place.and_then(|place| self.steps.last().and_then(|key| place.below.get(key))))?;
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
            self.value(below.and_then(|place| self.steps.last().and_then(|index| place.below.get(index))))?;
            self.steps.pop();
            index += 1;
            more = self.goes_on(b']')?;
        }
        Ok(())
    }

    /// Passes the bracket of an array or object.
    fn open(&mut self) -> Result<(), String> {
        self.at += 1;
        let is_too_deep = self.steps.len() >= MAX_DEPTH;
        if is_too_deep { Err(format!("more than {MAX_DEPTH} arrays and objects in one another")) } else { Ok(()) }
    }

    /// Passes the comma after a member, and returns true, or the bracket that ends them all.
    fn goes_on(&mut self, end: u8) -> Result<bool, String> {
        if self.passes(b',') {
            return Ok(true);
        }
        if self.passes(end) { Ok(false) } else { Err(self.unexpected()) }
    }

    /// Reads a string, which begins here.
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

    /// Reads a number, which begins here.
    fn number(&mut self) -> Result<&str, String> {
        let begin = self.at;
        let is_one = self.is_number();
        if !is_one || self.peek().is_some_and(is_of_word) {
            self.at = begin;
            return Err(self.unexpected());
        }
        std::str::from_utf8(&self.bytes[begin..self.at]).map_err(|error| error.to_string())
    }

    /// Passes a number as far as it is one; returns false if a part is missing.
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

    /// Passes digits, and returns how many.
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

    /// Makes sure that nothing follows.
    fn end(&mut self) -> Result<(), String> {
        self.space();
        if self.at < self.bytes.len() { Err(self.unexpected()) } else { Ok(()) }
    }

    /// Says what stands here where it must not.
    fn unexpected(&self) -> String {
        let quoted = match (self.quoted(), self.bytes.get(self.at..)) {
            (_, None | Some([])) => return "the document ends too early".to_owned(),
            ([], Some(rest)) => String::from_utf8_lossy(&rest[..rest.len().min(4)]).chars().take(1).collect(),
            (word, _) => beginning(&String::from_utf8_lossy(word), MAX_QUOTED),
        };
        format!("{} is not JSON", Value::from(quoted))
    }

    /// Returns the word or number that begins here, as far as its letters and digits go.
    fn quoted(&self) -> &[u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_of_word(**byte)).count();
        &rest[..length]
    }

    /// Adds to a message where it happened.
    fn place(&self, why: &str) -> String {
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        if self.steps.is_empty() {
            return format!("{why}, on line {line}");
        }
        let escaped = |step: &String| step.replace('~', "~0").replace('/', "~1");
        let pointer: String = self.steps.iter().flat_map(|step| ["/".to_owned(), escaped(step)]).collect();
        format!("{why}, at {}, on line {line}", beginning(&pointer, MAX_POINTER))
    }

    fn passes(&mut self, wanted: u8) -> bool {
        self.space();
        let is_there = self.peek() == Some(wanted);
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

/// Returns true if words and numbers have this byte.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Looks for one value and says in short what it is.
    fn at(text: &str, pointer: &str) -> Result<Option<Found>, String> {
        look(text.as_bytes(), &[pointer]).map(|found| found[0].clone())
    }

    #[test]
    fn a_value_is_found_beside_numbers_of_any_length() {
        let text = r#" {"id": 917204512345678901, "huge": -1e400, "list": [0.1000000000000000000001, {"a/b": "x"}], "score": 0.90} "#;
        let number = |text: &str| Ok(Some(Found::Number(text.to_owned())));
        assert_eq!(at(text, "/score"), number("0.90"));
        assert_eq!(at(text, "/id"), number("917204512345678901"));
        assert_eq!(at(text, "/huge"), number("-1e400"));
        assert_eq!(at(text, "/list/0"), number("0.1000000000000000000001"));
        assert_eq!(at(text, "/list/1/a~1b"), Ok(Some(Found::Other(json!("x")))));
        assert_eq!(at(text, "/list"), Ok(Some(Found::Other(json!([])))));
        assert_eq!(at(text, ""), Ok(Some(Found::Other(json!({})))));
        for nothing in ["/none", "/list/2", "/list/00", "/score/0", "/list/1/a/b"] {
            assert_eq!(at(text, nothing), Ok(None), "{nothing}");
        }
        assert_eq!(at("[null, true, false]", "/1"), Ok(Some(Found::Other(json!(true)))));
    }

    #[test]
    fn what_is_no_json_is_named_with_its_place() {
        for (text, why) in [
            ("", "the document ends too early, on line 1"),
            ("fine", "\"fine\" is not JSON, on line 1"),
            ("{\"a\":\n {\"b/c\": NaN}}", "\"NaN\" is not JSON, at /a/b~1c, on line 2"),
            ("[1, -Infinity]", "\"-Infinity\" is not JSON, at /1, on line 1"),
            ("[01]", "\"01\" is not JSON, at /0, on line 1"),
            ("[1.]", "\"1.\" is not JSON, at /0, on line 1"),
            ("[+1]", "\"+1\" is not JSON, at /0, on line 1"),
            ("[1e]", "\"1e\" is not JSON, at /0, on line 1"),
            ("[0x10]", "\"0x10\" is not JSON, at /0, on line 1"),
            ("[1 2]", "\"2\" is not JSON, on line 1"),
            ("[1,]", "\"]\" is not JSON, at /1, on line 1"),
            ("{\"a\" 1}", "\"1\" is not JSON, at /a, on line 1"),
            ("{a: 1}", "\"a\" is not JSON, on line 1"),
            ("{} {}", "\"{\" is not JSON, on line 1"),
            ("[\"a", "the document ends within a text, at /0, on line 1"),
            ("[\"\\ud800\"]", "a text that is no JSON in UTF-8, at /0, on line 1"),
            ("{\"o\": {\"a\": 1, \"b\": 2, \"a\": 3}}", "the key \"a\" stands there twice, at /o, on line 1"),
        ] {
            assert_eq!(at(text, "/x"), Err(why.to_owned()), "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(at(&nested(127), "/x"), Ok(None));
        assert!(at(&nested(128), "/x").is_err_and(|why| why.starts_with("more than 127 arrays and objects")));
        assert!(at("[\"\u{e4}\"]", "/0").is_ok());
        assert!(look(b"[\"\xff\"]", &["/0"]).is_err());
    }

    proptest! {
        /// Whatever `parse` takes is read, and so is the rest, but for its numbers, as `serde_json` reads it.
        #[test]
        fn it_reads_what_others_read(text in "[\\[\\]{}:,\" a0-9.eE+-]{0,12}|[\\[{](\"[ab]\":|[1,\\]\\}] ?){1,6}") {
            let found = look(text.as_bytes(), &[""]);
            if super::super::parse(text.as_bytes()).is_ok() {
                prop_assert!(found.is_ok(), "{:?}", found);
            }
            if found.is_ok() {
                let read = serde_json::from_str::<Box<serde::de::IgnoredAny>>(&text);
                prop_assert!(read.is_ok(), "{}", text);
            }
        }
    }
}
