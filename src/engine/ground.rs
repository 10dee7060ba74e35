//! What a sandbox has to know of this machine and this repository, and what the configuration adds to it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::{self, Executor};
use crate::git::store::Store;
use crate::model::confinement::{Asked, Home};
use crate::model::limits::Limits;
use crate::model::plan::Item;
use crate::repository::{Environment, Repository};
use crate::worker::host::Host;
use crate::worker::sandbox::{Confinement, More, Refused, Sandbox, Surroundings, TOOLS, folders, named_in};
use crate::worker::workspace;

use super::machine::Machine;
use super::{command, machine, outside};

/// The longest path of a folder for temporary files: programs put sockets below it whose names, with theirs, have at most 108 bytes.
const LONGEST_TMP: usize = 70;

/// Variables of the XDG base directories, each with the place below the home directory that it moves.
const XDG: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// What a name below the folder of private files adds to its path.
const BELOW: usize = "/0123456789ab/home".len();

/// Says where workers' private files lie: beside their worktrees, or, where that path is too long, below the folder of all temporary
/// files, unless somebody else has taken that name there: then sockets may have no room, and all else works.
pub(super) fn shorten(host: &mut Host, environment: &Environment) {
    if host.private.as_os_str().len() + BELOW <= LONGEST_TMP {
        return;
    }
    let temporary = environment.variable("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let temporary = temporary.filter(|path| path.as_os_str().len() <= LONGEST_TMP / 2).unwrap_or_else(|| "/tmp".into());
    let user = rustix::process::geteuid().as_raw();
    let short = temporary.join(format!("git-handoff-{user}"));
    let is_free = match std::fs::symlink_metadata(&short) {
        Ok(meta) => meta.is_dir() && meta.uid() == user,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_free {
        host.private = short;
    }
}

/// Returns the folders that XDG variables name in the place of the usual ones, which hold no home directory.
fn moved(environment: &Environment) -> Vec<(&'static str, PathBuf)> {
    let home = environment.variable("HOME").map(PathBuf::from).unwrap_or_default();
    let named = XDG.into_iter().filter_map(|(name, usual)| Some((usual, PathBuf::from(environment.variable(name)?))));
    let is_moved = |usual: &str, folder: &Path| *folder != home.join(usual) && !home.starts_with(folder);
    named.filter(|(usual, folder)| folder.is_absolute() && is_moved(usual, folder)).collect()
}

/// Returns the folders that workers read objects from: those of git, of submodules that are checked out, and the contents of
/// git-annex.
fn objects(store: &Store, submodules: bool) -> Vec<PathBuf> {
    let mut folders = store.object_dirs().unwrap_or_else(|_| vec![store.objects_dir()]);
    folders.push(store.common_dir().join("annex/objects"));
    if submodules {
        folders.extend(workspace::object_dirs(store));
    }
    folders
}

/// Finds out what workers on this repository can be confined with, unless nobody wants them to be; `program` confines them.
pub(super) fn sandbox(repository: &Repository, host: &Host, program: Option<&Path>) -> Sandbox {
    let environment = &repository.environment;
    let config = &repository.config;
    let mut asked = config.executors.values().chain(config.subagents.values()).filter_map(|executor| executor.sandbox);
    if config.sandbox == Asked::None && asked.all(|asked| asked == Asked::None) {
        return Sandbox::none();
    }
    let store = &repository.store;
    let mut never: Vec<PathBuf> = vec![host.root.clone(), host.private.clone(), host.meeting.clone()];
    // Attempts of other repositories lie beside ours.
    never.extend(host.root.parent().filter(|all| all.ends_with(machine::FOLDER)).map(Path::to_owned));
    never.extend(config.signing_key.as_deref().map(|key| repository.below_top(Path::new(key))));
    never.extend(["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST"].into_iter().filter_map(|name| {
        let value = environment.variable(name)?;
        let path = value.strip_prefix("unix://").unwrap_or(&value);
        Some(PathBuf::from(path)).filter(|path| path.is_absolute())
    }));
    let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
    let home = environment.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let top = store.work_dir().unwrap_or_else(|| store.common_dir());
    let executors = config.executors.values().chain(config.subagents.values());
    let worked = executors.flat_map(|executor| {
        let own_home = home.clone().filter(|_| executor.home == Some(Home::Real));
        executor.writable.iter().map(|path| place(path, &top, home.as_deref())).chain(own_home).collect::<Vec<_>>()
    });
    let outside = outside::configured(&config.outside, home.as_deref(), host.user_files.as_deref());
    let around = Surroundings {
        worked: worked.map(real).collect(),
        outside: outside.into_iter().collect(),
        variables: command::variables(&environment.variables),
        home,
        path: folders(environment.path.as_ref()),
        git_dirs: [store.common_dir(), store.git_dir()].map(real).to_vec(),
        objects: objects(store, host.submodules),
        remotes: if host.give_refs { workspace::remotes_here(store) } else { Vec::new() },
        work_trees: config::work_trees(store),
        programs: environment.program.iter().cloned().collect(),
        moved: moved(environment),
        private: host.private.clone(),
        trees: real(host.root.clone()),
        never: never.into_iter().map(real).collect(),
        ..Surroundings::default()
    };
    Sandbox::probe(around, program, environment.path.as_ref())
}

/// Returns the setting by which the agent that an item runs would find its login, and the place of that below the home directory;
/// none where it is found, where another way to log in is set, or where we do not know the agent.
pub(super) fn login_out_of_reach(repository: &Repository, item: &Item) -> Option<(String, &'static str)> {
    let config = &repository.config;
    let home = PathBuf::from(repository.environment.variable("HOME")?);
    let resolved = command::resolve(item, config).ok()?;
    let settings = &resolved.settings;
    if settings.sandbox.unwrap_or(config.sandbox) == Asked::None || !settings.secret_env.is_empty() {
        return None;
    }
    let line = settings.command.as_ref()?;
    let runs = |agent: &str| line.split_whitespace().any(|word| word.rsplit('/').next() == Some(agent));
    let is_given = |place: &str| {
        let mut given = settings.readable.iter().chain(&settings.writable);
        let below = |path: &PathBuf| path.strip_prefix("~").or_else(|_| path.strip_prefix(&home)).map(Path::to_owned);
        given.any(|path| below(path).is_ok_and(|below| Path::new(place).starts_with(below)))
    };
    let (_, place) = TOOLS
        .logins
        .iter()
        .copied()
        .find(|(agent, place)| runs(agent) && !is_given(place) && home.join(place).exists())?;
    let key = match resolved.subagent {
        Some(name) => format!("handoff.subagent.{name}.writable"),
        None => format!("handoff.executor.{}.writable", item.executor),
    };
    Some((key, place))
}

/// Says how an executor's workers are confined; refuses where what is asked for cannot be enforced.
pub(super) fn confine(machine: &Machine, settings: &Executor) -> Result<Option<Confinement>, Refused> {
    let config = &machine.config;
    let home = machine.home.as_deref();
    let place = |path: &PathBuf| place(path, &machine.top, home);
    // A commit changes what stands in the work tree, and gives nobody a file.
    let lines = [&settings.command, &settings.setup, &settings.verify].into_iter().flatten();
    let lines = lines.filter(|line| !settings.tracked_lines.contains(*line));
    let more = More {
        asked: settings.sandbox.unwrap_or(config.sandbox),
        home: settings.home.unwrap_or_default(),
        readable: settings.readable.iter().map(place).collect(),
        writable: settings.writable.iter().map(place).collect(),
        named: lines.flat_map(|line| named_in(line, home)).collect(),
    };
    machine.sandbox.confine(&more, settings.network.unwrap_or(config.network))
}

/// Returns where a path lies that a setting names.
pub(super) fn place(path: &Path, top: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => top.join(path),
    }
}

/// Returns how much one attempt of an executor may use: its own word counts before that for all; of memory, half of the machine's where
/// nobody says anything. What stands in files inside the work tree lowers it, and raises nothing.
pub(super) fn limits(machine: &Machine, settings: &Executor) -> Limits {
    let memory = machine_memory() / 2;
    let half = Limits { memory: Some(memory), ..Limits::default() };
    let all = &machine.config;
    settings.limits.or(all.limits).or(half).at_most(settings.tracked_limits).at_most(all.tracked_limits)
}

/// Returns how much memory this machine has, in bytes.
fn machine_memory() -> u64 {
    let system = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the number is narrower on machines of 32 bits")]
    let units = u64::from(system.totalram);
    units.saturating_mul(system.mem_unit.into())
}
