//! The end of an attempt.

use std::error::Error;
use std::path::PathBuf;

use crate::engine::recover;
use crate::model::causes::in_words;

/// The first word of the reason of an attempt that ended for want of space.
const NO_SPACE: &str = "no-space: ";

/// How an attempt ended.
pub(in crate::engine) enum Verdict {
    /// The products are captured.
    Done,
    /// It failed; `hopeless` says that trying again cannot help.
    Failed {
        /// Why.
        reason: String,
        /// Whether another attempt must come to the same.
        hopeless: bool,
    },
    /// A file system is full, which is no fault of the item.
    NoSpace(String),
    /// The driver ended it.
    Interrupted,
}

impl Verdict {
    /// Returns why it failed.
    pub(in crate::engine) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason, .. } | Self::NoSpace(reason) => Some(reason),
            Self::Done | Self::Interrupted => None,
        }
    }

    /// Returns the verdict that an error of ours comes to: that a file system is full, or else what `otherwise` makes of its words.
    pub(in crate::engine) fn of<R: FnOnce(String) -> Self>(
        before: &str,
        error: &(dyn Error + 'static),
        otherwise: R,
    ) -> Self {
        let words = format!("{before}{}", in_words(error));
        if recover::is_full(error) { Self::NoSpace(words) } else { otherwise(words) }
    }

    /// Names the file system that is full, by the folder on it that has the least space of all that we write to.
    pub(super) fn name_full_disk(&mut self, folders: &[PathBuf]) {
        let Self::NoSpace(words) = self else { return };
        let room = |folder: &&PathBuf| rustix::fs::statvfs(folder.as_path()).map_or(u64::MAX, |stat| stat.f_bavail);
        if let Some(folder) = folders.iter().min_by_key(room) {
            *words = format!("{NO_SPACE}no space is left on the file system of {}: {words}", folder.display());
        }
    }

    pub(in crate::engine) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), hopeless: false }
    }

    pub(in crate::engine) fn hopeless(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), hopeless: true }
    }
}
