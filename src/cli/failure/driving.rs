//! Failures of driving runs.

use git_handoff::engine::{drive, execute, operations, recheck, record, run_lock};
use git_handoff::git::snapshot;
use git_handoff::model::hints;
use git_handoff::sandbox::Refused;
use git_handoff::worktree::workspace;

use super::Failure;

impl From<operations::Error> for Failure {
    fn from(error: operations::Error) -> Self {
        match error {
            operations::Error::Schema { ref why, .. } => {
                Self::of("schema-unreadable", &error).hint(hints::set_file(&why.place.key))
            }
            operations::Error::Sandbox(ref refused) => {
                let hint = match refused {
                    Refused::Writable(missing) => hints::make_folder(missing.path().display()),
                    Refused::Planted { .. } => hints::reached(),
                    Refused::LaidOver { .. } => hints::laid_over(),
                    Refused::Unconfined(_) => hints::confine(),
                    Refused::Missing(..) | Refused::Network(..) => hints::sandbox(),
                };
                Self::of("sandbox-unenforceable", &error).hint(hint)
            }
            operations::Error::Revoked { ref run, .. } => Self::of("revoked", &error).hint(hints::verify(run)),
            operations::Error::Shared { ref run, ref remote } => {
                Self::of("shared", &error).hint(hints::run_via(run, remote.as_deref().unwrap_or("REMOTE")))
            }
            operations::Error::Times => Self::of("config", &error).hint(hints::lost_after()),
            operations::Error::Sharing(inner) => inner.into(),
            operations::Error::Statements(inner) => inner.into(),
            operations::Error::WorkTree(_) => Self::of("git", &error),
            operations::Error::Run(inner) => inner.into(),
            operations::Error::Trust(inner) => inner.into(),
            operations::Error::NoCache(inner) => inner.into(),
            operations::Error::Denied(inner) => inner.into(),
            operations::Error::Drive(inner) => inner.into(),
            operations::Error::Target(inner) => inner.into(),
            operations::Error::Log(inner) => inner.into(),
            operations::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<record::Error> for Failure {
    fn from(error: record::Error) -> Self {
        match error {
            record::Error::Taken(ref run) => Self::of("run-exists", &error).hint(hints::show(run)),
            record::Error::Executor { ref near, .. } => {
                Self::of("unknown-executor", &error).did_you_mean(near.as_deref(), hints::register_subagent())
            }
            record::Error::Dirty(_) => Self::of("dirty", &error).hint(hints::record_dirty()),
            record::Error::Directory(_) | record::Error::Clock => Self::of("usage", &error),
            record::Error::Read(..) | record::Error::Snapshot(snapshot::Error::Folder(_)) => Self::of("io", &error),
            record::Error::WorkTree(_)
            | record::Error::Snapshot(snapshot::Error::Git(_) | snapshot::Error::WorkTree(_)) => {
                Self::of("git", &error)
            }
            record::Error::Snapshot(snapshot::Error::Unborn) => Self::of("unborn", &error).hint(hints::first_commit()),
            record::Error::Snapshot(snapshot::Error::Store(inner)) => inner.into(),
            record::Error::Snapshot(_) => Self::of("bad-range", &error).hint(hints::adopt_range()),
            record::Error::Secret(inner) => inner.into(),
            record::Error::Submit(inner) => inner.into(),
            record::Error::Target(inner) => inner.into(),
            record::Error::Refs(inner) => inner.into(),
            record::Error::Log(inner) => inner.into(),
            record::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<drive::Error> for Failure {
    fn from(error: drive::Error) -> Self {
        match error {
            drive::Error::Run(inner) => inner.into(),
            drive::Error::Coordinate(inner) => inner.into(),
            drive::Error::Hold(run_lock::Error::Held { .. }) => {
                Self { exit: 5, ..Self::of("held", &error) }.hint(hints::wait())
            }
            drive::Error::DrivenElsewhere(ref run, _) => {
                Self { exit: 5, ..Self::of("held", &error) }.hint(hints::end_there(run))
            }
            // The cache folder is not writable, as if HOME is `/`.
            drive::Error::Workspace(ref root @ workspace::Error::Root { .. }) => {
                Self::of("no-cache", root).hint(hints::workspace_root())
            }
            drive::Error::Salvage(_) => Self::of("run", &error).hint(hints::salvage()),
            drive::Error::NoSpace(_) => Self::of("no-space", &error).hint(hints::again_with_space()),
            drive::Error::Stuck => Self { exit: 70, ..Self::of("defect", &error) },
            _ => Self::of("run", &error),
        }
    }
}

impl From<execute::Error> for Failure {
    fn from(error: execute::Error) -> Self {
        match error {
            execute::Error::NoCache(inner) => inner.into(),
            execute::Error::Workspace(ref root @ workspace::Error::Root { .. }) => {
                Self::of("no-cache", root).hint(hints::workspace_root())
            }
            error if error.is_of_spec() => Self { exit: 2, ..Self::of("spec", &error) },
            error => Self::of("attempt", &error),
        }
    }
}

impl From<recheck::Error> for Failure {
    fn from(error: recheck::Error) -> Self {
        match error {
            recheck::Error::NoCheck(ref run, _) | recheck::Error::NoChecks(ref run) => {
                Self::of("no-check", &error).hint(hints::show(run))
            }
            recheck::Error::Read(..) | recheck::Error::Manifest(..) => Self::of("altered", &error),
            recheck::Error::Lock(run_lock::Error::Held { .. }) => {
                Self { exit: 5, ..Self::of("held", &error) }.hint(hints::wait())
            }
            recheck::Error::Workspace(ref root @ workspace::Error::Root { .. }) => {
                Self::of("no-cache", root).hint(hints::workspace_root())
            }
            recheck::Error::Lock(_) | recheck::Error::Workspace(_) => Self::of("recheck", &error),
            recheck::Error::NoCache(inner) => inner.into(),
            recheck::Error::Run(inner) => inner.into(),
            recheck::Error::Target(inner) => inner.into(),
            recheck::Error::Ref(inner) => inner.into(),
            recheck::Error::Discard(inner) => (*inner).into(),
        }
    }
}
