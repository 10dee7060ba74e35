//! How two states, or two revisions of a document, differ, as JSON has it.

use serde::Serialize;

use crate::git::program::{self, Git};
use crate::model::json::changes::{Change, Changes};

/// The most bytes of a patch in an answer.
const MOST_PATCH: usize = 1 << 20;

/// How two of them differ: what `thread diff --json` and `doc diff --json` print.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    schema: &'static str,
    /// The fields that differ, as many as are told; absent where not both are JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// How many more fields differ; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// A patch from the first to the second, of all that they hold.
    pub patch: String,
    /// Whether there is more of the patch than is answered.
    pub truncated: bool,
}

impl Difference {
    /// Answers with the fields that differ and with what a call of git prints.
    pub fn of(fields: Option<Changes>, call: Git) -> Result<Self, program::Error> {
        let (mut patch, mut all) = (Vec::new(), 0);
        call.stream(&mut |chunk| {
            all += chunk.len();
            patch.extend_from_slice(&chunk[..chunk.len().min(MOST_PATCH.saturating_sub(patch.len()))]);
            Ok(())
        })?;
        let truncated = all > patch.len();
        let (changes, more) = fields.map(|fields| (fields.told, fields.more)).unzip();
        let (more, patch) = (more.filter(|more| *more > 0), String::from_utf8_lossy(&patch).into_owned());
        Ok(Self { schema: "git-handoff.diff/1", changes, more, patch, truncated })
    }
}
