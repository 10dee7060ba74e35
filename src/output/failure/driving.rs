//! Failures of driving runs.

use git_handoff::engine::record::{SettingsError, Unknown};
use git_handoff::engine::{drive, execute, operations, recheck, record, run_lock};
use git_handoff::git::snapshot;
use git_handoff::model::hints;
use git_handoff::sandbox::Refused;
use git_handoff::worktree::workspace;

use super::Failure;

pub(super) fn operations(error: &operations::Error) -> Failure {
    match error {
        operations::Error::Schema { why, .. } => {
            Failure::of("schema-unreadable", error).hint(hints::set_file(&why.place.key))
        }
        operations::Error::Sandbox(refused) => {
            let hint = match refused {
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
            };
            Failure::of("sandbox-unenforceable", error).hint(hint)
        }
        operations::Error::Revoked { run, .. } => Failure::of("revoked", error).hint(hints::verify(run)),
        operations::Error::Shared { run, remote } => {
            Failure::of("shared", error).hint(hints::run_via(run, remote.as_deref().unwrap_or("REMOTE")))
        }
        operations::Error::Joined { run, .. } => {
            Failure { exit: 5, ..Failure::of("lost-race", error) }.hint(hints::run(run))
        }
        operations::Error::Times => Failure::of("config", error).hint(hints::lost_after()),
        operations::Error::WorkTree(_) => Failure::of("git", error),
        operations::Error::Recorded(error) => sealed_settings(error),
    }
}

fn sealed_settings(error: &SettingsError) -> Failure {
    match error {
        SettingsError::Unknown(Unknown { near, .. }) => {
            Failure::of("unknown-executor", error).did_you_mean(near.as_deref(), hints::register_subagent())
        }
        SettingsError::HeldOut => Failure::of("config", error),
        SettingsError::Unreadable => Failure::of("run", error),
    }
}

pub(super) fn record(error: &record::Error) -> Option<Failure> {
    Some(match error {
        record::Error::Taken(run) => Failure::of("run-exists", error).hint(hints::show(run)),
        record::Error::NoRecording(run) => Failure::of("no-recording", error).hint(hints::show(run)),
        record::Error::NothingLeft(run) => {
            Failure::of("nothing-left", error).hint(hints::retry_or_close(format_args!("{run}/{}", record::ITEM), run))
        }
        record::Error::Settings(error) => sealed_settings(error),
        record::Error::Program(_) => Failure::of("no-program", error).hint(hints::shell_line()),
        record::Error::Uncommitted(_) => Failure::of("no-program", error).hint(hints::commit_first()),
        record::Error::Agent { near, .. } => {
            Failure::of("unknown-agent", error).did_you_mean(near.as_deref(), hints::register_subagent())
        }
        record::Error::NoLine(_) => Failure::of("unknown-agent", error).hint(hints::register_subagent()),
        record::Error::Dirty(_) => Failure::of("dirty", error).hint(hints::record_dirty()),
        record::Error::Directory(_) | record::Error::Clock => Failure::of("usage", error),
        record::Error::Read(..) | record::Error::Snapshot(snapshot::Error::Folder(_)) => Failure::of("io", error),
        record::Error::WorkTree(_)
        | record::Error::Snapshot(snapshot::Error::Git(_) | snapshot::Error::WorkTree(_)) => Failure::of("git", error),
        record::Error::Snapshot(snapshot::Error::Unborn) => Failure::of("unborn", error).hint(hints::first_commit()),
        record::Error::Ids | record::Error::Snapshot(snapshot::Error::Store(_)) => return None,
        record::Error::Snapshot(_) => Failure::of("bad-range", error).hint(hints::adopt_range()),
    })
}

pub(super) fn drive(error: &drive::Error) -> Option<Failure> {
    Some(match error {
        drive::Error::Run(_) | drive::Error::Coordinate(_) => return None,
        drive::Error::Hold(run_lock::Error::Held { .. }) => {
            Failure { exit: 5, ..Failure::of("held", error) }.hint(hints::wait())
        }
        drive::Error::DrivenElsewhere(run, _) => {
            Failure { exit: 5, ..Failure::of("held", error) }.hint(hints::end_there(run))
        }
        // The cache folder is not writable, as if HOME is `/`.
        drive::Error::Workspace(error @ (workspace::Error::Root { .. } | workspace::Error::Annex(_))) => {
            no_worktrees(error)
        }
        drive::Error::Salvage(_) => Failure::of("run", error).hint(hints::salvage()),
        drive::Error::Slow(_) => Failure::of("slow-remote", error).hint(hints::slow_remote()),
        drive::Error::Revoked(run, _) => Failure::of("revoked", error).hint(hints::verify(run)),
        drive::Error::Stuck => Failure { exit: 70, ..Failure::of("defect", error) },
        _ => Failure::of("run", error),
    })
}

pub(super) fn execute(error: &execute::Error) -> Option<Failure> {
    Some(match error {
        execute::Error::NoCache(_) => return None,
        execute::Error::Workspace(error @ (workspace::Error::Root { .. } | workspace::Error::Annex(_))) => {
            no_worktrees(error)
        }
        _ if error.is_of_spec() => Failure { exit: 2, ..Failure::of("spec", error) },
        _ => Failure::of("attempt", error),
    })
}

pub(super) fn recheck(error: &recheck::Error) -> Failure {
    match error {
        recheck::Error::NoCheck(run, _) | recheck::Error::NoChecks(run) => {
            Failure::of("no-check", error).hint(hints::show(run))
        }
        recheck::Error::Read(..) | recheck::Error::Manifest(..) => Failure::of("altered", error),
        recheck::Error::Lock(run_lock::Error::Held { .. }) => {
            Failure { exit: 5, ..Failure::of("held", error) }.hint(hints::wait())
        }
        recheck::Error::Workspace(error @ (workspace::Error::Root { .. } | workspace::Error::Annex(_))) => {
            no_worktrees(error)
        }
        recheck::Error::Lock(_) | recheck::Error::Workspace(_) => Failure::of("recheck", error),
    }
}

/// Returns the failure if no worktree can be created in this repository.
fn no_worktrees(error: &workspace::Error) -> Failure {
    match error {
        workspace::Error::Annex(_) => Failure::of("git-annex", error).hint(hints::without_annex()),
        _ => Failure::of("no-cache", error).hint(hints::workspace_root()),
    }
}
