//! The processes of ours around an attempt, each a start of a program with a word as its first argument.
//!
//! `git-handoff` serves as each of them. It is large, and linking it at its start takes longer than all else that is done for an attempt
//! of one small command, so that a program which can do nothing else is installed beside it and serves in its place where it is there.

#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::ExitCode;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

#[cfg(target_os = "linux")]
use super::sandbox::{confine, probe};
#[cfg(target_os = "linux")]
use super::supervisor;

/// The name of the small program.
pub const NAME: &str = "git-handoff-attempt";

/// What the small program says when it is asked for its version; what it is told changes with versions.
pub const VERSION: &str = concat!("git-handoff-attempt ", env!("CARGO_PKG_VERSION"));

/// A program of ours that was opened once, and is started by its handle: what comes to lie at its path since is not it.
#[derive(Clone, Debug)]
pub struct Attendant {
    path: PathBuf,
    /// Nothing if it could not be opened, and so cannot be started either.
    handle: Option<Arc<OwnedFd>>,
}

impl Attendant {
    /// Opens the small program where it lies beside `program` and is of this version, or else `program` itself.
    pub(crate) fn beside(program: &Path) -> Self {
        let path = beside(program);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).ok().map(Arc::new);
        Self { path, handle }
    }

    /// Returns where it lay when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path by which it is started, as long as this lives.
    pub(crate) fn start(&self) -> PathBuf {
        match &self.handle {
            Some(handle) => PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
            None => self.path.clone(),
        }
    }
}

/// Does what this process was started for by a driver or a supervisor, as its arguments say; none where somebody else started it.
///
/// For a program's `main`, before it does anything else.
#[cfg(target_os = "linux")]
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        supervisor::ARGUMENT => Some(supervisor::serve(arguments)),
        confine::ARGUMENT => Some(confine::serve(arguments)),
        probe::ARGUMENT => Some(confine::probe()),
        probe::OVERLAYS => Some(probe::overlays(arguments)),
        _ => None,
    }
}

/// Returns the small program where it lies beside `program` and is of this version, or else `program` itself.
fn beside(program: &Path) -> PathBuf {
    let small = fs::canonicalize(program).map(|program| program.with_file_name(NAME)).ok();
    let is_ours = |small: &PathBuf| {
        let said = Command::new(small).arg("--version").env_clear().stdin(Stdio::null()).output();
        said.is_ok_and(|said| said.status.success() && said.stdout.trim_ascii_end() == VERSION.as_bytes())
    };
    small.filter(is_ours).unwrap_or_else(|| program.to_owned())
}
