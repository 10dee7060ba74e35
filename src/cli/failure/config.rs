//! Failures of the configuration.

use git_handoff::repository::config::Error;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::of("config", &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
