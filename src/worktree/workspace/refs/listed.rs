//! Writes refs as a list, and reads them back with the digests that follow from it.

use std::collections::BTreeMap;

use gix::bstr::{BString, ByteSlice as _};
use gix::refs::{FullName, Target};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{HEADER, Refs};
use crate::model::digest::Oid;

/// The start of the content of a symbolic ref.
const SYMBOLIC: &str = "ref: ";

/// Refs as plain data.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// The branch of `HEAD`, which may have no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The lines of `packed-refs` after its header.
    packed: Vec<String>,
    /// The target of each symbolic ref.
    symbolic: BTreeMap<String, String>,
}

impl Serialize for Refs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |bytes: &[u8]| match bytes.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(ser::Error::custom(format!("the ref {:?} is not UTF-8", bytes.as_bstr()))),
        };
        let symbolic = self.0.symbolic.iter().map(|(name, bytes)| {
            let target = bytes.strip_prefix(SYMBOLIC.as_bytes()).unwrap_or(bytes).trim_end();
            Ok((name.clone(), text(target)?))
        });
        let listed = Listed {
            head: self.0.head.as_ref().map(|name| text(name)).transpose()?,
            packed: self.0.packed[HEADER.len()..].lines().map(text).collect::<Result<_, S::Error>>()?,
            symbolic: symbolic.collect::<Result<_, S::Error>>()?,
        };
        listed.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Refs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let listed = Listed::deserialize(deserializer)?;
        let bad = |line: &str| de::Error::custom(format!("{line:?} is not a ref"));
        let full = |name: &str| FullName::try_from(name).map_err(|_| bad(name));
        let mut found: BTreeMap<BString, (Target, Option<Oid>)> = BTreeMap::new();
        let mut last = None;
        for line in &listed.packed {
            if let Some(peeled) = line.strip_prefix('^') {
                let (_, to) = last.as_ref().and_then(|name| found.get_mut(name)).ok_or_else(|| bad(line))?;
                *to = Some(peeled.parse().map_err(|_| bad(line))?);
                continue;
            }
            let (id, name) = line.split_once(' ').ok_or_else(|| bad(line))?;
            let id: Oid = id.parse().map_err(|_| bad(line))?;
            let name = full(name)?.into_inner();
            last = Some(name.clone());
            found.insert(name, (Target::Object(id.0), None));
        }
        for (name, target) in &listed.symbolic {
            found.insert(full(name)?.into_inner(), (Target::Symbolic(full(target)?), None));
        }
        Ok(Self::new(&found, listed.head.map(|head| full(&head)).transpose()?.map(FullName::into_inner)))
    }
}
