//! Runs one command in a worktree to its end.

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
use tokio::time::{sleep_until, timeout_at};

use handle::{Handle, feed};
use pipes::Pipes;

use super::attendant;
use super::sandbox::{Confinement, Own, Scratch, Starting, Told, Word};
use super::supervisor::{self, Report};
use super::survivors::{self, Main};
use super::transcript::{self, TranscriptWriter};
use crate::model::entry::Exit;
use crate::model::limits::{Exceeded, Limits};

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long the pipes are read on after every process that should hold them is gone.
const DRAIN: Duration = Duration::from_millis(500);

/// One command, completely described: nothing is inherited but the user it runs as.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program, looked up in the `PATH` of `env`, and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The attempt's folder, which survivors are recognised by.
    pub attempt_dir: PathBuf,
    /// The whole environment.
    pub env: BTreeMap<String, OsString>,
    /// What it reads.
    pub stdin: Stdin,
    /// When it is ended.
    pub timeout: Duration,
    /// The program that supervises it when its first argument is [`supervisor::ARGUMENT`]; without
    /// one, a process that leaves its group and does not say that it is the attempt's is not found.
    pub supervisor: Option<PathBuf>,
    /// What confines it, below a supervisor; none where nothing does.
    pub confinement: Option<Confined>,
    /// How much it may use; but for its output, a supervisor sees to that.
    pub limits: Limits,
    /// The folders that count as what it takes on the disk.
    pub folders: Vec<PathBuf>,
}

/// What confines one command, and what of the attempt's files it reaches.
#[derive(Clone, Debug)]
pub struct Confined {
    /// What confines all of its executor's.
    pub by: Arc<Confinement>,
    /// What it may write besides its working directory.
    pub writable: Vec<PathBuf>,
    /// What else it may read.
    pub readable: Vec<PathBuf>,
    /// What links in its worktree lead to.
    pub linked: Vec<PathBuf>,
    /// The folders of the attempt that are laid over others: its `/tmp`, and what it writes to caches.
    pub scratch: Option<(PathBuf, PathBuf)>,
    /// Whether it may write nothing but that and its working directory, whatever others of its executor may write.
    pub frozen: bool,
}

/// What a command reads.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// These bytes, as far as it cares to read them.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code or signal; none where even that could not be learnt.
    pub exit: Option<Exit>,
    /// Why it ended.
    pub cause: Cause,
    /// Whether what supervised it saw that nothing of it is left.
    pub is_clean: bool,
    /// How long it took, with what it left running ended.
    pub duration_ms: u64,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By itself, or by a signal from elsewhere.
    Exited,
    /// Its time was up.
    TimedOut,
    /// The caller wanted it to end.
    Cancelled,
    /// It used more than it may.
    Exceeded(Exceeded),
    /// By itself, and something that it started could not be ended.
    Left,
}

/// Runs a command in a process group of its own and returns when it and everything it started are gone.
///
/// What it writes goes to the transcript as it comes; neither a flood nor a closed pipe nor one that a survivor holds open
/// blocks it or us. On time-out, or when `cancel` becomes true, the group is asked to end and then killed. On Linux the
/// command also dies with the thread that polls this first, so that thread must live as long as the process. If this future
/// is dropped, the group is killed. A failure leaves no process behind.
pub async fn run(
    invocation: &Invocation,
    transcript: &mut TranscriptWriter,
    cancel: watch::Receiver<bool>,
) -> Result<Ended, Error> {
    let started = Instant::now();
    let ((mut child, handle), pid) = spawn(invocation)?;
    let main = Main::new(pid);
    let mut pipes = Pipes::of(&mut child);
    let outcome = attend((&mut child, &handle, &main), &mut pipes, transcript, invocation, cancel).await;
    if outcome.is_err() {
        main.signal(Signal::KILL);
        // Whatever it says, what is left is ended below.
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }
    main.ended();
    // Whoever may read our memory could have written it as well; then the supervisor writes another, or did not come to its end.
    let report = handle.report().filter(|_| outcome.as_ref().is_ok_and(|(status, _)| status.success()));
    let is_supervised = !matches!(handle, Handle::Group);
    // A supervisor that says how the command ended has ended all below it.
    let has_ended_all = matches!(report, Some(Report::Ended(_) | Report::Exceeded(_)));
    if !is_supervised {
        survivors::end_group(pid);
    }
    if !has_ended_all {
        survivors::end(&invocation.attempt_dir);
    }
    let (status, mut cause) = outcome?;
    let is_clean = !is_supervised || has_ended_all;
    let exit = match (&handle, report) {
        (Handle::Group, _) => exit_of(status),
        (_, Some(Report::NotStarted(number))) => {
            return Err(not_started(invocation, io::Error::from_raw_os_error(number)));
        }
        (_, Some(Report::Ended(exit))) => Some(exit),
        (_, Some(Report::Left(exit))) => {
            cause = if cause == Cause::Exited { Cause::Left } else { cause };
            exit
        }
        (_, Some(Report::Exceeded(exceeded))) => {
            cause = if cause == Cause::Exited { Cause::Exceeded(exceeded) } else { cause };
            None
        }
        (_, Some(Report::Unconfined(why))) => return Err(Error::Unconfined(why)),
        // Ended by us, because it did not listen.
        (_, None) if cause != Cause::Exited => None,
        (_, None) => return Err(Error::Supervisor(status)),
    };
    let until = tokio::time::Instant::now() + DRAIN;
    while let Ok(Some((stream, count))) = timeout_at(until, pipes.read()).await {
        transcript.push(stream, pipes.bytes(stream, count)).map_err(Error::Transcript)?;
        // A flood never waits, so the time-out above would not be looked at.
        if tokio::time::Instant::now() > until {
            break;
        }
    }
    transcript.flush().map_err(Error::Transcript)?;
    Ok(Ended { exit, cause, is_clean, duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX) })
}

/// Waits for the main process, keeping its pipes moving.
async fn attend(
    (child, handle, main): (&mut Child, &Handle, &Main),
    pipes: &mut Pipes,
    transcript: &mut TranscriptWriter,
    invocation: &Invocation,
    mut cancel: watch::Receiver<bool>,
) -> Result<(ExitStatus, Cause), Error> {
    let now = tokio::time::Instant::now();
    // So far away that it never comes, for a time-out that no clock can count.
    let never = now + Duration::from_secs(60 * 60 * 24 * 365);
    let mut deadline = now.checked_add(invocation.timeout).unwrap_or(never).min(never);
    let (mut cause, mut asked) = (Cause::Exited, 0);
    let cancelled = async move {
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            // Nobody is left who could cancel.
            std::future::pending::<()>().await;
        }
    };
    let stdin = child.stdin.take();
    let mut fed = false;
    let (mut written, most_output) = (0_u64, invocation.limits.output.unwrap_or(u64::MAX));
    let told = invocation.told();
    let feeding = feed(stdin, handle, (&told, &invocation.stdin));
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
                let unkillable = || Error::Unkillable(main.pid().as_raw_nonzero().get());
                let patience = handle.end(main, asked, fed).ok_or_else(unkillable)?;
                asked += 1;
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
    /// Returns what is to be told to what stands between the driver and the command.
    fn told(&self) -> Vec<u8> {
        let layers = self.confinement.as_ref().map(|Confined { by, writable, readable, linked, scratch, frozen }| {
            let [writable, readable, linked]: [Vec<&Path>; 3] =
                [writable, readable, linked].map(|paths| paths.iter().map(PathBuf::as_path).collect());
            let scratch = scratch.as_ref().map(|(tmp, caches)| Scratch { tmp, caches });
            let frozen = *frozen;
            let own =
                Own { tree: &self.cwd, writable: &writable, readable: &readable, linked: &linked, scratch, frozen };
            by.told(&own, self.limits.memory)
        });
        let folders = self.folders.iter().map(Word::from).collect();
        let env = self.env.iter().map(|(name, value)| (name.clone(), Word::from(value))).collect();
        let starting = Starting { env, folder: Word::from(&self.cwd), limits: self.limits };
        let told = Told { layers, starting, folders };
        serde_json::to_vec(&told).expect("paths and words serialise")
    }
}

fn spawn(invocation: &Invocation) -> Result<((Child, Handle), Pid), Error> {
    let (program, args) = invocation.argv.split_first().ok_or(Error::Empty)?;
    if invocation.confinement.is_some() && invocation.supervisor.is_none() {
        return Err(Error::Unconfined("there is no program that could do it".into()));
    }
    let mut handle = Handle::Group;
    let mut command = process::Command::new(invocation.supervisor.as_deref().unwrap_or(program.as_ref()));
    let stdin = match (&invocation.supervisor, &invocation.stdin) {
        (Some(_), _) => {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(Error::Socket)?;
            ours.set_nonblocking(true).map_err(Error::Socket)?;
            handle = Handle::Supervisor(UnixStream::from_std(ours).map_err(Error::Socket)?);
            command.args([supervisor::ARGUMENT, program]);
            OwnedFd::from(theirs).into()
        }
        (None, Stdin::Bytes(_)) => Stdio::piped(),
        (None, Stdin::Null) => Stdio::null(),
    };
    command.args(args).env_clear().stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A supervisor that loses us ends what it holds before it goes, so nothing may end it.
    let held = matches!(handle, Handle::Supervisor(_));
    if held {
        // By this alone survivors are recognised; the rest is the command's, which the supervisor is told.
        command.current_dir("/").envs(invocation.env.get_key_value(survivors::VARIABLE)).arg0(attendant::NAME);
        apart(&mut command);
    } else {
        command.current_dir(&invocation.cwd).envs(&invocation.env);
        alone(&mut command);
    }
    let mut command = Command::from(command);
    command.kill_on_drop(!held);
    let child = command.spawn().map_err(|source| not_started(invocation, source))?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok(((child, handle), pid.expect("a child that was not waited for has an id")))
}

fn not_started(invocation: &Invocation, source: io::Error) -> Error {
    if invocation.cwd.is_dir() {
        Error::Spawn { program: invocation.argv.first().cloned().unwrap_or_default(), source }
    } else {
        Error::Directory(invocation.cwd.clone())
    }
}

/// Has a command be the leader of a group of its own, that dies with us.
pub(super) fn alone(command: &mut process::Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        before(command, move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the call above.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH) }
        });
    }
}

/// Has a command be the leader of a session of its own from its first moment on: no terminal speaks to it, and nobody below it can
/// join our group.
fn apart(command: &mut process::Command) {
    before(command, || rustix::process::setsid().map(drop));
}

/// Has a child do something to itself before it is the program; `calls` are bare system calls and nothing else, unless this process
/// has one thread.
#[expect(
    unsafe_code,
    reason = "the only way to set the parent-death signal, to begin a session, to hand on no open files, and to be confined with no process of ours"
)]
pub(super) fn before(
    command: &mut process::Command,
    mut calls: impl FnMut() -> rustix::io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: between fork and exec only async-signal-safe functions may be called, and nothing may be allocated: close_range,
    // prctl, getppid, setsid, and what a command confines itself by, are bare system calls here, and the errors are plain numbers. What
    // fails to be confined says so in words, in the child of a supervisor, which has one thread when it starts its command.
    unsafe {
        command.pre_exec(move || {
            // What we were given by whoever started us is none of a worker's business. A kernel that lacks the call lacks
            // Landlock as well.
            #[cfg(target_os = "linux")]
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

/// Why a command could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the command is empty")]
    Empty,
    #[error("`{program}` could not be started{}", reason(.source))]
    Spawn { program: String, source: io::Error },
    #[error("the working directory {} is not there", .0.display())]
    Directory(PathBuf),
    #[error("no socket could be made")]
    Socket(#[source] io::Error),
    #[error("what supervises the attempt ended before it ({0}), with all that it held")]
    Supervisor(ExitStatus),
    #[error("it could not be confined: {0}")]
    Unconfined(String),
    #[error("process {0} was killed and does not end")]
    Unkillable(i32),
    #[error("the command could not be waited for")]
    Wait(#[source] io::Error),
    #[error(transparent)]
    Transcript(transcript::Error),
}

/// Says what the commonest errors mean for a command.
fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": there is no such program, or its interpreter is missing",
        io::ErrorKind::PermissionDenied => ": it may not be executed, or a folder of PATH may not be entered",
        io::ErrorKind::ArgumentListTooLong => ": its arguments and environment are too long",
        _ => "",
    }
}
