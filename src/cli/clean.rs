//! `git handoff clean`

use git_handoff::engine::machine::host;
use git_handoff::git::{kept, store};
use git_handoff::model::format;
use git_handoff::repository::Repository;
use git_handoff::run::Target;
use git_handoff::run::target::own_runs;
use git_handoff::upkeep::clean::{self as stage, Piece, Request, What};
use serde_json::{Value, json};

use super::{Ending, Failure, Output, table};

/// Free what runs left on the disk
///
/// Worktrees of attempts that nobody runs any more, after their work is saved to refs/handoff/salvage/. Without --force it
/// only lists. Runs themselves are never removed, and one that is being driven is left alone.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// Only these runs
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Remove it
    #[arg(long, short)]
    force: bool,
    /// Do not save the work in worktrees first, and remove what could not be saved before: for a disk that is full
    #[arg(long)]
    discard: bool,
    /// Only list what would be removed, also with --force
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Transcripts of sealed runs as well; the runs still verify
    #[arg(long)]
    transcripts: bool,
    /// Work saved from interrupted attempts of sealed runs as well
    #[arg(long)]
    salvage: bool,
}

/// Lists, and removes if that is asked for.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let remove = arguments.force && !arguments.dry_run;
    let Arguments { transcripts, salvage, discard, .. } = *arguments;
    let request = Request { transcripts, salvage, discard, remove };
    let mut runs = Vec::new();
    for named in &arguments.runs {
        let target = Target::find(&repository.store, named)?;
        if target.reference != format::run_ref(&target.run) {
            let message = format!("the run {named:?} was fetched; there is nothing of it to clean here");
            return Err(Failure::refused("not-ours", message));
        }
        runs.push(target.run);
    }
    if arguments.runs.is_empty() {
        runs = own_runs(&repository.store)?;
    }
    let (mut pieces, mut notes) = (Vec::new(), forsaken(repository, remove)?);
    if runs.is_empty() {
        return Ok(tell(&[], &notes, remove, output));
    }
    let (writer, host) = (repository.writer()?, host(repository)?);
    for run in &runs {
        match stage::clean(&writer, &host, run, request) {
            Ok(cleaned) => {
                pieces.extend(cleaned.pieces);
                notes.extend(cleaned.notes);
            }
            // One run that cannot be read does not keep the others' worktrees on the disk.
            Err(stage::Error::Run(error)) if arguments.runs.is_empty() => notes.push(format!("{run}: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tell(&pieces, &notes, remove, output))
}

/// Lets git have the packs that dead processes kept from it; returns what to tell.
fn forsaken(repository: &Repository, remove: bool) -> Result<Vec<String>, Failure> {
    let found = kept::forsaken(&repository.store).map_err(store::Error::Pack)?;
    let freed = found.iter().filter(|path| !remove || kept::release(path)).count();
    let verb = if remove { "are" } else { "would be" };
    let note = format!("{freed} pack(s) that a dead process kept from git {verb} git's again");
    Ok((freed > 0).then_some(note).into_iter().collect())
}

fn tell(pieces: &[Piece], notes: &[String], remove: bool, output: &mut Output) -> Ending {
    notes.iter().for_each(|note| output.note(note));
    let bytes: u64 = pieces.iter().filter(|piece| piece.removed || !remove).map(|piece| piece.bytes).sum();
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.clean/1",
            "dryRun": !remove,
            "pieces": pieces.iter().map(value).collect::<Vec<_>>(),
            "bytes": bytes,
            "notes": notes,
        }));
        return Ending::Done;
    }
    for piece in pieces {
        let verb = match (remove, piece.removed) {
            (false, _) => "would remove",
            (true, true) => "removed",
            (true, false) => "kept",
        };
        let (kind, place) = place(&piece.what);
        output.line(&format!("{verb} {kind} {place} ({})", table::size(piece.bytes)));
    }
    if pieces.is_empty() {
        output.note("there is nothing to clean");
        return Ending::Done;
    }
    if remove {
        output.note(&format!("{} freed", table::size(bytes)));
    } else {
        output.note(&format!("{} would be freed", table::size(bytes)));
        output.hint("the same command with --force");
    }
    if pieces.iter().any(|piece| piece.removed && !matches!(piece.what, What::Worktree { .. })) {
        output.note("objects that only a deleted ref held go with git's next gc");
    }
    Ending::Done
}

fn place(what: &What) -> (&'static str, String) {
    match what {
        What::Worktree { path, .. } => ("worktree", path.display().to_string()),
        What::Transcripts(reference) => ("transcripts", reference.clone()),
        What::Salvage(reference) => ("salvage", reference.clone()),
    }
}

fn value(piece: &Piece) -> Value {
    let (kind, place) = place(&piece.what);
    let mut value = json!({ "kind": kind, "run": piece.run, "bytes": piece.bytes, "removed": piece.removed });
    match &piece.what {
        What::Worktree { item, attempt, .. } => {
            value["item"] = json!(item);
            value["attempt"] = json!(attempt);
            value["path"] = json!(place);
        }
        What::Transcripts(_) | What::Salvage(_) => value["ref"] = json!(place),
    }
    value
}
