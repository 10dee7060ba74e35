//! `git handoff cat`

use std::io::{self, Write};

use git_handoff::git::{store, verified_stream};
use git_handoff::model::{ansi, hints};
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, gate};

/// Print the exact bytes of a product, a manifest or a transcript
///
/// Verifies the run's integrity and keys first, and hashes the bytes again: altered bytes are not
/// printed. On a terminal, control sequences are removed from a transcript.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// RUN/ITEM:patch, :outputs/PATH, :documents/NAME, :manifest, :transcript, :check, or
    /// RUN:plan.json
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    print(&arguments.what, arguments.terms, repository, output)
}

/// Prints the bytes of a named piece.
pub(super) fn print(
    what: &str,
    terms: gate::Terms,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let piece = repository.piece(what, terms.into(), &mut |text| output.warn(text))?;
    let Some(blob) = piece.blob else {
        output.note("it is empty");
        return Ok(Ending::Done);
    };
    let is_read = output.is_terminal() && names_transcript(what);
    let copied = if is_read {
        let mut readable = Readable { output, line: Vec::new() };
        blob.copy(&repository.store, &mut readable).inspect(|()| readable.end())
    } else {
        blob.copy(&repository.store, &mut Stdout { output })
    };
    copied.map_err(|error| {
        let hint = match &error {
            verified_stream::Error::Store(store::Error::Missing(_)) => hints::show_elsewhere(&piece.run),
            _ => hints::verify(&piece.run),
        };
        Failure::from(error).hint(hint)
    })?;
    Ok(Ending::Done)
}

/// Returns true if the name is that of a transcript.
fn names_transcript(what: &str) -> bool {
    what.rsplit_once(':')
        .is_some_and(|(_, part)| matches!(part.split('@').next(), Some("transcript" | "check" | "check-before")))
}

/// The maximum length of a line to print in one piece, in bytes.
const LONGEST: usize = 64 << 10;

/// Prints a transcript for a person: line by line, without control sequences.
struct Readable<'a> {
    output: &'a mut Output,
    line: Vec<u8>,
}

impl Readable<'_> {
    /// Prints the rest without a line end.
    fn end(&mut self) {
        if !self.line.is_empty() {
            self.print(self.line.len());
        }
    }

    /// Prints the first bytes of the buffer as one line.
    fn print(&mut self, length: usize) {
        let line: Vec<u8> = self.line.drain(..length).collect();
        let line = ansi::without(&String::from_utf8_lossy(&line));
        // Separates the states of a progress bar into lines.
        line.split('\r').filter(|part| !part.is_empty()).for_each(|part| self.output.line(part));
        if line.trim_matches('\r').is_empty() {
            self.output.line("");
        }
    }
}

impl Write for Readable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.pop_if(|last| *last == b'\n').is_some() || self.line.len() >= LONGEST {
                self.print(self.line.len());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes bytes to the output.
pub(super) struct Stdout<'a> {
    /// The output.
    pub(super) output: &'a mut Output,
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
