//! How much of the machine a call of git may use.

use std::process::{Command, Stdio};

/// What git says when it was refused memory.
pub(super) const OUT_OF_MEMORY: &str = "Out of memory";

/// Bounds the memory of a process that has just begun.
pub(super) fn bound_memory(process: u32, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit};
        let most = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            // One that is over already needs none.
            let _ = rustix::process::prlimit(Some(process), Resource::Data, most);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (process, bytes);
}

/// Returns the same call under a shell that sets the limit first; a write beyond it fails instead of killing.
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
