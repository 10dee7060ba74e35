//! Failures of verification and of operations on anchors.

use git_handoff::git::refs;
use git_handoff::model::hints;
use git_handoff::repository::trust;
use git_handoff::share::anchor::{operations, verification};
use git_handoff::thread::verification as threads;
use git_handoff::verify;

use super::Failure;

pub(super) fn operations(error: &operations::Error) -> Failure {
    match error {
        operations::Error::Exists(name) => Failure::of("anchor-exists", error).hint(hints::remove_anchor(name)),
        operations::Error::NoAnchors => Failure::of("no-anchors", error).hint(hints::add_anchor()),
        operations::Error::UnknownName(_) => Failure::of("unknown-name", error).hint(hints::anchors_and_runs()),
        operations::Error::NotSealed(run) => Failure::of("not-sealed", error).hint(hints::verify(run)),
        operations::Error::NotOurThread(thread) => Failure::of("not-logged", error).hint(hints::verify_thread(thread)),
    }
}

pub(super) fn verification(error: &verification::Error) -> Failure {
    Failure::usage(error.to_string())
}

pub(super) fn threads(error: &threads::Error) -> Option<Failure> {
    let is_unknown = matches!(error, threads::Error::Trust(trust::Error::NoSigners));
    is_unknown.then(|| Failure::of("no-signers", error).hint(hints::verify_thread_by_signer()))
}

pub(super) fn refusal(refusal: &verify::Refusal) -> Failure {
    let failure = Failure::of("not-continuable", refusal);
    match refusal {
        verify::Refusal::Broken(report) => failure.hint(hints::verify(&report.run)),
        verify::Refusal::Sealed(run) => failure.hint(hints::verify(run)),
        verify::Refusal::NotAWriter { run, key } => failure.hint(hints::admit_any(run, key)),
        verify::Refusal::Foreign { .. } => failure.hint(hints::know_beginner()),
        verify::Refusal::Verify(_) | verify::Refusal::Ahead { .. } | verify::Refusal::Unread { .. } => failure,
    }
}

pub(super) fn verify(error: &verify::Error) -> Failure {
    let failure = Failure::of("verify", error);
    match error {
        // A failed check: something recorded is gone.
        verify::Error::Vanished { .. } | verify::Error::VanishedThread { .. } => {
            Failure { code: "vanished", exit: 3, ..failure }
        }
        verify::Error::Packed(inner) | verify::Error::Refs(refs::Error::Packed(inner)) => {
            Failure { exit: 3, ..Failure::new(inner) }
        }
        _ => failure,
    }
}
