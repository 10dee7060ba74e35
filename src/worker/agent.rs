//! Runs one command in a worktree to its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout_at};

use super::survivors::{self, Main};
use super::transcript::{self, Stream, TranscriptWriter};
use crate::model::entry::Exit;

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
    let (mut child, main) = Main::start(|| spawn(invocation))?;
    let group = main.pid().as_raw_nonzero().get();
    let mut pipes = Pipes::of(&mut child);
    let outcome = attend(&mut child, &main, &mut pipes, transcript, invocation, cancel).await;
    if outcome.is_err() {
        main.signal(Signal::KILL);
        // Whatever it says, the group is ended below.
        let _ = child.wait().await;
    }
    main.ended();
    survivors::end(Some(group), &invocation.attempt_dir);
    let (status, cause) = outcome?;
    let until = tokio::time::Instant::now() + DRAIN;
    while let Ok(Some((stream, count))) = timeout_at(until, pipes.read()).await {
        transcript.push(stream, pipes.bytes(stream, count)).map_err(Error::Transcript)?;
        // A flood never waits, so the time-out above would not be looked at.
        if tokio::time::Instant::now() > until {
            break;
        }
    }
    transcript.flush().map_err(Error::Transcript)?;
    Ok(Ended {
        exit: exit_of(status),
        cause,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Waits for the main process, keeping its pipes moving.
async fn attend(
    child: &mut Child,
    main: &Main,
    pipes: &mut Pipes,
    transcript: &mut TranscriptWriter,
    invocation: &Invocation,
    mut cancel: watch::Receiver<bool>,
) -> Result<(ExitStatus, Cause), Error> {
    let now = tokio::time::Instant::now();
    // So far away that it never comes, for a time-out that no clock can count.
    let never = now + Duration::from_secs(60 * 60 * 24 * 365);
    let mut deadline = now.checked_add(invocation.timeout).unwrap_or(never).min(never);
    let mut cause = Cause::Exited;
    let cancelled = async move {
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            // Nobody is left who could cancel.
            std::future::pending::<()>().await;
        }
    };
    let stdin = child.stdin.take();
    let mut fed = stdin.is_none();
    let feeding = feed(stdin, &invocation.stdin);
    tokio::pin!(cancelled, feeding);
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return Ok((status.map_err(Error::Wait)?, cause)),
            () = &mut cancelled, if cause == Cause::Exited => {
                cause = Cause::Cancelled;
                main.signal(Signal::TERM);
                deadline = tokio::time::Instant::now() + GRACE;
            }
            () = sleep_until(deadline) => {
                if cause == Cause::Exited {
                    cause = Cause::TimedOut;
                    main.signal(Signal::TERM);
                    deadline = tokio::time::Instant::now() + GRACE;
                } else {
                    main.signal(Signal::KILL);
                    deadline = never;
                }
            }
            () = &mut feeding, if !fed => fed = true,
            Some((stream, count)) = pipes.read() => {
                transcript.push(stream, pipes.bytes(stream, count)).map_err(Error::Transcript)?;
            }
        }
    }
}

fn spawn(invocation: &Invocation) -> Result<(Child, Pid), Error> {
    let (program, args) = invocation.argv.split_first().ok_or(Error::Empty)?;
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(&invocation.cwd)
        .env_clear()
        .envs(&invocation.env)
        .process_group(0)
        .stdin(if matches!(invocation.stdin, Stdin::Bytes(_)) { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let child = command.spawn().map_err(|source| {
        if invocation.cwd.is_dir() {
            Error::Spawn { program: program.clone(), source }
        } else {
            Error::Directory(invocation.cwd.clone())
        }
    })?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok((child, pid.expect("a child that was not waited for has an id")))
}

/// Has the kernel kill the command when the conductor dies, however that happens.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the only way to set the parent-death signal; the closure makes two system calls and nothing else"
)]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only async-signal-safe functions may be called, and nothing may be allocated: prctl and
    // getppid are bare system calls here, and the errors are plain numbers.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the call above.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
        });
    }
}

/// Our ends of the pipes that a command writes to.
struct Pipes {
    out: Pipe,
    err: Pipe,
}

struct Pipe {
    from: Option<Box<dyn AsyncRead + Unpin + Send>>,
    buffer: Box<[u8]>,
}

impl Pipes {
    fn of(child: &mut Child) -> Self {
        Self { out: Pipe::new(child.stdout.take()), err: Pipe::new(child.stderr.take()) }
    }

    /// Reads from whichever has something; none when both are at their end. Dropping this loses nothing.
    async fn read(&mut self) -> Option<(Stream, usize)> {
        loop {
            let (stream, count) = tokio::select! {
                count = self.out.read(), if self.out.from.is_some() => (Stream::Out, count),
                count = self.err.read(), if self.err.from.is_some() => (Stream::Err, count),
                else => return None,
            };
            if count > 0 {
                return Some((stream, count));
            }
            match stream {
                Stream::Out => self.out.from = None,
                Stream::Err => self.err.from = None,
            }
        }
    }

    fn bytes(&self, stream: Stream, count: usize) -> &[u8] {
        match stream {
            Stream::Out => &self.out.buffer[..count],
            Stream::Err => &self.err.buffer[..count],
        }
    }
}

impl Pipe {
    fn new(from: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        Self { from: from.map(|from| Box::new(from) as _), buffer: vec![0; 64 << 10].into() }
    }

    /// Reads once; 0 at the end, which a broken pipe is as well.
    async fn read(&mut self) -> usize {
        match &mut self.from {
            Some(from) => from.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        }
    }
}

/// Writes to the command's stdin until all is written or it wants no more, and closes it.
async fn feed(pipe: Option<ChildStdin>, stdin: &Stdin) {
    if let (Some(mut pipe), Stdin::Bytes(bytes)) = (pipe, stdin) {
        // It may close its end at any time, as any command may.
        let _ = pipe.write_all(bytes).await;
    }
}

fn exit_of(status: ExitStatus) -> Option<Exit> {
    match (status.code(), status.signal()) {
        (None, None) => None,
        (code, signal) => Some(Exit { code, signal }),
    }
}

/// Why a command could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no command.
    #[error("the command is empty")]
    Empty,
    /// The program could not be started.
    #[error("`{program}` could not be started{}", reason(.source))]
    Spawn {
        /// The program as it was given.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The working directory is not there.
    #[error("the working directory {} is not there", .0.display())]
    Directory(PathBuf),
    /// The process could not be waited for.
    #[error("the command could not be waited for")]
    Wait(#[source] io::Error),
    /// What it wrote could not be kept.
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
