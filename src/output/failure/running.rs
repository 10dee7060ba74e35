//! Failures of submitting and steering runs.
use git_handoff::model::hints;
use git_handoff::run::operate::{self, coordinate, extend, steer, submission, submit};
use git_handoff::run::query::{self, Unreadable};

use super::{Failure, people, sharing};

pub(super) fn submit(error: &submit::Error) -> Failure {
    let failure = Failure::of("submit", error);
    match error {
        submit::Error::Different(run) => Failure { code: "run-exists", ..failure }.hint(hints::show_or_rename(run)),
        submit::Error::Used(run) => Failure { code: "id-used", ..failure }.hint(hints::other_id(run.as_str())),
        submit::Error::OtherCase { run, .. } => {
            Failure { code: "run-exists", ..failure }.hint(hints::other_id(run.as_str()))
        }
        submit::Error::Unborn => Failure { code: "unborn", ..failure }.hint(hints::first_commit()),
        submit::Error::Base(_) => Failure { code: "bad-base", ..failure }.hint(hints::commits()),
        submit::Error::Unsealed(_) => failure.race(),
        submit::Error::Copy(_) => Failure::of("io", error),
        submit::Error::Artifact { .. } | submit::Error::Git(_) | submit::Error::Head(_) => failure,
    }
}

pub(super) fn submission(error: &submission::Error) -> Failure {
    match error {
        submission::Error::Queue(queue) => Failure::of("unknown-queue", error).hint(hints::register_queue(queue)),
        submission::Error::WorkTree(_) => Failure::of("git", error),
        submission::Error::NotOwned => Failure::usage(error.to_string()),
    }
}

pub(super) fn query(error: &query::Error) -> Option<Failure> {
    Some(match error {
        query::Error::Unknown(_) => Failure::of("unknown-run", error).hint(hints::runs()),
        query::Error::NotARun(run)
        | query::Error::Plan(run)
        | query::Error::Rules(run)
        | query::Error::Item(run, _)
        | query::Error::History(run, ..) => Failure::of("not-a-run", error).hint(hints::verify(run)),
        _ => return None,
    })
}

pub(super) fn run(error: &operate::Error) -> Option<Failure> {
    Some(match error {
        operate::Error::Rewritten(run) | operate::Error::Stranger(run, _) => {
            Failure::of("not-continuable", error).hint(hints::verify(run))
        }
        operate::Error::Unjudged(run, ..) => Failure::of("altered", error).hint(hints::verify(run)),
        operate::Error::Illegal(_) => Failure::of("illegal", error),
        operate::Error::Role { run, key, why } => {
            Failure::of("no-role", error).hint(people::missing_role(run, key, *why))
        }
        operate::Error::Raced
        | operate::Error::Unanswered { .. }
        | operate::Error::Unreachable { .. }
        | operate::Error::Locked { .. }
        | operate::Error::PushRefused { .. }
        | operate::Error::Poisoned(_)
        | operate::Error::Forked(_) => sharing::of_remote(error),
        _ => return None,
    })
}

pub(super) fn extend(error: &extend::Error) -> Failure {
    match error {
        extend::Error::NotOpenEnded(_) => Failure::of("not-open-ended", error).hint(hints::open_ended()),
        extend::Error::Ended(_) => Failure::of("ended", error),
        extend::Error::OtherRun { .. } => Failure::of("other-run", error).hint(hints::id_of_run()),
    }
}

pub(super) fn steer(error: &steer::Error) -> Failure {
    match error {
        steer::Error::Foreign(_) => Failure::of("not-ours", error),
        steer::Error::Sealed(run) => Failure::of("sealed", error).hint(hints::verify(run)),
        steer::Error::Ended { .. } => Failure::of("not-cancellable", error),
        steer::Error::NotLost { .. } | steer::Error::Superseded { .. } => Failure::of("not-retriable", error),
        steer::Error::Red { run, item } => {
            Failure::of("not-retriable", error).hint(hints::red_again(format_args!("{run}/{item}")))
        }
        steer::Error::Lacking { run, on, .. } => {
            Failure::of("not-retriable", error).hint(hints::without_product(run, on))
        }
        steer::Error::Blocked { run, on, .. } => {
            Failure::of("not-retriable", error).hint(hints::retry(format_args!("{run}/{on}")))
        }
        steer::Error::NotSettled { run, .. } => Failure::of("not-settled", error).hint(hints::run_to_close(run)),
        steer::Error::NoItem | steer::Error::WholeRun => Failure::usage(error.to_string()),
    }
}

pub(super) fn coordinate(error: &coordinate::Error) -> Option<Failure> {
    let failure = Failure::of("coordinate", error);
    Some(match error {
        coordinate::Error::Document(Unreadable::Damaged(..)) => {
            Failure { code: "altered", ..failure }.hint(hints::verify_all())
        }
        coordinate::Error::TooMany { count, .. } => {
            Failure { code: "too-many-items", ..failure }.hint(hints::max_items(count))
        }
        _ => return None,
    })
}
