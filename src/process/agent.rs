//! Runs one command in a worktree until it and all its processes have ended.

mod handle;
mod pipes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep_until;

use handle::Line;
use pipes::Pipes;

use super::supervisor::{self, Report};
use crate::model::driver::GRACE;
use crate::model::entry::Exit;
use crate::model::limits::{Exceeded, Limits};
use crate::process::attendant;
use crate::process::lease::Lease;
use crate::process::survivors::{self, Main};
use crate::process::transcript::{self, TranscriptWriter};
use crate::sandbox::{self, Confinement, ExecSetup, Instructions, Own, Scratch, Word};

/// A complete description of one command. It inherits only the user.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program, looked up in the `PATH` of `env`, and its arguments.
    pub argv: Vec<String>,
    /// The worktree, which it may write to.
    pub tree: PathBuf,
    /// The working directory, which is the worktree or a folder in it.
    pub cwd: PathBuf,
    /// The attempt's folder, which survivors are recognised by.
    pub attempt_dir: PathBuf,
    /// The whole environment.
    pub env: BTreeMap<String, OsString>,
    /// Its standard input.
    pub stdin: Stdin,
    /// The time limit.
    pub timeout: Duration,
    /// The program that supervises it if started with [`supervisor::ARGUMENT`] as its first
    /// argument. Without one, nothing runs.
    pub supervisor: Option<PathBuf>,
    /// The confinement, applied below a supervisor, or `None`.
    pub confinement: Option<Confined>,
    /// Its limits. The supervisor enforces all but the one on output.
    pub limits: Limits,
    /// The folders that count as its disk usage.
    pub folders: Vec<PathBuf>,
    /// The sign of life of its driver, without which it ends, or `None`.
    pub lease: Option<Lease>,
}

/// The confinement of one command, with the paths of its attempt.
#[derive(Clone, Debug)]
pub struct Confined {
    /// The confinement that its executor's commands share.
    pub by: Arc<Confinement>,
    /// Writable paths besides the worktree.
    pub writable: Vec<PathBuf>,
    /// Additional readable paths.
    pub readable: Vec<PathBuf>,
    /// The targets of links in its worktree.
    pub linked: Vec<PathBuf>,
    /// The attempt's folders for `/tmp` and for writes to caches.
    pub scratch: Option<(PathBuf, PathBuf)>,
    /// True to permit writes only to these paths and the worktree, whatever its executor
    /// permits.
    pub frozen: bool,
}

/// The standard input of a command.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// These bytes; it need not read all of them.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code or signal, or `None` if that is unknown.
    pub exit: Option<Exit>,
    /// Why it ended.
    pub cause: Cause,
    /// True if the supervisor saw all of its processes end.
    pub is_clean: bool,
    /// The duration in milliseconds, until its last process ended.
    pub duration_ms: u64,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By itself, or by a signal from another process.
    Exited,
    /// At its time limit.
    TimedOut,
    /// By the caller's request.
    Cancelled,
    /// By exceeding a limit.
    Exceeded(Exceeded),
    /// By itself, but a process that it started could not be killed.
    Left,
}

/// Runs a command in its own process group and returns after it and everything it started have
/// ended.
///
/// Its output goes to the transcript at once. Neither a flood, a closed pipe nor a pipe held open
/// by a survivor blocks the command or this function. On a time-out, or when `cancel` becomes true,
/// the group is terminated and then killed. On Linux the command also dies with the thread that
/// first polls this future, so that thread must live as long as the process. Dropping the future
/// kills the group. A failure leaves no process behind.
pub async fn run(
    invocation: &Invocation,
    transcript: &mut TranscriptWriter,
    cancel: watch::Receiver<bool>,
) -> Result<Ended, Error> {
    let started = Instant::now();
    let (mut child, line, pid) = spawn(invocation)?;
    let main = Main::new(pid);
    let mut pipes = Pipes::take_from(&mut child);
    let running = Running { child: &mut child, line: &line, main: &main };
    let outcome = attend(running, &mut pipes, transcript, invocation, cancel).await;
    if outcome.is_err() {
        main.signal(Signal::KILL);
        // The result does not matter: remaining processes are killed below.
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }
    main.ended();
    // A process that can read our memory could forge a report; but then the supervisor sends a
    // second one or does not finish.
    let report = line.report().filter(|_| outcome.as_ref().is_ok_and(|(status, _)| status.success()));
    // A supervisor that reports the end of the command has killed everything below it.
    let is_clean = matches!(report, Some(Report::Ended(_) | Report::Exceeded(_)));
    if !is_clean {
        survivors::end(&invocation.attempt_dir);
    }
    let (status, mut cause) = outcome?;
    let exit = match report {
        Some(Report::NotStarted(number)) => {
            return Err(not_started(invocation, io::Error::from_raw_os_error(number)));
        }
        Some(Report::Ended(exit)) => Some(exit),
        Some(Report::Left(exit)) => {
            cause = if cause == Cause::Exited { Cause::Left } else { cause };
            exit
        }
        Some(Report::Exceeded(exceeded)) => {
            cause = if cause == Cause::Exited { Cause::Exceeded(exceeded) } else { cause };
            None
        }
        Some(Report::Unconfined(why)) => return Err(Error::Unconfined(why)),
        // Killed by us, because it ignored the request.
        None if cause != Cause::Exited => None,
        None => return Err(Error::Supervisor(status)),
    };
    pipes.drain(transcript).await.map_err(Error::Transcript)?;
    Ok(Ended { exit, cause, is_clean, duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX) })
}

/// A command that runs.
struct Running<'a> {
    child: &'a mut Child,
    line: &'a Line,
    main: &'a Main,
}

/// Waits for the main process and drains its pipes.
async fn attend(
    running: Running<'_>,
    pipes: &mut Pipes,
    transcript: &mut TranscriptWriter,
    invocation: &Invocation,
    mut cancel: watch::Receiver<bool>,
) -> Result<(ExitStatus, Cause), Error> {
    let Running { child, line, main } = running;
    let now = tokio::time::Instant::now();
    // Effectively never, for a time-out that no clock can count.
    let never = now + Duration::from_secs(60 * 60 * 24 * 365);
    let mut deadline = now.checked_add(invocation.timeout).unwrap_or(never).min(never);
    let (mut cause, mut requests) = (Cause::Exited, 0);
    let cancelled = async move {
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            // No sender is left that could cancel.
            std::future::pending::<()>().await;
        }
    };
    let mut fed = false;
    let (mut written, most_output) = (0_u64, invocation.limits.output.unwrap_or(u64::MAX));
    let instructions = invocation.instructions();
    let feeding = line.feed(&instructions, &invocation.stdin);
    tokio::pin!(cancelled, feeding);
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return Ok((status.map_err(Error::Wait)?, cause)),
            () = &mut cancelled, if cause == Cause::Exited => {
                cause = Cause::Cancelled;
                deadline = tokio::time::Instant::now();
            }
            () = sleep_until(deadline) => {
                cause = if cause == Cause::Exited { Cause::TimedOut } else { cause };
                let patience = line.end(main, requests, fed);
                let patience = patience.ok_or_else(|| Error::Unkillable(main.pid().as_raw_nonzero().get()))?;
                requests += 1;
                deadline = tokio::time::Instant::now() + patience;
            }
            () = &mut feeding, if !fed => fed = true,
            Some((stream, count)) = pipes.read() => {
                if cause == Cause::Exited && written.saturating_add(count as u64) > most_output {
                    cause = Cause::Exceeded(Exceeded::Output(most_output));
                    deadline = tokio::time::Instant::now();
                }
                written = written.saturating_add(count as u64);
                transcript.push(stream, pipes.bytes(stream, count)).map_err(Error::Transcript)?;
            }
        }
    }
}

impl Invocation {
    /// Returns the message for the processes between the driver and the command.
    fn instructions(&self) -> Vec<u8> {
        let layers = self.confinement.as_ref().map(|Confined { by, writable, readable, linked, scratch, frozen }| {
            let [writable, readable, linked]: [Vec<&Path>; 3] =
                [writable, readable, linked].map(|paths| paths.iter().map(PathBuf::as_path).collect());
            let scratch = scratch.as_ref().map(|(tmp, caches)| Scratch { tmp, caches });
            let frozen = *frozen;
            let own =
                Own { tree: &self.tree, writable: &writable, readable: &readable, linked: &linked, scratch, frozen };
            by.instructions(&own, self.limits.memory)
        });
        let folders = self.folders.iter().map(Word::from).collect();
        let env = self.env.iter().map(|(name, value)| (name.clone(), Word::from(value))).collect();
        let starting = ExecSetup { env, folder: Word::from(&self.cwd), limits: self.limits };
        let lease = self.lease.as_ref().map(|lease| sandbox::Lease {
            file: Word::from(&lease.file),
            millis: u64::try_from(lease.limit.as_millis()).unwrap_or(u64::MAX),
        });
        let instructions = Instructions { layers, starting, folders, lease };
        serde_json::to_vec(&instructions).expect("paths and words serialise")
    }
}

/// Starts the supervisor, which starts the command.
fn spawn(invocation: &Invocation) -> Result<(Child, Line, Pid), Error> {
    let (program, args) = invocation.argv.split_first().ok_or(Error::Empty)?;
    let mut command = process::Command::new(invocation.supervisor.as_ref().ok_or(Error::Unsupervised)?);
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(Error::Socket)?;
    ours.set_nonblocking(true).map_err(Error::Socket)?;
    let line = Line(UnixStream::from_std(ours).map_err(Error::Socket)?);
    command.args([supervisor::ARGUMENT, program]).args(args).arg0(attendant::NAME);
    // Only this variable identifies survivors; the supervisor gets the others by message.
    command.env_clear().envs(invocation.env.get_key_value(survivors::VARIABLE)).current_dir("/");
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
    lead_session(&mut command);
    // A supervisor that loses us kills its processes before it ends, so it is not killed when
    // dropped.
    let child = Command::from(command).spawn().map_err(|source| not_started(invocation, source))?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok((child, line, pid.expect("a child that was not waited for has an id")))
}

fn not_started(invocation: &Invocation, source: io::Error) -> Error {
    if invocation.cwd.is_dir() {
        Error::Spawn { program: invocation.argv.first().cloned().unwrap_or_default(), source }
    } else {
        Error::Directory(invocation.cwd.clone())
    }
}

/// Makes a command the leader of a process group that dies with us.
pub(super) fn alone(command: &mut process::Command) {
    let parent = rustix::process::getpid();
    before(command.process_group(0), move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call above.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH) }
    });
}

/// Makes a command the leader of its own session from the start: it has no terminal, and no process
/// below can join our group.
fn lead_session(command: &mut process::Command) {
    before(command, || rustix::process::setsid().map(drop));
}

/// Runs `calls` in the child before the program starts. They must be bare system calls, unless this
/// process has one thread.
#[expect(
    unsafe_code,
    reason = "the only way to set the parent-death signal, to begin a session, to hand on no open files, and to be confined with no process of ours"
)]
pub(crate) fn before(
    command: &mut process::Command,
    mut calls: impl FnMut() -> rustix::io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: between fork and exec only async-signal-safe functions may be called, and nothing may
    // be allocated. close_range, prctl, getppid, setsid and the calls of the confinement are bare
    // system calls here, and errors are plain numbers. A failed confinement reports in words, but
    // only in the child of a supervisor, which has one thread when it starts its command.
    unsafe {
        command.pre_exec(move || {
            // A worker must not inherit files that our parent passed to us. A kernel without this
            // call has no Landlock either.
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            calls().map_err(io::Error::from)
        });
    }
}

/// Returns the exit code or the signal of a process that ended.
pub(super) fn exit_of(status: ExitStatus) -> Option<Exit> {
    match (status.code(), status.signal()) {
        (None, None) => None,
        (code, signal) => Some(Exit { code, signal }),
    }
}

errors! {
    /// Why a command could not be run to its end.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Empty: "the command is empty";
    Unsupervised: "there is no program that could supervise the command";
    Spawn { program: String, source: io::Error }: "cannot start `{program}`{}" [reason(.source)];
    Directory(PathBuf): "the working directory {} does not exist" [.0.display()];
    Socket(#[source] io::Error): "cannot create a socket";
    Supervisor(ExitStatus): "the supervisor of the attempt ended early ({0}), with all its processes";
    Unconfined(String): "cannot confine it: {0}";
    Unkillable(i32): "process {0} was killed but does not end";
    Wait(#[source] io::Error): "cannot wait for the command";
    #[from] Transcript(transcript::Error);
}

/// Explains common errors of starting a command.
fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": there is no such program, or its interpreter is missing",
        io::ErrorKind::PermissionDenied => ": it may not be executed, or a folder of PATH may not be entered",
        io::ErrorKind::ArgumentListTooLong => ": its arguments and environment are too long",
        _ => "",
    }
}
