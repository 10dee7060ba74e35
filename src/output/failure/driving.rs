//! Hints and failures of driving runs.

use git_handoff::engine::record::{SettingsError, Unknown};
use git_handoff::engine::{drive, execute, operations, recheck, record, run_lock};
use git_handoff::git::snapshot;
use git_handoff::model::hints::{self, Hint};
use git_handoff::sandbox::Refused;
use git_handoff::worktree::workspace;

use super::{Failure, did_you_mean, hint_table};

hint_table! {
    operations::Error as E {
        E::Schema { why, .. } => hints::set_file(&why.place.key);
        E::Sandbox(refused) => sandbox(refused);
        E::Revoked { run, .. } => hints::verify(run);
        E::Shared { run, remote } => hints::run_via(run, remote.as_deref().unwrap_or("REMOTE"));
        E::Joined { run, .. } => hints::run(run);
        E::Times => hints::lost_after();
    }
    SettingsError as E {
        E::Unknown(Unknown { near, .. }) => did_you_mean(near.as_deref(), hints::register_subagent());
    }
    record::Error as E {
        E::Taken(run) | E::NoRecording(run) => hints::show(run);
        E::NothingLeft(run) => hints::retry_or_close(format_args!("{run}/{}", record::ITEM), run);
        E::Program(_) => hints::shell_line();
        E::Uncommitted(_) => hints::commit_first();
        E::Agent { near, .. } => did_you_mean(near.as_deref(), hints::register_subagent());
        E::NoLine(_) => hints::register_subagent();
        E::Dirty(_) => hints::record_dirty();
    }
    drive::Error as E {
        E::DrivenElsewhere(run, _) => hints::end_there(run);
        E::Salvage(_) => hints::salvage();
        E::Slow(_) => hints::slow_remote();
        E::Revoked(run, _) => hints::verify(run);
    }
    recheck::Error as E {
        E::NoCheck(run, _) | E::NoChecks(run) => hints::show(run);
    }
}

fn sandbox(refused: &Refused) -> Hint {
    match refused {
        Refused::Writable(missing) => hints::make_folder(missing.path().display()),
        Refused::Planted { .. } => hints::reached(),
        Refused::LaidOver { .. } => hints::laid_over(),
        Refused::PrivateElsewhere(_) => hints::private_settings(),
        Refused::PrivateFixed(_) => hints::private_home(),
        Refused::Unconfined(_) => hints::confine(),
        Refused::Missing(_, why) | Refused::Network(_, why) if why.contains("bubblewrap is not installed") => {
            hints::sandbox()
        }
        // Installing it does not help if it is installed and does not work.
        Refused::Missing(..) => hints::sandbox_auto(),
        Refused::Network(..) => hints::network(),
    }
}

pub(super) fn snapshot(error: &record::Error) -> Option<Failure> {
    let record::Error::Snapshot(snapshot) = error else { return None };
    Some(match snapshot {
        snapshot::Error::Folder(_) => Failure::from_error("io", error),
        snapshot::Error::Git(_) | snapshot::Error::WorkTree(_) => Failure::from_error("git", error),
        snapshot::Error::Unborn => Failure::from_error("unborn", error).hint(hints::first_commit()),
        snapshot::Error::Store(_) => return None,
        _ => Failure::from_error("bad-range", error).hint(hints::adopt_range()),
    })
}

pub(super) fn not_driven(error: &drive::Error) -> Option<Failure> {
    match error {
        drive::Error::Hold(lock) => driven_elsewhere(lock, error),
        drive::Error::Workspace(error) => no_worktrees(error),
        _ => None,
    }
}

pub(super) fn execute(error: &execute::Error) -> Option<Failure> {
    let failure = match error {
        execute::Error::NoCache(_) => return None,
        execute::Error::Workspace(error) => no_worktrees(error),
        _ if error.is_of_spec() => Some(Failure { exit: 2, ..Failure::from_error("spec", error) }),
        _ => None,
    };
    failure.or_else(|| Some(Failure::from_error("attempt", error)))
}

pub(super) fn not_rechecked(error: &recheck::Error) -> Option<Failure> {
    match error {
        recheck::Error::Lock(lock) => driven_elsewhere(lock, error),
        recheck::Error::Workspace(error) => no_worktrees(error),
        _ => None,
    }
}

/// Returns the failure if another process drives the run.
pub(super) fn driven_elsewhere(lock: &run_lock::Error, error: &(dyn std::error::Error + 'static)) -> Option<Failure> {
    let run_lock::Error::Held { .. } = lock else { return None };
    Some(Failure { exit: 5, ..Failure::from_error("held", error) }.hint(hints::wait()))
}

/// Returns the failure if no worktree can be created in this repository.
fn no_worktrees(error: &workspace::Error) -> Option<Failure> {
    match error {
        workspace::Error::Annex(_) => Some(Failure::from_error("git-annex", error).hint(hints::without_annex())),
        // The cache folder is not writable, as if HOME is `/`.
        workspace::Error::Root { .. } => Some(Failure::from_error("no-cache", error).hint(hints::workspace_root())),
        _ => None,
    }
}
