//! Failures of anchors that are reached over HTTP.

use git_handoff::model::hints::{self, Hint};
use git_handoff::share::anchor::{ProgramError, S3_SKEWED, S3Error, StampsError, TokenError};

use super::Failure;

pub(in super::super) fn s3(error: &S3Error) -> Failure {
    let failure = Failure::of("s3", error);
    match error {
        S3Error::Program(ProgramError::Credentials(_)) => Failure { code: "credentials", ..failure },
        S3Error::Refused { status, code, .. } => failure.hint_if(s3_hint(*status, code)),
        S3Error::Program(ProgramError::Redirect(301 | 302 | 307 | 308)) => failure.hint(hints::s3_region()),
        S3Error::NoLock => Failure { code: "no-object-lock", ..failure }.hint(hints::s3_lock()),
        _ => failure,
    }
}

pub(in super::super) fn token(error: &TokenError) -> Failure {
    Failure::of(if matches!(error, TokenError::NoRoots) { "bad-ca" } else { "time-stamp" }, error)
}

pub(in super::super) fn stamps(error: &StampsError) -> Failure {
    Failure::of("time-stamp", error)
}

pub(in super::super) fn program(error: &ProgramError) -> Failure {
    Failure::of("time-stamp", error)
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
