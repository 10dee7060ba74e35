//! Failures of `archive`, `delete` and `init`.

use git_handoff::engine::run_lock;
use git_handoff::git::archives;
use git_handoff::model::hints;
use git_handoff::upkeep::{archive, delete, setup};

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
