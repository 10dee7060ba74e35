//! The only caller of the `git` program, but for the person's hooks (`hook`).
//!
//! git runs with a fixed locale, without hooks, without a file-system monitor and without the `GIT_*` variables of our own
//! environment, so that only the directories named here decide what it looks at.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use super::limits::{OUT_OF_MEMORY, bound_memory, limited};
use super::room;
use super::stop::{self, Stop};
use super::variables::REPOSITORY_VARIABLES;

/// Settings that hold for every call, whatever the repository's configuration says.
const ALWAYS: [&str; 5] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.trustctime=true", "gc.auto=0", "maintenance.auto=false"];

/// The oldest git that takes attributes from a tree instead of from the files that a worker left.
const ATTRIBUTES_OF_TREES: (u32, u32) = (2, 41);

/// The oldest git that says which paths the patterns of a sparse checkout match.
const SPARSE_RULES: (u32, u32) = (2, 41);

/// Returns whether the `git` program can be told to take attributes from a tree; asked once.
pub fn takes_attributes_from_trees() -> bool {
    version() >= Some(ATTRIBUTES_OF_TREES)
}

/// Returns true if the `git` program has `git sparse-checkout check-rules`.
pub fn checks_sparse_rules() -> bool {
    version() >= Some(SPARSE_RULES)
}

/// Returns the version of the `git` program, or `None` if it does not tell; asked once.
fn version() -> Option<(u32, u32)> {
    static ANSWER: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let said = Command::new("git").arg("version").stdin(Stdio::null()).output();
        let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let mut numbers = said.trim_start_matches("git version ").split('.').map_while(|part| part.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?))
    })
}

/// One call of `git`, being put together.
#[derive(Debug)]
pub struct Git {
    command: Command,
    input: Vec<u8>,
    shown: Vec<OsString>,
    stdin: Option<File>,
    largest_file: Option<u64>,
    most_memory: Option<u64>,
    within: Option<Duration>,
    stop: Option<Stop>,
}

impl Git {
    /// Starts a call with `--git-dir`.
    pub fn new(git_dir: &Path) -> Self {
        Self::without_variables().env("GIT_DIR", git_dir)
    }

    /// Starts a call that finds its repository from a folder, as if the user made it there.
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

    /// Starts a call that finds its repository by itself, as the variables of our own environment say.
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
            shown: Vec::new(),
            stdin: None,
            largest_file: None,
            most_memory: None,
            within: None,
            stop: None,
        }
    }

    /// Names the work tree.
    #[must_use]
    pub fn work_tree(mut self, dir: &Path) -> Self {
        self.command.env("GIT_WORK_TREE", dir).current_dir(dir);
        self
    }

    /// Runs it in a folder, which relative paths are relative to.
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
        self.shown.push(arg.as_ref().to_owned());
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(self, args: I) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Gives git bytes to read.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Gives git a file to read, from where it stands.
    #[must_use]
    pub fn stdin(mut self, file: File) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Has the system refuse to let git, or any program that it starts, write a file of more bytes than this.
    ///
    /// git itself bounds what it receives, but not what it fetches.
    #[must_use]
    pub fn largest_file(mut self, bytes: u64) -> Self {
        self.largest_file = Some(bytes);
        self
    }

    /// Has the system refuse git more memory than this, in bytes, that is its own: what it maps of files does not count. Only on Linux.
    #[must_use]
    pub fn most_memory(mut self, bytes: Option<u64>) -> Self {
        self.most_memory = bytes;
        self
    }

    /// Ends it, and every program that it started, unless it is done in this time.
    ///
    /// It then runs in a process group of its own, so that nobody can be asked for a password on the terminal.
    #[must_use]
    pub fn within(mut self, time: Option<Duration>) -> Self {
        self.within = time;
        self
    }

    /// Ends it, as [`Git::within`] does, a few seconds after somebody said that it is time to end.
    #[must_use]
    pub fn unless(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Runs it and returns what it printed; anything but exit code 0 is an error.
    pub fn run(self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.stream(&mut |chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(out)
    }

    /// Runs it and returns what it printed, trimmed, as text.
    pub fn line(self) -> Result<String, Error> {
        let out = self.run()?;
        Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
    }

    /// Runs it and returns whether the exit code was 0 or 1; anything else is an error.
    pub fn succeeds(self) -> Result<bool, Error> {
        match self.run() {
            Ok(_) => Ok(true),
            Err(Error::Failed { code: Some(1), .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs it and hands on what it prints piece by piece.
    pub fn stream(mut self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<(), Error> {
        if let Some(bytes) = self.largest_file {
            self.command = limited(&self.command, bytes);
        }
        if let Some(file) = self.stdin.take() {
            self.command.stdin(file);
        }
        if !self.input.is_empty() {
            self.command.stdin(Stdio::piped());
        }
        let bounded = self.within.is_some() || self.stop.is_some();
        #[cfg(unix)]
        if bounded {
            std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        }
        let mut child = self.command.spawn().map_err(Error::Spawn)?;
        let group = if bounded { Group::of(&child) } else { Group::default() };
        if let Some(bytes) = self.most_memory {
            bound_memory(child.id(), bytes);
        }
        let late = AtomicBool::new(false);
        let (done, over) = mpsc::channel::<()>();
        let input = std::mem::take(&mut self.input);
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let (piped, said, status) = std::thread::scope(|scope| {
            // Where no thread is to be had, the call ends as one that could not be started.
            let thread = || std::thread::Builder::new();
            let threads = || {
                if bounded {
                    let (late, limit) = (&late, (self.within, self.stop.clone()));
                    thread().spawn_scoped(scope, move || {
                        if stop::outlasts(&over, limit) {
                            late.store(true, Ordering::Relaxed);
                            group.end();
                        }
                    })?;
                }
                if let Some(mut pipe) = stdin {
                    thread().spawn_scoped(scope, move || pipe.write_all(&input))?;
                }
                thread().spawn_scoped(scope, move || room::said(&mut stderr))
            };
            let said = threads();
            let piped = if said.is_ok() {
                room::pump(&mut stdout, sink)
            } else {
                group.end();
                // It may have ended by itself in this moment.
                let _ = child.kill();
                Ok(())
            };
            // A sink that gave up must not leave git blocked on a full pipe.
            drop(stdout);
            let said = said.map(|said| said.join().expect("reading stderr does not panic"));
            let status = child.wait();
            drop(done);
            (piped, said, status)
        });
        let said = said.map_err(Error::Spawn)?;
        let status = status.map_err(Error::Spawn)?;
        if late.into_inner() {
            return Err(match self.within {
                Some(time) if !self.stop.is_some_and(|stop| stop.is_said()) => Error::Late(time.as_secs()),
                _ => Error::Stopped,
            });
        }
        piped.map_err(Error::Pipe)?;
        if status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).trim_end().to_owned();
        if let Some(bytes) = self.most_memory.filter(|_| said.contains(OUT_OF_MEMORY)) {
            return Err(Error::Memory(bytes));
        }
        let shown: Vec<_> = self.shown.iter().map(|arg| arg.to_string_lossy()).collect();
        Err(Error::Failed { call: format!("git {}", shown.join(" ")), code: status.code(), said })
    }
}

/// The processes that one call started; none known where the call is not bounded, and they are in our own group.
#[derive(Clone, Copy, Default)]
struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw))
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Self {
        Self()
    }

    fn end(self) {
        #[cfg(unix)]
        if let Some(group) = self.0 {
            // It may have ended by itself in this moment.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// What can go wrong with a call of `git`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the git program could not be run")]
    Spawn(#[source] io::Error),
    #[error("the output of git could not be passed on")]
    Pipe(#[source] io::Error),
    #[error("git was not done after {0} seconds")]
    Late(u64),
    #[error("git needs more than {0} bytes of memory for it")]
    Memory(u64),
    #[error("git was ended, because the program was told to end")]
    Stopped,
    #[error("`{call}` failed{}: {said}", .code.map(|c| format!(" with exit code {c}")).unwrap_or_default())]
    Failed { call: String, code: Option<i32>, said: String },
}
