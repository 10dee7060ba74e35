//! The fields of the events of an archive: a chain of one key that holds sealed runs, so that they need no refs of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Oid};
use super::name::RunId;

/// The most runs that one entry holds: each is a parent of its commit.
pub const MOST_RUNS: usize = 1_000;

/// The fields of `archive.added`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveAdded {
    /// The runs that the archive holds from here on; none in entry 0, and only there.
    pub runs: BTreeMap<RunId, ArchivedRun>,
}

/// A sealed run in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedRun {
    /// The commit of its seal, which is a parent of the entry's commit.
    pub commit: Oid,
    /// The leaf hash of its seal.
    pub seal: Digest,
    /// The tree of its time stamps, which the entry's tree holds; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Oid>,
}
