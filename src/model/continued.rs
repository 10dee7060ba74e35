//! The continuation of a run under another id, with other keys.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::digest::Digest;
use super::event::Product;
use super::format;
use super::json;
use super::name::RunId;

/// The continued run, as in entry 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continues {
    /// The run.
    pub run: RunId,
    /// The number of its entries, without a seal.
    pub entries: u64,
    /// The Merkle root of the entries.
    pub root: Digest,
    /// `continues.json`, the evidence: see [`evidence`].
    pub evidence: Product,
}

/// Returns the bytes of `continues.json`: the signed commits of all entries, in order.
///
/// They prove the signatures even if nothing else of the run is available.
pub fn evidence(commits: &[String]) -> Vec<u8> {
    format::canonical(&json!({ "commits": commits }))
}

/// Parses the commits, or returns `None` unless [`evidence`] would write exactly these bytes.
pub fn commits(bytes: &[u8]) -> Option<Vec<String>> {
    let Value::Object(mut fields) = json::lenient(bytes).ok()? else { return None };
    let commits: Vec<String> = serde_json::from_value(fields.remove("commits")?).ok()?;
    (evidence(&commits) == bytes).then_some(commits)
}
