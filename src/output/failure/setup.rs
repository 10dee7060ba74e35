//! Failures of `git handoff init`.

use git_handoff::model::hints;
use git_handoff::upkeep::setup;

use super::Failure;

pub(super) fn setup(error: &setup::Error) -> Failure {
    match error {
        setup::Error::UnknownAgent { nearest, .. } => {
            let hint = nearest.as_deref().map_or_else(hints::register_subagent, hints::did_you_mean);
            Failure::of("unknown-agent", error).hint(hint)
        }
        setup::Error::Pathspec(..) => Failure::of("bad-pathspec", error),
        setup::Error::NoRemote => Failure::of("no-remote", error).hint(hints::add_remote()),
        setup::Error::NoDefaultRemote(_) => Failure::of("no-remote", error).hint(hints::share_with()),
        setup::Error::UnknownRemote(_) => Failure::of("no-remote", error).hint(hints::remotes()),
    }
}

pub(super) fn write_error(error: &setup::WriteError) -> Failure {
    Failure::of("config", error).hint(hints::again())
}
