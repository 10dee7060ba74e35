//! Failures of runs that are shared through a remote.
use git_handoff::model::hints;
use git_handoff::run::operate::{self, drivers, sharing};

use super::Failure;

pub(super) fn sharing(error: &sharing::Error) -> Option<Failure> {
    Some(match error {
        sharing::Error::Nowhere { remote, .. } => {
            Failure::of("unknown-run", error).hint(hints::submit_then_share(remote))
        }
        sharing::Error::Other { run, .. } => Failure::of("diverged", error).hint(hints::verify(run)),
        sharing::Error::Elsewhere { run, known, .. } => {
            let failure = Failure::of("not-shared-there", error);
            match known {
                Some(known) => failure.hint(hints::run_via(run, known)),
                None => failure,
            }
        }
        sharing::Error::Unsound { .. } => Failure::of("not-continuable", error),
        sharing::Error::NotTaken { .. } => Failure::of("push-refused", error),
        sharing::Error::NoBase { remote, base, .. } => {
            Failure::of("no-base", error).hint(hints::push_base(remote, base))
        }
        sharing::Error::NotARun(run) => Failure::of("not-a-run", error).hint(hints::verify(run)),
        sharing::Error::Record(_) => Failure::of("io", error),
        _ => return None,
    })
}

pub(super) fn drivers(error: &drivers::Error) -> Failure {
    match error {
        drivers::Error::NotShared(run) => Failure::of("not-shared", error).hint(hints::run_via(run, "REMOTE")),
        drivers::Error::Seen(_) => Failure::of("io", error),
    }
}

pub(super) fn denied(denied: &operate::Denied) -> Option<Failure> {
    Some(match denied {
        operate::Denied::Shared(run) => Failure::of("shared", denied).hint(hints::run_via(run, "REMOTE")),
        operate::Denied::Offline { .. } => Failure::of("shared", denied).hint(hints::without_offline()),
        operate::Denied::Unread { .. } => Failure::of("remote", denied).hint(hints::with_offline()),
        operate::Denied::Twice { run, remote, .. } => {
            Failure { exit: 3, ..Failure::of("driven-twice", denied) }.hint(hints::keep_one(run, remote))
        }
        operate::Denied::Lock(..) => Failure::of("io", denied),
        _ => return None,
    })
}

/// Returns the failure for an error of the remote of a shared run.
pub(super) fn of_remote(error: &operate::Error) -> Failure {
    match error {
        operate::Error::Raced => Failure { exit: 5, ..Failure::of("lost-race", error) },
        operate::Error::PushRefused { .. } => Failure::of("push-refused", error),
        operate::Error::Locked { .. } => Failure { exit: 5, ..Failure::of("lost-race", error) }.hint_if(error.hint()),
        operate::Error::Poisoned(_) => {
            Failure { exit: 3, ..Failure::of("not-continuable", error) }.hint_if(error.hint())
        }
        operate::Error::Forked(bad) => {
            Failure { exit: 3, ..Failure::of("diverged", error) }.hint(hints::verify(&bad.run))
        }
        _ => Failure::of("remote", error),
    }
}
