//! Compares two states of a thread, or two revisions of a document.

use serde::Serialize;

use crate::git::program::{self, Git};
use crate::model::json::changes::{Change, Changes};

/// The most bytes of a patch in an answer.
const MAX_PATCH: usize = 1 << 20;

/// A difference, as `thread diff --json` and `doc diff --json` print it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.diff/1")]
pub struct Difference {
    /// The first fields that differ, or `None` unless both are JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// The number of further fields that differ, or `None` if there are no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// A patch from the first to the second.
    pub patch: String,
    /// Whether the patch was cut off.
    pub truncated: bool,
}

impl Difference {
    /// Returns a difference with the output of a git command as its patch.
    pub fn new(fields: Option<Changes>, call: Git) -> Result<Self, program::Error> {
        let (mut patch, mut all) = (Vec::new(), 0);
        call.stream(&mut |chunk| {
            all += chunk.len();
            patch.extend_from_slice(&chunk[..chunk.len().min(MAX_PATCH.saturating_sub(patch.len()))]);
            Ok(())
        })?;
        let truncated = all > patch.len();
        let (changes, more) = fields.map(|fields| (fields.listed, fields.more)).unzip();
        let (more, patch) = (more.filter(|more| *more > 0), String::from_utf8_lossy(&patch).into_owned());
        Ok(Self { changes, more, patch, truncated })
    }
}
