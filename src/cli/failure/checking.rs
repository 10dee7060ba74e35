//! Failures of verification and of operations on anchors.

use git_handoff::model::hints;
use git_handoff::repository::trust;
use git_handoff::share::anchor::{operations, threads as anchored, verification};
use git_handoff::thread::verification as threads;

use super::Failure;

impl From<operations::Error> for Failure {
    fn from(error: operations::Error) -> Self {
        match error {
            operations::Error::Exists(ref name) => Self::of("anchor-exists", &error).hint(hints::remove_anchor(name)),
            operations::Error::NoAnchors => Self::of("no-anchors", &error).hint(hints::add_anchor()),
            operations::Error::UnknownName(_) => Self::of("unknown-name", &error).hint(hints::anchors_and_runs()),
            operations::Error::Repository(inner) => inner.into(),
            operations::Error::NotSealed(ref run) => Self::of("not-sealed", &error).hint(hints::verify(run)),
            operations::Error::NotOurThread(ref thread) => {
                Self::of("not-logged", &error).hint(hints::verify_thread(thread))
            }
            operations::Error::Thread(inner) => inner.into(),
            operations::Error::Verify(inner) => inner.into(),
            operations::Error::Git(inner) => inner.into(),
            operations::Error::Anchors(inner) => inner.into(),
            operations::Error::Anchor(inner) => inner.into(),
            operations::Error::Target(inner) => inner.into(),
            operations::Error::Log(inner) => inner.into(),
            operations::Error::Verification(inner) => inner.into(),
        }
    }
}

impl From<anchored::Error> for Failure {
    fn from(error: anchored::Error) -> Self {
        match error {
            anchored::Error::Anchors(inner) => inner.into(),
            anchored::Error::Threads(inner) => inner.into(),
            anchored::Error::Refs(inner) => inner.into(),
        }
    }
}

impl From<verification::Error> for Failure {
    fn from(error: verification::Error) -> Self {
        match error {
            verification::Error::NoId(_) => Self::usage(error.to_string()),
            verification::Error::Base(inner) => inner.into(),
            verification::Error::Trust(inner) => inner.into(),
            verification::Error::Anchors(inner) => inner.into(),
            verification::Error::Target(inner) => inner.into(),
            verification::Error::Shown(inner) => inner.into(),
            verification::Error::Bundle(inner) => inner.into(),
            verification::Error::Verify(inner) => inner.into(),
        }
    }
}

impl From<threads::Error> for Failure {
    fn from(error: threads::Error) -> Self {
        match error {
            threads::Error::Trust(trust::Error::NoSigners) => {
                Self::of("no-signers", &error).hint(hints::verify_thread_by_signer())
            }
            threads::Error::Trust(inner) => inner.into(),
            threads::Error::Shown(inner) => inner.into(),
            threads::Error::Target(inner) => inner.into(),
            threads::Error::Thread(inner) => inner.into(),
            threads::Error::Verify(inner) => inner.into(),
        }
    }
}
