//! `git handoff bundle`

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::share::bundle as stage;

use super::cat::Stdout;
use super::context::Context;
use super::target::{Target, own_runs};
use super::{Ending, Failure, Output};

/// Write runs into one file, with the repository logs that anchor them
///
/// It is a git bundle: `git bundle verify`, `git fetch` and `git handoff verify --bundle` read it. The code that a run
/// starts from is not in it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs; REMOTE/RUN for one that was fetched
    #[arg(required_unless_present = "all")]
    runs: Vec<String>,
    /// Every run of this repository
    #[arg(long, conflicts_with = "runs")]
    all: bool,
    /// The file, or - for standard output [default: -]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the bundle.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    if path.is_none() && output.is_terminal() {
        return Err(Failure::refused("terminal", "a bundle is nothing for a terminal".into())
            .hint("git handoff bundle --all --output runs.bundle"));
    }
    let mut runs: Vec<(RunId, String)> = Vec::new();
    if arguments.all {
        runs.extend(own_runs(&context.store)?.into_iter().map(|run| (run.clone(), format::run_ref(&run))));
    }
    for word in &arguments.runs {
        let target = Target::find(&context.store, word)?;
        runs.push((target.run, target.reference));
    }
    if runs.is_empty() {
        return Err(Failure::refused("no-runs", "there are no runs here".into()));
    }
    let Some(path) = path else {
        stage::write(&context.store, &runs, &mut Stdout { output })?;
        output.flush();
        return Ok(Ending::Done);
    };
    let failed = |e: io::Error| Failure::io(&format!("{} could not be written", path.display()), &e);
    // A file of that name is replaced by a whole bundle or not at all.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    stage::write(&context.store, &runs, &mut file)?;
    file.flush().map_err(failed)?;
    readable(file.as_file()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    let count = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", runs.len()) };
    output.note(&format!("wrote {count} to {}", path.display()));
    Ok(Ending::Done)
}

/// Gives a file that was made for its owner alone the mode of any other new one.
fn readable(file: &std::fs::File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}
