//! The verdict on an attempt.

use std::error::Error;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::recover;
use crate::model::causes::in_words;

/// The start of the reason if a file system is full.
const NO_SPACE: &str = "no-space: ";

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Verdict {
    /// The products are captured.
    Done,
    /// It did not work out.
    Failed {
        /// The reason.
        reason: String,
        /// Whether another attempt would fail in the same way.
        hopeless: bool,
    },
    /// A file system is full, which is not the item's fault.
    NoSpace(String),
    /// The driver ended it.
    Interrupted,
    /// Something outside ended it, which is not its fault: its supervisor, or a signal to that.
    Crashed(String),
}

impl Verdict {
    /// Returns why it failed, or `None` if it did not fail.
    pub(in crate::engine) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason, .. } | Self::NoSpace(reason) | Self::Crashed(reason) => Some(reason),
            Self::Done | Self::Interrupted => None,
        }
    }

    /// Returns [`Verdict::NoSpace`] for an error that says so, and otherwise the verdict that
    /// `otherwise` makes of its message.
    pub(in crate::engine) fn from_error<R: FnOnce(String) -> Self>(
        before: &str,
        error: &(dyn Error + 'static),
        otherwise: R,
    ) -> Self {
        let words = format!("{before}{}", in_words(error));
        if recover::is_full(error) { Self::NoSpace(words) } else { otherwise(words) }
    }

    /// Adds the folder with the least free space to the reason.
    pub(super) fn name_full_disk(&mut self, folders: &[PathBuf]) {
        let Self::NoSpace(words) = self else { return };
        let free = |folder: &&PathBuf| rustix::fs::statvfs(folder.as_path()).map_or(u64::MAX, |stat| stat.f_bavail);
        if let Some(folder) = folders.iter().min_by_key(free) {
            *words = format!("{NO_SPACE}no space is left on the file system of {}: {words}", folder.display());
        }
    }

    pub(in crate::engine) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), hopeless: false }
    }

    pub(in crate::engine) fn hopeless(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), hopeless: true }
    }

    /// Adds the last output of a check to the reason.
    pub(super) fn with_output(self, output: &str) -> Self {
        match self {
            Self::Failed { reason, hopeless } if !output.is_empty() => {
                Self::Failed { reason: format!("{reason}: {output}"), hopeless }
            }
            other => other,
        }
    }
}

impl<E: Error + 'static> From<E> for Verdict {
    fn from(error: E) -> Self {
        Self::from_error("", &error, Self::failed)
    }
}
