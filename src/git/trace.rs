//! Writes what this program does, as `GIT_TRACE` does it for git: one line when a git program
//! starts and one when it ends, one for each ref that is written, and one for each lock that is
//! waited for. Costs nothing unless [`start`] was called.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::remote::without_password;
use crate::model::digest::Oid;
use crate::model::printable;

/// The most characters of a line. Some git programs get thousands of arguments.
const MOST: usize = 2000;

/// The trace of this process, once it was started.
static TRACE: OnceLock<Trace> = OnceLock::new();

/// The number of git programs that were started.
static STARTED: AtomicU64 = AtomicU64::new(0);

struct Trace {
    file: File,
    began: Instant,
    redact: fn(&str) -> String,
}

/// Writes the trace to this file from now on, each line without credentials.
pub fn start(file: File, redact: fn(&str) -> String) {
    let _ = TRACE.set(Trace { file, began: Instant::now(), redact });
}

/// Returns true if there is a trace.
pub(super) fn is_on() -> bool {
    TRACE.get().is_some()
}

/// Writes a line. A trace that cannot be written changes nothing.
fn write(line: impl Display) {
    if let Some(Trace { file, began, redact }) = TRACE.get() {
        let line = printable::cut_to(printable::line(&redact(&line.to_string())), MOST);
        let since = began.elapsed().as_secs_f64();
        // One call, so that lines of several processes do not mix.
        let _ = (&*file).write_all(format!("git-handoff[{}] {since:.3} {line}\n", std::process::id()).as_bytes());
    }
}

/// A git program that was started.
pub(super) struct Started {
    number: u64,
    began: Instant,
}

impl Started {
    /// Writes that a git program starts with these arguments, without passwords in URLs. Returns
    /// `None` if there is no trace.
    pub(super) fn with<'a>(arguments: impl Iterator<Item = &'a OsStr>) -> Option<Self> {
        TRACE.get()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        let words: Vec<_> = arguments.map(|word| without_password(&word.to_string_lossy())).collect();
        write(format_args!("git#{number} starts: {}", words.join(" ")));
        Some(Self { number, began: Instant::now() })
    }

    /// Writes how it ended.
    pub(super) fn ended(&self, status: ExitStatus) {
        write(format_args!("git#{} ends: {status}, {} ms", self.number, self.began.elapsed().as_millis()));
    }
}

/// Writes that a ref got a new value, or with `None` that it was deleted.
pub(super) fn wrote_ref(name: &str, old: Option<Oid>, new: Option<Oid>) {
    if is_on() {
        let [old, new] = [old, new].map(|oid| oid.map_or_else(|| "none".to_owned(), |oid| oid.to_string()));
        write(format_args!("ref {name}: {old} -> {new}"));
    }
}

/// Writes that this process waits for a lock.
pub(crate) fn waits_for(lock: impl Display) {
    write(format_args!("waits for {lock}"));
}

/// Writes once that a process waits, however often it tries to get the lock.
#[derive(Default)]
pub(crate) struct Waiting {
    is_written: bool,
}

impl Waiting {
    /// Writes the line, unless it was written.
    pub(crate) fn write(&mut self, lock: impl Display) {
        if !std::mem::replace(&mut self.is_written, true) {
            waits_for(lock);
        }
    }
}
