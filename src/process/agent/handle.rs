//! Feeds a started command and ends it, through its group or its supervisor.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::ChildStdin;

use super::{Main, Stdin};
use crate::model::driver::GRACE;
use crate::process::supervisor::{self, Report};
#[cfg(target_os = "linux")]
use crate::process::survivors;

/// The most requests to end before giving up.
const MOST_ASKED: u32 = 10;

/// The handle by which a started command is ended.
pub(super) enum Handle {
    /// Its process group.
    Group,
    /// Its supervisor.
    Supervisor(UnixStream),
}

impl Handle {
    /// Requests the end, each time with a stronger signal. Returns the time until the next request,
    /// or `None` after the last.
    pub(super) fn end(&self, main: &Main, asked: u32, fed: bool) -> Option<Duration> {
        match (self, asked) {
            (Self::Group, 0) => main.signal(Signal::TERM),
            (Self::Supervisor(line), 0) if fed => drop(line.try_write(&[supervisor::ASK])),
            (Self::Supervisor(line), 1) if fed => {
                let _ = line.try_write(&[supervisor::END]);
                return Some(supervisor::PATIENCE + GRACE);
            }
            (_, MOST_ASKED..) => return None,
            // A supervisor that is stopped or never started to listen.
            _ => {
                // While the supervisor lives, its processes are below it.
                #[cfg(target_os = "linux")]
                survivors::kill_all_below(main.pid());
                main.signal(Signal::KILL);
            }
        }
        Some(GRACE)
    }

    /// Returns the report of a supervisor that has ended.
    pub(super) fn report(&self) -> Option<Report> {
        let Self::Supervisor(line) = self else { return None };
        let mut said = Vec::new();
        let mut buffer = [0; 256];
        // All of its output is in the buffer; an empty or closed socket is the end.
        while let Ok(count @ 1..) = rustix::io::read(line, &mut buffer) {
            said.extend_from_slice(&buffer[..count]);
            if said.len() > supervisor::LONGEST_REPORT {
                return None;
            }
        }
        Report::read(&said)
    }
}

/// Writes to the command's standard input until everything is written or it is closed, then closes
/// it.
///
/// A supervisor first receives the confinement and limits.
pub(super) async fn feed(pipe: Option<ChildStdin>, handle: &Handle, told: &[u8], stdin: &Stdin) {
    if let Handle::Supervisor(line) = handle {
        put_all(line, told).await;
    }
    match (handle, stdin) {
        (Handle::Supervisor(line), Stdin::Null) => put(line, &supervisor::NOTHING.to_be_bytes()).await,
        (Handle::Supervisor(line), Stdin::Bytes(bytes)) => {
            put_all(line, bytes).await;
        }
        (Handle::Group, Stdin::Bytes(bytes)) => {
            if let Some(mut pipe) = pipe {
                // A command may close its input at any time.
                let _ = pipe.write_all(bytes).await;
            }
        }
        (Handle::Group, Stdin::Null) => {}
    }
}

/// Writes bytes to a supervisor, preceded by their length.
async fn put_all(line: &UnixStream, bytes: &[u8]) {
    put(line, &(bytes.len() as u64).to_be_bytes()).await;
    put(line, bytes).await;
}

/// Writes to a supervisor until it is gone; its exit explains the rest.
async fn put(line: &UnixStream, mut bytes: &[u8]) {
    while !bytes.is_empty() && line.writable().await.is_ok() {
        match line.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
