//! What asking and writing anchors can fail of.

use git_handoff::anchor::{Error, SettingError};
use git_handoff::share::push;

use super::Failure;

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        let failure = Self::of("bad-anchor", &error);
        match error.key() {
            Some(key) => failure.hint(format!("git config --show-origin --get-all {key}")),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // Somebody told the anchor another story: that is no mishap.
            Error::Push(push::Error::Diverged(_)) => Self { exit: 3, ..Self::of("anchor-differs", &error) },
            Error::Push(inner) => inner.into(),
            Error::Remote(inner) => inner.into(),
            Error::Scratch(inner) => inner.into(),
            Error::Ref(inner) => inner.into(),
            Error::Itself(_) => Self::of("anchor-itself", &error),
        }
    }
}
