//! The spec of one attempt: everything that decides what happens, as plain data.
//!
//! The driver makes it, and the executing side reads nothing else of the driver. It can lie in a
//! file (`docs/reference/attempt.md`).

mod check;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Origin;
use crate::engine::command::Resolved;
use crate::model::confinement::Network;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{InputRef, Product};
use crate::model::format;
use crate::model::limits::Limits;
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::plan::{Declared, ProductKey};
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{OnProtectedChange, VerifyIn};
use crate::model::schema::Schema;
use crate::process::lease::Lease;
use crate::repository::config::{OnVerifyFail, SecretEnv};
use crate::sandbox::More;
use crate::worktree::settings::WorktreeSettings;
use crate::worktree::workspace::Refs;

pub use check::Error;
pub(super) use check::INPUT_REFS;

/// The `schema` of a spec.
pub(in crate::engine) const SCHEMA: &str = "git-handoff.attempt/1";

/// The spec of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptSpec {
    /// Always [`SCHEMA`].
    pub(in crate::engine) schema: String,
    /// The top of the repository's work tree, or the git directory of a bare one.
    pub(in crate::engine) repository: PathBuf,
    pub(in crate::engine) worktrees: WorktreeSettings,
    /// The digest of the manifest that the claim recorded.
    pub(in crate::engine) claim: Digest,
    pub(in crate::engine) run: RunId,
    /// The commit that the run starts from.
    pub(in crate::engine) base: Oid,
    pub(in crate::engine) item: ItemId,
    pub(in crate::engine) attempt: u32,
    /// The commands as recorded.
    pub(in crate::engine) manifest: Manifest,
    /// The task that the executor reads.
    pub(in crate::engine) task: String,
    pub(in crate::engine) inputs: BTreeMap<FilePath, Blob>,
    /// Where these come from, as recorded.
    pub(in crate::engine) input_refs: BTreeMap<FilePath, InputRef>,
    pub(in crate::engine) promised: Promised,
    pub(in crate::engine) command: Command,
    pub(in crate::engine) origin: Origin,
    /// Where the worktree begins, if not at the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) start: Option<Start>,
    /// The name of the known agent that the command starts, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) preset: Option<String>,
    /// The pipeline that replaces setup, command and verify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) pipeline: Option<Blob>,
    /// The environment, with the secrets that come from the driver's own.
    #[serde(with = "text")]
    pub(in crate::engine) env: BTreeMap<String, OsString>,
    /// Where the values of secrets come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) secrets: Vec<SecretEnv>,
    pub(in crate::engine) limits: Limits,
    /// The sign of life that its commands need, or `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) lease: Option<Lease>,
    pub(in crate::engine) confinement: Policy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) protect: Option<Protected>,
    pub(in crate::engine) check: Check,
    /// The refs that the worktree gets.
    pub(in crate::engine) refs: Refs,
    /// Whether to keep the worktree of a failed attempt.
    pub(in crate::engine) keep: bool,
    /// Notes for the operator from its preparation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) notes: Vec<String>,
}

/// The base with the patches that an item's needs apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct Start {
    /// A commit of the tree, which no ref reaches.
    pub(in crate::engine) commit: Oid,
    pub(in crate::engine) tree: Oid,
}

/// A blob of the repository, with the digest of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct Blob {
    pub(in crate::engine) oid: Oid,
    pub(in crate::engine) sha256: Digest,
}

/// The products that an attempt must leave.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct Promised {
    /// The patch and the outputs that the item or its shape declares, with the schemas of outputs.
    pub(in crate::engine) products: BTreeMap<ProductKey, Option<Schema>>,
    /// The products that other items need, each with the id of one such item.
    #[serde(rename = "wanted")]
    pub(in crate::engine) required: BTreeMap<ProductKey, String>,
    pub(in crate::engine) documents: Vec<Declared>,
}

/// The commands of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::engine) struct Command {
    pub(in crate::engine) argv: Vec<String>,
    /// The variables that the plan sets, for this command alone.
    #[serde(with = "text")]
    pub(in crate::engine) env: BTreeMap<String, OsString>,
    /// The folder of the worktree that the command starts in, or `None` for the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) directory: Option<FilePath>,
    /// Whether the command reads the task on standard input.
    pub(in crate::engine) reads_task: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) setup: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) verify: Option<Vec<String>>,
    pub(in crate::engine) on_verify_fail: OnVerifyFail,
    /// In seconds, for all commands together.
    pub(in crate::engine) timeout: u64,
    /// True if `argv` comes from the configuration and not from the plan.
    pub(in crate::engine) is_configured: bool,
    /// The names of the variables that the configuration sets.
    pub(in crate::engine) set: BTreeSet<String>,
}

/// How the workers of an attempt are to be confined.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct Policy {
    pub(in crate::engine) paths: More,
    pub(in crate::engine) network: Network,
}

/// The protected files of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct Protected {
    pub(in crate::engine) rules: BTreeSet<ProtectRule>,
    /// The consumed patches that belong to the reference state, in order.
    pub(in crate::engine) consumed: Vec<ConsumedPatch>,
    pub(in crate::engine) effect: OnProtectedChange,
    /// The rules of the plan. Settings cannot allow changes of their files.
    pub(in crate::engine) of_plan: Vec<ProtectRule>,
    pub(in crate::engine) effect_of_plan: OnProtectedChange,
}

/// A consumed patch, and the positions of those that it includes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct ConsumedPatch {
    pub(in crate::engine) patch: Product,
    /// The tree that it was made on, if that is not the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) start: Option<Oid>,
    pub(in crate::engine) includes: BTreeSet<usize>,
}

/// The settings of an attempt's check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::engine) struct Check {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) held_out: Option<HeldOutFiles>,
    /// Whether reasons contain its output in spite of held-out files.
    pub(in crate::engine) feedback: bool,
    pub(in crate::engine) red_first: bool,
    pub(in crate::engine) verify_in: VerifyIn,
}

/// A folder of held-out files, with the digest of them all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct HeldOutFiles {
    pub(in crate::engine) folder: PathBuf,
    pub(in crate::engine) sha256: Digest,
}

impl Command {
    /// Returns the commands of a resolved item.
    pub(in crate::engine) fn from_resolved(resolved: Resolved) -> Self {
        Self {
            argv: resolved.argv,
            env: resolved.env,
            directory: resolved.directory,
            reads_task: resolved.reads_task,
            setup: resolved.setup,
            verify: resolved.verify,
            on_verify_fail: resolved.on_verify_fail,
            timeout: resolved.timeout,
            is_configured: resolved.settings.command.is_some(),
            set: resolved.settings.env.into_keys().collect(),
        }
    }
}

impl AttemptSpec {
    /// Returns the commit that the worktree begins at.
    pub(in crate::engine) fn first_commit(&self) -> Oid {
        self.start.map_or(self.base, |start| start.commit)
    }

    /// Writes it as canonical JSON. Fails for a path or a variable that is not UTF-8.
    pub fn document(&self) -> Result<Vec<u8>, Error> {
        let value = serde_json::to_value(self).map_err(|error| Error::NotText(error.to_string()))?;
        Ok(format::canonical(&value))
    }
}
