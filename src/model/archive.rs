//! The event of an archive: a chain of one key that contains sealed runs, in place of their refs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Oid};
use super::name::RunId;

/// The maximum number of runs in one entry: each is a parent of its commit.
pub const MOST_RUNS: usize = 1_000;

/// The fields of `archive.added`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveAdded {
    /// The added runs; empty in entry 0, and only there.
    pub runs: BTreeMap<RunId, ArchivedRun>,
}

/// An archived run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedRun {
    /// The commit of its seal, which is a parent of the entry's commit.
    pub commit: Oid,
    /// The leaf hash of its seal.
    pub seal: Digest,
    /// The tree of its time stamps, part of the entry's tree; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Oid>,
}
