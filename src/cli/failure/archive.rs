//! Failures of archiving.

use git_handoff::git::archives;
use git_handoff::model::hints;
use git_handoff::upkeep::archive;

use super::Failure;

impl From<archive::Error> for Failure {
    fn from(error: archive::Error) -> Self {
        match error {
            archive::Error::Foreign(_) => Self::of("not-ours", &error),
            archive::Error::NotSealed(ref run) => Self::of("not-sealed", &error).hint(hints::run_or_close(run)),
            archive::Error::Unsound { ref run, .. } => Self::of("unsound", &error).hint(hints::verify(run)),
            archive::Error::NotArchived(_) => Self::of("not-archived", &error).hint(hints::archived_runs()),
            archive::Error::Age => Self::usage(error.to_string()),
            archive::Error::Archive(_) => Self::of("archive", &error),
            archive::Error::Contents(inner) => inner.into(),
            archive::Error::Target(inner) => inner.into(),
            archive::Error::Chain(inner) => inner.into(),
            archive::Error::Ref(inner) => inner.into(),
            archive::Error::Store(inner) => inner.into(),
            archive::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<archives::Fault> for Failure {
    fn from(error: archives::Fault) -> Self {
        Self::of("archive", &error).hint(hints::doctor())
    }
}
