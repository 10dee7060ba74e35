//! `git handoff thread verify`

use std::path::PathBuf;

use git_handoff::model::hints;
use git_handoff::repository::Trust;
use git_handoff::share::anchor::threads::AnchoredThreads;
use git_handoff::thread::verification::Which;
use git_handoff::verify::{self, State, ThreadReport};

use super::super::verify::{hint_at_clone, of_signers};
use super::{Ending, Failure, Output, Repository};

/// Verify threads: every checkpoint, its signer and its lineage
///
/// Recomputes everything from the objects, and asks your anchors how far each thread went. Fetches
/// nothing else. Only your own configuration decides which keys are trusted.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The threads
    #[arg(required_unless_present = "all")]
    threads: Vec<String>,
    /// Verify every local and fetched thread
    #[arg(long, conflicts_with = "threads")]
    all: bool,
    /// Trust exactly the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Require that this principal owns the thread; its lineage only needs known keys
    #[arg(long, value_name = "PRINCIPAL")]
    signer: Option<String>,
    /// Distrust the keys in this file of fingerprints or public keys [default: handoff.revoked]
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Require that every signature, also in the lineage, is by a key in the signers file
    #[arg(long)]
    require_trusted: bool,
}

/// Prints a report for each thread.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let trust = Trust {
        signers: arguments.signers.as_deref(),
        revoked: arguments.revoked.as_deref(),
        require: arguments.require_trusted,
        signer: arguments.signer.as_deref(),
    };
    let which = if arguments.all { Which::All } else { Which::Named(&arguments.threads) };
    let AnchoredThreads { threads, missed } =
        repository.verify_anchored_threads(which, &trust, &mut |text| output.warn(text))?;
    if threads.is_empty() && missed.is_empty() {
        return Err(Failure::nothing_verified("there are no threads here").hint(hints::threads()));
    }
    let (mut ending, mut lacking) = (Ending::Done, false);
    for (at, report) in threads.reports().enumerate() {
        match report {
            Err(gone) if matches!(gone.downcast_ref(), Some(verify::Error::VanishedThread { .. })) => {
                ending = Ending::CheckFailed;
                output.fail(&gone.into());
            }
            report => {
                let report = report?;
                lacking |= report.failure == Some("incomplete") || report.rows.content.state == State::NotApplicable;
                if print(&report, at, output) != Ending::Done {
                    ending = Ending::CheckFailed;
                }
            }
        }
    }
    if lacking {
        hint_at_clone(repository, output);
    }
    for miss in missed {
        ending = Ending::CheckFailed;
        output.fail(&miss.into());
    }
    Ok(ending)
}

/// Prints one of several reports.
pub(crate) fn print(report: &ThreadReport, at: usize, output: &mut Output) -> Ending {
    output.report(at, || report.to_json(), |color| report.painted(color));
    of_signers(report.signers.iter().chain(report.lineage.iter().map(|ancestor| &ancestor.signer)), output);
    if report.intact { Ending::Done } else { Ending::CheckFailed }
}
