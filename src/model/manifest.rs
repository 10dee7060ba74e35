//! The dispatch manifest: what exactly one attempt was given to run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bounds;
use super::confinement::{Network, Sockets};
use super::digest::{Digest, Oid};
use super::entry::InputRef;
use super::format;
use super::json;
use super::name::{FilePath, ItemId, RunId};

/// The manifest's `schema`.
pub const SCHEMA: &str = "git-handoff.manifest/1";

/// What was dispatched, written as canonical JSON to `items/<id>/manifest.json` and bound to its entry by digest.
///
/// Environment variables are named, never valued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The commit that the worktree was checked out at.
    pub base: Oid,
    /// The executor that the plan names.
    pub executor: String,
    /// The subagent that the plan names, for the `dispatch` executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The resolved command.
    pub argv: Vec<String>,
    /// The command run before it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Vec<String>>,
    /// The command run after it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// The digest of the three as they were run, where a credential in a configured line was taken out of what stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_digest: Option<Digest>,
    /// The digest of the pipeline that is run, if the item names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Digest>,
    /// The digest of the canonical form of the item's `inputs` as submitted.
    pub inputs: Digest,
    /// What each input key was resolved to.
    pub input_refs: BTreeMap<FilePath, InputRef>,
    /// The names of the environment variables that the executor was given.
    pub env: Vec<String>,
    /// The names of those whose values are secrets.
    pub secret_env: Vec<String>,
    /// Seconds after which the attempt is ended.
    pub timeout: u64,
    /// The layers that confined the executor, each with its version where it has one; `none` says that nothing did.
    pub sandbox: String,
    /// Whom it could speak to, where something confined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Set where something confined it and it could still connect to the user's sockets in the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Sockets>,
    /// The digest of the tags that the worktree had, or `None` if it had no refs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Digest>,
    /// The digest of its branches, which are those of one clone: two attempts with different ones may be the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<Digest>,
    /// The program that dispatched it.
    pub tool: String,
}

impl Manifest {
    /// Returns the digest of the command lines as they stand here.
    pub fn digest_of_lines(&self) -> Digest {
        format::digest_of(&json!({ "argv": self.argv, "setup": self.setup, "verify": self.verify }))
    }

    /// Returns the manifest's bytes.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Reads a manifest back; refuses bytes that are not its canonical form.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if !bounds::is_light(bytes) {
            return Err(Error::Heavy);
        }
        let value = json::lenient(bytes).map_err(Error::Json)?;
        let safe = format::has_safe_numbers(&value);
        let manifest: Self = serde_json::from_value(value).map_err(Error::Json)?;
        if !safe || manifest.schema != SCHEMA || manifest.canonical() != bytes {
            return Err(Error::NotCanonical);
        }
        Ok(manifest)
    }
}

/// Why bytes are not a manifest.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the manifest cannot be read: {0}")]
    Json(serde_json::Error),
    #[error(
        "the manifest has more than {} arrays and objects, or more than {} values",
        bounds::CONTAINERS,
        bounds::VALUES
    )]
    Heavy,
    #[error("the manifest is not a canonical {SCHEMA}")]
    NotCanonical,
}
