//! The process-level inputs of every command. The only reader of the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git_handoff::clock::Clock;
use git_handoff::git::trace;
use git_handoff::model::credential::redact_eagerly;
use git_handoff::model::entry::Product;
use git_handoff::repository::config::Paging;
use git_handoff::repository::{Environment, Repository, read_up_to};

use super::Failure;
use super::output::{self, Output};
use super::pager::Pager;

/// Pins the clock for tests; entries written under it record that.
const CLOCK: &str = "HANDOFF_CLOCK";

/// Asks for a trace, as `GIT_TRACE` asks git: `1` or `2` for standard error, or an absolute path.
const TRACE: &str = "HANDOFF_TRACE";

/// Reads the environment.
pub(crate) fn environment(actor: Option<String>) -> Result<Environment, Failure> {
    let variables: BTreeMap<String, OsString> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let clock = match variables.get(CLOCK) {
        None => Clock::System,
        Some(text) => {
            let moment = text.to_str().and_then(|text| text.parse().ok());
            Clock::Pinned(moment.ok_or_else(|| {
                let text = text.to_string_lossy();
                Failure::usage(format!("{CLOCK} is {text:?}, which is no time like 2026-06-04T02:00:00.000Z"))
            })?)
        }
    };
    let path = variables.get("PATH").and_then(|path| {
        let absolute: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        std::env::join_paths(absolute).ok()
    });
    Ok(Environment {
        clock,
        directory: std::env::current_dir().map_err(|e| Failure::io("the current directory is gone", &e))?,
        actor,
        variables: Arc::new(variables),
        path,
        program: this_program(),
        may_ask: Output::can_ask(),
        zone: jiff::tz::TimeZone::system,
    })
}

/// Starts the trace if the environment asks for it. A file that cannot be opened gets none.
pub(crate) fn trace() {
    let Some(setting) = std::env::var_os(TRACE) else { return };
    let file = match setting.to_str() {
        Some("1" | "2" | "true") => output::standard_error(),
        _ if Path::new(&setting).is_absolute() => {
            OpenOptions::new().append(true).create(true).mode(0o600).open(&setting)
        }
        _ => return,
    };
    if let Ok(file) = file {
        trace::start(file, |line| redact_eagerly(line).into_owned());
    }
}

/// Opens the repository that contains the current directory; with `anywhere`, none is required.
pub(crate) fn open(environment: Environment, anywhere: bool) -> Result<Repository, Failure> {
    Ok(if anywhere { Repository::open_anywhere(environment)? } else { Repository::open(environment)? })
}

/// Returns this program's executable, to start helper processes, or `None` if unknown.
fn this_program() -> Option<PathBuf> {
    // On Linux this is the running executable, even if its file was replaced.
    let running = Path::new("/proc/self/exe");
    if running.exists() { Some(running.to_owned()) } else { std::env::current_exe().ok() }
}

/// Returns the pager that git would use for output to a terminal, or `None` if git already started
/// one or none is configured.
pub(super) fn pager(repository: &Repository, output: &Output) -> Result<Option<Pager>, Failure> {
    if !output.is_terminal() || paged_by_git() {
        return Ok(None);
    }
    let command = match &repository.config.paging {
        Paging::Off => return Ok(None),
        Paging::Through(command) if std::env::var_os("GIT_PAGER").is_none() => command.clone(),
        _ => repository.store.git().args(["var", "GIT_PAGER"]).line()?,
    };
    Ok(Some(command)
        .filter(|command| !matches!(command.as_str(), "" | "cat"))
        .map(|command| Pager::new(command, |name: &str| std::env::var_os(name).is_some())))
}

/// Returns true if output goes to git's pager and may be coloured.
pub(super) fn colors_reach_a_pager() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    paged_by_git() && !is_dumb && std::env::var_os("NO_COLOR").is_none()
}

/// Returns true if git started a pager for standard output.
fn paged_by_git() -> bool {
    std::env::var("GIT_PAGER_IN_USE").is_ok_and(|value| value == "true" || value == "1")
}

/// Returns true if a command line that cannot be parsed asks for JSON.
pub(crate) fn asks_for_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// The address space below which the C library's arenas, which take much of it and use little,
/// leave too little to threads, in bytes.
const LITTLE_SPACE: u64 = 4 << 30;

/// The variable that says how many arenas the C library makes.
const ARENAS: &str = "MALLOC_ARENA_MAX";

/// Restarts this program with one arena if its address space is limited, as by `ulimit -v`:
/// otherwise it would be ended for lack of memory of which it uses little.
pub(crate) fn restart_in_little_space() {
    use std::os::unix::process::CommandExt as _;
    let most = rustix::process::getrlimit(rustix::process::Resource::As).current;
    if most.is_none_or(|most| most >= LITTLE_SPACE) || std::env::var_os(ARENAS).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let mut command = std::process::Command::new(program);
    command.arg0(arguments.next().unwrap_or_default()).args(arguments).env(ARENAS, "1");
    // If it cannot be started, this one goes on.
    let _ = command.exec();
}

/// Runs a helper process of this program, which has no command line of its own.
#[cfg(target_os = "linux")]
pub(crate) fn serve() -> Option<std::process::ExitCode> {
    git_handoff::process::attendant::serve(std::env::args_os().skip(1))
}

/// Stores a file, or standard input for `-`, in the repository.
pub(crate) fn save(repository: &Repository, path: &Path) -> Result<Product, Failure> {
    let file = if path == Path::new("-") { stdin_file() } else { File::open(path) };
    let file = file.map_err(|e| Failure::io(&format!("{} could not be read", path.display()), &e))?;
    Ok(repository.save(path, file)?)
}

/// Reads a file, or standard input for `-`, up to a limit.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().take(limit).read_to_end(&mut bytes).map(|_| bytes)
    } else {
        read_up_to(path, limit)
    };
    read.map_err(|e| Failure::io(&format!("{} could not be read", path.display()), &e))
}

/// Opens a file, or standard input for `-`.
pub(crate) fn streamed(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new("/dev/stdin") } else { path }
}

/// Returns standard input as a file, so that a regular file can be read in place.
fn stdin_file() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}
