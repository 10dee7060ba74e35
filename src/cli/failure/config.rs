//! What reading the configuration can fail of.

use git_handoff::config::Error;
use git_handoff::model::hints;

use super::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::of("config", &error);
        match &error {
            Error::Value { key, .. } => failure.hint(hints::setting(key)),
            Error::OneFolder(..) => failure.hint(hints::folders()),
            Error::Unknown { key, origin, nearest } => {
                failure.hint(hints::rename_setting(key, origin.as_deref(), nearest.as_deref()))
            }
            Error::Git(_) => failure,
        }
    }
}
