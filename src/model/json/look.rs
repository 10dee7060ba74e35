//! Looks into JSON without holding it: what stands at some places, of a document that may be large.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::{MAX_DEPTH, MAX_SAFE_INTEGER};

/// Returns what stands at each JSON pointer; none at all of bytes that [`super::parse`] would refuse, whatever they weigh.
///
/// An array or object is given without what is in it. Only the keys of the objects around a place are held in memory.
pub(crate) fn look(bytes: &[u8], pointers: &[&str]) -> Option<Vec<Option<Value>>> {
    let mut wanted = Spot::default();
    for (at, pointer) in pointers.iter().enumerate() {
        wanted.add(at, pointer);
    }
    let mut found = vec![None; pointers.len()];
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let looked = Look { place: Some(&wanted), found: &mut found }.deserialize(&mut reader);
    looked.and_then(|()| reader.end()).ok()?;
    Some(found)
}

/// A place in the document, with those below it that are looked for.
#[derive(Default)]
struct Spot {
    below: BTreeMap<String, Spot>,
    /// Which pointers lead here.
    wanted: Vec<usize>,
}

impl Spot {
    fn add(&mut self, at: usize, pointer: &str) {
        let mut place = self;
        // The first piece is what stands before the first slash: nothing.
        for (depth, token) in pointer.split('/').skip(1).enumerate() {
            // Nothing that can be read is as deep.
            if depth > MAX_DEPTH {
                return;
            }
            place = place.below.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
        }
        place.wanted.push(at);
    }
}

/// Reads one value.
struct Look<'l> {
    /// Where it stands; none where nothing is looked for.
    place: Option<&'l Spot>,
    found: &'l mut [Option<Value>],
}

impl Look<'_> {
    fn is(&mut self, value: &Value) {
        for at in self.place.iter().flat_map(|place| &place.wanted) {
            self.found[*at] = Some(value.clone());
        }
    }

    fn number<E: serde::de::Error>(&mut self, is_safe: bool, number: impl FnOnce() -> Value) -> Result<(), E> {
        if !is_safe {
            return Err(E::custom("an integer beyond ±(2^53−1)"));
        }
        self.is(&number());
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.is(&Value::Null);
        Ok(())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.is(&Value::Bool(value));
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        self.number(value <= MAX_SAFE_INTEGER, || value.into())
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        self.number(value.unsigned_abs() <= MAX_SAFE_INTEGER, || value.into())
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        self.number(super::is_safe_float(value), || Value::Number(number))
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        if self.place.is_some_and(|place| !place.wanted.is_empty()) {
            self.is(&Value::from(value));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.is(&Value::Array(Vec::new()));
        let below = self.place.map(|place| &place.below).filter(|below| !below.is_empty());
        let mut index = 0_usize;
        while elements
            .next_element_seed(Look {
                place: below.and_then(|below| below.get(&index.to_string())),
                found: &mut *self.found,
            })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.is(&Value::Object(serde_json::Map::new()));
        let mut keys = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            let place = self.place.and_then(|place| place.below.get(&key));
            members.next_value_seed(Look { place, found: &mut *self.found })?;
            if !keys.insert(key) {
                return Err(serde::de::Error::custom("a key stands here twice"));
            }
        }
        Ok(())
    }
}
