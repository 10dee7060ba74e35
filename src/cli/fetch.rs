//! `git handoff fetch`

use git_handoff::git::fsck;
use git_handoff::model::digest::Oid;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::name::RunId;
use git_handoff::model::printable;
use git_handoff::repository::{Repository, remote_record};
use git_handoff::run::operate::statements::StatementOutcome;
use git_handoff::share::Kind;
use git_handoff::share::answers::FetchAnswer;
use git_handoff::share::fetch::{self as stage, Fetched, FetchedRef, Request, Status};

use super::{Ending, Failure, Output, share, table};

/// The maximum number of missing runs to name.
const MOST_TOLD: usize = 50;

/// Fetch runs, threads and logs from a remote, to verify them here
///
/// They are stored below refs/handoff/remotes/ and named REMOTE/NAME. A fetched run, thread or log
/// is only ever fast-forwarded: a rewritten one is refused, and so are entries by keys that may not
/// write them. Names that the remote no longer shows are reported, and the copies stay here. In a
/// partial clone, everything that verify needs except products is fetched as well.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The remote: a name, a URL or a path [default: the branch's, else the only one, else origin]
    remote: Option<String>,
    /// The runs and threads [default: all]
    names: Vec<String>,
    /// Fetch transcripts as well
    #[arg(long)]
    transcripts: bool,
    /// In a partial clone, fetch the products as well
    #[arg(long)]
    content: bool,
    /// Fetch what was pushed with --as-branch PREFIX
    #[arg(long, value_name = "PREFIX")]
    as_branch: Option<String>,
}

/// Fetches, and prints the changes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let request = Request {
        remote: share::remote(arguments.remote.as_deref(), false, repository)?,
        names: arguments.names.clone(),
        threads_only: false,
        transcripts: arguments.transcripts,
        content: arguments.content,
        space: share::space(arguments.as_branch.as_deref())?,
    };
    let fetched = stage::fetch(&repository.store, &repository.reach(), &request)?;
    let followed = repository.follow_fetched(accepted_runs(&fetched))?;
    let taken_in = repository.accept_statements()?;
    if output.json {
        output.value(&FetchAnswer {
            remote: &request.remote.name,
            fetched: &fetched,
            followed: &followed,
            taken_in: &taken_in,
            more: None,
        });
    } else {
        taken_in.iter().for_each(|outcome| print_statement(outcome, output));
        let rows: Vec<_> = fetched.refs.iter().filter(|outcome| outcome.status != Status::UpToDate).map(row).collect();
        table::lines(&rows).iter().for_each(|line| output.line(line));
        for run in &followed {
            let (run, remote) = (run.as_str(), &request.remote.name);
            output.note(&format!("the run {run:?} is shared, and has the entries of {remote} here now"));
        }
    }
    comment(&fetched, &taken_in, &request, output);
    for run in repository.driven_twice(accepted_runs(&fetched))? {
        let remote = &request.remote.name;
        output.warn(&format!("the run {run:?} was driven twice: {remote} has other entries of it than there are here"));
        output.hint(&hints::adopt_and_delete(&run));
    }
    let refused = fetched.refs.iter().any(|outcome| outcome.status.is_refused());
    Ok(if refused { Ending::Refused } else { Ending::Done })
}

/// Returns the runs that were accepted, with their heads.
fn accepted_runs(fetched: &Fetched) -> impl Iterator<Item = (RunId, Oid)> {
    let accepted =
        fetched.refs.iter().filter(|outcome| outcome.place.kind == Kind::Run && !outcome.status.is_refused());
    accepted.filter_map(|outcome| Some((RunId::try_from(outcome.place.name.clone()).ok()?, outcome.new)))
}

fn comment(fetched: &Fetched, taken_in: &[StatementOutcome], request: &Request, output: &mut Output) {
    for name in &fetched.skipped {
        output.warn(&format!("{} is no name of a run, thread or log; it was not fetched", printable::line(name)));
    }
    let (lost, unpushed): (Vec<_>, Vec<_>) = fetched.vanished.iter().partition(|vanished| vanished.was_shown);
    lost.iter().take(MOST_TOLD).for_each(|vanished| output.warn(&vanished.sentence()));
    if let more @ 1.. = lost.len().saturating_sub(MOST_TOLD) {
        output.warn(&format!("{more} more are gone from {}; --json lists them all", request.remote.name));
    }
    if let (false, true) = (unpushed.is_empty(), request.names.is_empty()) {
        output.note(&remote_record::unpushed(&request.remote.name, unpushed.len()));
    }
    for outcome in &fetched.refs {
        let (kind, name) = (outcome.place.kind.word(), &outcome.place.name);
        match (&outcome.status, outcome.old) {
            (Status::Rewritten, Some(old)) => {
                output.warn(&format!(
                    "{kind} {name:?} was rewritten on {}: it was at {old} and is at {} now, which does not go on from \
                     there; what was fetched before is kept",
                    request.remote.name, outcome.new
                ));
                output.hint(&hints::forget(&outcome.reference));
            }
            (Status::Unfit(what), _) => {
                output.warn(&format!("{kind} {name:?} is {what} on {}; it was not taken", request.remote.name));
            }
            (Status::Unsound(why), old) => {
                let effect = if old.is_some() { "what was fetched before is kept" } else { "it was not taken" };
                output.warn(&format!("{kind} {name:?} on {} is not sound: {why}; {effect}", request.remote.name));
                if let Some(finding) = fsck::finding(why) {
                    output.hint_once(hints::let_through(finding));
                }
            }
            _ => {}
        }
    }
    if output.json {
        return;
    }
    if !fetched.archived.is_empty() {
        let runs = table::many(fetched.archived.len(), "run");
        output.note(&format!("archived on {}, and here with it: {runs}", request.remote.name));
    }
    if fetched.refs.is_empty() {
        output.note(&format!("there are no runs or threads on {}", request.remote.name));
    } else if fetched.refs.iter().all(|outcome| outcome.status == Status::UpToDate) && fetched.blobs == 0 {
        output.note("everything is here already");
    } else if let Some(hint) = next(fetched, taken_in, request) {
        output.hint(&hint);
    }
}

/// Returns the next command: continue a run that received a decision, else verify the first change.
fn next(fetched: &Fetched, taken_in: &[StatementOutcome], request: &Request) -> Option<Hint> {
    if let Some(outcome) = taken_in.iter().find(|outcome| outcome.refused.is_none()) {
        return Some(hints::run(&outcome.run));
    }
    let outcome = fetched
        .refs
        .iter()
        .filter(|outcome| !outcome.place.kind.is_of_key())
        .find(|outcome| !outcome.status.is_refused() && outcome.status != Status::UpToDate)?;
    let name = request.remote.name_of(&outcome.place);
    Some(match outcome.place.kind {
        Kind::Thread => hints::verify_thread(name),
        _ => hints::verify(name),
    })
}

/// Formats another person's statement about our run, and whether it is now an entry.
fn print_statement(outcome: &StatementOutcome, output: &mut Output) {
    let what = match (&outcome.item, outcome.decision, &outcome.document) {
        (Some(item), Some(decision), _) => format!("{}/{item} {} by {}", outcome.run, decision.word(), outcome.by),
        (_, _, Some(document)) => format!("{}: {document} by {}", outcome.run, outcome.by),
        _ => return,
    };
    match &outcome.refused {
        None => output.line(&format!("taken in  {what}")),
        Some(why) => output.warn(&format!("{what} is not taken in: {why}")),
    }
}

fn row(outcome: &FetchedRef) -> Vec<String> {
    vec![outcome.status.word().into(), outcome.place.kind.word().into(), outcome.place.name.clone()]
}
