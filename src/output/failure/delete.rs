//! Failures of deletion.

use git_handoff::engine::run_lock;
use git_handoff::model::hints;
use git_handoff::upkeep::delete;

use super::Failure;

pub(super) fn delete(error: &delete::Error) -> Failure {
    match error {
        delete::Error::Foreign { reference, .. } => Failure::of("not-ours", error).hint(hints::remove_ref(reference)),
        delete::Error::Hold(run_lock::Error::Held { .. }) => {
            Failure { exit: 5, ..Failure::of("held", error) }.hint(hints::wait())
        }
        delete::Error::Hold(_) | delete::Error::Workspace(_) | delete::Error::Mark(_) | delete::Error::Sign(_) => {
            Failure::of("delete", error)
        }
        delete::Error::Archive(_) => Failure::of("archive", error),
    }
}
