//! Shows where the work of failed and interrupted attempts is saved.

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::query::View;
use git_handoff::run::query::saved::Saved;

use super::Output;

/// Returns the lines about the saved work of an attempt of the item that is shown.
pub(super) fn lines(saved: &Saved) -> impl Iterator<Item = String> {
    saved.names().map(|name| format!("saved      #{}: {name}", saved.attempt))
}

/// Prints a line for each attempt, and the command that takes the last one's work.
pub(super) fn print(all: &[Saved], output: &mut Output) {
    for saved in all {
        let names: Vec<&str> = saved.names().collect();
        output.line(&format!("saved      {} #{}: {}", saved.item, saved.attempt, names.join(", ")));
    }
    hint(all, output);
}

/// Prints the same as notes, after a command that was interrupted or failed. `hints` adds the
/// commands.
pub(super) fn note(all: &[Saved], hints: bool, output: &mut Output) {
    for saved in all {
        let names: Vec<&str> = saved.names().collect();
        output.note(&format!("saved: {} #{}: {}", saved.item, saved.attempt, names.join(", ")));
    }
    if hints {
        hint(all, output);
    }
}

fn hint(all: &[Saved], output: &mut Output) {
    let Some(last) = all.last() else { return };
    if let Some(work) = &last.work {
        output.hint(&hints::take_saved(last.base, work));
    }
    if let Some(commits) = &last.commits {
        output.hint(&hints::take_commits(commits));
    }
}

/// Shows where the work of failed and interrupted attempts is, and returns true if there is any.
/// `hints` adds the commands that take it.
pub(crate) fn show_left(view: &View, hints: bool, repository: &Repository, output: &mut Output) -> bool {
    match Saved::all(&repository.store, view) {
        Ok(all) => {
            note(&all, hints, output);
            !all.is_empty()
        }
        Err(error) => {
            output.warn(&format!("cannot read the saved work: {error}"));
            false
        }
    }
}
