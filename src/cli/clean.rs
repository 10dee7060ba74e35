//! `git handoff clean`

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::upkeep::clean::Request;
use git_handoff::upkeep::operations::CleanAnswer;

use git_handoff::run::query::Target;

use super::{Ending, Failure, Output, table};

/// Free the disk space of finished runs
///
/// Removes worktrees of attempts that no longer run, after saving their work to
/// refs/handoff/salvage/. Without --force it only lists them. Never removes a run, and skips runs
/// with a running driver.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// Clean only these runs
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Remove
    #[arg(long, short)]
    force: bool,
    /// Do not save the work in worktrees first, and remove unsaved work; for a full disk
    #[arg(long)]
    discard: bool,
    /// Only list what would be removed, even with --force
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Include transcripts of sealed runs; the runs still verify
    #[arg(long)]
    transcripts: bool,
    /// Include work saved from interrupted attempts of sealed runs
    #[arg(long)]
    salvage: bool,
    /// Clean the remotes of shared runs instead: remove the beats of drivers that ended
    #[arg(long, conflicts_with_all = ["discard", "transcripts", "salvage"])]
    remote: bool,
}

/// Lists, and removes if requested.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let remove = arguments.force && !arguments.dry_run;
    if arguments.remote {
        return clean_remotes(&arguments.runs, remove, repository, output);
    }
    let Arguments { transcripts, salvage, discard, .. } = *arguments;
    let request = Request { transcripts, salvage, discard, remove };
    let answer = repository.clean(&arguments.runs, request)?;
    answer.notes.iter().for_each(|note| output.note(note));
    if !output.answers(&answer) {
        print(&answer, output);
    }
    Ok(Ending::Done)
}

/// Lists the beats on remotes that nothing needs, and removes them if requested.
fn clean_remotes(
    names: &[String],
    remove: bool,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let runs: Vec<_> =
        names.iter().map(|name| Ok(Target::find(&repository.store, name)?.run)).collect::<Result<_, Failure>>()?;
    let answer = repository.clear_beats(&runs, remove)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    for beat in &answer.beats {
        let verb = match (remove, beat.removed) {
            (false, _) => "would remove",
            (true, true) => "removed",
            (true, false) => "kept",
        };
        output.line(&format!("{verb} the beat of driver {} of {} on {}", beat.driver.short(), beat.run, beat.remote));
    }
    if answer.beats.is_empty() {
        output.note("nothing to remove");
    } else if !remove {
        output.hint(&hints::clean_remote());
    }
    Ok(Ending::Done)
}

fn print(answer: &CleanAnswer, output: &mut Output) {
    for piece in &answer.pieces {
        let verb = match (answer.dry_run, piece.removed) {
            (true, _) => "would remove",
            (false, true) => "removed",
            (false, false) => "kept",
        };
        output.line(&format!("{verb} {} {} ({})", piece.kind, piece.place(), table::size(piece.bytes)));
    }
    for stay in &answer.stays {
        output.line(&format!("keeps {} ({}): {}", stay.path, table::size(stay.bytes), stay.why));
    }
    if let Some(all) = &answer.worktrees {
        let (bytes, cap) = (table::size(all.bytes), table::size(all.cap));
        output.note(&format!("the worktrees in {} take {bytes}; handoff.workspace.cap is {cap}", all.path));
    }
    if answer.pieces.is_empty() {
        return output.note("there is nothing to clean");
    }
    let (bytes, counted) = (table::size(answer.bytes), counted(answer));
    if answer.dry_run {
        output.note(&format!("{counted}: {bytes} would be freed"));
        output.hint(&hints::force());
    } else {
        output.note(&format!("{counted}: {bytes} freed"));
    }
    if answer.pieces.iter().any(|piece| piece.removed && piece.reference.is_some()) {
        output.note("git keeps the objects of deleted refs for two weeks; git gc --prune=now removes them at once");
    }
}

/// Summarizes the number of things of each kind.
fn counted(answer: &CleanAnswer) -> String {
    let kinds = [
        ("worktree", "worktree", "worktrees"),
        ("pool", "pool of spent worktrees", "pools of spent worktrees"),
        ("transcripts", "run's transcripts", "runs' transcripts"),
        ("salvage", "run's saved work", "runs' saved work"),
    ];
    let counted = kinds.into_iter().filter_map(|(kind, one, many)| {
        match answer.pieces.iter().filter(|piece| piece.kind == kind && (piece.removed || answer.dry_run)).count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        }
    });
    let counted: Vec<String> = counted.collect();
    if counted.is_empty() { "nothing was removed".to_owned() } else { counted.join(", ") }
}
