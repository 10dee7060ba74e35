//! `git handoff cat`

use std::io::{self, Write};

use git_handoff::git::{checked, store};
use git_handoff::model::hints;
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, gate};

/// Print a product, a manifest or a transcript as it is, byte for byte
///
/// The run is verified first, as far as its integrity and its keys go, and the bytes are hashed again: of others than those that
/// were recorded, nothing is printed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to print: RUN/ITEM:patch, :outputs/PATH, :documents/NAME, :manifest, :transcript, or RUN:plan.json
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let piece = repository.piece(&arguments.what, arguments.terms.into(), &mut |text| output.warn(text))?;
    let Some(blob) = piece.blob else {
        output.note("the transcript is empty");
        return Ok(Ending::Done);
    };
    blob.copy(&repository.store, &mut Stdout { output }).map_err(|error| {
        let hint = match &error {
            checked::Error::Store(store::Error::Missing(_)) => hints::show_elsewhere(&piece.run),
            _ => hints::verify(&piece.run),
        };
        Failure::from(error).hint(hint)
    })?;
    Ok(Ending::Done)
}

/// Hands bytes to the one place that prints.
pub(super) struct Stdout<'a> {
    /// Where they go.
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
