//! `git handoff thread verify`

use std::path::PathBuf;

use git_handoff::git::store::Store;
use git_handoff::model::format;
use git_handoff::model::name::ThreadId;
use git_handoff::model::printable::{Color, Painted};
use git_handoff::thread::own_threads;
use git_handoff::verify::{Ancestor, Error, Logs, Options, SignerSeen, State, ThreadReport, thread as verify_thread};
use serde_json::{Map, Value, json};

use super::super::verify::{Trust, trust};
use super::target::ThreadTarget;
use super::{Context, Ending, Failure, Output};

/// Prove that threads are intact: every checkpoint, who signed it, and what the thread came from
///
/// Everything is recomputed from the objects, nothing is fetched, and keys are trusted only as your own configuration says.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The threads
    #[arg(required_unless_present = "all")]
    threads: Vec<String>,
    /// Verify every thread of this repository
    #[arg(long, conflicts_with = "threads")]
    all: bool,
    /// Trust exactly the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Fail unless the thread is by a key of this principal's; those that it goes back to only have to be known
    #[arg(long, value_name = "PRINCIPAL")]
    signer: Option<String>,
    /// Trust none of the keys in this list of fingerprints or public keys [default: handoff.revoked]
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Fail unless every signature, also of the threads that it goes back to, is by a key that the signers name
    #[arg(long)]
    require_trusted: bool,
}

/// Prints a report for each thread.
pub(super) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let wanted = Trust {
        signers: arguments.signers.as_deref(),
        revoked: arguments.revoked.as_deref(),
        require: arguments.require_trusted,
    };
    let options = trust(&wanted, context, output)?;
    if arguments.signer.is_some() && options.signers.is_none() {
        return Err(Failure::refused("no-signers", "nobody says which keys are the signer's".into())
            .hint("git handoff thread verify --signers FILE --signer PRINCIPAL THREAD"));
    }
    let options = Options { signer: arguments.signer.clone(), ..options };
    let mut targets: Vec<(ThreadId, String)> = Vec::new();
    if arguments.all {
        targets.extend(own_threads(&context.store)?.into_iter().map(own));
        if targets.is_empty() {
            output.note("there are no threads here");
        }
    }
    for named in &arguments.threads {
        targets.push(match (ThreadTarget::find(&context.store, named), ThreadId::parse(named)) {
            (Ok(target), _) => (target.thread, target.reference),
            // A thread whose ref is gone may still be one that a log names.
            (Err(_), Ok(thread)) => own(thread),
            (Err(failure), Err(_)) => return Err(failure),
        });
    }
    let logs = Logs::read(&context.store)?;
    report(&targets, (&context.store, &logs), &options, output)
}

/// Returns a thread with the ref that is its own.
fn own(thread: ThreadId) -> (ThreadId, String) {
    let reference = format::thread_ref(&thread);
    (thread, reference)
}

/// Verifies threads, each at its ref, and prints what was found.
fn report(
    targets: &[(ThreadId, String)],
    (store, logs): (&Store, &Logs),
    options: &Options,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let mut ending = Ending::Done;
    for (at, (thread, reference)) in targets.iter().enumerate() {
        let report = match verify_thread(store, logs, thread, reference, options) {
            Err(Error::NoSuchRun(_)) => {
                return Err(ThreadTarget::find(store, thread.as_str()).err().unwrap_or_else(Failure::bug));
            }
            other => other?,
        };
        if print(&report, at, output) != Ending::Done {
            ending = Ending::CheckFailed;
        }
    }
    Ok(ending)
}

/// Prints the report that stands at this place of an answer.
pub(in super::super) fn print(report: &ThreadReport, at: usize, output: &mut Output) -> Ending {
    if output.json {
        output.value(&value(report));
    } else {
        if at > 0 {
            output.line("");
        }
        lines(report, output);
    }
    if report.intact { Ending::Done } else { Ending::CheckFailed }
}

/// Returns a report as JSON answers give it.
pub(in super::super) fn value(report: &ThreadReport) -> Value {
    let checks: Map<String, Value> = report
        .rows
        .iter()
        .map(|row| {
            let ok = match row.state {
                State::Ok => json!(true),
                State::Failed => json!(false),
                State::NotApplicable => json!("n/a"),
            };
            (row.name.to_owned(), json!({ "ok": ok, "detail": row.detail }))
        })
        .collect();
    json!({
        "schema": "git-handoff.thread-verify/1",
        "thread": report.thread,
        "intact": report.intact,
        "failure": report.failure,
        "entries": report.entries,
        "checkpoints": report.checkpoints,
        "checks": checks,
        "signers": report.signers.iter().map(signer_value).collect::<Vec<_>>(),
        "lineage": lineage_value(&report.lineage),
        "accepted_unknown_signer": report.accepted_unknown(),
    })
}

fn signer_value(signer: &SignerSeen) -> Value {
    let mut value = json!({ "fingerprint": signer.fingerprint, "trusted": signer.trusted });
    if let Some(principal) = &signer.principal {
        value["principal"] = principal.as_str().into();
    }
    value
}

/// Returns what a thread goes back to, as answers have it, the nearest first.
pub(in super::super) fn lineage_value(lineage: &[Ancestor]) -> Value {
    let one = |ancestor: &Ancestor| {
        json!({
            "thread_id": ancestor.thread,
            "checkpoint_id": ancestor.checkpoint,
            "commit": ancestor.commit,
            "how": if ancestor.adopted { "adopted" } else { "forked" },
            "signer": signer_value(&ancestor.signer),
            "accepted_unknown_signer": ancestor.accepted_unknown,
        })
    };
    lineage.iter().map(one).collect()
}

/// Returns an ancestor in one line for people.
pub(super) fn ancestor_line(ancestor: &Ancestor) -> String {
    let how = if ancestor.adopted { "adopted" } else { "forked" };
    let Ancestor { thread, checkpoint, signer, .. } = ancestor;
    let key = match &signer.principal {
        Some(principal) => format!("{} of {principal}", signer.fingerprint),
        None => signer.fingerprint.clone(),
    };
    let accepted = if ancestor.accepted_unknown { "; an unknown key was accepted with it" } else { "" };
    format!("{how} from {thread}:{checkpoint}, by {key}{accepted}")
}

fn lines(report: &ThreadReport, output: &mut Output) {
    let headline = match report.failure {
        None => "✓ INTACT",
        Some("incomplete") => "✗ INCOMPLETE",
        Some(_) if report.distrust => "✗ UNTRUSTED",
        Some(_) => "✗ TAMPERED",
    };
    let pinned = if report.pinned_clock { "  clock pinned" } else { "" };
    output.line(&format!("{:<64}{headline}{pinned}", format!("git handoff thread verify · {}", report.thread)));
    for row in &report.rows {
        let color = match row.state {
            State::Ok => Color::Green,
            State::Failed => Color::Red,
            State::NotApplicable => Color::Yellow,
        };
        let mark = Painted::default().painted(row.state.mark(), output.color.then_some(color));
        output.line(mark.words(&format!(" {:<10} {}", row.name, row.detail)));
        if row.name == "lineage" {
            for ancestor in &report.lineage {
                output.line(&format!("             {}", ancestor_line(ancestor)));
            }
        }
    }
}
