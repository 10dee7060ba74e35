//! Feeds a started command and ends it, through its supervisor.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tokio::net::UnixStream;

use super::{Main, Stdin};
use crate::model::driver::GRACE;
use crate::process::supervisor::{self, Report};
use crate::process::survivors;

/// The most requests to end before giving up.
const MOST_ASKED: u32 = 10;

/// The line to the supervisor of a started command.
pub(super) struct Line(pub(super) UnixStream);

impl Line {
    /// Requests the end, each time with a stronger signal. Returns the time until the next request,
    /// or `None` after the last.
    pub(super) fn end(&self, main: &Main, requests: u32, fed: bool) -> Option<Duration> {
        match requests {
            0 if fed => drop(self.0.try_write(&[supervisor::ASK])),
            1 if fed => {
                let _ = self.0.try_write(&[supervisor::END]);
                return Some(supervisor::PATIENCE + GRACE);
            }
            MOST_ASKED.. => return None,
            // A supervisor that is stopped or never started to listen.
            _ => {
                // While the supervisor lives, its processes are below it. One that names another
                // attempt is not found later, so that it is waited for here.
                survivors::wait_for(&survivors::kill_all_below(main.pid()));
                main.signal(Signal::KILL);
            }
        }
        Some(GRACE)
    }

    /// Returns the report of a supervisor that has ended.
    pub(super) fn report(&self) -> Option<Report> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 256];
        // All of its output is in the buffer; an empty or closed socket is the end.
        while let Ok(count @ 1..) = rustix::io::read(&self.0, &mut buffer) {
            bytes.extend_from_slice(&buffer[..count]);
            if bytes.len() > supervisor::LONGEST_REPORT {
                return None;
            }
        }
        Report::read(&bytes)
    }

    /// Writes the confinement and limits, then the command's standard input.
    pub(super) async fn feed(&self, message: &[u8], stdin: &Stdin) {
        put_all(&self.0, message).await;
        match stdin {
            Stdin::Null => put(&self.0, &supervisor::NOTHING.to_be_bytes()).await,
            Stdin::Bytes(bytes) => put_all(&self.0, bytes).await,
        }
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
