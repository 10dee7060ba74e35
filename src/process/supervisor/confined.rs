//! Runs a confined command: it confines itself before it starts, or a process of ours below
//! bubblewrap does.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::serving::Overseer;
use super::{LONGEST_REPORT, Report, serving};
use crate::model::causes::in_words;
use crate::model::entry::Exit;
use crate::process::agent;
use crate::process::confine::{ARGUMENT, FAILED, Prepared, READY};
use crate::process::domain::Domain;
use crate::process::survivors;
use crate::sandbox::overlay::Overlays;
use crate::sandbox::{ExecSetup, Inner, Outer, PROGRAM, Word};

/// The offset of a signal in an exit code, as in shells and bubblewrap.
const SIGNALLED: i32 = 128;

/// The time for the confinement process to read a message or to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The processes inside the sandbox that are ours or bubblewrap's: its first, and the one that
/// confines itself.
const OURS_INSIDE: i32 = 2;

/// A command to run.
pub(super) struct Call {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) stdin: File,
}

/// Runs a command as the message says.
pub(super) fn run(outer: &Outer, setup: &ExecSetup, call: Call, overseer: Overseer<'_>) -> io::Result<Report> {
    if let Some(why) = &outer.refused {
        return Ok(Report::Unconfined(why.clone()));
    }
    if let Some(words) = &outer.words {
        return below(words, outer, setup, call, overseer);
    }
    if let Some(shared) = outer.shared
        && let Err(error) = shared.enter()
    {
        return Ok(Report::Unconfined(in_words(&error)));
    }
    confined(&outer.inner, setup.command(&call.program, call.arguments.into_iter(), call.stdin), overseer)
}

/// Runs a command that confines itself in our child, so that no process of ours is inside, which it
/// could signal.
fn confined(inner: &Inner, mut command: Command, overseer: Overseer<'_>) -> io::Result<Report> {
    let mut prepared = match Prepared::new(inner, false) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Report::Unconfined(in_words(&error))),
    };
    let failure_pipe = before(&mut command, move || prepared.apply())?;
    let domain = inner.is_by_landlock().then(Domain::enter).flatten();
    serving::run(|| start(command, failure_pipe), overseer, domain, serving::group)
}

/// Makes a command call a function before it starts. Returns the pipe for the reason of a failure.
fn before<E: Error + 'static>(
    command: &mut Command,
    mut calls: impl FnMut() -> Result<(), E> + Send + Sync + 'static,
) -> io::Result<PipeReader> {
    let (failure_pipe, mut say) = io::pipe()?;
    agent::before(command, move || {
        calls().map_err(|error| {
            // This process has one thread, so its child may format text.
            let _ = say.write_all(in_words(&error).as_bytes());
            Errno::PERM
        })
    });
    Ok(failure_pipe)
}

/// Starts such a command.
fn start(command: Command, mut failure_pipe: PipeReader) -> Result<Child, Report> {
    serving::start(command).map_err(|report| {
        let mut why = String::new();
        let _ = failure_pipe.read_to_string(&mut why);
        if why.is_empty() { report } else { Report::Unconfined(why) }
    })
}

/// Runs a command below bubblewrap, with a process of ours between the two.
fn below(words: &[Word], outer: &Outer, setup: &ExecSetup, call: Call, overseer: Overseer<'_>) -> io::Result<Report> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_write_timeout(Some(PATIENCE))?;
    ours.set_read_timeout(Some(PATIENCE))?;
    let (bubblewrap, words) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let Call { program, arguments, stdin } = call;
    let mut command = Command::new(bubblewrap);
    command.args(words).args([PROGRAM, ARGUMENT]).arg(program).args(arguments).stdin(OwnedFd::from(theirs));
    let overlays = outer.overlays.clone();
    let failure_pipe = before(&mut command, move || overlays.as_ref().map_or(Ok(()), Overlays::enter))?;
    let inside = serde_json::to_vec(&(&outer.inner, setup))?;
    let telling = ours.try_clone()?;
    let mut teller = None;
    let start = || {
        let child = start(command, failure_pipe)?;
        // In a thread, so that the driver is still heard. It ends when the reader closes. A process
        // that does not get its message does not start the command and reports that.
        teller = std::thread::Builder::new().spawn(move || send_settings(telling, &inside, stdin)).ok();
        Ok(child)
    };
    let report = serving::run(start, overseer, None, ask_inside)?;
    // The process with the other end is gone.
    let _ = ours.shutdown(std::net::Shutdown::Write);
    if let Some(teller) = teller {
        let _ = teller.join();
    }
    let mut text = String::new();
    // Unreadable or invalid text counts as no report.
    let _ = ours.take(LONGEST_REPORT as u64).read_to_string(&mut text);
    Ok(made_of(report, &text))
}

/// Sends the process inside its settings and the command's input.
fn send_settings(mut line: UnixStream, inside: &[u8], mut stdin: File) -> io::Result<()> {
    line.write_all(&(inside.len() as u64).to_be_bytes())?;
    line.write_all(inside)?;
    let length = if stdin.metadata()?.is_file() { stdin.metadata()?.len() } else { super::NOTHING };
    line.write_all(&length.to_be_bytes())?;
    if length != super::NOTHING {
        stdin.rewind()?;
        io::copy(&mut stdin, &mut line)?;
    }
    Ok(())
}

/// Combines the inner process's report with the outer exit.
fn made_of(report: Report, text: &str) -> Report {
    if matches!(report, Report::Exceeded(_)) {
        return report;
    }
    if let Some(why) = text.strip_prefix(FAILED) {
        return Report::Unconfined(why.trim_end().to_owned());
    }
    let Some(rest) = text.strip_prefix(READY) else {
        return match report {
            Report::Ended(Exit { code: Some(code), .. }) => {
                Report::Unconfined(format!("its confinement ended with {code}; the transcript may say why"))
            }
            report => report,
        };
    };
    match (Report::read(rest.as_bytes()), report) {
        (Some(Report::NotStarted(number)), _) => Report::NotStarted(number),
        (Some(Report::Ended(exit)), Report::Ended(_)) => Report::Ended(exit),
        (Some(Report::Ended(exit)), Report::Left(_)) => Report::Left(Some(exit)),
        // A process inside killed the waiting one.
        (_, Report::Ended(Exit { code: Some(code), .. })) if code > SIGNALLED => {
            Report::Ended(Exit { code: None, signal: Some(code - SIGNALLED) })
        }
        (_, report) => report,
    }
}

/// Terminates the processes inside, except those that confine it: they end with the command.
fn ask_inside(outer: Pid) {
    for pid in survivors::descendants(outer) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inside = numbers.and_then(|numbers| numbers.split_whitespace().nth(1)?.parse::<i32>().ok());
        if inside.is_some_and(|inside| inside > OURS_INSIDE)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }
}
