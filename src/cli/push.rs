//! `git handoff push`

use git_handoff::git::remote::{self, Remote};
use git_handoff::model::hints;
use git_handoff::model::{format, name::RunId};
use git_handoff::repository::Repository;
use git_handoff::run::query::target::own_runs;
use git_handoff::run::query::{is_sealed, view};
use git_handoff::share::answers::PushAnswer;
use git_handoff::share::push::{self as stage, Moved, Request, Selection, Status, Stays};
use git_handoff::share::{Kind, Rival};
use git_handoff::thread::own_threads;

use super::{Ending, Failure, Output, share, table};

/// Push runs and threads to a remote, with the logs that name them
///
/// Pushes the named ones, or with --all every run and thread that the remote lacks or has an
/// earlier state of. Only fast-forwards: if one diverged, nothing is pushed. Checks the remote's
/// refs afterwards.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The remote: a name, a URL or a path [default: the branch's, else the only one, else origin]
    remote: Option<String>,
    /// The runs and threads
    names: Vec<String>,
    /// Push every run and thread of this repository
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Push transcripts as well: they are large, and may contain private data
    #[arg(long)]
    transcripts: bool,
    /// Push to branches PREFIX/runs/RUN, for a host that accepts branches only
    #[arg(long, value_name = "PREFIX")]
    as_branch: Option<String>,
    /// Only show what would be pushed
    #[arg(long)]
    dry_run: bool,
}

/// Pushes, and prints the changes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let remote = share::remote(arguments.remote.as_deref(), true, repository)?;
    let selection = if arguments.all { Selection::All } else { requested_names(arguments, &remote, repository)? };
    let request = Request {
        remote,
        selection,
        threads_only: false,
        transcripts: arguments.transcripts,
        space: share::space(arguments.as_branch.as_deref())?,
        dry_run: arguments.dry_run,
        gate: repository.gate(),
    };
    let pushed = stage::push(&repository.store, &repository.reach(), &request, repository.log_writer()?.as_ref())
        .map_err(|error| Failure::of_push(error, &request))?;
    let moves = &pushed.moved;
    if output.json {
        output.value(&PushAnswer::new(&request, &pushed));
    }
    let ending = if pushed.is_partial() { Ending::Refused } else { Ending::Done };
    for other in &pushed.others {
        output.warn(&format!("{other}; ours was left out"));
        output.hint_once(hints::rename_and_delete(&other.place.name));
    }
    pushed.rivals.iter().for_each(|rival| warn(rival, &request, output));
    for Stays { reference: name, reason } in &pushed.stays {
        let on = remote::without_password(&request.remote.given);
        output.warn(&format!("{name} stays on {on}, which has the run in an archive: {reason}"));
    }
    warn_bases(moves, &request, repository, output)?;
    share::warn_unwritten(&pushed.unwritten, Some(&request.remote.given), repository, output);
    if output.json {
        return Ok(ending);
    }
    let rows: Vec<_> = moves.iter().filter(|moved| moved.status != Status::UpToDate).map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    if pushed.is_partial() {
        return Ok(ending);
    }
    let moved =
        moves.iter().any(|moved| moved.status.moves() || matches!(moved.status, Status::Archived | Status::Folded));
    if !moved && !moves.iter().any(|change| matches!(change.place.kind, Kind::Run | Kind::Thread | Kind::Archive)) {
        output.note("there are no runs or threads here");
    } else if !moved {
        output.note("the remote has everything already");
    } else if request.dry_run {
        output.note("nothing was pushed: --dry-run");
    }
    Ok(ending)
}

/// Returns the names; without any, fails with the available ones, because a push must be explicit.
fn requested_names(arguments: &Arguments, remote: &Remote, repository: &Repository) -> Result<Selection, Failure> {
    if !arguments.names.is_empty() {
        // A fetched run may be named as in `verify`.
        let prefix = format!("{}/", remote.name);
        return Ok(Selection::Named(
            arguments.names.iter().map(|name| name.strip_prefix(&prefix).unwrap_or(name).to_owned()).collect(),
        ));
    }
    let (runs, threads) = (own_runs(&repository.store)?.len(), own_threads(&repository.store)?.len());
    let here = match share::counted(runs, threads) {
        none if none.is_empty() => "no runs and no threads".to_owned(),
        some => some,
    };
    let message = format!("say what to push, by name or with --all; what is here: {here}");
    Err(Failure::usage(message).hint(hints::push_all(arguments.remote.as_deref().unwrap_or(&remote.given))))
}

/// Names open runs whose base is on no branch of the remote, so that no other repository can run
/// their items.
fn warn_bases(moves: &[Moved], request: &Request, repository: &Repository, output: &mut Output) -> Result<(), Failure> {
    let (store, remote) = (&repository.store, &request.remote.name);
    let branches = format!("refs/remotes/{remote}/");
    let has_branch = |more: &[&str]| -> Result<bool, Failure> {
        let listed = store.git().args(["for-each-ref", "--count=1"]).args(more).arg(&branches).run()?;
        Ok(!listed.is_empty())
    };
    let pushed = moves.iter().filter(|moved| moved.status.moves() && moved.place.kind == Kind::Run);
    for run in pushed.filter_map(|moved| RunId::parse(&moved.place.name).ok()) {
        let reference = format::run_ref(&run);
        // Sealed runs, of which a push may have thousands, are not read.
        if is_sealed(store, &reference) {
            continue;
        }
        let Some(base) = view(store, &run, &reference)?.map(|view| view.state.submitted.base) else { continue };
        // Without any branch of the remote, it is not known what it has.
        if has_branch(&[])? && !has_branch(&["--contains", &base.to_string()])? {
            output.warn(&format!(
                "the commit {base}, on which the run {run} is based, is on no known branch of {remote}: without it, no \
                 other repository can run its items"
            ));
            output.hint_once(hints::push_base(remote, base));
        }
    }
    Ok(())
}

/// Reports an invalid object on the remote under the name of one of our chains.
fn warn(rival: &Rival, request: &Request, output: &mut Output) {
    let (kind, name, on) = (rival.place.kind.word(), &rival.place.name, &request.remote.given);
    let ours = match &rival.instead {
        Some(instead) => format!("ours goes on beside it, as {:?}", instead.to_string()),
        None => "ours was left out".to_owned(),
    };
    let on = remote::without_password(on);
    output.warn(&format!("{kind} {name:?} on {on} is not sound: {}; {ours}", rival.why));
}

fn row(moved: &Moved) -> Vec<String> {
    let mut row = vec![moved.status.word().into(), moved.place.kind.word().into(), moved.place.name.clone()];
    if moved.status == Status::Behind {
        row.push("the remote is ahead; fetch it".into());
    }
    row
}
