//! Where the attempts of one repository live, and what they share.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::git::stop::Stop;
use crate::git::store::Store;
use crate::model::credential::gate::Gate;
use crate::model::digest::Oid;

use super::capture::large::Large;
use super::filters::Filters;
use super::workspace::{Base, Error, Pool, Refs, sweep};

/// The largest product unless configured otherwise: common hosts refuse larger blobs for good.
pub const MAX_PRODUCT: u64 = 100 << 20;

/// The most of one attempt's unfinished work that is saved unless configured otherwise.
pub const MAX_SALVAGE: u64 = 256 << 20;

/// The most that worktrees take before spent ones are not kept any more, unless configured otherwise.
pub const CAP: u64 = 10 << 30;

/// How long it may take to take what one attempt left unless configured otherwise.
pub const CAPTURE_TIME: Duration = Duration::from_secs(5 * 60);

/// What git may have however little an attempt may: the index of a large repository has its place in it.
const LEAST_MEMORY: u64 = 512 << 20;

/// How many bases are kept prepared; a driver works on few commits at a time.
const KEPT_BASES: usize = 8;

/// What all attempts on one repository share; cheap to clone and safe to share between threads.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
pub struct Host {
    /// The repository.
    pub store: Store,
    /// The folder that holds the attempts; made when it is needed.
    pub root: PathBuf,
    /// The folder that holds what is private to each worker, at a path as short as can be; made when it is needed.
    pub private: PathBuf,
    /// The folder of a worktree that consumed bytes are put into, slash-separated.
    pub inputs: String,
    /// The folder of a worktree that outputs are taken from, slash-separated.
    pub outputs: String,
    /// The largest product, and the largest transcript, in bytes.
    pub max_product: u64,
    /// The most bytes of one attempt's unfinished work that are saved.
    pub max_salvage: u64,
    /// The most bytes that worktrees may take before spent ones are not kept any more.
    pub cap: u64,
    /// What is copied from the work tree into every worktree: paths, or patterns as git's ignore files have them.
    pub copy: Vec<String>,
    /// What every worktree has a link to.
    pub link: Vec<String>,
    /// Whether the filter `lfs` runs.
    pub lfs: bool,
    /// Whether worktrees leave out what the sparse checkout of the work tree leaves out.
    pub sparse: bool,
    /// Whether worktrees have the refs and the remotes of the repository.
    pub give_refs: bool,
    /// Whether submodules are checked out, from what is on this machine.
    pub submodules: bool,
    /// Whether what becomes of their files is taken; otherwise it fails the item.
    pub capture_submodules: bool,
    /// Where filters run over what a worker left.
    pub filters: Filters,
    /// How long it may take to take what one attempt left, or to save it.
    pub capture_time: Duration,
    /// The `PATH` that filters are looked for in when products are taken, without folders that are relative to where git runs;
    /// none leaves it as it is.
    pub path: Option<OsString>,
    /// The folder in which git looks for files of the user's that no setting names; none where there is no such.
    pub user_files: Option<PathBuf>,
    /// Tells what works on worktrees that the driver is to end.
    pub stop: Stop,
    /// Name and e-mail address that a worker's own commits carry; none leaves them to git's global configuration.
    pub user: Option<(String, String)>,
    /// What may not be stored of what workers leave.
    pub gate: Gate,
    bases: Arc<Mutex<BTreeMap<Oid, Arc<Base>>>>,
    /// Whether worktrees are used again.
    pub(super) reuse: bool,
    /// The refs that worktrees get, if they were read already.
    chosen: Option<Refs>,
    /// What goes on just now.
    pub(super) taking: Taking,
    /// The worktrees that are used again.
    pub(super) pool: Pool,
}

impl Host {
    /// Returns a host with the default names and limits.
    pub fn new(store: Store, root: PathBuf) -> Self {
        Self {
            store,
            private: root.join("@own"),
            root,
            inputs: "inputs".to_owned(),
            outputs: "outputs".to_owned(),
            max_product: MAX_PRODUCT,
            max_salvage: MAX_SALVAGE,
            cap: CAP,
            copy: Vec::new(),
            link: Vec::new(),
            lfs: true,
            sparse: true,
            give_refs: true,
            submodules: false,
            capture_submodules: false,
            filters: Filters::default(),
            capture_time: CAPTURE_TIME,
            path: None,
            user_files: None,
            stop: Stop::never(),
            user: None,
            gate: Gate::default(),
            bases: Arc::default(),
            reuse: false,
            chosen: None,
            taking: Taking::default(),
            pool: Pool::default(),
        }
    }

    /// Returns it with another word for that it is time to end.
    #[must_use]
    pub fn stopped_by(&self, stop: Stop) -> Self {
        Self { stop, ..self.clone() }
    }

    /// Returns it for an attempt that was given these secrets.
    #[must_use]
    pub fn guarding(&self, secrets: &[Vec<u8>]) -> Self {
        Self { gate: self.gate.with(secrets), ..self.clone() }
    }

    /// Returns it with another place for filters.
    #[must_use]
    pub fn filtering(&self, filters: Filters) -> Self {
        Self { filters, ..self.clone() }
    }

    /// Returns it for attempts whose worktrees get these refs.
    #[must_use]
    pub fn showing(&self, refs: Refs) -> Self {
        Self { chosen: Some(refs), ..self.clone() }
    }

    /// Returns it for attempts that use worktrees again, if `reuse` is true: no other attempt's
    /// worker can hold a file of one.
    #[must_use]
    pub fn reusing(&self, reuse: bool) -> Self {
        Self { reuse, ..self.clone() }
    }

    /// Returns the refs that a worktree gets: those of the repository as they are now, unless others were chosen or it gets none.
    pub fn refs(&self) -> Result<Refs, Error> {
        if let Some(refs) = &self.chosen {
            return Ok(refs.clone());
        }
        if !self.give_refs {
            return Ok(Refs::none());
        }
        Refs::read(&self.store)
    }

    /// Returns how much memory a call of git may have that looks at what an attempt left, in bytes; none where nobody bounds it.
    pub(super) fn most_memory(&self) -> Option<u64> {
        match &self.filters {
            Filters::Inside(inside) => Some(inside.limits.memory?.max(LEAST_MEMORY)),
            Filters::Outside | Filters::Nowhere => None,
        }
    }

    /// Returns it for one look at what an attempt left, whose time runs from now on.
    pub(super) fn taking(&self) -> Self {
        let until = Instant::now().checked_add(self.capture_time);
        Self { taking: Taking { until, large: Arc::default() }, ..self.clone() }
    }

    /// Returns how much time is left for that.
    pub(super) fn time_left(&self) -> Duration {
        self.taking.until.map_or(self.capture_time, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Makes the folder of the attempts, and sees that worktrees can be made in it: before an attempt is spent on finding out.
    pub fn prepare(&self) -> Result<(), Error> {
        std::fs::create_dir_all(&self.root)
            .and_then(|()| tempfile::tempdir_in(&self.root)?.close())
            .and_then(|()| sweep(&self.root))
            .map_err(|source| Error::Root { root: self.root.clone(), source })
    }

    /// Returns what every attempt at this commit starts from, read from the repository once.
    ///
    /// Two threads that ask at the same time may both read it; both get the same.
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
        // A spent worktree is used again by whoever has the very same.
        Ok(Arc::clone(bases.entry(commit).or_insert(base)))
    }
}

/// One look at what an attempt left.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    /// When its time is up.
    until: Option<Instant>,
    /// What filters made to be kept beside the repository, as far as it was looked at.
    pub(super) large: Arc<Mutex<Vec<Large>>>,
}
