//! The settings and folders that all attempts of one repository share.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::git::cancellation::Cancellation;
use crate::git::store::Store;
use crate::model::credential::gate::Gate;
use crate::model::digest::Oid;

use crate::worktree::capture::large::Large;
use crate::worktree::filters::Filters;
use crate::worktree::known_folders::KnownFolders;
use crate::worktree::settings::WorktreeSettings;
use crate::worktree::workspace::{Base, Error, Pool, Refs, annex, sweep};

/// The default total size of worktrees above which finished ones are not kept.
pub const CAP: u64 = 10 << 30;

/// The least memory for git, whatever an attempt's limit: it needs to load the index of a large
/// repository.
const LEAST_MEMORY: u64 = 512 << 20;

/// The number of bases to keep prepared; a driver uses few commits at a time.
const KEPT_BASES: usize = 8;

/// State that all attempts of one repository share. Cheap to clone and shareable between threads.
#[derive(Clone)]
pub struct Host {
    /// The repository.
    pub store: Store,
    /// The settings of its worktrees.
    pub settings: WorktreeSettings,
    /// The total size of worktrees in bytes above which finished ones are not kept.
    pub cap: u64,
    /// Where filters run on a worker's files.
    pub filters: Filters,
    /// The `PATH` for filters during a capture, without relative folders, or `None` for the
    /// inherited one.
    pub path: Option<OsString>,
    /// The folder in which git looks for user files that no setting names, or `None`.
    pub user_files: Option<PathBuf>,
    /// Cancels work on worktrees when the driver ends.
    pub stop: Cancellation,
    /// The scan of workers' files for secrets.
    pub gate: Gate,
    /// Untracked paths that no patch takes, from the top of the worktree, with `*` for any part of
    /// a name.
    pub exclude: Vec<String>,
    /// Other folders that hold worktrees of this repository: its settings or `XDG_CACHE_HOME`
    /// changed.
    pub earlier: Vec<PathBuf>,
    /// A remark for people about the place of workers' private files, or `None`.
    pub remark: Option<String>,
    bases: Arc<Mutex<BTreeMap<Oid, Arc<Base>>>>,
    /// True to reuse worktrees.
    pub(super) reuse: bool,
    /// The refs for worktrees, if already read.
    chosen: Option<Refs>,
    /// The current capture.
    pub(super) taking: Taking,
    /// The pool of reusable worktrees.
    pub(super) pool: Pool,
}

impl Host {
    /// Returns a host with the default names and limits.
    pub fn new(store: Store, root: PathBuf) -> Self {
        Self {
            store,
            settings: WorktreeSettings::new(root),
            cap: CAP,
            filters: Filters::default(),
            path: None,
            user_files: None,
            stop: Cancellation::never(),
            gate: Gate::default(),
            exclude: Vec::new(),
            earlier: Vec::new(),
            remark: None,
            bases: Arc::default(),
            reuse: false,
            chosen: None,
            taking: Taking::default(),
            pool: Pool::default(),
        }
    }

    /// Sets the settings of worktrees.
    #[must_use]
    pub fn configured(&self, settings: &WorktreeSettings) -> Self {
        Self { settings: settings.clone(), ..self.clone() }
    }

    /// Sets the cancellation.
    #[must_use]
    pub fn stopped_by(&self, stop: Cancellation) -> Self {
        Self { stop, ..self.clone() }
    }

    /// Sets the secrets of an attempt.
    #[must_use]
    pub fn guarding(&self, secrets: &[Vec<u8>]) -> Self {
        Self { gate: self.gate.with(secrets), ..self.clone() }
    }

    /// Sets where filters run.
    #[must_use]
    pub fn filtering(&self, filters: Filters) -> Self {
        Self { filters, ..self.clone() }
    }

    /// Sets the untracked paths that no patch takes.
    #[must_use]
    pub fn excluding(self, exclude: Vec<String>) -> Self {
        Self { exclude, ..self }
    }

    /// Sets the refs for worktrees.
    #[must_use]
    pub fn showing(&self, refs: Refs) -> Self {
        Self { chosen: Some(refs), ..self.clone() }
    }

    /// Sets whether worktrees are reused: true only if no other attempt's worker can hold their
    /// files open.
    #[must_use]
    pub fn reusing(&self, reuse: bool) -> Self {
        Self { reuse, ..self.clone() }
    }

    /// Returns the refs for a worktree: those given, or the repository's current ones, or none.
    pub fn refs(&self) -> Result<Refs, Error> {
        if let Some(refs) = &self.chosen {
            return Ok(refs.clone());
        }
        if !self.settings.give_refs {
            return Ok(Refs::none());
        }
        Refs::read(&self.store)
    }

    /// Returns the memory limit in bytes for git commands on an attempt's files, or `None`.
    pub(super) fn most_memory(&self) -> Option<u64> {
        match &self.filters {
            Filters::Inside(inside) => Some(inside.limits.memory?.max(LEAST_MEMORY)),
            Filters::Outside | Filters::Nowhere => None,
        }
    }

    fn capture_time(&self) -> Duration {
        Duration::from_secs(self.settings.capture_time)
    }

    /// Starts the time limit of one capture.
    pub(super) fn taking(&self) -> Self {
        let until = Instant::now().checked_add(self.capture_time());
        Self { taking: Taking { until, large: Arc::default() }, ..self.clone() }
    }

    /// Returns the remaining time.
    pub(super) fn time_left(&self) -> Duration {
        self.taking.until.map_or(self.capture_time(), |until| until.saturating_duration_since(Instant::now()))
    }

    /// Returns the hosts of all folders with worktrees of this repository, this one first.
    pub fn all(&self) -> Vec<Self> {
        let earlier = self.earlier.iter().map(|root| {
            let mut settings = self.settings.clone();
            if settings.private.starts_with(&settings.root) {
                settings.private = WorktreeSettings::new(root.clone()).private;
            }
            settings.root.clone_from(root);
            self.configured(&settings)
        });
        std::iter::once(self.clone()).chain(earlier).collect()
    }

    /// Creates the folder of the attempts and checks that worktrees of a base can be created in it,
    /// before any attempt starts. Records the folder, so that it is found from then on.
    pub fn prepare(&self, base: Oid) -> Result<(), Error> {
        annex::refuse(&self.store, base)?;
        std::fs::create_dir_all(&self.settings.root)
            .and_then(|()| tempfile::tempdir_in(&self.settings.root)?.close())
            .and_then(|()| sweep(&self.settings.root))
            .and_then(|()| KnownFolders::record(&self.store, &self.settings.root))
            .map_err(|source| Error::Root { root: self.settings.root.clone(), source })
    }

    /// Returns the folders that attempts and their results are written to.
    pub(crate) fn written_folders(&self) -> Vec<PathBuf> {
        vec![self.settings.root.clone(), self.settings.private.clone(), self.store.objects_dir()]
    }

    /// Fails if the commit of a submodule of a base is not in this repository, or is of git-annex.
    pub(crate) fn expect_submodules(&self, commit: Oid) -> Result<(), Error> {
        match self.base(commit) {
            Err(error @ (Error::Submodule(..) | Error::Annex(_))) => Err(error),
            // Other errors fail the attempt.
            _ => Ok(()),
        }
    }

    /// Returns the prepared base of a commit, read from the repository once.
    ///
    /// Two concurrent callers may both read it; both get the same.
    pub(super) fn base(&self, commit: Oid) -> Result<Arc<Base>, Error> {
        let known = || self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = known().get(&commit) {
            return Ok(Arc::clone(base));
        }
        let base = Arc::new(Base::read(self, commit)?);
        let mut bases = known();
        if bases.len() >= KEPT_BASES && !bases.contains_key(&commit) {
            bases.clear();
        }
        // A finished worktree can be reused only with the identical base.
        Ok(Arc::clone(bases.entry(commit).or_insert(base)))
    }
}

/// One capture of an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    /// Its deadline.
    until: Option<Instant>,
    /// The contents that filters want kept beside the repository, as scanned so far.
    pub(super) large: Arc<Mutex<Vec<Large>>>,
}
