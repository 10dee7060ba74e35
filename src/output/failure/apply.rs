//! Failures of `apply`, and of writing a work tree.

use git_handoff::apply::{Error, threeway};
use git_handoff::git::checkout::{self, Obstacle};
use git_handoff::git::{hook, program, refs, store, work_tree};
use git_handoff::model::hints;

use super::Failure;

pub(super) fn apply(error: &Error) -> Failure {
    let failure = Failure::of("apply", error);
    match error {
        Error::NoBase(base) => Failure { code: "no-base", ..failure }.hint(hints::fetch_base(base)),
        Error::Incomposable(..) => Failure { code: "conflict", ..failure },
        Error::NoPatch(_) => Failure { code: "no-patch", ..failure },
        Error::Red(_) | Error::ProtectedChanged(..) => Failure { code: "red", ..failure },
        Error::RunByItself(_) => Failure { code: "runs-by-itself", ..failure },
        Error::NotDone(..) => Failure { code: "not-done", ..failure },
        Error::Altered(..) => Failure { code: "altered", exit: 3, ..failure }.hint(hints::verify_all()),
        Error::BadBranch(_) => Failure { code: "bad-branch", ..failure },
        Error::CheckedOut(_, place) => Failure { code: "checked-out", ..failure }.hint(hints::apply_there(place)),
        Error::Bare => Failure { code: "bare", ..failure }.hint(hints::branch()),
        Error::Unborn => Failure { code: "unborn", ..failure }.hint(hints::branch()),
        Error::LocalChanges(work_tree::Error::Marked(marks, _)) => {
            let hint = hints::unmark_and_stash(&marks.skipped, &marks.assumed);
            Failure { code: "local-changes", ..failure }.hint(hint)
        }
        Error::LocalChanges(_) => Failure { code: "local-changes", ..failure }.hint(hints::stash_or_branch()),
        Error::WorkTree(work_tree::Error::Checkout(inner)) => checkout(inner),
        Error::Hook(hook::Error::Refused { .. }) => Failure { code: "hook", ..failure }.hint(hints::no_verify()),
        Error::HookIndex(_) | Error::HookTrailers => {
            Failure { code: "hook-changed", ..failure }.hint(hints::no_verify())
        }
        Error::OwnHooks(_) | Error::OtherHooks => Failure { code: "own-hooks", ..failure }.hint(hints::no_verify()),
        Error::ThreeWay(inner) => threeway(inner, failure),
        Error::Commits(_) => Failure { code: "several-commits", ..failure },
        Error::Message(_) => Failure { code: "bad-message", ..failure },
        Error::Commit(program::Error::Failed { said, .. }) if said.contains("tell me who you are") => {
            failure.hint(hints::identity())
        }
        Error::Store(store::Error::Missing(_)) => failure.hint(hints::bring_object()),
        Error::Ref(refs::Error::LostRace(_)) => failure.race(),
        Error::Ref(refs::Error::Locked { .. }) => failure.locked(),
        _ => failure,
    }
}

/// Adds the code and the hint for an error of `--3way`.
fn threeway(error: &threeway::Error, failure: Failure) -> Failure {
    let (code, hint) = match error {
        threeway::Error::Staged => ("staged", Some(hints::stash())),
        threeway::Error::Unmerged(_) => ("unmerged", Some(hints::resolve())),
        threeway::Error::Since(_) => ("local-changes", Some(hints::put_aside())),
        threeway::Error::Underway(_) => ("underway", Some(hints::resolve())),
        threeway::Error::Moved => ("moved", Some(hints::give_up())),
        threeway::Error::Half(_) => ("underway", Some(hints::give_up())),
        threeway::Error::Nothing => ("nothing-underway", None),
        threeway::Error::Other => ("underway", None),
        threeway::Error::CherryPick(_) => return failure,
    };
    Failure { code, ..failure }.hint_if(hint)
}

pub(super) fn checkout(error: &checkout::Error) -> Failure {
    let hint = match (error.obstacle(), error) {
        (Some(Obstacle::Space), _) => hints::again_after_space(),
        (_, checkout::Error::Folder(folder, reason)) if reason.kind() == std::io::ErrorKind::PermissionDenied => {
            hints::make_writable(folder.display())
        }
        (Some(Obstacle::Permission), _) => hints::again_with_permission(),
        (None, _) => hints::again(),
    };
    Failure { code: "work-tree", hint: Some(hint), ..Failure::of("work-tree", error) }
}
