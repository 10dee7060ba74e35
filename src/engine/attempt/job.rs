//! Makes a job from a spec and the handles of this machine.

use std::path::Path;
use std::sync::Arc;

use super::Protect;
use super::check::CheckSettings;
use super::spec::{AttemptSpec, Check, Error, HeldOutFiles, Protected};
use crate::engine::secrets::Secrets;
use crate::git::protected::Consumed;
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::causes::in_words;
use crate::model::entry::Product;
use crate::plan::schemas::Schemas;
use crate::process::attendant::Attendant;
use crate::process::live::Lives;
use crate::repository::config::{PRESETS, Preset};
use crate::sandbox::{Confinement, Sandbox};
use crate::worktree::filters::{Filters, Inside};
use crate::worktree::held_out::HeldOut;
use crate::worktree::home_mirror::UserHome;
use crate::worktree::host::Host;

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
    /// The user's home directory, for checks of workers that may write it.
    pub(in crate::engine) home: Arc<UserHome>,
    /// The program that supervises commands.
    pub(in crate::engine) supervisor: Option<Attendant>,
}

/// A spec with the handles that execute it.
pub(in crate::engine) struct Job {
    /// The spec, without what is read from it below.
    pub(in crate::engine) spec: AttemptSpec,
    pub(in crate::engine) handles: Handles,
    /// The description of the agent that the command starts, if it is a known one.
    pub(in crate::engine) preset: Option<&'static Preset>,
    pub(in crate::engine) confinement: Option<Arc<Confinement>>,
    pub(super) protect: Option<Protect>,
    pub(super) check: CheckSettings,
    /// True if no worker runs, only the check of an attempt that ended.
    pub(super) only_checks: bool,
}

impl Job {
    /// Reads what a spec asks for. `by` is the confinement that its policy means here.
    pub(in crate::engine) fn new(
        mut spec: AttemptSpec,
        handles: &Handles,
        by: Option<Confinement>,
    ) -> Result<Self, Error> {
        let host = &handles.host;
        if by.as_ref().is_none_or(|by| !by.has_own_home()) {
            // Read before the worker can write there.
            handles.home.mirror();
        }
        Ok(Self {
            preset: spec
                .preset
                .as_ref()
                .map(|name| PRESETS.get(name).ok_or_else(|| Error::Preset(name.clone())))
                .transpose()?,
            protect: spec.protect.take().map(|protect| Protect::read(&host.store, protect)).transpose()?,
            check: CheckSettings::read(host, std::mem::take(&mut spec.check), by.as_ref())?,
            confinement: by.map(Arc::new),
            handles: handles.clone(),
            only_checks: false,
            spec,
        })
    }

    /// Returns the job as one without a worker, which only repeats the check of an ended attempt.
    pub(in crate::engine) fn only_checking(self) -> Self {
        Self { only_checks: true, ..self }
    }

    /// Returns the host for taking the products: it rejects this attempt's secrets, and runs
    /// filters as confined as its commands.
    pub(super) fn host(&self, host: &Host) -> Host {
        let inside = self.confinement.as_ref().map(|by| Inside {
            by: by.clone(),
            env: self.spec.env.clone(),
            supervisor: self.handles.supervisor.clone(),
            limits: self.spec.limits,
        });
        let exclude = self.preset.map(|preset| preset.exclude.clone()).unwrap_or_default();
        host.guarding(&self.secret_values()).filtering(Filters::new(inside)).excluding(exclude)
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
        let Protected { rules, consumed, effect, of_plan, effect_of_plan } = protected;
        let patches = consumed.into_iter();
        let patches = patches.map(|patch| (patch.patch, patch.start, patch.includes)).collect();
        let read = |patch: Product| verified_stream::read(store, patch.oid, &[patch.sha256]);
        let read_patches = Consumed::read(patches, read).map_err(|error| Error::Consumed(in_words(&error)))?;
        Ok(Self { rules, consumed: read_patches, effect, of_plan, effect_of_plan })
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
