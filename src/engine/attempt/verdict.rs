//! The verdict on an attempt.

use std::error::Error;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::shortage::{self, Shortage};
use crate::model::causes::in_words;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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
    /// This machine lacks something, such as disk space, which is not the item's fault.
    Shortage(String),
    /// The driver ended it.
    Interrupted,
    /// Something outside ended it, which is not its fault: its supervisor, or a signal to that.
    Crashed(String),
}

impl Verdict {
    /// Returns why it failed, or `None` if it did not fail.
    pub(in crate::engine) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason, .. } | Self::Shortage(reason) | Self::Crashed(reason) => Some(reason),
            Self::Done | Self::Interrupted => None,
        }
    }

    /// Returns [`Verdict::Shortage`] for an error that this machine caused, and otherwise the
    /// verdict that `otherwise` makes of its message.
    pub(in crate::engine) fn from_error<R: FnOnce(String) -> Self>(
        before: &str,
        error: &(dyn Error + 'static),
        otherwise: R,
    ) -> Self {
        let words = format!("{before}{}", in_words(error));
        match Shortage::from_error(error) {
            Some(shortage) => Self::Shortage(shortage.coded(&words)),
            None => otherwise(words),
        }
    }

    /// Describes the condition of this machine in the reason, with the folder that it concerns.
    pub(in crate::engine) fn describe_shortage(&mut self, folders: &[PathBuf]) {
        if let Self::Shortage(reason) = self {
            *reason = shortage::describe(reason, folders);
        }
    }

    /// Returns [`Verdict::Shortage`] instead of a failure before the worker ran if this machine
    /// lacks something now.
    pub(in crate::engine) fn unless_short(self, folders: &[PathBuf]) -> Self {
        match (self, shortage::probe(folders)) {
            (Self::Failed { reason, .. }, Err(shortage)) => Self::Shortage(shortage.coded(&reason)),
            (verdict, _) => verdict,
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
