//! Failures of anchors.

#[cfg(feature = "anchors")]
pub(super) mod web;

use git_handoff::model::entry::Subject;
use git_handoff::model::hints;
use git_handoff::share::anchor::{Error, SettingError};
use git_handoff::share::push;

use super::{Failure, repository};

pub(super) fn setting_error(error: &SettingError) -> Failure {
    if let SettingError::LeftOut { .. } = error {
        return Failure::of(repository::LEFT_OUT, error).hint(hints::build_whole());
    }
    let failure = Failure::of("bad-anchor", error);
    match error.key() {
        Some(key) => failure.hint(hints::setting(key)),
        None => failure,
    }
}

pub(super) fn anchor(error: &Error) -> Option<Failure> {
    Some(match error {
        Error::Push(error) => {
            let differs = matches!(error.downcast_ref(), Some(push::Error::Diverged(_)));
            return differs.then(|| Failure { exit: 3, ..Failure::of("anchor-differs", &**error) });
        }
        // The anchor has different evidence: a failed check.
        Error::NotOurs(_) | Error::Elsewhere { .. } | Error::ThreadElsewhere { .. } => {
            Failure { exit: 3, ..Failure::of("anchor-differs", error) }
        }
        Error::Itself(_) => Failure::of("anchor-itself", error),
        Error::Differs { run, .. } => {
            Failure { exit: 3, ..Failure::of("anchor-differs", error) }.hint(hints::check_anchors(run))
        }
        Error::DiffersOnThread { thread, .. } => {
            Failure { exit: 3, ..Failure::of("anchor-differs", error) }.hint(hints::verify_thread(thread))
        }
        Error::Unsound(subject, _) => {
            let hint = match subject {
                Subject::Thread(thread) => hints::verify_thread(thread),
                other => hints::verify(other.as_str()),
            };
            Failure { exit: 3, ..Failure::of("not-intact", error) }.hint(hint)
        }
        Error::NotLocked(..) => Failure::of("no-object-lock", error).hint(hints::s3_lock()),
        Error::NotKept(_) | Error::TooManyKeys(_) => Failure::of("s3", error),
        Error::Unreadable { .. } => Failure::of("io", error),
        Error::Ca(..) => Failure::of("bad-ca", error),
        Error::Status(..) | Error::NoStamp(_) | Error::Refused(_) | Error::Nonce | Error::NoRoot | Error::NoToken => {
            Failure::of("time-stamp", error)
        }
    })
}
