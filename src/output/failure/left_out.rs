//! Failures because of features that this build lacks.

use git_handoff::model::hints;
use git_handoff::model::left_out::LeftOut;

use super::Failure;

/// The code of all such failures.
pub(super) const CODE: &str = "left-out";

pub(super) fn left_out(error: &LeftOut) -> Failure {
    Failure::of(CODE, error).hint(hints::build_whole())
}
