//! The run that another one continues, under another id and with keys of its own.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::digest::Digest;
use super::format;
use super::json;
use super::name::RunId;

/// The run that a run continues, as entry 0 has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continues {
    /// The run.
    pub run: RunId,
    /// How many entries it had, its seal aside.
    pub entries: u64,
    /// The Merkle root over them.
    pub root: Digest,
    /// The digest of `continues.json`, the evidence: see [`evidence`].
    pub evidence: Digest,
}

/// Returns the bytes of `continues.json`: the signed commits of all entries of the run, in order.
///
/// With them, the signatures of a run that is not sealed can be checked where nothing else of it is at hand.
pub fn evidence(commits: &[String]) -> Vec<u8> {
    format::canonical(&json!({ "commits": commits }))
}

/// Reads the commits back; `None` if the bytes are not exactly what [`evidence`] writes.
pub fn commits(bytes: &[u8]) -> Option<Vec<String>> {
    let Value::Object(mut fields) = json::lenient(bytes).ok()? else { return None };
    let commits: Vec<String> = serde_json::from_value(fields.remove("commits")?).ok()?;
    (evidence(&commits) == bytes).then_some(commits)
}
