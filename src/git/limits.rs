//! Limits the memory and file size of a git command.

use std::process::{Command, Stdio};

/// git's message when an allocation fails.
pub(super) const OUT_OF_MEMORY: &str = "Out of memory";

/// Limits the memory of a process that just started.
pub(super) fn bound_memory(process: u32, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit};
        let most = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            // A process that has already ended needs no limit.
            let _ = rustix::process::prlimit(Some(process), Resource::Data, most);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (process, bytes);
}

/// Returns the command wrapped in a shell that limits file size. Writes beyond the limit fail
/// instead of killing git.
pub(super) fn limited(command: &Command, bytes: u64) -> Command {
    const SCRIPT: &str = r#"trap '' XFSZ; ulimit -f "$0"; exec "$@""#;
    let mut shell = Command::new("sh");
    // POSIX counts in blocks of 512 bytes.
    shell.arg("-c").arg(SCRIPT).arg((bytes / 512).to_string()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}
