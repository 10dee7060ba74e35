//! Writes the transcript of one attempt: the redacted output of its commands, in order of arrival.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::digest::Hasher;
use crate::model::entry::Transcript;
use crate::process::live::Live;
use crate::process::redact::Redactor;

/// The bytes reserved for the line about dropped bytes.
const MARKER: u64 = 64;

/// The most bytes of followed output to keep.
const FOLLOWED: usize = 8 << 10;

/// An output stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A transcript being written by the setup, main and verify commands of an attempt.
///
/// Each stream is redacted separately and written in whole lines, so that neither can split a
/// secret of the other. Bytes beyond the limit are counted and dropped. The file has no name, so no
/// worker can replace it.
pub struct TranscriptWriter {
    dir: PathBuf,
    file: File,
    streams: [Redactor; 2],
    hasher: Hasher,
    room: u64,
    written: u64,
    dropped: u64,
    /// The end of the redacted output since [`TranscriptWriter::follow`], also beyond the limit.
    followed: Option<Vec<u8>>,
    /// The display of the latest line.
    live: Option<Arc<Live>>,
    /// Receives the same redacted output.
    copy: Option<Box<Self>>,
    /// True if the copy alone receives it.
    diverts: bool,
}

impl TranscriptWriter {
    /// Creates the file on a folder's file system; `limit` is its maximum size in bytes.
    pub fn create(dir: &Path, secrets: &[Vec<u8>], limit: u64) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(dir).map_err(|e| Error(dir.to_owned(), e))?;
        let redactor = Redactor::new(secrets);
        Ok(Self {
            dir: dir.to_owned(),
            file,
            streams: [redactor.clone(), redactor],
            hasher: Hasher::default(),
            room: limit.saturating_sub(MARKER),
            written: 0,
            dropped: 0,
            followed: None,
            live: None,
            copy: None,
            diverts: false,
        })
    }

    /// Also sends output to a display.
    pub fn show(&mut self, live: Arc<Live>) {
        self.live = Some(live);
    }

    /// Adds bytes of a stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Error> {
        if let Some(live) = &self.live {
            live.stir();
        }
        if self.dropped > 0 && self.followed.is_none() && self.copy.is_none() {
            // Dropped bytes need no redaction.
            self.dropped += bytes.len() as u64;
            return Ok(());
        }
        let mut out = Vec::with_capacity(bytes.len());
        self.streams[stream as usize].push(bytes, &mut out);
        self.write(&out)
    }

    /// Writes unfinished lines. Call this after each command.
    pub fn flush(&mut self) -> Result<(), Error> {
        for stream in 0..self.streams.len() {
            let mut out = Vec::new();
            self.streams[stream].finish(&mut out);
            self.write(&out)?;
        }
        Ok(())
    }

    /// Starts to write the redacted output to a second transcript as well, or to that alone if
    /// `diverts` is true.
    pub fn split(&mut self, limit: u64, diverts: bool) -> Result<(), Error> {
        self.copy = Some(Box::new(Self::create(&self.dir, &[], limit)?));
        self.diverts = diverts;
        Ok(())
    }

    /// Returns the second transcript.
    pub fn take_copy(&mut self) -> Option<Self> {
        self.diverts = false;
        self.copy.take().map(|copy| *copy)
    }

    /// Starts to keep the end of the output.
    pub fn follow(&mut self) {
        self.followed = Some(Vec::new());
    }

    /// Returns the end of the redacted output since [`TranscriptWriter::follow`], in whole lines
    /// unless they are very long.
    pub fn followed(&mut self) -> Vec<u8> {
        self.followed.take().unwrap_or_default()
    }

    /// Returns the number of bytes so far. Call this between commands.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns true if bytes beyond the limit were dropped.
    pub fn is_cut(&self) -> bool {
        self.dropped > 0
    }

    /// Returns a reader of the bytes from a position on.
    pub fn read_from(&self, at: u64) -> Result<impl Read + use<>, Error> {
        let file = self.file.try_clone().map_err(|e| Error(self.dir.clone(), e))?;
        Ok(Written { file, at })
    }

    /// Completes the transcript. Returns its digest and size, and the file positioned at its start.
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
        if let Some(copy) = &mut self.copy {
            copy.write(bytes)?;
            if self.diverts {
                return Ok(());
            }
        }
        let length = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let length = if self.dropped > 0 { 0 } else { length };
        self.room -= length as u64;
        self.dropped += (bytes.len() - length) as u64;
        self.append(&bytes[..length])
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|e| Error(self.dir.clone(), e))
    }
}

/// The bytes of a transcript from a position on.
struct Written {
    file: File,
    at: u64,
}

impl Read for Written {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The transcript could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the transcript in {}", .0.display())]
pub struct Error(PathBuf, #[source] io::Error);
