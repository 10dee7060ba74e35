//! Failures of `doctor` and `clean`.

use git_handoff::upkeep::{clean, doctor, operations};

use super::Failure;

pub(super) fn operations(error: &operations::Error) -> Option<Failure> {
    Some(match error {
        operations::Error::Foreign(_) => Failure::of("not-ours", error),
        operations::Error::Disk(_) => Failure::of("clean", error),
        _ => return None,
    })
}

pub(super) fn clean(error: &clean::Error) -> Option<Failure> {
    Some(match error {
        clean::Error::Hold(_) | clean::Error::Workspace(_) | clean::Error::Pool(..) => Failure::of("clean", error),
        _ => return None,
    })
}

pub(super) fn doctor(error: &doctor::Error) -> Option<Failure> {
    Some(match error {
        doctor::Error::Log(_) | doctor::Error::Hold(_) | doctor::Error::Workspace(_) => Failure::of("doctor", error),
        _ => return None,
    })
}
