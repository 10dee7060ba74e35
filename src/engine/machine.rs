//! Where a run is driven: this repository on this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, Config};
use crate::model::catalog::Shape;
use crate::model::digest::Digest;
use crate::model::plan::Item;
use crate::model::registered::Registered;
use crate::plan::schemas::Schemas;
use crate::repository::{Environment, Repository};
use crate::run::reuse::Reusable;
use crate::worker::attendant::Attendant;
use crate::worker::filters::{Filters, Inside};
use crate::worker::host::{Host, MEETING};
use crate::worker::live::Lives;
use crate::worker::sandbox::Sandbox;

use super::{command, ground, mise};

use super::secrets::Secrets;

/// What the driver needs to know about this machine.
#[derive(Clone)]
pub struct Machine {
    /// The configuration.
    pub config: Arc<Config>,
    /// The environment of our own process, of which executors see a part.
    pub ambient: Arc<BTreeMap<String, OsString>>,
    /// Where worktrees are made.
    pub host: Arc<Host>,
    /// What documents and outputs are checked against.
    pub schemas: Arc<Schemas>,
    /// What items hand over besides what they say themselves.
    pub shapes: Arc<Registered<String, Shape>>,
    /// Where secrets are had from that are not in our environment.
    pub secrets: Arc<Secrets>,
    /// Whether to close and seal the run even if not every item got done.
    pub close: bool,
    /// How many items this driver runs at the same time, where that is not as the queue says.
    pub jobs: Option<usize>,
    /// What other runs have done that need not be done again, where that is wanted.
    pub reusable: Option<Reusable>,
    /// The home directory of who drives runs, where there is one.
    pub home: Option<PathBuf>,
    /// What relative paths of the configuration start from: the top of the work tree, or, without one, the git directory.
    pub top: PathBuf,
    /// What attempts say meanwhile.
    pub lives: Arc<Lives>,
    /// What workers are confined with.
    pub sandbox: Arc<Sandbox>,
    /// The program that supervises commands, as [`Invocation`](crate::worker::agent::Invocation) says.
    pub supervisor: Option<Attendant>,
}

impl Machine {
    /// Returns what the configuration and the environment of a repository say.
    pub fn of(repository: &Repository, close: bool) -> Result<Self, NoCache> {
        let host = Arc::new(host(repository)?);
        let program =
            repository.environment.program.as_deref().filter(|_| cfg!(target_os = "linux")).map(Attendant::beside);
        let mut ambient = (*repository.environment.variables).clone();
        mise::carry(&repository.environment, &config::work_trees(&repository.store), &mut ambient);
        Ok(Self {
            config: repository.config.clone(),
            ambient: Arc::new(ambient),
            home: repository.environment.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            top: repository.store.work_dir().unwrap_or_else(|| repository.store.common_dir()),
            sandbox: Arc::new(ground::sandbox(repository, &host, program.as_ref().map(Attendant::path))),
            host,
            schemas: Arc::new(repository.schemas()),
            shapes: Arc::new(repository.shapes()),
            secrets: Arc::new(Secrets::of(repository)),
            close,
            jobs: None,
            lives: Arc::default(),
            reusable: None,
            supervisor: program,
        })
    }

    /// Returns where filters run over what an attempt at an item left that another driver began, as far as the configuration still
    /// says what confines it.
    pub fn filters(&self, item: &Item) -> Filters {
        let Ok(resolved) = command::resolve(item, &self.config) else { return Filters::Nowhere };
        match ground::confine(self, &resolved.settings) {
            Ok(by) => Filters::of(by.map(|by| Inside {
                by: Arc::new(by),
                env: command::environment(&self.ambient, &resolved.settings),
                supervisor: self.supervisor.clone(),
                limits: ground::limits(self, &resolved.settings),
            })),
            Err(_) => Filters::Nowhere,
        }
    }
}

/// The folder below the user's cache in which the worktrees of all repositories lie.
pub(super) const FOLDER: &str = "git-handoff";

/// Returns where worktrees are made: outside the repository, under the user's cache.
pub fn host(repository: &Repository) -> Result<Host, NoCache> {
    let (config, environment) = (&repository.config, &repository.environment);
    let root = match &config.workspace_root {
        Some(root) => repository.below_top(root),
        None => cache(environment).ok_or(NoCache)?.join(FOLDER),
    };
    let name = Digest::of(repository.store.common_dir().as_os_str().as_encoded_bytes());
    let mut host = Host::new(repository.store.clone(), root.join(&name.hex()[..16]));
    // Of all repositories of the user, wherever their worktrees are.
    if let Some(cache) = cache(environment) {
        host.meeting = cache.join(FOLDER).join(MEETING);
    }
    ground::shorten(&mut host, environment);
    host.inputs.clone_from(&config.inputs);
    host.outputs.clone_from(&config.outputs);
    host.max_product = config.max_product_size;
    host.cap = config.workspace_cap;
    host.copy.clone_from(&config.workspace_copy);
    host.link.clone_from(&config.workspace_link);
    (host.lfs, host.sparse) = (config.workspace_lfs, config.workspace_sparse);
    host.give_refs = config.workspace_refs;
    (host.submodules, host.capture_submodules) = (config.workspace_submodules, config.capture_submodules);
    host.capture_time = Duration::from_secs(config.capture_timeout);
    // What confined an attempt is known to whoever has it run.
    host.filters = Filters::Nowhere;
    host.gate = config.gate();
    host.user.clone_from(&config.user);
    host.path.clone_from(&environment.path);
    host.user_files = user_folder(environment, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("git"));
    Ok(host)
}

fn cache(environment: &Environment) -> Option<PathBuf> {
    user_folder(environment, "XDG_CACHE_HOME", ".cache")
}

/// Returns the folder that a variable names, or else that of the home directory.
fn user_folder(environment: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| environment.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))
}

/// There is nowhere to make worktrees.
#[derive(Debug, thiserror::Error)]
#[error("neither XDG_CACHE_HOME nor HOME says where worktrees may be made")]
pub struct NoCache;
