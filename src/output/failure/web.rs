//! Hints and failures of anchors that are reached over HTTP.

use git_handoff::model::hints::{self, Hint};
use git_handoff::share::anchor::{ProgramError, S3_SKEWED, S3Error};

use super::{Failure, hint_table};

hint_table! {
    S3Error as E {
        E::Refused { status, code, .. } => s3_hint(*status, code);
        E::Program(ProgramError::Redirect(301 | 302 | 307 | 308)) => hints::s3_region();
        E::NoLock => hints::s3_lock();
    }
}

pub(super) fn credentials(error: &S3Error) -> Option<Failure> {
    let is_ours = matches!(error, S3Error::Program(ProgramError::Credentials(_)));
    is_ours.then(|| Failure::from_error("credentials", error))
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
