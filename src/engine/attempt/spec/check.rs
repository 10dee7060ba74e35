//! Reads a spec, and compares it with its manifest and with this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use super::{AttemptSpec, Command, SCHEMA};
use crate::engine::attempt::{Handles, OWN_VARIABLES};
use crate::git::store::Store;
use crate::model::confinement::NONE;
use crate::model::credential;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::json;
use crate::model::manifest::Manifest;
use crate::model::plan::BuiltIn;
use crate::model::surroundings::Surroundings;
use crate::repository::config::{SecretEnv, SecretSource};
use crate::sandbox::{self, Confinement};
use crate::worktree::held_out;

/// The field of a task with the resolved needs.
pub(in crate::engine::attempt) const INPUT_REFS: &str = "inputRefs";

impl AttemptSpec {
    /// Parses a spec of this version. Rejects unknown fields.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let value = json::parse_all(bytes)
            .map_err(|problems| Error::Json(problems.first().map(ToString::to_string).unwrap_or_default()))?;
        let version = value.get("schema").and_then(Value::as_str);
        if version != Some(SCHEMA) {
            return Err(Error::Version(version.unwrap_or("none").to_owned()));
        }
        serde_json::from_value(value).map_err(|error| Error::Field(error.to_string()))
    }

    /// Returns the digest of its canonical form.
    pub fn digest(&self) -> Result<Digest, Error> {
        Ok(Digest::compute(&self.document()?))
    }

    /// Returns the confinement that its policy means on this machine.
    pub(in crate::engine) fn confine(&self, handles: &Handles) -> Result<Option<Confinement>, Error> {
        Ok(handles.sandbox.confine(&self.confinement.paths, self.confinement.network)?)
    }

    /// Fails unless the manifest is the claimed one and describes what this spec would run here.
    pub(in crate::engine) fn check(&self, handles: &Handles, by: Option<&Confinement>) -> Result<(), Error> {
        let sealed = Digest::compute(&self.manifest.canonical());
        if sealed != self.claim {
            return Err(Error::Claim { manifest: sealed, claim: self.claim });
        }
        let differing = self.described(by).differing(&self.manifest).join(", ");
        if !differing.is_empty() {
            return Err(Error::Differs(differing));
        }
        let digests = self.inputs.iter().map(|(path, blob)| (path, blob.sha256));
        if !digests.eq(self.input_refs.iter().map(|(path, input)| (path, input.digest))) {
            return Err(Error::Differs("inputRefs".to_owned()));
        }
        if !self.is_task_of_manifest() {
            return Err(Error::Differs("inputs".to_owned()));
        }
        if !handles.host.store.contains(self.base) {
            return Err(Error::Base(self.base));
        }
        if let Some(start) = self.start
            && tree_of(&handles.host.store, start.commit) != Some(start.tree)
        {
            return Err(Error::Base(start.commit));
        }
        Ok(())
    }

    /// Returns the manifest that describes the rest of the spec, confined like this. Facts that are
    /// nowhere else are those of the manifest that it has.
    pub(in crate::engine) fn described(&self, by: Option<&Confinement>) -> Manifest {
        let (command, protect) = (&self.command, self.protect.as_ref());
        let manifest = Manifest {
            start: self.start.map(|start| start.tree),
            argv: command.argv.clone(),
            setup: command.setup.clone(),
            verify: command.verify.clone(),
            held_out: self.check.held_out.as_ref().map(|held_out| held_out.sha256),
            red_first: self.check.red_first,
            verify_in: self.check.verify_in,
            protect: protect.map(|protect| protect.rules.clone()).unwrap_or_default(),
            on_protected_change: protect.map(|protect| protect.effect).unwrap_or_default(),
            pipeline: self.pipeline.map(|pipeline| pipeline.sha256),
            timeout: command.timeout,
            claims: Surroundings {
                command_digest: None,
                env: environment_names(command, &self.env, &self.secrets, by),
                secret_env: self.secrets.iter().map(|secret| secret.name.clone()).collect(),
                sandbox: by.map_or_else(|| unconfined(&self.manifest.executor), |by| by.layers().to_string()),
                network: by.map(Confinement::network),
                sockets: by.and_then(Confinement::sockets),
                tags: self.worktrees.give_refs.then(|| self.refs.tags()),
                ..self.manifest.claims.clone()
            },
            ..self.manifest.clone()
        };
        redacted(manifest, command.is_configured)
    }

    /// Returns true if the task has the inputs that the manifest names, and the resolved needs.
    fn is_task_of_manifest(&self) -> bool {
        let Ok(Value::Object(mut task)) = serde_json::from_str(&self.task) else { return false };
        let refs = task.remove(INPUT_REFS);
        refs == serde_json::to_value(&self.input_refs).ok() && format::digest_of(&task) == self.manifest.inputs
    }
}

/// Returns the tree of a commit, or `None` if it cannot be read.
fn tree_of(store: &Store, commit: Oid) -> Option<Oid> {
    let (_, bytes) = store.read(commit).ok()?;
    let line = bytes.strip_prefix(b"tree ")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// Returns the names of the environment variables of an executor, sorted.
fn environment_names(
    command: &Command,
    env: &BTreeMap<String, OsString>,
    secrets: &[SecretEnv],
    by: Option<&Confinement>,
) -> Vec<String> {
    let mut names: BTreeSet<String> = env.keys().chain(command.env.keys()).cloned().collect();
    names.extend(OWN_VARIABLES.map(str::to_owned));
    let fetched = secrets.iter().filter(|secret| secret.source != SecretSource::Environment);
    names.extend(fetched.map(|secret| secret.name.clone()));
    names.extend(by.into_iter().flat_map(Confinement::variable_names).map(str::to_owned));
    names.into_iter().collect()
}

/// Returns the name of the confinement of an item that nothing confined.
fn unconfined(executor: &str) -> String {
    let claimed = BuiltIn::Claimed.name();
    if executor == claimed { claimed } else { NONE }.to_owned()
}

/// Removes credentials from the configured command lines, and records the digest of the original
/// lines if there were any.
///
/// Manifests are shared; the configuration is not. `argv` comes from the configuration unless the
/// plan sets it.
fn redacted(mut manifest: Manifest, is_argv_configured: bool) -> Manifest {
    let before = manifest.digest_of_lines();
    let argv = manifest.argv.iter_mut().filter(|_| is_argv_configured);
    let around = manifest.setup.iter_mut().chain(&mut manifest.verify).flatten();
    argv.chain(around).for_each(|word| *word = credential::redact(word).into_owned());
    manifest.claims.command_digest = (manifest.digest_of_lines() != before).then_some(before);
    manifest
}

errors! {
    /// Why a spec cannot be run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Json(String): "the spec is not JSON: {0}";
    Version(String): "the spec's schema is {0:?}; this version of git-handoff runs {SCHEMA:?}";
    Field(String): "the spec is not valid: {0}";
    NotText(String): "the spec cannot be written as JSON: {0}";
    Claim { manifest: Digest, claim: Digest }:
        "the manifest in the spec has the digest {manifest}, but the claim recorded {claim}";
    Differs(String): "the spec differs from its manifest here in: {0}";
    Base(Oid): "the base commit {0} is not in the repository; fetch it first";
    Preset(String): "the spec names the known agent {0:?}, which this version does not know";
    HeldOutReadable { folder: PathBuf, why: String }: "held-out-readable: {}: {why}" [.folder.display()];
    HeldOut { folder: PathBuf, why: String }: "cannot read the held-out files {}: {why}" [.folder.display()];
    HeldOutChanged(PathBuf): "the held-out files in {} have another digest than in the spec" [.0.display()];
    Consumed(String): "cannot read a consumed patch: {0}";
    #[from] Sandbox(sandbox::Refused), HeldOutFiles(held_out::Error);
}

impl Error {
    /// Returns true if the spec itself is wrong, wherever it is executed.
    pub fn is_of_spec(&self) -> bool {
        matches!(
            self,
            Self::Json(_)
                | Self::Version(_)
                | Self::Field(_)
                | Self::NotText(_)
                | Self::Claim { .. }
                | Self::Differs(_)
        )
    }
}
