//! Starts a command with its own settings, which no process of ours uses.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::process::Command;

use rustix::process::{Resource, Rlimit};

use crate::process::agent;
use crate::sandbox::ExecSetup;

impl ExecSetup {
    /// Returns the command, looked up in its own `PATH`.
    pub(crate) fn command(&self, program: &OsStr, arguments: impl Iterator<Item = OsString>, stdin: File) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).stdin(stdin).env_clear().envs(&self.env).current_dir(&self.folder);
        let bounds = self.bounds();
        agent::before(&mut command, move || {
            bounds.iter().try_for_each(|(resource, most)| rustix::process::setrlimit(*resource, *most))
        });
        command
    }

    /// Returns the limits that the kernel enforces for each process.
    fn bounds(&self) -> Vec<(Resource, Rlimit)> {
        let limits = &self.limits;
        // No file may exceed the disk limit of the whole attempt.
        let file_size = limits.file_size.into_iter().chain(limits.disk).min();
        let all =
            [(Resource::Cpu, limits.cpu_time), (Resource::Nofile, limits.open_files), (Resource::Fsize, file_size)];
        all.into_iter()
            .filter_map(|(resource, most)| {
                let most = most?;
                let most = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
                Some((resource, Rlimit { current: Some(most), maximum: Some(most) }))
            })
            .collect()
    }
}
