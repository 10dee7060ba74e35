//! Failures of `whence`.

use git_handoff::model::hints;
use git_handoff::whence;

use super::Failure;

pub(super) fn whence(error: &whence::Error) -> Failure {
    match error {
        whence::Error::Nothing(_) => Failure::of("no-such-thing", error).hint(hints::commits()),
        whence::Error::NoCommit(_) => Failure::of("no-commit", error).hint(hints::commits()),
        whence::Error::NoLine { .. } => Failure::of("no-such-thing", error),
        whence::Error::Large(_) | whence::Error::NoParent(_) => Failure::of("cannot-trace", error),
        whence::Error::NoRange(_) => Failure::usage(error.to_string()),
    }
}
