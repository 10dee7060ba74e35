//! The tool that returns pieces of runs in parts.

use std::io::{self, Write};

use git_handoff::answers::program::{Cut, Piece};
use git_handoff::repository::Repository;
use git_handoff::share::anchor::gate::Terms;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::output::Failure;

use super::tools::{Call, Effect, Encoding, Entry, tool};

/// The maximum size of an answer, in bytes.
const MOST: usize = 256 << 10;

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![tool(
        "cat",
        "Read a piece of a run, at most 256 KiB at a time: RUN/ITEM:patch, :outputs/PATH, :manifest, :transcript or \
         :transcript@ATTEMPT; RUN:documents/NAME or RUN:plan.json. If the answer has `next`, continue at that offset.",
        Effect::Reads,
        &["piece"],
        cat,
    )]
}

#[derive(Deserialize, JsonSchema)]
struct Cat {
    /// The piece, such as RUN/ITEM:patch
    what: String,
    /// The first byte [default: 0]
    offset: Option<u64>,
}

/// A part of a piece.
fn cat(call: &Call, parameters: &Cat) -> Result<Piece, Failure> {
    let repository: Repository = call.repository()?;
    // The caller cannot decide whom to trust.
    let piece = repository.piece(&parameters.what, Terms::default(), &mut |text| call.warn(text))?;
    let mut part = Part::new(parameters.offset, MOST);
    if let Some(blob) = piece.blob {
        // The whole piece is hashed.
        blob.copy(&repository.store, &mut part)?;
    }
    Ok(Piece { what: parameters.what.clone(), part: part.cut() })
}

/// A writer that keeps a part and counts everything.
pub(super) struct Part {
    skip: u64,
    most: usize,
    size: u64,
    bytes: Vec<u8>,
}

impl Part {
    /// Keeps at most `most` bytes from an offset.
    pub(super) fn new(offset: Option<u64>, most: usize) -> Self {
        Self { skip: offset.unwrap_or(0), most, size: 0, bytes: Vec::new() }
    }

    /// Returns the part. A text is not cut within a character.
    pub(super) fn cut(self) -> Cut {
        let Self { skip: offset, size, mut bytes, .. } = self;
        let mut end = offset.saturating_add(bytes.len() as u64);
        if end < size
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
            end = offset + bytes.len() as u64;
        }
        let (content, encoding) = Encoding::write(bytes);
        Cut { size, offset, next: (end < size).then_some(end), content, encoding }
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped =
            usize::try_from(self.skip.saturating_sub(self.size)).map_or(bytes.len(), |skip| skip.min(bytes.len()));
        let rest = &bytes[skipped..];
        self.bytes.extend_from_slice(&rest[..rest.len().min(self.most - self.bytes.len())]);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
