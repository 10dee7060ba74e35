//! `git handoff bundle`

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git_handoff::git::store::Store;
use git_handoff::model::format;
use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::Target;
use git_handoff::run::target::own_runs;
use git_handoff::share::{Kind, Place, bundle as stage};
use git_handoff::thread::own_threads;
use git_handoff::thread::target::ThreadTarget;

use super::cat::Stdout;
use super::{Ending, Failure, Output};

/// Write runs and threads into one file, with the repository logs that anchor them
///
/// It is a git bundle: `git bundle verify`, `git fetch` and `git handoff verify --bundle` read it. The code that a run
/// starts from is not in it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs and threads; REMOTE/NAME for one that was fetched
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// Every run and thread of this repository
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// The file, or - for standard output [default: -]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the bundle.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    if path.is_none() && output.is_terminal() {
        return Err(Failure::refused("terminal", "a bundle is nothing for a terminal".into()).hint(hints::bundle()));
    }
    let chains = chains(arguments, &repository.store)?;
    if chains.is_empty() {
        return Err(Failure::refused("no-runs", "there are no runs or threads here".into()));
    }
    let Some(path) = path else {
        stage::write(&repository.store, &chains, &mut Stdout { output })?;
        output.flush();
        return Ok(Ending::Done);
    };
    let failed = |e: io::Error| Failure::io(&format!("{} could not be written", path.display()), &e);
    // A file of that name is replaced by a whole bundle or not at all.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    stage::write(&repository.store, &chains, &mut file)?;
    file.flush().map_err(failed)?;
    readable(file.as_file()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    output.note(&format!("wrote {} to {}", counted(&chains), path.display()));
    Ok(Ending::Done)
}

/// Returns what is to be written, each with the ref that holds it; a name that a run and a thread have means both.
fn chains(arguments: &Arguments, store: &Store) -> Result<Vec<(Place, String)>, Failure> {
    let mut chains: Vec<(Place, String)> = Vec::new();
    if arguments.all {
        chains.extend(own_runs(store)?.iter().map(|run| (Place::of_run(run), format::run_ref(run))));
        chains.extend(own_threads(store)?.iter().map(|thread| (Place::of_thread(thread), format::thread_ref(thread))));
    }
    for word in &arguments.names {
        let thread = ThreadTarget::look_for(store, word)?.filter(|target| target.checkpoint.is_none());
        let run = match thread {
            Some(_) => Target::look_up(store, word)?,
            None => Some(Target::find(store, word)?),
        };
        chains.extend(run.map(|run| (Place::of_run(&run.run), run.reference)));
        chains.extend(thread.map(|thread| (Place::of_thread(&thread.thread), thread.reference)));
    }
    Ok(chains)
}

/// Returns how many of each kind there are, in words.
fn counted(chains: &[(Place, String)]) -> String {
    let of = |kind: Kind| match chains.iter().filter(|(place, _)| place.kind == kind).count() {
        0 => None,
        1 => Some(format!("1 {}", kind.word())),
        n => Some(format!("{n} {}s", kind.word())),
    };
    [of(Kind::Run), of(Kind::Thread)].into_iter().flatten().collect::<Vec<_>>().join(" and ")
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
