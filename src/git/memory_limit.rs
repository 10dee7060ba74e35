//! Limits git's memory when it reads other people's objects.
//!
//! git holds a delta and its base in memory. Only an environment variable, not the configuration,
//! limits that.

use std::io::{self, Read};

use super::program::{Error, Git};

/// git's default for the largest deltified file, and the largest that a limited command
/// reconstructs.
const MOST_HELD: u64 = 512 << 20;

/// A limited command streams larger files than this, unless they are deltas.
const STREAMED: u64 = 4 << 20;

/// The bytes kept from the start, and from the end, of git's standard error.
const MOST_SAID: usize = 256 << 10;

impl Git {
    /// Limits git's memory for any pack: large files are streamed, and deltas are reconstructed on
    /// one thread and only if no step exceeds `MOST_HELD`.
    #[must_use]
    pub fn frugal(self) -> Self {
        self.within_memory()
            .config(format!("core.bigFileThreshold={STREAMED}"))
            .config("core.deltaBaseCacheLimit=16m")
            .config("pack.threads=1")
    }

    /// Limits what git allocates at once.
    #[must_use]
    pub(super) fn within_memory(self) -> Self {
        self.env("GIT_ALLOC_LIMIT", (MOST_HELD + (1 << 20)).to_string())
    }
}

impl Error {
    /// Returns true if git ended because memory ran out or its limit was reached.
    pub fn wants_memory(&self) -> bool {
        const WORDS: [&str; 4] = ["over limit", "out of memory", "Out of memory", "Cannot allocate memory"];
        // A remote's messages have another prefix.
        let Self::Failed { stderr, .. } = self else { return false };
        let mut fatal = stderr.lines().filter(|line| line.starts_with("fatal: "));
        fatal.any(|line| WORDS.iter().any(|words| line.contains(words)))
    }
}

/// Reads git's standard error. A remote may write anything to it; git's own reason comes last.
pub(super) fn read_stderr(from: &mut impl Read) -> io::Result<Vec<u8>> {
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

/// Copies a pipe in small pieces.
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
