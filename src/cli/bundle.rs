//! `git handoff bundle`

use std::path::{Path, PathBuf};

use git_handoff::model::hints;
use git_handoff::repository::Repository;

use super::cat::Stdout;
use super::{Ending, Failure, Output, share};

/// Write runs and threads into one file, with the logs that name them
///
/// The file is a git bundle for `git bundle verify`, `git fetch` and `git handoff verify --bundle`.
/// It does not include the code that a run starts from.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs and threads; REMOTE/NAME for a fetched one
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// Include every run and thread of this repository
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// The file, or - for standard output [default: -]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes a bundle.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    let names = (!arguments.all).then_some(arguments.names.as_slice());
    if path.is_none() && output.is_terminal() {
        return Err(Failure::refused("terminal", "a bundle is nothing for a terminal".into()).hint(hints::bundle()));
    }
    let Some(path) = path else {
        repository.bundle(names, &mut Stdout { output })?;
        output.flush();
        return Ok(Ending::Done);
    };
    let bundled = repository.bundle_into(names, path)?;
    output.note(&format!("wrote {} to {}", share::counted(bundled.runs, bundled.threads), path.display()));
    Ok(Ending::Done)
}
