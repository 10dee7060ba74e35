//! Makes a job from a spec and the handles of this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::check::CheckSettings;
use super::spec::{AttemptSpec, Blob, Check, Command, Error, HeldOutFiles, Promised, Protected};
use super::{Origin, Protect};
use crate::engine::secrets::Secrets;
use crate::git::protected::Consumed;
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;
use crate::model::limits::Limits;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::plan::schemas::Schemas;
use crate::process::attendant::Attendant;
use crate::process::{lease::Lease, live::Lives};
use crate::repository::config::{PRESETS, Preset, SecretEnv};
use crate::sandbox::{Confinement, Sandbox};
use crate::worktree::filters::{Filters, Inside};
use crate::worktree::held_out::HeldOut;
use crate::worktree::host::Host;
use crate::worktree::workspace::Refs;

/// The means of a machine to execute attempts. They come from the repository and the configuration
/// here, not from a driver.
#[derive(Clone)]
pub(in crate::engine) struct Handles {
    pub(in crate::engine) host: Arc<Host>,
    /// The registered schemas, for outputs and documents.
    pub(in crate::engine) schemas: Arc<Schemas>,
    /// Reads secrets that are not in the environment.
    pub(in crate::engine) secrets: Arc<Secrets>,
    /// The output of running attempts.
    pub(in crate::engine) lives: Arc<Lives>,
    pub(in crate::engine) sandbox: Arc<Sandbox>,
    /// The program that supervises commands.
    pub(in crate::engine) supervisor: Option<Attendant>,
}

/// A spec with the handles that execute it.
pub(in crate::engine) struct Job {
    pub(super) run: RunId,
    pub(in crate::engine) item: ItemId,
    pub(super) attempt: u32,
    pub(super) base: Oid,
    /// The refs that the worktree gets.
    pub(super) refs: Refs,
    /// The task that the executor reads.
    pub(super) task: String,
    pub(super) inputs: BTreeMap<FilePath, (Oid, Digest)>,
    pub(in crate::engine) promised: Promised,
    /// The registered schemas, for outputs and documents.
    pub(in crate::engine) schemas: Arc<Schemas>,
    pub(super) command: Command,
    pub(super) origin: Origin,
    /// The description of the agent that the command starts, if it is a known one.
    pub(in crate::engine) preset: Option<&'static Preset>,
    /// The blob and the digest of the pipeline that replaces setup, command and verify.
    pub(super) pipeline: Option<Blob>,
    pub(in crate::engine) env: BTreeMap<String, OsString>,
    pub(in crate::engine) secret_env: Vec<SecretEnv>,
    /// Reads secrets that are not in the environment.
    pub(in crate::engine) secrets: Arc<Secrets>,
    /// Whether to keep the worktree of a failed attempt.
    pub(super) keep: bool,
    /// The program that supervises its commands.
    pub(super) supervisor: Option<Attendant>,
    pub(super) limits: Limits,
    /// The sign of life that its commands need, or `None`.
    pub(super) lease: Option<Lease>,
    pub(in crate::engine) confinement: Option<Arc<Confinement>>,
    pub(super) protect: Option<Protect>,
    pub(super) check: CheckSettings,
    /// The output of running attempts.
    pub(super) lives: Arc<Lives>,
    /// Notes for the operator from its preparation.
    pub(super) notes: Vec<String>,
}

impl Job {
    /// Makes the handles that a spec asks for. `by` is the confinement that its policy means here.
    pub(in crate::engine) fn new(spec: AttemptSpec, handles: &Handles, by: Option<Confinement>) -> Result<Self, Error> {
        let host = &handles.host;
        let known = |name: &String| PRESETS.get(name).ok_or_else(|| Error::Preset(name.clone()));
        let manifest = spec.manifest;
        Ok(Self {
            preset: spec.preset.as_ref().map(known).transpose()?,
            protect: spec.protect.map(|protect| Protect::read(&host.store, protect)).transpose()?,
            check: CheckSettings::read(host, spec.check, by.as_ref())?,
            run: manifest.run,
            item: manifest.item,
            attempt: manifest.attempt,
            base: manifest.base,
            refs: spec.refs,
            task: spec.task,
            inputs: spec.inputs.into_iter().map(|(path, blob)| (path, (blob.oid, blob.sha256))).collect(),
            promised: spec.promised,
            schemas: handles.schemas.clone(),
            command: spec.command,
            origin: spec.origin,
            pipeline: spec.pipeline,
            env: spec.env,
            secret_env: spec.secrets,
            secrets: handles.secrets.clone(),
            keep: spec.keep,
            supervisor: handles.supervisor.clone(),
            limits: spec.limits,
            lease: spec.lease,
            confinement: by.map(Arc::new),
            lives: handles.lives.clone(),
            notes: spec.notes,
        })
    }

    /// Returns the host for taking the products: it rejects this attempt's secrets, and runs
    /// filters as confined as its commands.
    pub(super) fn host(&self, host: &Host) -> Host {
        let inside = self.confinement.as_ref().map(|by| Inside {
            by: by.clone(),
            env: self.env.clone(),
            supervisor: self.supervisor.clone(),
            limits: self.limits,
        });
        let exclude = self.preset.map(|preset| preset.exclude.clone()).unwrap_or_default();
        host.guarding(&self.secret_values()).filtering(Filters::of(inside)).excluding(exclude)
    }

    /// Returns true if the worker is kept apart from those of all other attempts.
    pub(super) fn is_apart(&self) -> bool {
        self.confinement.as_ref().is_some_and(|by| by.keeps_apart())
    }

    pub(super) fn has_own_home(&self) -> bool {
        self.confinement.as_ref().is_some_and(|by| by.has_own_home())
    }
}

impl Protect {
    /// Reads the consumed patches of the protected files.
    fn read(store: &Store, protected: Protected) -> Result<Self, Error> {
        let patches = protected.consumed.into_iter().map(|consumed| (consumed.patch, consumed.includes)).collect();
        let read = |patch: Product| verified_stream::read(store, patch.oid, &[patch.sha256]);
        let consumed = Consumed::read(patches, read).map_err(|error| Error::Consumed(in_words(&error)))?;
        Ok(Self { pathspecs: protected.pathspecs, consumed, effect: protected.effect })
    }
}

impl CheckSettings {
    fn read(host: &Host, check: Check, by: Option<&Confinement>) -> Result<Self, Error> {
        let Check { held_out, feedback, red_first, verify_in } = check;
        let held_out = held_out.map(|expected| {
            let found = HeldOutFiles::read(host, &expected.folder, by)?;
            if found.digest == expected.sha256 { Ok(found) } else { Err(Error::HeldOutChanged(expected.folder)) }
        });
        Ok(Self { held_out: held_out.transpose()?, feedback, red_first, verify_in })
    }
}

impl HeldOutFiles {
    /// Reads held-out files, which no worker must be able to read.
    pub(in crate::engine) fn read(host: &Host, folder: &Path, by: Option<&Confinement>) -> Result<HeldOut, Error> {
        let refused = |why: String| Error::HeldOutReadable { folder: folder.to_owned(), why };
        let failed = |why: String| Error::HeldOut { folder: folder.to_owned(), why };
        let real = std::fs::canonicalize(folder).map_err(|error| failed(error.to_string()))?;
        let store = &host.store;
        let own = [store.work_dir(), Some(store.common_dir()), Some(store.git_dir()), Some(host.settings.root.clone())];
        let own = own.into_iter().flatten().filter_map(|path| std::fs::canonicalize(path).ok());
        if let Some(own) = own.into_iter().find(|own| real.starts_with(own)) {
            return Err(refused(format!("it is inside {}", own.display())));
        }
        match by {
            None => return Err(refused("nothing confines the worker (handoff.sandbox = none)".to_owned())),
            Some(by) if by.reaches(&real) => return Err(refused("the worker may read it".to_owned())),
            Some(_) => {}
        }
        Ok(HeldOut::read(&real)?)
    }
}
