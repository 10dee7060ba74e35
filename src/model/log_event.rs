//! The fields of the events of a repository log.

use serde::{Deserialize, Deserializer, Serialize};

use super::digest::{Digest, Oid};

/// The fields of `log.submitted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogSubmitted {
    /// The fingerprint of the log's key.
    pub log: String,
    /// The leaf hash of the run's entry 0.
    pub first: Digest,
}

/// The fields of `log.sealed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogSealed {
    /// The fingerprint of the log's key.
    pub log: String,
    /// The root in the run's seal.
    pub root: Digest,
    /// The number of entries under the root.
    pub entries: u64,
    /// The leaf hash of the seal entry.
    pub seal: Digest,
    /// The commit of the seal entry.
    pub commit: Oid,
}

/// The fields of `log.thread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogThread {
    /// The fingerprint of the log's key.
    pub log: String,
    /// The number of entries of the thread, at least one.
    #[serde(deserialize_with = "at_least_one")]
    pub entries: u64,
    /// The leaf hash of the last entry.
    pub last: Digest,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let entries = u64::deserialize(deserializer)?;
    if entries > 0 { Ok(entries) } else { Err(serde::de::Error::custom("a thread has at least one entry")) }
}
