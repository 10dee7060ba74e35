//! Failures of runs that are shared through a remote.

use git_handoff::model::hints;
use git_handoff::run::{self, drivers, sharing};

use super::Failure;

impl From<sharing::Error> for Failure {
    fn from(error: sharing::Error) -> Self {
        match error {
            sharing::Error::Nowhere { ref remote, .. } => {
                Self::of("unknown-run", &error).hint(hints::submit_then_share(remote))
            }
            sharing::Error::Other { ref run, .. } => Self::of("diverged", &error).hint(hints::verify(run)),
            sharing::Error::Elsewhere { ref run, ref known, .. } => {
                let failure = Self::of("not-shared-there", &error);
                match known {
                    Some(known) => failure.hint(hints::run_via(run, known)),
                    None => failure,
                }
            }
            sharing::Error::Unsound { .. } => Self::of("not-continuable", &error),
            sharing::Error::NotTaken { .. } => Self::of("push-refused", &error),
            sharing::Error::NotARun(ref run) => Self::of("not-a-run", &error).hint(hints::verify(run)),
            sharing::Error::Record(_) => Self::of("io", &error),
            sharing::Error::Git(inner) => inner.into(),
            sharing::Error::Statements(inner) => (*inner).into(),
            sharing::Error::Remote(inner) => inner.into(),
            sharing::Error::Ref(inner) => inner.into(),
            sharing::Error::Store(inner) => inner.into(),
            sharing::Error::Chain(inner) => inner.into(),
        }
    }
}

impl From<drivers::Error> for Failure {
    fn from(error: drivers::Error) -> Self {
        match error {
            drivers::Error::NotShared(ref run) => Self::of("not-shared", &error).hint(hints::run_via(run, "REMOTE")),
            drivers::Error::Seen(_) => Self::of("io", &error),
            drivers::Error::Sharing(inner) => inner.into(),
            drivers::Error::Denied(inner) => inner.into(),
            drivers::Error::Run(inner) => inner.into(),
            drivers::Error::Target(inner) => inner.into(),
            drivers::Error::Ref(inner) => inner.into(),
            drivers::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<run::Denied> for Failure {
    fn from(denied: run::Denied) -> Self {
        match denied {
            run::Denied::Run(inner) => inner.into(),
            run::Denied::Refused(inner) => inner.into(),
            run::Denied::Shared(ref run) => Self::of("shared", &denied).hint(hints::run_via(run, "REMOTE")),
            run::Denied::Remote(inner) => (*inner).into(),
            run::Denied::Repository(inner) => inner.into(),
        }
    }
}

/// Returns the failure for an error of the remote of a shared run.
pub(super) fn of_remote(error: &run::Error) -> Failure {
    match error {
        run::Error::Raced => Failure { exit: 5, ..Failure::of("lost-race", error) },
        run::Error::PushRefused { .. } => Failure::of("push-refused", error),
        run::Error::Locked { .. } => Failure { exit: 5, ..Failure::of("lost-race", error) }.hint_if(error.hint()),
        run::Error::Poisoned(_) => Failure { exit: 3, ..Failure::of("not-continuable", error) }.hint_if(error.hint()),
        run::Error::Forked(bad) => Failure { exit: 3, ..Failure::of("diverged", error) }.hint(hints::verify(&bad.run)),
        _ => Failure::of("remote", error),
    }
}
