//! Failures of pipelines.

use git_handoff::model::hints;
use git_handoff::model::pipeline::Unusable;
use git_handoff::repository::pipelines::AddError;

use super::Failure;

impl From<Unusable> for Failure {
    fn from(error: Unusable) -> Self {
        let failure = Self::of("unknown-pipeline", &error);
        match error {
            Unusable::NoReference(_) => Self::usage(failure.message),
            _ => failure.hint(hints::pipelines()),
        }
    }
}

impl From<AddError> for Failure {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Repository(inner) => inner.into(),
            error => Self::of("pipeline", &error),
        }
    }
}
