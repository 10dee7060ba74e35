//! Writes variables as text, because JSON has no other bytes.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::{Deserialize as _, Deserializer, Serializer, ser};

pub(super) fn serialize<S: Serializer>(all: &BTreeMap<String, OsString>, to: S) -> Result<S::Ok, S::Error> {
    let all: BTreeMap<&String, String> = all
        .iter()
        .map(|(name, value)| match value.to_str() {
            Some(value) => Ok((name, value.to_owned())),
            None => Err(ser::Error::custom(format!("the variable {name} is not UTF-8"))),
        })
        .collect::<Result<_, S::Error>>()?;
    to.collect_map(all)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, OsString>, D::Error> {
    let all = BTreeMap::<String, String>::deserialize(from)?;
    Ok(all.into_iter().map(|(name, value)| (name, value.into())).collect())
}
