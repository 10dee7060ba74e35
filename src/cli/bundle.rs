//! `git handoff bundle`

use std::path::{Path, PathBuf};

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::share::bundling::BundleRequest;

use super::cat::Stdout;
use super::{Ending, Failure, Output, share};

/// Write runs and threads into one file, with the logs that name them
///
/// The file is a git bundle for `git bundle verify`, `git fetch` and `git handoff verify --bundle`.
/// It does not include the code that a run starts from; `--protected` adds a part of it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs and threads; REMOTE/NAME for a fetched one
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// Include every run and thread of this repository
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Include what verifies protected files without the runs' bases: these files, the names of all
    /// others, and the files that applied patches change
    #[arg(long)]
    protected: bool,
    /// The file, or - for standard output [default: -]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes a bundle.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    let names = (!arguments.all).then_some(arguments.names.as_slice());
    let request = BundleRequest { names, protected: arguments.protected };
    if path.is_none() && output.is_terminal() {
        return Err(Failure::refused("terminal", "a bundle is nothing for a terminal".into()).hint(hints::bundle()));
    }
    let Some(path) = path else {
        repository.bundle(request, &mut Stdout { output })?;
        output.flush();
        return Ok(Ending::Done);
    };
    let bundled = repository.bundle_into(request, path)?;
    output.note(&format!("wrote {} to {}", share::counted(bundled.runs, bundled.threads), path.display()));
    match bundled.files {
        0 => {}
        1 => output.note("it includes 1 file of the code that the runs start from"),
        files => output.note(&format!("it includes {files} files of the code that the runs start from")),
    }
    Ok(Ending::Done)
}
