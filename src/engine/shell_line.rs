//! Runs command lines of the configuration in the driver's own environment, outside of any sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns a file with the standard output of a line, at its start. An error never contains it.
pub(super) fn run(
    line: &str,
    folder: &Path,
    variables: &BTreeMap<String, OsString>,
    limit: Duration,
) -> Result<File, String> {
    // A file, because a background process that keeps a pipe open would block us.
    let mut out = tempfile::tempfile().map_err(cannot_run)?;
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env_clear().envs(variables.iter());
    command.stdin(Stdio::null()).stdout(out.try_clone().map_err(cannot_run)?).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().map_err(cannot_run)?;
    let until = Instant::now() + limit;
    let status = loop {
        match child.try_wait().map_err(cannot_run)? {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            None => {
                let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
                let killed =
                    group.map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
                if killed.is_none_or(|killed| killed.is_err()) {
                    child.kill().map_err(cannot_run)?;
                }
                child.wait().map_err(cannot_run)?;
                return Err(format!("its command took longer than {} s", limit.as_secs()));
            }
        }
    };
    if !status.success() {
        return Err(format!("its command failed ({status})"));
    }
    out.rewind().map_err(cannot_run)?;
    Ok(out)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn cannot_run(error: io::Error) -> String {
    format!("cannot run its command: {error}")
}
