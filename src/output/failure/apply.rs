//! Hints and failures of `apply`, and of writing a work tree.

use git_handoff::apply::{self, threeway};
use git_handoff::git::checkout::{self, Obstacle};
use git_handoff::git::{hook, program, refs, store, work_tree};
use git_handoff::model::hints;

use super::{Failure, hint_table};

hint_table! {
    apply::Error as E {
        E::NoBase(base) => hints::fetch_base(base);
        E::Altered(..) => hints::verify_all();
        E::CheckedOut(_, place) => hints::apply_there(place);
        E::Bare | E::Unborn => hints::branch();
        E::LocalChanges(work_tree::Error::Marked(marks, _)) => hints::unmark_and_stash(&marks.skipped, &marks.assumed);
        E::LocalChanges(_) => hints::stash_or_branch();
        E::HookIndex(_) | E::HookTrailers | E::OwnHooks(_) | E::OtherHooks => hints::no_verify();
        E::Commit(program::Error::Failed { stderr, .. }) if stderr.contains("tell me who you are") => hints::identity();
        E::Store(store::Error::Missing(_)) => hints::bring_object();
    }
    threeway::Error as E {
        E::Staged => hints::stash();
        E::Unmerged(_) | E::Underway(_) => hints::resolve();
        E::Since(_) => hints::put_aside();
        E::Moved | E::Half(_) => hints::give_up();
    }
}

pub(super) fn inner(error: &apply::Error) -> Option<Failure> {
    Some(match error {
        apply::Error::WorkTree(work_tree::Error::Checkout(inner)) => checkout(inner),
        apply::Error::Hook(hook::Error::Refused { .. }) => Failure::from_error("hook", error).hint(hints::no_verify()),
        apply::Error::Ref(refs::Error::LostRace(_)) => Failure::from_error("apply", error).race(),
        apply::Error::Ref(refs::Error::Locked { .. }) => Failure::from_error("apply", error).locked(),
        _ => return None,
    })
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
    Failure { code: "work-tree", hint: Some(hint), ..Failure::from_error("work-tree", error) }
}
