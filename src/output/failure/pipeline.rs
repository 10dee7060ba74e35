//! Failures of pipelines.

use git_handoff::model::hints;
use git_handoff::model::pipeline::Unusable;
use git_handoff::repository::pipelines::AddError;

use super::Failure;

pub(super) fn unusable(error: &Unusable) -> Failure {
    let failure = Failure::of("unknown-pipeline", error);
    match error {
        Unusable::NoReference(_) => Failure::usage(failure.message),
        _ => failure.hint(hints::pipelines()),
    }
}

pub(super) fn add_error(error: &AddError) -> Option<Failure> {
    (!matches!(error, AddError::Repository(_))).then(|| Failure::of("pipeline", error))
}
