//! `git handoff delete`

use std::io::{self, BufRead as _, IsTerminal as _};

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::upkeep::delete::Deletion;

use super::{Ending, Failure, Output, table};

/// Delete runs permanently
///
/// Removes a run's refs, base, transcripts, saved work, worktrees and locks, and its copy in an
/// archive. Asks on a terminal; elsewhere it needs --yes. Logs are append-only: your key's log
/// keeps naming the run, and its id stays in use. Existing proofs and bundles stay valid, and
/// copies on remotes stay there.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Asks, deletes, and prints what remains.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let mut found: Vec<Deletion> = Vec::new();
    for name in &arguments.runs {
        let one = repository.deletion(name)?;
        if found.iter().all(|other| other.run != one.run) {
            found.push(one);
        }
    }
    if !arguments.yes {
        if !(io::stdin().is_terminal() && Output::can_ask()) {
            let message = "deleting a run needs --yes where there is no terminal to ask on".to_owned();
            return Err(Failure::usage(message).hint(hints::delete_yes(&arguments.runs[0])));
        }
        if !confirmed(&found, output)? {
            output.note("nothing was deleted");
            return Ok(Ending::Refused);
        }
    }
    let answer = repository.delete(found)?;
    if !output.answers(&answer) {
        answer.runs.iter().for_each(|run| print(run, output));
        output.note("git keeps objects that nothing refers to for two weeks; git gc --prune=now removes them at once");
    }
    Ok(Ending::Done)
}

/// Asks on the terminal; any answer but yes means no.
fn confirmed(found: &[Deletion], output: &mut Output) -> Result<bool, Failure> {
    found.iter().for_each(|run| output.note(&format!("would delete {}", summary(run))));
    output.note("type yes to delete for good:");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::io("the answer could not be read", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn summary(run: &Deletion) -> String {
    let mut parts = vec![table::many(run.refs.len(), "ref")];
    if !run.archives.is_empty() {
        parts.push(format!("its place in {}", table::many(run.archives.len(), "archive")));
    }
    if run.worktrees > 0 {
        parts.push(format!("{} ({})", table::many(run.worktrees, "worktree"), table::size(run.bytes)));
    }
    format!("{}: {}", run.run, parts.join(", "))
}

fn print(run: &Deletion, output: &mut Output) {
    output.line(&format!("deleted {}", summary(run)));
    let name = &run.run;
    if run.log.is_some() {
        output.note(&format!(
            "the logs of this repository go on naming {name}: the id stays taken; `verify --all` says that the run was \
             deleted, and anchors that it is gone"
        ));
    }
    output.note(&format!(
        "proofs and bundles that were made of {name} stay valid; new ones cannot be made here, and commits with its \
         products cannot be verified here any more"
    ));
    if !run.archives.is_empty() {
        output.note("the archive was replaced by one without it; an archive that was pushed still holds it");
    }
    for copy in &run.copies {
        output.note(&format!("the fetched copy {copy} stays, and so does the run on the remote"));
    }
}
