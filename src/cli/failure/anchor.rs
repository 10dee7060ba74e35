//! Failures of anchors.

use git_handoff::anchor::{Error, HttpError, S3_SKEWED, S3Error, SettingError, StampsError, TokenError};
use git_handoff::model::entry::Subject;
use git_handoff::model::hints::{self, Hint};
use git_handoff::share::push;

use super::Failure;

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
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
            Error::Ref(inner) | Error::Stamps(StampsError::Ref(inner)) => inner.into(),
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
            Error::Credentials(_) => Self::of("credentials", &error),
            Error::S3(S3Error::Refused { status, ref code, .. }) => {
                let hint = s3_hint(status, code);
                Self::of("s3", &error).hint_if(hint)
            }
            Error::S3(S3Error::Http(HttpError::Redirect(301 | 302 | 307 | 308))) => {
                Self::of("s3", &error).hint(hints::s3_region())
            }
            Error::S3(S3Error::NoLock) | Error::NotLocked(..) => {
                Self::of("no-object-lock", &error).hint(hints::s3_lock())
            }
            Error::S3(_) | Error::NotKept(_) | Error::TooManyKeys(_) => Self::of("s3", &error),
            Error::Unreadable { .. } => Self::of("io", &error),
            Error::Ca(..) | Error::Token(TokenError::NoRoots) => Self::of("bad-ca", &error),
            Error::Stamps(StampsError::Store(inner)) => inner.into(),
            Error::Stamps(StampsError::Overfull(_))
            | Error::Token(_)
            | Error::Status(..)
            | Error::NoStamp(_)
            | Error::Refused(_)
            | Error::Nonce
            | Error::NoRoot
            | Error::NoToken
            | Error::Http(_) => Self::of("time-stamp", &error),
        }
    }
}

/// Returns the hint for a refusal of S3.
fn s3_hint(status: u16, code: &str) -> Option<Hint> {
    match (status, code) {
        (_, S3_SKEWED) => Some(hints::set_clock()),
        (_, "NoSuchBucket") => Some(hints::s3_lock()),
        (_, "AuthorizationHeaderMalformed" | "PermanentRedirect") => Some(hints::s3_region()),
        (_, "AccessDenied" | "AllAccessDisabled") => Some(hints::s3_rights()),
        (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") | (401 | 403, _) => Some(hints::s3_credentials()),
        (429 | 500 | 502..=504, _) => Some(hints::again_later()),
        _ => None,
    }
}
