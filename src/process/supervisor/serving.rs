//! The main function of the supervisor process.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use super::watching::Watch;
use super::{ASK, END, NOTHING, PATIENCE, Report, confined};
use crate::model::entry::Exit;
use crate::process::agent;
use crate::process::domain::Domain;
use crate::process::survivors;
use crate::sandbox::Instructions;

/// The most bytes of a command's standard input.
const LONGEST: u64 = 1 << 30;

/// The pause before checking that killed processes are gone.
const PAUSE: Duration = Duration::from_micros(200);

/// How often to reap ended orphans while the command runs; each holds a process id until then.
const REAPING: Duration = Duration::from_millis(100);

/// The longest time of one round of reaping: new orphans may end as fast.
const AT_ONCE: Duration = Duration::from_millis(20);

/// Supervises the command in the arguments. This is the process's whole life; standard input is the
/// socket.
///
/// Call this first in a program's `main`.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match supervise(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    // Only root can read or trace us, so no other process can speak for us.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    take_name()?;
    // The driver starts us as session leader; otherwise another process could join our group.
    if rustix::process::getsid(None)? != rustix::process::getpid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut driver = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let instructions: Instructions = serde_json::from_slice(&bytes(&mut driver)?)?;
    let stdin = given(&mut driver)?;
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let Instructions { layers, starting, folders, lease } = instructions;
    let watch = Watch::new(starting.limits, &folders, lease);
    let report = match &layers {
        None => {
            let command = starting.command(&program, arguments, stdin);
            run(|| start(command), Overseer { driver: &driver, watch }, None, group)?
        }
        Some(layers) => {
            let call = confined::Call { program, arguments: arguments.collect(), stdin };
            confined::run(layers, &starting, call, Overseer { driver: &driver, watch })?
        }
    };
    // A driver that is gone needs no report.
    let _ = driver.write_all(report.write().as_bytes());
    Ok(())
}

/// Sets the process name to the program's: a start by handle has none.
fn take_name() -> io::Result<()> {
    let program = fs::read_link("/proc/self/exe")?;
    let name =
        program.file_name().and_then(|name| CString::new(name.as_bytes()).ok()).ok_or(io::ErrorKind::NotFound)?;
    Ok(rustix::thread::set_name(&name)?)
}

/// Starts a command, which then owns its settings.
pub(super) fn start(mut command: Command) -> Result<Child, Report> {
    agent::alone(&mut command);
    command
        .spawn()
        .map_err(|error| Report::NotStarted(error.raw_os_error().unwrap_or_else(|| Errno::INVAL.raw_os_error())))
}

/// The causes that can end a command early: the driver and the limits.
pub(super) struct Overseer<'a> {
    pub(super) driver: &'a UnixStream,
    pub(super) watch: Watch,
}

/// Runs a command and all its processes to their end; `domain` can signal all of them at once if
/// present. `ask` requests the end.
pub(super) fn run(
    start: impl FnOnce() -> Result<Child, Report>,
    overseer: Overseer<'_>,
    domain: Option<Domain>,
    ask: impl Fn(Pid),
) -> io::Result<Report> {
    match start() {
        Ok(child) => {
            let family = Family { main: Pid::from_child(&child), domain, exit: None };
            attend(overseer, family, ask)
        }
        Err(report) => Ok(report),
    }
}

/// Terminates the group of a command.
pub(super) fn group(main: Pid) {
    let _ = rustix::process::kill_process_group(main, Signal::TERM);
}

/// Receives a length and refuses implausible ones. Returns `None` for "no input".
fn length(line: &mut UnixStream) -> io::Result<Option<u64>> {
    let mut length = [0; 8];
    line.read_exact(&mut length)?;
    match u64::from_be_bytes(length) {
        NOTHING => Ok(None),
        length if length > LONGEST => Err(io::ErrorKind::InvalidData.into()),
        length => Ok(Some(length)),
    }
}

/// Receives bytes; empty for "no input".
pub(crate) fn bytes(line: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(length) = length(line)?
        && line.take(length).read_to_end(&mut bytes)? as u64 != length
    {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Receives the command's standard input.
pub(crate) fn given(line: &mut UnixStream) -> io::Result<File> {
    let Some(length) = length(line)? else { return File::open("/dev/null") };
    // A memory file: a slow reader blocks nothing.
    let mut file = File::from(rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?);
    if io::copy(&mut line.take(length), &mut file)? != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

/// Waits for the command's end or the driver's request, then kills remaining processes below us.
fn attend(overseer: Overseer<'_>, mut family: Family, ask: impl Fn(Pid)) -> io::Result<Report> {
    let Overseer { driver, mut watch } = overseer;
    let watched = rustix::process::pidfd_open(family.main, PidfdFlags::empty())?;
    while family.exit.is_none() {
        let timeout = Timespec::try_from(REAPING.min(watch.due())).expect("a second fits");
        let mut events = [PollFd::new(driver, PollFlags::IN), PollFd::new(&watched, PollFlags::IN)];
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let called = !events[0].revents().is_empty();
        family.reap(Instant::now() + AT_ONCE);
        if family.exit.is_none()
            && let Some(exceeded) = watch.look()
        {
            return Ok(match family.end() {
                left @ Report::Left(_) => left,
                _ => Report::Exceeded(exceeded),
            });
        }
        if called {
            let mut word = [END];
            match (&*driver).read(&mut word) {
                Ok(1) if word[0] == ASK => ask(family.main),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
    }
    let report = family.end();
    // Check the final usage too: the kernel may have killed it first.
    Ok(match watch.last() {
        Some(exceeded) if !matches!(report, Report::Left(_)) => Report::Exceeded(exceeded),
        _ => report,
    })
}

/// All processes below this one.
struct Family {
    /// The command.
    main: Pid,
    /// The Landlock domain that signals all of them at once.
    domain: Option<Domain>,
    /// Its exit, once it ended.
    exit: Option<Exit>,
}

impl Family {
    /// Reaps ended children until `until`. Returns true if any are left.
    fn reap(&mut self, until: Instant) -> bool {
        while Instant::now() < until {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => {
                    self.exit = agent::exit_of(ExitStatus::from_raw(status.as_raw())).or(self.exit);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Kills remaining processes until none is left: orphans become our children and are next.
    fn end(mut self) -> Report {
        let deadline = Instant::now() + PATIENCE;
        while self.reap(deadline.min(Instant::now() + AT_ONCE)) {
            if Instant::now() > deadline {
                return Report::Left(self.exit);
            }
            self.kill();
            std::thread::sleep(PAUSE);
        }
        self.exit.map_or(Report::Left(None), Report::Ended)
    }

    /// Kills all processes at once, or one by one as they are found.
    fn kill(&self) {
        if self.domain.as_ref().is_some_and(Domain::kill) {
            return;
        }
        // Until it is reaped, its process id is also its group's.
        if self.exit.is_none() {
            let _ = rustix::process::kill_process_group(self.main, Signal::KILL);
        }
        survivors::kill_all_below(rustix::process::getpid());
    }
}
