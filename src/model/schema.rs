//! Schemas of documents: `id@version` and `id@requirement`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use semver::{Version, VersionReq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The maximum length of a schema's id, in bytes.
const MAX_ID: usize = 128;

/// A schema with a version: `fetch-output@1.2.0`. Missing numbers of a version are zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The id.
    #[serde(deserialize_with = "read_id")]
    pub id: String,
    /// The version.
    #[serde(serialize_with = "write_version", deserialize_with = "read_version")]
    pub version: Version,
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let (id, version) = text.split_once('@').ok_or_else(|| SchemaError::NoVersion(text.to_owned()))?;
        check_id(id)?;
        let version = full(version).map_err(|e| SchemaError::Version(version.to_owned(), e))?;
        Ok(Self { id: id.to_owned(), version })
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.version)
    }
}

/// Parses a version; `1` is 1.0.0 and `1.2` is 1.2.0.
fn full(version: &str) -> Result<Version, semver::Error> {
    let is_short = version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match version.matches('.').count() {
        0 if is_short => Version::parse(&format!("{version}.0.0")),
        1 if is_short => Version::parse(&format!("{version}.0")),
        _ => Version::parse(version),
    }
}

fn check_id(id: &str) -> Result<(), SchemaError> {
    let is_id = !id.is_empty() && id.len() <= MAX_ID && !id.chars().any(|c| c.is_control() || c.is_whitespace());
    if is_id { Ok(()) } else { Err(SchemaError::Id(id.to_owned())) }
}

fn read_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    check_id(&id).map_err(serde::de::Error::custom)?;
    if id.contains('@') {
        return Err(serde::de::Error::custom(SchemaError::Id(id)));
    }
    Ok(id)
}

fn write_version<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

fn read_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    Version::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// A required schema: `fetch-output@^1`; without a requirement, any version.
///
/// Requirements are those of Cargo: `1` is `^1`.
#[derive(Clone, Debug)]
pub struct Wanted {
    text: String,
    id: String,
    requirement: Option<VersionReq>,
}

impl Wanted {
    /// Returns true if a document's schema matches.
    pub fn admits(&self, schema: Option<&Schema>) -> bool {
        let version = schema.filter(|schema| schema.id == self.id).map(|schema| &schema.version);
        version.is_some_and(|version| self.requirement.as_ref().is_none_or(|wanted| wanted.matches(version)))
    }

    /// Returns the requirement as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Wanted {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let (id, requirement) = match text.split_once('@') {
            Some((id, requirement)) => (id, Some(requirement)),
            None => (text, None),
        };
        check_id(id)?;
        let read = |text: &str| VersionReq::parse(text).map_err(|e| SchemaError::Requirement(text.to_owned(), e));
        let requirement = requirement.map(read).transpose()?;
        Ok(Self { text: text.to_owned(), id: id.to_owned(), requirement })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Wanted {}

impl PartialOrd for Wanted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wanted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

/// The reason why a text is not a schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SchemaError {
    #[error("{0:?} is no id of a schema: it has 1 to {MAX_ID} bytes, without spaces and control characters")]
    Id(String),
    #[error("{0:?} is no schema: one is written `id@version`, like `report@1` or `report@1.2.0`")]
    NoVersion(String),
    #[error("{0:?} is no version: {1}")]
    Version(String, semver::Error),
    #[error("{0:?} is no requirement like `^1` or `>=1.2, <3`: {1}")]
    Requirement(String, semver::Error),
}
