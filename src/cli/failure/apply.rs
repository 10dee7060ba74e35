//! Failures of `apply`.

use git_handoff::apply::{Error, threeway};
use git_handoff::git::{hook, program, refs, store, work_tree};
use git_handoff::model::hints;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::of("apply", &error);
        match &error {
            Error::NoBase(base) => Self { code: "no-base", ..failure }.hint(hints::fetch_base(base)),
            Error::Incomposable(..) => Self { code: "conflict", ..failure },
            Error::NoPatch(_) => Self { code: "no-patch", ..failure },
            Error::Red(_) | Error::ProtectedChanged(_) => Self { code: "red", ..failure },
            Error::NotDone(..) => Self { code: "not-done", ..failure },
            Error::Altered(..) => Self { code: "altered", exit: 3, ..failure }.hint(hints::verify_all()),
            Error::BadBranch(_) => Self { code: "bad-branch", ..failure },
            Error::CheckedOut(_, place) => Self { code: "checked-out", ..failure }.hint(hints::apply_there(place)),
            Error::Bare => Self { code: "bare", ..failure }.hint(hints::branch()),
            Error::Unborn => Self { code: "unborn", ..failure }.hint(hints::branch()),
            Error::LocalChanges(work_tree::Error::Marked(marks, _)) => {
                let hint = hints::unmark_and_stash(&marks.skipped, &marks.assumed);
                Self { code: "local-changes", ..failure }.hint(hint)
            }
            Error::LocalChanges(_) => Self { code: "local-changes", ..failure }.hint(hints::stash_or_branch()),
            Error::Hook(hook::Error::Refused { .. }) => Self { code: "hook", ..failure }.hint(hints::no_verify()),
            Error::HookIndex(_) | Error::HookTrailers => {
                Self { code: "hook-changed", ..failure }.hint(hints::no_verify())
            }
            Error::OwnHooks(_) | Error::OtherHooks => Self { code: "own-hooks", ..failure }.hint(hints::no_verify()),
            Error::ThreeWay(inner) => {
                let code = match inner {
                    threeway::Error::Staged => {
                        return Self { code: "staged", ..failure }.hint(hints::stash());
                    }
                    threeway::Error::Unmerged(_) => return Self { code: "unmerged", ..failure }.hint(hints::resolve()),
                    threeway::Error::Since(_) => {
                        return Self { code: "local-changes", ..failure }.hint(hints::put_aside());
                    }
                    threeway::Error::Underway(_) => return Self { code: "underway", ..failure }.hint(hints::resolve()),
                    threeway::Error::Moved => "moved",
                    threeway::Error::Nothing => return Self { code: "nothing-underway", ..failure },
                    threeway::Error::Half(_) => "underway",
                    threeway::Error::Other => return Self { code: "underway", ..failure },
                    threeway::Error::CherryPick(_) => return failure,
                };
                Self { code, ..failure }.hint(hints::give_up())
            }
            Error::Commits(_) => Self { code: "several-commits", ..failure },
            Error::Message(_) => Self { code: "bad-message", ..failure },
            Error::Commit(program::Error::Failed { said, .. }) if said.contains("tell me who you are") => {
                failure.hint(hints::identity())
            }
            Error::Store(store::Error::Missing(_)) => failure.hint(hints::bring_object()),
            Error::Ref(refs::Error::LostRace(_)) => failure.race(),
            Error::Ref(refs::Error::Locked { .. }) => failure.locked(),
            _ => failure,
        }
    }
}
