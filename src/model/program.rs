//! The program that an attempt runs, as it was when the attempt was dispatched.

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// The most characters of a version.
pub const MAX_VERSION: usize = 200;

/// The program of an attempt's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its absolute path without links, with U+FFFD for bytes that are not UTF-8.
    pub path: String,
    /// The digest of the file.
    pub sha256: Digest,
    /// The size of the file in bytes.
    pub size: u64,
    /// The first line of the configured version command, if that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1, max = 200)))]
    pub version: Option<String>,
}

/// The interpreter of a program that is a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    /// Its absolute path without links, with U+FFFD for bytes that are not UTF-8.
    pub path: String,
    /// The digest of the file.
    pub sha256: Digest,
    /// The size of the file in bytes.
    pub size: u64,
}
