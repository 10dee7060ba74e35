//! How a command that was started is fed and ended, by its group or by what supervises it.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::ChildStdin;

use super::{GRACE, Main, Stdin};
use crate::worker::supervisor::{self, Report};
#[cfg(target_os = "linux")]
use crate::worker::survivors;

/// How often the end is asked for before it is given up.
const MOST_ASKED: u32 = 10;

/// How the command that was started is ended.
pub(super) enum Handle {
    /// It leads a group.
    Group,
    /// A supervisor holds it.
    Supervisor(UnixStream),
}

impl Handle {
    /// Asks for the end, each time more firmly; returns how long to wait before the next time, none after the last.
    pub(super) fn end(&self, main: &Main, asked: u32, fed: bool) -> Option<Duration> {
        match (self, asked) {
            (Self::Group, 0) => main.signal(Signal::TERM),
            (Self::Supervisor(line), 0) if fed => drop(line.try_write(&[supervisor::ASK])),
            (Self::Supervisor(line), 1) if fed => {
                let _ = line.try_write(&[supervisor::END]);
                return Some(supervisor::PATIENCE + GRACE);
            }
            (_, MOST_ASKED..) => return None,
            // One that is stopped, or never came so far as to listen.
            _ => {
                // While it is there, what it holds is below it.
                #[cfg(target_os = "linux")]
                survivors::kill_all_below(main.pid());
                main.signal(Signal::KILL);
            }
        }
        Some(GRACE)
    }

    /// Returns what the supervisor said, which has ended.
    pub(super) fn report(&self) -> Option<Report> {
        let Self::Supervisor(line) = self else { return None };
        let mut said = Vec::new();
        let mut buffer = [0; 256];
        // Everything that it wrote lies ready; a socket that ends, or has nothing, is at its end.
        while let Ok(count @ 1..) = rustix::io::read(line, &mut buffer) {
            said.extend_from_slice(&buffer[..count]);
            if said.len() > supervisor::LONGEST_REPORT {
                return None;
            }
        }
        Report::read(&said)
    }
}

/// Writes to the command's stdin until all is written or it wants no more, and closes it.
///
/// A supervisor is told first what confines the command, and how much it may use.
pub(super) async fn feed(pipe: Option<ChildStdin>, handle: &Handle, (told, stdin): (&[u8], &Stdin)) {
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
                // It may close its end at any time, as any command may.
                let _ = pipe.write_all(bytes).await;
            }
        }
        (Handle::Group, Stdin::Null) => {}
    }
}

/// Writes bytes to a supervisor behind their length.
async fn put_all(line: &UnixStream, bytes: &[u8]) {
    put(line, &(bytes.len() as u64).to_be_bytes()).await;
    put(line, bytes).await;
}

/// Writes to a supervisor, until it is gone: how it ended says the rest.
async fn put(line: &UnixStream, mut bytes: &[u8]) {
    while !bytes.is_empty() && line.writable().await.is_ok() {
        match line.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
