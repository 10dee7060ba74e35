//! Schemas of documents: `id@N`, with a whole number as the version.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// The maximum length of a schema's id, in bytes.
const MAX_ID: usize = 128;

/// The highest version.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();

/// A schema with a version: `report@1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The id.
    #[serde(deserialize_with = "read_id")]
    pub id: String,
    /// The version, from 1.
    #[serde(deserialize_with = "read_version")]
    #[cfg_attr(feature = "schemas", schemars(range(min = 1, max = 2_147_483_647)))]
    pub version: u32,
}

/// A wanted schema: `report@1`, or `report` for any version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    id: String,
    version: Option<u32>,
}

impl Schema {
    /// Parses a schema that a person wrote: `report@1`, or `report@1.0.0` and `report@^1` for it.
    pub fn parse_loose(text: &str) -> Result<Self, SchemaError> {
        Self::read(text, loose_version)
    }

    fn read(text: &str, version: fn(&str) -> Option<u32>) -> Result<Self, SchemaError> {
        match Wanted::read(text, version)? {
            Wanted { id, version: Some(version) } => Ok(Self { id, version }),
            Wanted { id, version: None } => Err(SchemaError::form(text, &id, "")),
        }
    }
}

impl Wanted {
    /// Parses a wanted schema that a person wrote: `report`, `report@1`, or `report@1.0.0` and
    /// `report@^1` for it.
    pub fn parse_loose(text: &str) -> Result<Self, SchemaError> {
        Self::read(text, loose_version)
    }

    /// Returns true if a document's schema has this id and, if one is wanted, this version.
    pub fn admits(&self, schema: Option<&Schema>) -> bool {
        schema.is_some_and(|schema| schema.id == self.id && self.version.is_none_or(|it| it == schema.version))
    }

    fn read(text: &str, version: fn(&str) -> Option<u32>) -> Result<Self, SchemaError> {
        let (id, number) = text.split_once('@').map_or((text, None), |(id, number)| (id, Some(number)));
        check_id(id)?;
        Ok(Self {
            id: id.to_owned(),
            version: number
                .map(|number| version(number).ok_or_else(|| SchemaError::form(text, id, number)))
                .transpose()?,
        })
    }
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        Self::read(text, exact_version)
    }
}

impl FromStr for Wanted {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        Self::read(text, exact_version)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.version)
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

/// Parses a version as it is stored: a whole number from 1, without a sign or leading zeros.
fn exact_version(text: &str) -> Option<u32> {
    let is_number = text.starts_with(|c: char| matches!(c, '1'..='9'));
    text.parse().ok().filter(|version| is_number && *version <= MAX_VERSION)
}

/// Parses a version that a person wrote as a semantic version: `^1`, `1.0` or `^1.0.0` is 1.
fn loose_version(text: &str) -> Option<u32> {
    let numbers = text.strip_prefix('^').unwrap_or(text);
    exact_version(numbers.strip_suffix(".0.0").or_else(|| numbers.strip_suffix(".0")).unwrap_or(numbers))
}

fn check_id(id: &str) -> Result<(), SchemaError> {
    let is_id =
        !id.is_empty() && id.len() <= MAX_ID && !id.chars().any(|c| c == '@' || c.is_control() || c.is_whitespace());
    if is_id { Ok(()) } else { Err(SchemaError::Id(id.to_owned())) }
}

fn read_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    check_id(&id).map_err(serde::de::Error::custom)?;
    Ok(id)
}

fn read_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    let is_version = (1..=MAX_VERSION).contains(&version);
    if is_version { Ok(version) } else { Err(serde::de::Error::custom(SchemaError::Version(version))) }
}

errors! {
    /// The reason why a text is not a schema.
    #[derive(Debug, thiserror::Error)] pub enum SchemaError = "usage" 2;
    Id(String): "{0:?} is no id of a schema: it has 1 to {MAX_ID} bytes, without `@`, spaces and control characters";
    Form { text: String, form: String }:
        "{text:?} is no schema: write {form}; versions are whole numbers from 1 and are wanted by equality";
    Version(u32): "{0} is no version of a schema: it is a whole number from 1 to {MAX_VERSION}";
}

impl SchemaError {
    /// Names the form to write, with the first number of a version that was refused.
    fn form(text: &str, id: &str, version: &str) -> Self {
        let first = version.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
        let number = first.and_then(|digits| exact_version(digits.trim_start_matches('0')));
        let number = number.map_or_else(|| "N".to_owned(), |number| number.to_string());
        Self::Form { text: text.to_owned(), form: format!("{id}@{number}") }
    }
}
