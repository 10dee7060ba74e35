//! The transcript of one attempt: what its commands wrote to stdout and stderr, redacted, in the order it came.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live::Live;
use super::redact::Redactor;
use crate::model::digest::Hasher;
use crate::model::entry::Transcript;

/// Room for the line that tells of dropped bytes.
const MARKER: u64 = 64;

/// How much of the end of what is followed is kept.
const FOLLOWED: usize = 8 << 10;

/// Which stream of a command bytes came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A transcript being written; the setup, main and verify commands of an attempt write to one.
///
/// Each stream is redacted by itself and reaches the file in whole lines, so that neither can cut a secret of the other in
/// two. Beyond the limit bytes are counted and dropped. The file has no name, so that no worker can exchange it, and goes with
/// whoever holds it.
pub struct TranscriptWriter {
    dir: PathBuf,
    file: File,
    streams: [Redactor; 2],
    hasher: Hasher,
    room: u64,
    dropped: u64,
    /// The end of what was written since it was followed, as redacted; beyond the limit, too.
    followed: Option<Vec<u8>>,
    /// Whoever watches.
    live: Option<Arc<Live>>,
}

impl TranscriptWriter {
    /// Creates the file on the file system of a folder; `limit` is the most that it will hold.
    pub fn create(dir: &Path, secrets: &[Vec<u8>], limit: u64) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(dir).map_err(|e| Error(dir.to_owned(), e))?;
        let redactor = Redactor::new(secrets);
        Ok(Self {
            dir: dir.to_owned(),
            file,
            streams: [redactor.clone(), redactor],
            hasher: Hasher::default(),
            room: limit.saturating_sub(MARKER),
            dropped: 0,
            followed: None,
            live: None,
        })
    }

    /// Shows what is written to whoever watches.
    pub fn show(&mut self, live: Arc<Live>) {
        self.live = Some(live);
    }

    /// Takes in bytes of a stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Error> {
        if let Some(live) = &self.live {
            live.stir();
        }
        if self.dropped > 0 && self.followed.is_none() {
            // What will not be kept need not be redacted.
            self.dropped += bytes.len() as u64;
            return Ok(());
        }
        let mut out = Vec::with_capacity(bytes.len());
        self.streams[stream as usize].push(bytes, &mut out);
        self.write(&out)
    }

    /// Writes what is held back of unfinished lines; to be called when a command has ended.
    pub fn flush(&mut self) -> Result<(), Error> {
        for stream in 0..self.streams.len() {
            let mut out = Vec::new();
            self.streams[stream].finish(&mut out);
            self.write(&out)?;
        }
        Ok(())
    }

    /// Begins to keep the end of what is written.
    pub fn follow(&mut self) {
        self.followed = Some(Vec::new());
    }

    /// Returns the end of what was written since [`TranscriptWriter::follow`], redacted, in whole lines where they are not very long.
    pub fn followed(&mut self) -> Vec<u8> {
        self.followed.take().unwrap_or_default()
    }

    /// Ends the transcript and returns its digest and size, and the complete file, to be read from its beginning.
    pub fn finish(mut self) -> Result<(Transcript, File), Error> {
        self.flush()?;
        if self.dropped > 0 {
            let line = format!("\n[git-handoff: {} more bytes were dropped]\n", self.dropped);
            self.append(line.as_bytes())?;
        }
        let (sha256, size) = self.hasher.finish();
        self.file.rewind().map_err(|e| Error(self.dir, e))?;
        Ok((Transcript { sha256, size }, self.file))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(live) = &self.live {
            live.say(bytes);
        }
        if let Some(followed) = &mut self.followed {
            followed.extend_from_slice(bytes);
            followed.drain(..followed.len().saturating_sub(FOLLOWED));
        }
        let kept = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let kept = if self.dropped > 0 { 0 } else { kept };
        self.room -= kept as u64;
        self.dropped += (bytes.len() - kept) as u64;
        self.append(&bytes[..kept])
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|e| Error(self.dir.clone(), e))
    }
}

/// The transcript could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the transcript could not be written in {}", .0.display())]
pub struct Error(PathBuf, #[source] io::Error);
