//! Failures of deletion.

use git_handoff::engine::run_lock;
use git_handoff::model::hints;
use git_handoff::upkeep::delete;

use super::Failure;

impl From<delete::Error> for Failure {
    fn from(error: delete::Error) -> Self {
        match error {
            delete::Error::Foreign { ref reference, .. } => {
                Self::of("not-ours", &error).hint(hints::remove_ref(reference))
            }
            delete::Error::Hold(run_lock::Error::Held { .. }) => {
                Self { exit: 5, ..Self::of("held", &error) }.hint(hints::wait())
            }
            delete::Error::Hold(_) | delete::Error::Workspace(_) | delete::Error::Mark(_) | delete::Error::Sign(_) => {
                Self::of("delete", &error)
            }
            delete::Error::Archive(_) => Self::of("archive", &error),
            delete::Error::Target(inner) => inner.into(),
            delete::Error::Ref(inner) => inner.into(),
            delete::Error::Kept(inner) => inner.into(),
            delete::Error::Logs(inner) => inner.into(),
            delete::Error::Repository(inner) => inner.into(),
        }
    }
}
