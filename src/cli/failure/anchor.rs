//! Failures of anchors.

#[cfg(feature = "anchors")]
mod web;

use git_handoff::model::entry::Subject;
use git_handoff::model::hints;
use git_handoff::share::anchor::{Error, SettingError};
use git_handoff::share::push;

use super::{Failure, left_out};

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        if let SettingError::LeftOut { .. } = error {
            return Self::of(left_out::CODE, &error).hint(hints::build_whole());
        }
        let failure = Self::of("bad-anchor", &error);
        match error.key() {
            Some(key) => failure.hint(hints::setting(key)),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // The anchor has different evidence: a failed check.
            Error::Push(push::Error::Diverged(_))
            | Error::NotOurs(_)
            | Error::Elsewhere { .. }
            | Error::ThreadElsewhere { .. } => Self { exit: 3, ..Self::of("anchor-differs", &error) },
            Error::Push(inner) => inner.into(),
            Error::Remote(inner) => inner.into(),
            Error::Scratch(inner) => inner.into(),
            Error::Ref(inner) => inner.into(),
            Error::Itself(_) => Self::of("anchor-itself", &error),
            Error::Differs { ref run, .. } => {
                Self { exit: 3, ..Self::of("anchor-differs", &error) }.hint(hints::check_anchors(run))
            }
            Error::DiffersOnThread { ref thread, .. } => {
                Self { exit: 3, ..Self::of("anchor-differs", &error) }.hint(hints::verify_thread(thread))
            }
            Error::Unsound(ref subject, _) => {
                let hint = match subject {
                    Subject::Thread(thread) => hints::verify_thread(thread),
                    other => hints::verify(other.as_str()),
                };
                Self { exit: 3, ..Self::of("not-intact", &error) }.hint(hint)
            }
            Error::Verify(inner) => inner.into(),
            Error::NotLocked(..) => Self::of("no-object-lock", &error).hint(hints::s3_lock()),
            Error::NotKept(_) | Error::TooManyKeys(_) => Self::of("s3", &error),
            Error::Unreadable { .. } => Self::of("io", &error),
            Error::Ca(..) => Self::of("bad-ca", &error),
            Error::Status(..)
            | Error::NoStamp(_)
            | Error::Refused(_)
            | Error::Nonce
            | Error::NoRoot
            | Error::NoToken => Self::of("time-stamp", &error),
            #[cfg(feature = "anchors")]
            other => web::failure(other),
        }
    }
}
