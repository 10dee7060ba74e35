//! The only caller of the `git` program, except for the user's hooks (`hook`).
//!
//! git runs with a fixed locale, without hooks, without a file system monitor and without `GIT_*`
//! variables from the environment, so that only the given directories determine its repository.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use super::cancellation::{self, Cancellation, Idle};
use super::group_activity;
use super::limits::{OUT_OF_MEMORY, bound_memory, limited};
use super::memory_limit;
use super::trace;
use super::variables::REPOSITORY_VARIABLES;

/// Settings for every call, which override the configuration.
const ALWAYS: [&str; 5] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.trustctime=true", "gc.auto=0", "maintenance.auto=false"];

/// The setting by which git takes no folder for a bare repository that is not named explicitly.
pub(super) const EXPLICIT_ONLY: &str = "safe.bareRepository=explicit";

/// The oldest git that reads attributes from a tree instead of the worker's files.
const ATTRIBUTES_OF_TREES: (u32, u32) = (2, 41);

/// The oldest git that matches paths against sparse checkout patterns.
const SPARSE_RULES: (u32, u32) = (2, 41);

/// Returns true if the `git` program reads attributes from a tree. Asks once.
pub fn takes_attributes_from_trees() -> bool {
    version() >= Some(ATTRIBUTES_OF_TREES)
}

/// Returns true if the `git` program has `git sparse-checkout check-rules`.
pub fn checks_sparse_rules() -> bool {
    version() >= Some(SPARSE_RULES)
}

/// Returns the version of the `git` program, or `None` if it is unknown. Asks once.
fn version() -> Option<(u32, u32)> {
    static ANSWER: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let output = Command::new("git").arg("version").stdin(Stdio::null()).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let mut numbers = text.trim_start_matches("git version ").split('.').map_while(|part| part.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?))
    })
}

/// A builder for one `git` command.
#[derive(Debug)]
pub struct Git {
    command: Command,
    input: Vec<u8>,
    arguments: Vec<OsString>,
    stdin: Option<File>,
    largest_file: Option<u64>,
    most_memory: Option<u64>,
    within: Option<Duration>,
    idle: Option<Duration>,
    stop: Option<Cancellation>,
}

impl Git {
    /// Creates a command with `--git-dir`. Programs that git starts take no folder of a work tree
    /// for a bare repository.
    pub fn new(git_dir: &Path) -> Self {
        Self::without_variables().config(EXPLICIT_ONLY).env("GIT_DIR", git_dir)
    }

    /// Creates a command that discovers its repository from a folder, as if the user ran it there.
    pub(super) fn found_from(folder: &Path) -> Self {
        Self::without_variables().in_dir(folder)
    }

    fn without_variables() -> Self {
        let mut git = Self::searching();
        for variable in REPOSITORY_VARIABLES {
            git.command.env_remove(variable);
        }
        git
    }

    /// Creates a command that discovers its repository with the variables of our environment.
    pub(super) fn searching() -> Self {
        let mut command = Command::new("git");
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in ALWAYS {
            command.arg("-c").arg(setting);
        }
        Self {
            command,
            input: Vec::new(),
            arguments: Vec::new(),
            stdin: None,
            largest_file: None,
            most_memory: None,
            within: None,
            idle: None,
            stop: None,
        }
    }

    /// Sets the work tree.
    #[must_use]
    pub fn work_tree(mut self, dir: &Path) -> Self {
        self.command.env("GIT_WORK_TREE", dir).current_dir(dir);
        self
    }

    /// Sets the working directory, to which relative paths refer.
    #[must_use]
    pub fn in_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets a configuration value for this call.
    #[must_use]
    pub fn config(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.command.arg("-c").arg(setting);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.arguments.push(arg.as_ref().to_owned());
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(self, args: I) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets the bytes of standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Uses a file as standard input, from its current position.
    #[must_use]
    pub fn stdin(mut self, file: File) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Limits the size of any file that git or its children write, in bytes.
    ///
    /// git limits what it receives but not what it fetches.
    #[must_use]
    pub fn largest_file(mut self, bytes: u64) -> Self {
        self.largest_file = Some(bytes);
        self
    }

    /// Limits git's private memory in bytes; mapped files do not count. Linux only.
    #[must_use]
    pub fn most_memory(mut self, bytes: Option<u64>) -> Self {
        self.most_memory = bytes;
        self
    }

    /// Kills git and its children after this time.
    ///
    /// The command gets its own process group, so it cannot ask for a password on the terminal.
    #[must_use]
    pub fn within(mut self, time: Option<Duration>) -> Self {
        self.within = time;
        self
    }

    /// Kills git and its children after this time, up to twice as long, without any progress.
    ///
    /// As for [`Git::within`], the command gets its own process group.
    #[must_use]
    pub fn idle(mut self, time: Option<Duration>) -> Self {
        self.idle = time;
        self
    }

    /// Kills git and its children a few seconds after a cancellation.
    #[must_use]
    pub fn unless(mut self, stop: Cancellation) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Runs git and returns its output. Any exit code other than 0 is an error.
    pub fn run(self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.stream(&mut |chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(out)
    }

    /// Runs git and returns its trimmed output as text.
    pub fn line(self) -> Result<String, Error> {
        let out = self.run()?;
        Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
    }

    /// Runs git and returns true for exit code 0, false for 1. Any other code is an error.
    pub fn succeeds(self) -> Result<bool, Error> {
        match self.run() {
            Ok(_) => Ok(true),
            Err(Error::Failed { code: Some(1), .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs git and passes its output to `sink` in pieces.
    pub fn stream(mut self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<(), Error> {
        let traced = trace::Started::with(self.arguments.iter().map(OsString::as_os_str));
        let child = self.spawn()?;
        let ended = self.serve(child, sink)?;
        traced.inspect(|traced| traced.ended(ended.status));
        self.judge(ended)
    }

    /// Returns true if the call is ended from outside if it takes too long or is no longer wanted.
    fn is_bounded(&self) -> bool {
        self.within.is_some() || self.idle.is_some() || self.stop.is_some()
    }

    fn spawn(&mut self) -> Result<Child, Error> {
        if let Some(bytes) = self.largest_file {
            self.command = limited(&self.command, bytes);
        }
        if let Some(file) = self.stdin.take() {
            self.command.stdin(file);
        }
        if !self.input.is_empty() {
            self.command.stdin(Stdio::piped());
        }
        if self.is_bounded() {
            std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        }
        let child = self.command.spawn().map_err(Error::Spawn)?;
        if let Some(bytes) = self.most_memory {
            bound_memory(child.id(), bytes);
        }
        Ok(child)
    }

    /// Writes the input and reads the output until the call ends.
    fn serve(&mut self, mut child: Child, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<Ended, Error> {
        let bounded = self.is_bounded();
        let group = if bounded { Group::from_child(&child) } else { Group::default() };
        let late = AtomicBool::new(false);
        let (done, over) = mpsc::channel::<()>();
        let input = std::mem::take(&mut self.input);
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let (piped, messages, status) = std::thread::scope(|scope| {
            // If no thread can be started, the command fails as if git had not started.
            let threads = || {
                if bounded {
                    let (late, within, stop) = (&late, self.within, self.stop.clone());
                    let idle = self.idle.map(|time| Idle::new(time, move || group.activity()));
                    std::thread::Builder::new().spawn_scoped(scope, move || {
                        if cancellation::outlasts(&over, within, idle, stop.as_ref()) {
                            late.store(true, Ordering::Relaxed);
                            group.end();
                        }
                    })?;
                }
                if let Some(mut pipe) = stdin {
                    std::thread::Builder::new().spawn_scoped(scope, move || pipe.write_all(&input))?;
                }
                std::thread::Builder::new().spawn_scoped(scope, move || memory_limit::read_stderr(&mut stderr))
            };
            let reading = threads();
            let piped = if reading.is_ok() {
                memory_limit::pump(&mut stdout, sink)
            } else {
                group.end();
                // It may just have ended by itself.
                let _ = child.kill();
                Ok(())
            };
            // git must not block on a full pipe after the sink failed.
            drop(stdout);
            let messages = reading.map(|thread| thread.join().expect("reading stderr does not panic"));
            let status = child.wait();
            drop(done);
            (piped, messages, status)
        });
        let messages = messages.map_err(Error::Spawn)?;
        let status = status.map_err(Error::Spawn)?;
        Ok(Ended { late: late.into_inner(), piped, messages: messages.unwrap_or_default(), status })
    }

    fn judge(self, ended: Ended) -> Result<(), Error> {
        if ended.late {
            let is_stopped = self.stop.is_some_and(|stop| stop.is_requested());
            return Err(match (self.within, self.idle) {
                _ if is_stopped => Error::Stopped,
                (Some(time), _) => Error::Late(time.as_secs()),
                (None, Some(time)) => Error::Idle(time.as_secs()),
                (None, None) => Error::Stopped,
            });
        }
        ended.piped.map_err(Error::Pipe)?;
        if ended.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&ended.messages).trim_end().to_owned();
        if let Some(bytes) = self.most_memory.filter(|_| stderr.contains(OUT_OF_MEMORY)) {
            return Err(Error::Memory(bytes));
        }
        let words: Vec<_> = self.arguments.iter().map(|arg| arg.to_string_lossy()).collect();
        Err(Error::Failed { call: format!("git {}", words.join(" ")), code: ended.status.code(), stderr })
    }
}

/// The end of a call.
struct Ended {
    /// Whether it was ended from outside.
    late: bool,
    /// Whether the output was passed on.
    piped: io::Result<()>,
    /// Its messages, without the middle of long ones.
    messages: Vec<u8>,
    status: ExitStatus,
}

/// The process group of a limited command, or `None` for one in our own group.
#[derive(Clone, Copy, Default)]
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn from_child(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw))
    }

    /// Returns a number that changes as long as the group reads, writes or computes.
    fn activity(self) -> u64 {
        self.0.map_or(0, |group| group_activity::count(group.as_raw_nonzero().get()))
    }

    fn end(self) {
        if let Some(group) = self.0 {
            // It may just have ended by itself.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

errors! {
    /// Why a `git` command failed.
    #[derive(Debug, thiserror::Error)] pub enum Error = "git";
    Spawn(#[source] io::Error): "cannot run git";
    Pipe(#[source] io::Error): "cannot process git's output";
    Late(u64): "git was not done after {0} seconds";
    Idle(u64): "git made no progress for {0} seconds (handoff.remoteTimeout)";
    Memory(u64): "git needs more than {0} bytes of memory for it";
    Stopped: "git was cancelled";
    Failed { call: String, code: Option<i32>, stderr: String }:
        "`{call}` failed{}: {stderr}" [.code.map(|c| format!(" with exit code {c}")).unwrap_or_default()];
}
