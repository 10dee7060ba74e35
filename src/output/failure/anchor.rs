//! Hints and failures of anchors.

use git_handoff::model::entry::Subject;
use git_handoff::model::hints;
use git_handoff::share::anchor::{self, SettingError};
use git_handoff::share::push;

use super::{Failure, hint_table};

hint_table! {
    SettingError as E {
        E::LeftOut { .. } => hints::build_whole();
    } else error => error.key().map(hints::setting);
    anchor::Error as E {
        E::Differs { run, .. } => hints::check_anchors(run);
        E::DiffersOnThread { thread, .. } | E::Unsound(Subject::Thread(thread), _) => hints::verify_thread(thread);
        E::Unsound(subject, _) => hints::verify(subject.as_str());
        E::NotLocked(..) => hints::s3_lock();
    }
}

/// An anchor that has other evidence than this repository is a failed check.
pub(super) fn push(error: &anchor::Error) -> Option<Failure> {
    let anchor::Error::Push(error) = error else { return None };
    let differs = matches!(error.downcast_ref(), Some(push::Error::Diverged(_)));
    differs.then(|| Failure { exit: 3, ..Failure::from_error("anchor-differs", &**error) })
}
