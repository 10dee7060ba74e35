//! Failures of proofs, exports and bundles, and of reading a piece of a run.

use git_handoff::ledger::prove;
use git_handoff::model::hints;
use git_handoff::report::export::{self, operations};
use git_handoff::run::import::lineage;
use git_handoff::run::query::{piece, proving};
use git_handoff::share::bundling;

use super::Failure;

pub(super) fn proving(error: &proving::Error) -> Failure {
    Failure::usage(error.to_string())
}

pub(super) fn export_operation(error: &operations::Error) -> Failure {
    match error {
        operations::Error::WholeRun | operations::Error::NoLines => Failure::usage(error.to_string()),
        operations::Error::NotOfRun { commit, .. } => Failure::of("not-of-run", error).hint(hints::whence(commit)),
    }
}

pub(super) fn bundling(error: &bundling::Error) -> Failure {
    match error {
        bundling::Error::Nothing => Failure::of("no-runs", error),
        bundling::Error::File { .. } => Failure::of("io", error),
    }
}

pub(super) fn prove(error: &prove::Error) -> Option<Failure> {
    let failure = Failure::of("prove", error);
    Some(match error {
        prove::Error::NotSealed(run) => Failure { code: "not-sealed", ..failure }.hint(hints::run_or_close(run)),
        prove::Error::NotDone(_) => Failure { code: "not-done", ..failure },
        prove::Error::NoProduct(..) => Failure { code: "no-such-thing", ..failure },
        prove::Error::Nothing(_) | prove::Error::NoEntry { .. } | prove::Error::NotARun => failure,
        _ => return None,
    })
}

pub(super) fn export(error: &export::Error) -> Option<Failure> {
    let is_ours = !matches!(error, export::Error::Store(_) | export::Error::Sign(_));
    is_ours.then(|| Failure::of("export", error))
}

pub(super) fn lineage(error: &lineage::Error) -> Option<Failure> {
    Some(match error {
        lineage::Error::NotSaid => Failure::usage(error.to_string()),
        lineage::Error::NoProduct(text) => {
            let item = text.rsplit_once(':').map_or(text.as_str(), |(item, _)| item);
            Failure::of("no-such-thing", error).hint(hints::show(item))
        }
        lineage::Error::Long => Failure::of("too-long", error),
        lineage::Error::NoEvidence(_) => Failure::of("no-such-thing", error),
        _ => return None,
    })
}

pub(super) fn piece(error: &piece::Error) -> Failure {
    match error {
        piece::Error::NotSaid => Failure::usage(error.to_string()),
        piece::Error::NoSuchThing { run, .. } => Failure::of("no-such-thing", error).hint(hints::show(run)),
        piece::Error::NoCheck(_)
        | piece::Error::NoAttempt { .. }
        | piece::Error::NotEnded(_)
        | piece::Error::NoTranscript { remote: None, .. } => Failure::of("no-transcript", error),
        piece::Error::NoTranscript { remote: Some(remote), .. } => {
            Failure::of("no-transcript", error).hint(hints::fetch_transcripts(remote))
        }
    }
}
