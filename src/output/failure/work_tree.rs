//! Failures to write a work tree.

use std::io::ErrorKind;

use git_handoff::git::checkout::{Error, Obstacle};
use git_handoff::model::hints;

use super::Failure;

pub(super) fn checkout(error: &Error) -> Failure {
    let hint = match (error.obstacle(), error) {
        (Some(Obstacle::Space), _) => hints::again_after_space(),
        (_, Error::Folder(folder, reason)) if reason.kind() == ErrorKind::PermissionDenied => {
            hints::make_writable(folder.display())
        }
        (Some(Obstacle::Permission), _) => hints::again_with_permission(),
        (None, _) => hints::again(),
    };
    Failure { code: "work-tree", hint: Some(hint), ..Failure::of("work-tree", error) }
}
