//! Failures of anchors that are reached over HTTP.

use git_handoff::model::hints::{self, Hint};
use git_handoff::share::anchor::{Error, ProgramError, S3_SKEWED, S3Error, StampsError, TokenError};

use super::Failure;

/// Returns the failure for an error that only such an anchor has.
pub(super) fn failure(error: &Error) -> Option<Failure> {
    Some(match error {
        Error::Stamps(StampsError::Ref(_) | StampsError::Store(_)) => return None,
        Error::S3(S3Error::Program(ProgramError::Credentials(_))) => Failure::of("credentials", error),
        Error::S3(S3Error::Refused { status, code, .. }) => {
            let hint = s3_hint(*status, code);
            Failure::of("s3", error).hint_if(hint)
        }
        Error::S3(S3Error::Program(ProgramError::Redirect(301 | 302 | 307 | 308))) => {
            Failure::of("s3", error).hint(hints::s3_region())
        }
        Error::S3(S3Error::NoLock) => Failure::of("no-object-lock", error).hint(hints::s3_lock()),
        Error::S3(_) => Failure::of("s3", error),
        Error::Token(TokenError::NoRoots) => Failure::of("bad-ca", error),
        _ => Failure::of("time-stamp", error),
    })
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
