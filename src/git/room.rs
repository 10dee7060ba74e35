//! How much memory git may take, where what it reads comes from others.
//!
//! git holds objects that are stored as differences, and those that they differ from, whole. Nothing in its configuration bounds
//! that, but a variable of the environment does.

use std::io::{self, Read};

use super::program::{Error, Git};

/// The largest file that git makes a difference from unless it is told otherwise, and that a call within bounds puts together.
const MOST_HELD: u64 = 512 << 20;

/// Larger files than this stream through a call within bounds, unless they are stored as differences.
const STREAMED: u64 = 4 << 20;

/// What git says on standard error is kept to so many bytes at its beginning, and as many at its end.
const MOST_SAID: usize = 256 << 10;

impl Git {
    /// Bounds what git holds in memory at once, whatever a pack says: large files stream through, and what is stored as
    /// differences is put together only where no step of it is larger than `MOST_HELD`, on one thread.
    #[must_use]
    pub fn frugal(self) -> Self {
        self.env("GIT_ALLOC_LIMIT", (MOST_HELD + (1 << 20)).to_string())
            .config(format!("core.bigFileThreshold={STREAMED}"))
            .config("core.deltaBaseCacheLimit=16m")
            .config("pack.threads=1")
    }
}

impl Error {
    /// Returns whether it ended for want of memory, or because it would have taken more than it was allowed.
    pub fn wants_memory(&self) -> bool {
        const WORDS: [&str; 4] = ["over limit", "out of memory", "Out of memory", "Cannot allocate memory"];
        // What a remote says through git begins otherwise.
        let is_it = |line: &str| line.starts_with("fatal: ") && WORDS.iter().any(|words| line.contains(words));
        matches!(self, Self::Failed { said, .. } if said.lines().any(is_it))
    }
}

/// Reads what git says on standard error. A remote may say what it likes through it; why git ended stands at the end.
pub(super) fn said(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    pump(from, &mut |chunk| {
        text.extend_from_slice(chunk);
        if text.len() > 3 * MOST_SAID {
            text.drain(MOST_SAID..text.len() - MOST_SAID);
        }
        Ok(())
    })?;
    Ok(text)
}

/// Hands on what a pipe holds, a little at a time.
pub(super) fn pump(from: &mut impl Read, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => sink(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
