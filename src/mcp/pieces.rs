//! The tool that returns pieces of runs in parts.

use std::io::{self, Write};

use git_handoff::repository::Repository;
use git_handoff::share::anchor::gate::Terms;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

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
#[derive(Serialize)]
struct Piece {
    schema: &'static str,
    what: String,
    size: u64,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    content: String,
    encoding: &'static str,
}

fn cat(call: &Call, parameters: &Cat) -> Result<Piece, Failure> {
    let repository: Repository = call.repository()?;
    let offset = parameters.offset.unwrap_or(0);
    // The caller cannot decide whom to trust.
    let piece = repository.piece(&parameters.what, Terms::default(), &mut |text| call.warn(text))?;
    let mut part = Part { skip: offset, size: 0, taken: Vec::new() };
    if let Some(blob) = piece.blob {
        // The whole piece is hashed.
        blob.copy(&repository.store, &mut part)?;
    }
    let Part { size, mut taken, .. } = part;
    let mut end = offset.saturating_add(taken.len() as u64);
    // A split character is not valid text.
    if end < size
        && let Err(error) = std::str::from_utf8(&taken)
        && error.error_len().is_none()
    {
        taken.truncate(error.valid_up_to());
        end = offset + taken.len() as u64;
    }
    let (content, encoding) = Encoding::write(taken);
    let next = (end < size).then_some(end);
    Ok(Piece { schema: "git-handoff.piece/1", what: parameters.what.clone(), size, offset, next, content, encoding })
}

/// A writer that keeps a part and counts everything.
struct Part {
    skip: u64,
    size: u64,
    taken: Vec<u8>,
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped =
            usize::try_from(self.skip.saturating_sub(self.size)).map_or(bytes.len(), |skip| skip.min(bytes.len()));
        let wanted = &bytes[skipped..];
        self.taken.extend_from_slice(&wanted[..wanted.len().min(MOST - self.taken.len())]);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
