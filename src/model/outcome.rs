//! The exit, check and transcript of a command.

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// The exit of a process; exactly one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The outcome of checking a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Whether the check passed.
    pub passed: bool,
    /// The origin of the check.
    pub by: VerifiedBy,
}

/// The origin of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifiedBy {
    /// The configured verify command.
    Command,
    /// The item itself, in its result file: a claim.
    #[serde(rename = "self")]
    Itself,
}

/// The digest and size of a transcript; its bytes may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// The digest of the transcript as kept.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
}
