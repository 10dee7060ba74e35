//! Hints and failures of `archive`, `delete`, `init` and `whence`.

use git_handoff::git::archives;
use git_handoff::ledger::log;
use git_handoff::model::hints;
use git_handoff::upkeep::{archive, delete, setup};
use git_handoff::whence;

use super::{Failure, did_you_mean, driving, hint_table};

hint_table! {
    archive::Error as E {
        E::NotSealed(run) => hints::run_or_close(run);
        E::Unsound { run, .. } => hints::verify(run);
        E::NotArchived(_) => hints::archived_runs();
    }
    archives::Fault {} else _ => hints::doctor();
    log::Error {} else _ => hints::doctor();
    delete::Error as E {
        E::Foreign { reference, .. } => hints::remove_ref(reference);
    }
    setup::Error as E {
        E::UnknownAgent { nearest, .. } => did_you_mean(nearest.as_deref(), hints::register_subagent());
        E::NoRemote => hints::add_remote();
        E::NoDefaultRemote(_) => hints::share_with();
        E::UnknownRemote(_) => hints::remotes();
    }
    whence::Error as E {
        E::Nothing(_) | E::NoCommit(_) => hints::commits();
    }
}

pub(super) fn still_driven(error: &delete::Error) -> Option<Failure> {
    if let delete::Error::Hold(lock) = error { driving::driven_elsewhere(lock, error) } else { None }
}

pub(super) fn write_error(error: &setup::WriteError) -> Failure {
    Failure::from_error("config", error).hint(hints::again())
}
