//! Hints and failures of verification and of operations on anchors.

use git_handoff::git::refs;
use git_handoff::model::hints;
use git_handoff::repository::trust;
use git_handoff::share::anchor::operations;
use git_handoff::thread::verification as threads;
use git_handoff::verify;

use super::{Failure, hint_table};

hint_table! {
    operations::Error as E {
        E::Exists(name) => hints::remove_anchor(name);
        E::NoAnchors => hints::add_anchor();
        E::UnknownName(_) => hints::anchors_and_runs();
        E::NotSealed(run) => hints::verify(run);
        E::NotOurThread(thread) => hints::verify_thread(thread);
    }
    verify::Refusal as E {
        E::Broken(report) => hints::verify(&report.run);
        E::Sealed(run) => hints::verify(run);
        E::NotAWriter { run, key } => hints::admit_any(run, key);
        E::Foreign { .. } => hints::know_beginner();
    }
}

pub(super) fn threads(error: &threads::Error) -> Option<Failure> {
    let is_unknown = matches!(error, threads::Error::Trust(trust::Error::NoSigners));
    is_unknown.then(|| Failure::from_error("no-signers", error).hint(hints::verify_thread_by_signer()))
}

/// Ambiguous or damaged `packed-refs` are a failed check.
pub(super) fn packed(error: &verify::Error) -> Option<Failure> {
    match error {
        verify::Error::Packed(inner) | verify::Error::Refs(refs::Error::Packed(inner)) => {
            Some(Failure { exit: 3, ..Failure::new(inner) })
        }
        _ => None,
    }
}
