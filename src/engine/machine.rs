//! The machine that drives a run: its worktrees, its environment, and how it confines workers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::git::file_facts::canonical_or_same;
use crate::git::store::Store;
use crate::git::temporary;
use crate::model::catalog::Shape;
use crate::model::confinement::{Asked, Home};
use crate::model::limits::Limits;
use crate::model::plan::Item;
use crate::model::registered::Registered;
use crate::plan::schemas::Schemas;
use crate::process::attendant::Attendant;
use crate::process::live::Lives;
use crate::repository::agent::XDG;
use crate::repository::config::{self, Config, Executor, PRESETS};
use crate::repository::{Environment, Repository};
use crate::run::import::reuse::Reusable;
use crate::sandbox::{Confinement, More, Refused, Sandbox, Surroundings, folders, named_in};
use crate::worktree::filters::{Filters, Inside};
use crate::worktree::home_mirror::UserHome;
use crate::worktree::host::Host;
use crate::worktree::known_folders::KnownFolders;
use crate::worktree::settings::WorktreeSettings;
use crate::worktree::workspace::{self, Leftover};

use super::attempt::Handles;
use super::attempt::spec::Policy;
use super::operations::Manner;
use super::programs::Programs;
use super::secrets::Secrets;
use super::{agent_folders, command, mise};

/// The folder in the user's cache that holds the worktrees of all repositories.
const FOLDER: &str = "git-handoff";

/// The longest path of a folder for temporary files. Programs put sockets below it, whose whole
/// path has at most 108 bytes.
const MAX_TMP_PATH: usize = 70;

/// The length of the path of an attempt's temporary files below the folder of private files.
const BELOW_PRIVATE: usize = "/0123456789ab/home".len();

/// Files that git reads by default in its own folder below the home directory.
const GIT_DEFAULTS: [&str; 2] = ["attributes", "ignore"];

/// Everything that the driver has to know of this machine and this repository.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) config: Arc<Config>,
    /// The environment of this process. Executors see a part of it.
    pub(crate) ambient: Arc<BTreeMap<String, OsString>>,
    pub(crate) host: Arc<Host>,
    /// The registered schemas, for documents and outputs.
    pub(crate) schemas: Arc<Schemas>,
    /// The registered shapes, which add to the products that items declare.
    pub(crate) shapes: Arc<Registered<String, Shape>>,
    /// Reads secrets that are not in the environment.
    pub(crate) secrets: Arc<Secrets>,
    /// Identifies the programs of attempts.
    pub(crate) programs: Arc<Programs>,
    /// Whether to close and seal the run even if not every item is done.
    pub(crate) close: bool,
    /// Whether to wait for decisions of people instead of ending.
    pub(crate) waits: bool,
    /// Whether the run is a recording of one command.
    pub(crate) is_recording: bool,
    /// The worktree whose work the next attempt takes, or `None`; only in a recording.
    pub(crate) left: Option<Leftover>,
    /// How many items to run at once, instead of as many as the queue says.
    pub(crate) jobs: Option<usize>,
    /// How the work of items may be done.
    pub(crate) manner: Manner,
    /// Items of other runs to reuse, or `None` to reuse none.
    pub(crate) reusable: Option<Reusable>,
    pub(crate) home: Option<PathBuf>,
    /// The same, as it was before any worker ran.
    user_home: Arc<UserHome>,
    /// The environment, which says where agents' folders are.
    pub(crate) environment: Environment,
    /// The base of relative paths in the configuration: the top of the work tree, or the git
    /// directory of a bare repository.
    pub(crate) top: PathBuf,
    /// The output of running attempts.
    pub(crate) lives: Arc<Lives>,
    pub(crate) sandbox: Arc<Sandbox>,
    /// The program that supervises commands, as
    /// [`Invocation`](crate::process::agent::Invocation) says.
    pub(crate) supervisor: Option<Attendant>,
}

impl Machine {
    /// Reads the configuration and the environment, and probes which sandboxes work here.
    pub(crate) fn new(repository: &Repository, close: bool) -> Result<Self, NoCache> {
        let host = Arc::new(host(repository)?);
        let program = repository.environment.program.as_deref().map(Attendant::next_to);
        let mut ambient = (*repository.environment.variables).clone();
        mise::set_trust(&repository.environment, &config::work_trees(&repository.store), &mut ambient);
        Ok(Self {
            config: repository.config.clone(),
            ambient: Arc::new(ambient),
            home: absolute(&repository.environment, "HOME"),
            user_home: Arc::new(UserHome::at(absolute(&repository.environment, "HOME"))),
            environment: repository.environment.clone(),
            top: repository.store.work_dir().unwrap_or_else(|| repository.store.common_dir()),
            sandbox: Arc::new(sandbox(repository, &host, program.as_ref().map(Attendant::path))),
            host,
            schemas: Arc::new(repository.schemas()),
            shapes: Arc::new(repository.shapes()),
            secrets: Arc::new(Secrets::new(repository)),
            programs: Arc::new(Programs::new(repository)),
            close,
            waits: false,
            is_recording: false,
            left: None,
            jobs: None,
            manner: Manner::default(),
            lives: Arc::default(),
            reusable: None,
            supervisor: program,
        })
    }

    /// Returns where to run filters over the files of an attempt that another driver began, as far
    /// as the configuration still says how its workers are confined.
    pub(crate) fn filters(&self, item: &Item) -> Filters {
        let Ok(resolved) = command::resolve(item, &self.config) else { return Filters::Nowhere };
        match self.confine(&resolved.settings) {
            Ok(by) => Filters::new(by.map(|by| Inside {
                by: Arc::new(by),
                env: command::environment(&self.ambient, &resolved.settings),
                supervisor: self.supervisor.clone(),
                limits: self.limits(&resolved.settings),
            })),
            Err(_) => Filters::Nowhere,
        }
    }

    /// Returns how to confine the workers of an executor, or an error if this machine cannot
    /// enforce what its settings ask for.
    pub(super) fn confine(&self, settings: &Executor) -> Result<Option<Confinement>, Refused> {
        let policy = self.policy(settings);
        self.sandbox.confine(&policy.paths, policy.network)
    }

    /// Returns how the workers of an executor are to be confined.
    pub(super) fn policy(&self, settings: &Executor) -> Policy {
        let home = self.home.as_deref();
        // Command lines from tracked files are left out: a commit must not open a file to workers.
        let lines = [&settings.command, &settings.setup, &settings.verify].into_iter().flatten();
        let lines = lines.filter(|line| !settings.tracked_lines.contains(*line));
        let private =
            agent_folders::copies(settings, &self.environment, &|path: &PathBuf| resolve_path(path, &self.top, home));
        let paths = More {
            mode: settings.sandbox.unwrap_or(self.config.sandbox),
            home: settings.home.unwrap_or_default(),
            readable: settings.readable.iter().map(|path| resolve_path(path, &self.top, home)).collect(),
            writable: settings.writable.iter().map(|path| resolve_path(path, &self.top, home)).collect(),
            private,
            line_paths: lines.flat_map(|line| named_in(line, home)).collect(),
        };
        Policy { paths, network: settings.network.unwrap_or(self.config.network) }
    }

    /// Returns what attempts are executed with here.
    pub(super) fn handles(&self) -> Handles {
        Handles {
            host: self.host.clone(),
            schemas: self.schemas.clone(),
            secrets: self.secrets.clone(),
            lives: self.lives.clone(),
            sandbox: self.sandbox.clone(),
            home: self.user_home.clone(),
            supervisor: self.supervisor.clone(),
        }
    }

    /// Returns how much one attempt of an executor can use: by the executor's own settings, then by
    /// those for all, then half of the machine's memory. Settings in files of the work tree only
    /// lower it.
    pub(super) fn limits(&self, settings: &Executor) -> Limits {
        let half = Limits { memory: Some(machine_memory() / 2), ..Limits::default() };
        let all = &self.config;
        settings.limits.or(all.limits).or(half).at_most(settings.tracked_limits).at_most(all.tracked_limits)
    }
}

/// Returns how worktrees are made for a repository: outside of it, in the user's cache.
pub(crate) fn host(repository: &Repository) -> Result<Host, NoCache> {
    let (config, environment) = (&repository.config, &repository.environment);
    let root = match &config.workspace_root {
        Some(root) => repository.below_top(root),
        None => user_folder(environment, "XDG_CACHE_HOME", ".cache").ok_or(NoCache)?.join(FOLDER),
    };
    let known = KnownFolders::read(&repository.store);
    let mut host = Host::new(repository.store.clone(), root.join(&known.name));
    host.earlier = known.used.into_iter().filter(|folder| *folder != host.settings.root).collect();
    shorten_private(&mut host, environment);
    host.settings = WorktreeSettings {
        inputs: config.inputs.clone(),
        outputs: config.outputs.clone(),
        max_product: config.max_product_size,
        copy: config.workspace_copy.clone(),
        link: config.workspace_link.clone(),
        lfs: config.workspace_lfs,
        sparse: config.workspace_sparse,
        give_refs: config.workspace_refs,
        submodules: config.workspace_submodules,
        capture_submodules: config.capture_submodules,
        capture_time: config.capture_timeout,
        user: config.user.clone(),
        ..host.settings
    };
    host.cap = config.workspace_cap;
    // Each attempt sets its own, because only it knows how it was confined.
    host.filters = Filters::Nowhere;
    host.gate = config.gate();
    host.path.clone_from(&environment.path);
    host.user_files = user_folder(environment, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("git"));
    Ok(host)
}

fn absolute(environment: &Environment, variable: &str) -> Option<PathBuf> {
    environment.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the folder that a variable names, or its default below the home directory.
pub(super) fn user_folder(environment: &Environment, variable: &str, default: &str) -> Option<PathBuf> {
    absolute(environment, variable).or_else(|| Some(absolute(environment, "HOME")?.join(default)))
}

/// Moves the workers' private files below a folder of temporary files if their path is too long for
/// sockets. Without one that is short and can be written to, they stay, and sockets may fail. Sets
/// the remark of the host if a good `TMPDIR` is not used.
fn shorten_private(host: &mut Host, environment: &Environment) {
    let private = &mut host.settings.private;
    if private.as_os_str().len() + BELOW_PRIVATE <= MAX_TMP_PATH {
        return;
    }
    let from_variable = absolute(environment, "TMPDIR");
    let places = from_variable
        .iter()
        .filter(|path| path.as_os_str().len() <= MAX_TMP_PATH / 2)
        .cloned()
        .chain([PathBuf::from("/tmp")]);
    let user = rustix::process::geteuid().as_raw();
    let found = places.map(|place| place.join(format!("git-handoff-{user}"))).find(|folder| is_ours(folder, user));
    let passed_over =
        from_variable.filter(|folder| folder.as_os_str().len() > MAX_TMP_PATH / 2 && temporary::is_writable(folder));
    host.remark = found.as_ref().zip(passed_over).map(|(folder, unused)| {
        format!(
            "TMPDIR is too long for sockets ({}); the temporary files of workers go to {}",
            unused.display(),
            folder.display()
        )
    });
    *private = found.unwrap_or_else(|| private.clone());
}

/// Returns true if a folder belongs to us and can be written to, or can be made.
fn is_ours(folder: &Path, user: u32) -> bool {
    match std::fs::symlink_metadata(folder) {
        Ok(meta) => meta.is_dir() && meta.uid() == user && temporary::is_writable(folder),
        Err(error) => {
            error.kind() == std::io::ErrorKind::NotFound && folder.parent().is_some_and(temporary::is_writable)
        }
    }
}

/// Finds out how workers of this repository can be confined, unless no executor asks for that.
/// `program` confines them.
fn sandbox(repository: &Repository, host: &Host, program: Option<&Path>) -> Sandbox {
    let (environment, config, store) = (&repository.environment, &repository.config, &repository.store);
    let mut modes = config.executors.values().chain(config.subagents.values()).filter_map(|executor| executor.sandbox);
    if config.sandbox == Asked::None && modes.all(|mode| mode == Asked::None) {
        return Sandbox::none();
    }
    let mut never: Vec<PathBuf> = vec![host.settings.root.clone(), host.settings.private.clone()];
    // The attempts of other repositories lie beside ours.
    never.extend(host.earlier.iter().cloned());
    never.extend(host.settings.root.parent().filter(|all| all.ends_with(FOLDER)).map(Path::to_owned));
    never.extend(config.signing_key.as_deref().map(|key| repository.below_top(Path::new(key))));
    never.extend(["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST"].into_iter().filter_map(|name| {
        let value = environment.variable(name)?;
        let path = value.strip_prefix("unix://").unwrap_or(&value);
        Some(PathBuf::from(path)).filter(|path| path.is_absolute())
    }));
    let home = absolute(environment, "HOME");
    let top = store.work_dir().unwrap_or_else(|| store.common_dir());
    let worked = config.executors.values().chain(config.subagents.values()).flat_map(|executor| {
        let own_home = home.clone().filter(|_| executor.home == Some(Home::Real));
        let writable = executor.writable.iter().map(|path| resolve_path(path, &top, home.as_deref()));
        writable.chain(own_home).collect::<Vec<_>>()
    });
    let agents = PRESETS.values().flat_map(|preset| &preset.folders).map(|folder| environment.place_of(folder));
    let outside = configured_files(&config.outside, home.as_deref(), host.user_files.as_deref());
    let around = Surroundings {
        worked: worked.map(canonical_or_same).collect(),
        outside: outside.into_iter().collect(),
        agents: agents.filter(|folder| folder.is_absolute()).collect(),
        variables: command::variables(&environment.variables),
        home,
        path: folders(environment.path.as_ref()),
        git_dirs: [store.common_dir(), store.git_dir()].map(canonical_or_same).to_vec(),
        objects: object_dirs(store, host.settings.submodules),
        remotes: if host.settings.give_refs { workspace::remotes_here(store) } else { Vec::new() },
        work_trees: config::work_trees(store),
        programs: environment.program.iter().cloned().collect(),
        moved: moved_xdg(environment),
        private: host.settings.private.clone(),
        trees: canonical_or_same(host.settings.root.clone()),
        never: never.into_iter().map(canonical_or_same).collect(),
        ..Surroundings::default()
    };
    Sandbox::probe(around, program, environment.path.as_ref())
}

/// Returns the folders that workers read objects from: those of git and of checked-out
/// submodules.
fn object_dirs(store: &Store, submodules: bool) -> Vec<PathBuf> {
    let mut folders = store.object_dirs().unwrap_or_else(|_| vec![store.objects_dir()]);
    if submodules {
        folders.extend(workspace::object_dirs(store));
    }
    folders
}

/// Returns the XDG folders that variables move, each with its default, unless the folder contains
/// the home directory.
fn moved_xdg(environment: &Environment) -> Vec<(&'static str, PathBuf)> {
    let home = environment.variable("HOME").map(PathBuf::from).unwrap_or_default();
    let moved = XDG.into_iter().filter_map(|(name, usual)| Some((usual, absolute(environment, name)?)));
    moved.filter(|(usual, folder)| *folder != home.join(usual) && !home.starts_with(folder)).collect()
}

/// Returns the files that git or this program reads or runs by the user's configuration: the files
/// of the configuration, the absolute paths in it, and git's default files in `git_folder`.
///
/// A worker that could write one of them could run any program with the next git command.
fn configured_files(outside: &config::Outside, home: Option<&Path>, git_folder: Option<&Path>) -> BTreeSet<PathBuf> {
    // A relative path stays relative here, and is dropped below.
    // A value can have a program after `!`, or a name before `:`.
    let values = outside.values.iter().map(|value| value.replace(['!', ':'], " "));
    let from_values = values.flat_map(|value| named_in(&value, home));
    let defaults = git_folder.into_iter().flat_map(|folder| GIT_DEFAULTS.map(|name| folder.join(name)));
    let files = outside.files.iter().chain(&outside.places).map(|path| resolve_path(path, Path::new(""), home));
    files.chain(from_values).chain(defaults).filter(|path| path.is_absolute()).collect()
}

/// Resolves a path in a setting: `~` is the home directory, and relative paths start at `top`.
fn resolve_path(path: &Path, top: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => top.join(path),
    }
}

/// Returns the memory of this machine in bytes.
fn machine_memory() -> u64 {
    let system = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the number is narrower on machines of 32 bits")]
    let units = u64::from(system.totalram);
    units.saturating_mul(system.mem_unit.into())
}

/// There is no directory for worktrees.
#[derive(Debug, thiserror::Error)]
#[error("cannot choose a directory for worktrees: neither XDG_CACHE_HOME nor HOME is set")]
pub struct NoCache;
