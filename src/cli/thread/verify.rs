//! `git handoff thread verify`

use std::path::PathBuf;

use git_handoff::git::store::Store;
use git_handoff::model::format;
use git_handoff::model::hints;
use git_handoff::model::name::ThreadId;
use git_handoff::repository::Trust;
use git_handoff::thread::own_threads;
use git_handoff::thread::target::ThreadTarget;
use git_handoff::verify::{Error, Logs, Options, ThreadReport, thread as verify_thread};

use super::{Ending, Failure, Output, Repository};

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
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let wanted = Trust {
        signers: arguments.signers.as_deref(),
        revoked: arguments.revoked.as_deref(),
        require: arguments.require_trusted,
    };
    let options = repository.options(&wanted, &mut |text| output.warn(text))?;
    if arguments.signer.is_some() && options.signers.is_none() {
        return Err(Failure::refused("no-signers", "nobody says which keys are the signer's".into())
            .hint(hints::verify_thread_by_signer()));
    }
    let options = Options { signer: arguments.signer.clone(), ..options };
    let mut targets: Vec<(ThreadId, String)> = Vec::new();
    if arguments.all {
        targets.extend(own_threads(&repository.store)?.into_iter().map(own));
        if targets.is_empty() {
            output.note("there are no threads here");
        }
    }
    for named in &arguments.threads {
        targets.push(match (ThreadTarget::find(&repository.store, named), ThreadId::parse(named)) {
            (Ok(target), _) => (target.thread, target.reference),
            // A thread whose ref is gone may still be one that a log names.
            (Err(_), Ok(thread)) => own(thread),
            (Err(unknown), Err(_)) => return Err(unknown.into()),
        });
    }
    let logs = Logs::read(&repository.store)?;
    report(&targets, (&repository.store, &logs), &options, output)
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
                return Err(ThreadTarget::find(store, thread.as_str()).err().map_or_else(Failure::bug, Failure::from));
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
pub(crate) fn print(report: &ThreadReport, at: usize, output: &mut Output) -> Ending {
    output.report(at, || report.to_json(), |color| report.painted(color));
    if report.intact { Ending::Done } else { Ending::CheckFailed }
}
