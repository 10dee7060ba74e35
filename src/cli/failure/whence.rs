//! Failures of `whence`.

use git_handoff::model::hints;
use git_handoff::whence;

use super::Failure;

impl From<whence::Error> for Failure {
    fn from(error: whence::Error) -> Self {
        match error {
            whence::Error::Nothing(_) => Self::of("no-such-thing", &error).hint(hints::commits()),
            whence::Error::NoCommit(_) => Self::of("no-commit", &error).hint(hints::commits()),
            whence::Error::NoLine { .. } => Self::of("no-such-thing", &error),
            whence::Error::Large(_) | whence::Error::NoParent(_) => Self::of("cannot-trace", &error),
            whence::Error::NoRange(_) => Self::usage(error.to_string()),
            whence::Error::Verification(inner) => inner.into(),
            whence::Error::Apply(inner) => inner.into(),
            whence::Error::Run(inner) => inner.into(),
            whence::Error::Target(inner) => inner.into(),
            whence::Error::Scratch(inner) => inner.into(),
            // The file of `blame.ignoreRevsFile` is missing.
            whence::Error::Git(ref inner) if inner.to_string().contains("object name list") => {
                Self::of("git", &error).hint(hints::setting("blame.ignoreRevsFile"))
            }
            whence::Error::Git(inner) => inner.into(),
            whence::Error::Ref(inner) => inner.into(),
            whence::Error::Store(inner) => inner.into(),
        }
    }
}
