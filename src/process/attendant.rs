//! Our helper processes of an attempt. Each is a start of our program with a special first
//! argument.
//!
//! `git-handoff` can serve as each of them. But it is large, and loading it takes longer than the
//! rest of a short attempt, so a small program is installed beside it and used if present.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::confine;
use super::supervisor;
use crate::sandbox::probe;

/// The name of the small program.
pub const NAME: &str = "git-handoff-attempt";

/// The name of the large program beside it.
const LARGE: &str = "git-handoff";

/// The command of the large program that takes the words of [`COMMANDS`].
const EXECUTE: &str = "attempt";

/// The small program's answer to a request for its version; its messages change with versions.
pub const VERSION: &str = concat!("git-handoff-attempt ", env!("CARGO_PKG_VERSION"));

/// Our program, opened once and started by its handle, so that a later replacement at its path is
/// not run.
#[derive(Clone, Debug)]
pub struct Attendant {
    path: PathBuf,
    /// `None` if it cannot be opened; then it cannot be started either.
    handle: Option<Arc<OwnedFd>>,
}

impl Attendant {
    /// Opens the small program beside `program` if it has this version, otherwise `program` itself.
    pub(crate) fn next_to(program: &Path) -> Self {
        let path = next_to(program);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).ok().map(Arc::new);
        Self { path, handle }
    }

    /// Returns its path when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that starts it, valid while this lives.
    pub(crate) fn start(&self) -> PathBuf {
        match &self.handle {
            Some(handle) => PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
            None => self.path.clone(),
        }
    }
}

/// Serves as the helper that a driver or supervisor started, by the arguments; returns `None` if
/// this is an ordinary start.
///
/// Call this first in a program's `main`.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        supervisor::ARGUMENT => Some(supervisor::serve(arguments)),
        confine::ARGUMENT => Some(confine::serve(arguments)),
        probe::ARGUMENT => Some(confine::probe()),
        probe::OVERLAYS => Some(probe::overlays(arguments)),
        probe::SHARED => Some(probe::shared_memory()),
        _ => None,
    }
}

/// The commands of the small program, which the large one executes.
pub const COMMANDS: [&str; 2] = ["run", "spec"];

/// Replaces this process by `git-handoff` beside `program`, which executes one of [`COMMANDS`].
/// Returns the error if that fails.
///
/// The small program stays small this way: it does not contain the rest of the library.
pub fn execute(program: &Path, arguments: impl Iterator<Item = OsString>) -> io::Error {
    let large = match fs::canonicalize(program) {
        Ok(program) => program.with_file_name(LARGE),
        Err(error) => return error,
    };
    Command::new(large).arg(EXECUTE).args(arguments).exec()
}

/// Returns the small program beside `program` if it has this version, otherwise `program`.
fn next_to(program: &Path) -> PathBuf {
    let small = fs::canonicalize(program).map(|program| program.with_file_name(NAME)).ok();
    small
        .filter(|small| {
            let output = Command::new(small).arg("--version").env_clear().stdin(Stdio::null()).output();
            output.is_ok_and(|output| output.status.success() && output.stdout.trim_ascii_end() == VERSION.as_bytes())
        })
        .unwrap_or_else(|| program.to_owned())
}
