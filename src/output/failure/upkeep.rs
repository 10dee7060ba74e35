//! Failures of `doctor` and `clean`.

use git_handoff::upkeep::{clean, disk, doctor, operations};

use super::Failure;

pub(super) fn operations(error: &operations::Error) -> Failure {
    match error {
        operations::Error::Foreign(_) => Failure::of("not-ours", error),
    }
}

pub(super) fn disk(error: &disk::Error) -> Failure {
    Failure::of("clean", error)
}

pub(super) fn clean(error: &clean::Error) -> Failure {
    Failure::of("clean", error)
}

pub(super) fn doctor(error: &doctor::Error) -> Failure {
    Failure::of("doctor", error)
}
