//! Failures of `git handoff init`.

use git_handoff::model::hints;
use git_handoff::upkeep::setup;

use super::Failure;

impl From<setup::Error> for Failure {
    fn from(error: setup::Error) -> Self {
        match error {
            setup::Error::UnknownAgent { ref nearest, .. } => {
                let hint = nearest.as_deref().map_or_else(hints::register_subagent, hints::did_you_mean);
                Self::of("unknown-agent", &error).hint(hint)
            }
            setup::Error::Pathspec(..) => Self::of("bad-pathspec", &error),
            setup::Error::NoRemote => Self::of("no-remote", &error).hint(hints::add_remote()),
            setup::Error::NoDefaultRemote(_) => Self::of("no-remote", &error).hint(hints::share_with()),
            setup::Error::UnknownRemote(_) => Self::of("no-remote", &error).hint(hints::remotes()),
            setup::Error::Remotes(inner) => inner.into(),
            setup::Error::Config(inner) => inner.into(),
        }
    }
}

impl From<setup::WriteError> for Failure {
    fn from(error: setup::WriteError) -> Self {
        Self::of("config", &error).hint(hints::again())
    }
}
