//! Failures of archiving.

use git_handoff::git::archives;
use git_handoff::model::hints;
use git_handoff::upkeep::archive;

use super::Failure;

pub(super) fn archive(error: &archive::Error) -> Failure {
    match error {
        archive::Error::Foreign(_) => Failure::of("not-ours", error),
        archive::Error::NotSealed(run) => Failure::of("not-sealed", error).hint(hints::run_or_close(run)),
        archive::Error::Unsound { run, .. } => Failure::of("unsound", error).hint(hints::verify(run)),
        archive::Error::NotArchived(_) => Failure::of("not-archived", error).hint(hints::archived_runs()),
        archive::Error::Age => Failure::usage(error.to_string()),
        archive::Error::Archive(_) => Failure::of("archive", error),
    }
}

pub(super) fn fault(error: &archives::Fault) -> Failure {
    Failure::of("archive", error).hint(hints::doctor())
}
