//! Failures of the configuration.

use git_handoff::repository::config::Error;

use super::Failure;

pub(super) fn config(error: &Error) -> Failure {
    Failure::of("config", error).hint_if(error.hint())
}
