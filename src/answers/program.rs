//! Answers that the program alone gives.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::apply::reproduce::Reproduced;
use crate::engine::recheck::Rechecked;
use crate::model::hints::Hint;
use crate::model::name::{RunId, ThreadId};
use crate::model::outcome::Exit;
use crate::model::thread::CheckpointId;
use crate::run::query::list::ItemStatus;
use crate::run::query::revisions::Change;
use crate::thread::packet::Report;
use crate::verify;

/// Failure of a command, on standard error. Its exit code is in docs/reference/exit-codes.md.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.error/1")]
pub struct Failed<'a> {
    /// A stable code for programs.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::FailureCode"))]
    pub code: &'static str,
    /// The message: what failed and where.
    pub message: &'a str,
    /// The causes, outermost first.
    pub causes: &'a [String],
    /// The way out for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a Hint>,
    /// The check of a packet that stopped the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<&'a Report>,
    /// Further details for programs: the answer that describes what is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "serde_json::Map<String, Value>"))]
    pub details: Option<&'a Value>,
}

/// The check of a packet: the output of `check` for each.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Checked<'a> {
    /// The packet, as the caller of `check` named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<&'a str>,
    /// The report.
    #[serde(flatten)]
    pub report: &'a Report,
}

/// The output of `record`: what it did, and the proof.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.record/1")]
pub struct Recorded<'a> {
    /// The run.
    pub run: &'a RunId,
    /// True if it was interrupted; then nothing is verified.
    pub interrupted: bool,
    /// The end of the command; absent if it was not started, or for several commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The end of the check; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Exit>,
    /// The items of the run: `record`, or one for each commit.
    pub items: Vec<ItemStatus>,
    /// The report of `verify`; absent if it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<&'a verify::Report>,
}

/// The report on a run, a proof or a bundle: the output of `verify` for each.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Verified<'a> {
    /// The report.
    #[serde(flatten)]
    pub report: &'a verify::Report,
    /// The repeated checks, with `--recheck`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck: Option<&'a Rechecked>,
    /// The comparison of a commit with the base and the products, with `--reproduce`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<&'a Reproduced>,
}

/// A document with its bytes: the output of the tool `doc_get`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.document-content/1")]
pub struct DocumentContent {
    /// The run, as the caller named it.
    pub run: String,
    /// The revision.
    pub document: Change,
    /// Its bytes.
    pub content: String,
    /// The encoding of the bytes.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Encoding"))]
    pub encoding: &'static str,
}

/// A part of a piece of a run: the output of the tool `cat`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.piece/1")]
pub struct Piece {
    /// The piece, as the caller named it.
    pub what: String,
    /// The part.
    #[serde(flatten)]
    pub part: Cut,
}

/// A part of some bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Cut {
    /// The number of all bytes.
    pub size: u64,
    /// The first byte of the part.
    pub offset: u64,
    /// The first byte after the part; absent if it is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The bytes of the part.
    pub content: String,
    /// The encoding of the bytes.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Encoding"))]
    pub encoding: &'static str,
}

/// A resumed state: the output of the tool `resume`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.resume/1")]
pub struct Resumed {
    /// The thread.
    pub thread_id: ThreadId,
    /// Its latest checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The SHA-256 of the state in hexadecimal.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::HexDigest"))]
    pub blob_sha256: String,
    /// The summary.
    pub summary: Option<String>,
    /// The state.
    pub state: String,
    /// The encoding of the state.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Encoding"))]
    pub encoding: &'static str,
    /// The number of bytes of the whole state.
    pub size: u64,
    /// The first byte that was returned.
    pub offset: u64,
    /// The offset of the rest; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(range(min = 1)))]
    pub next: Option<u64>,
    /// The attached packet.
    #[cfg_attr(feature = "schemas", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub packet: Option<Value>,
    /// True if the saved working tree was restored.
    pub checked_out: bool,
}

/// The executors and subagents of items: the output of the tool `subagents_list`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.subagents/1")]
pub struct Runnable {
    /// Values of `inputs.subagent` for the executor `dispatch`.
    pub subagents: Vec<String>,
    /// Executors that a submitted plan may name.
    pub executors: Vec<String>,
}

/// The registered names: the output of the tool `schemas_list`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.schemas/1")]
pub struct Known {
    /// Schemas of documents and outputs, `id@N`.
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<crate::model::formats::SchemaName>"))]
    pub schemas: Vec<String>,
    /// Values of `subagentShape` of items.
    pub shapes: Vec<String>,
    /// Values of `inputs.pipeline` of items.
    pub pipelines: Vec<String>,
}

/// The new entries of a run: the output of the tool `watch`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.watch/1")]
pub struct NewEntries<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The number of entries known after this.
    pub entries: usize,
    /// The new entries, as in `log --json`.
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<crate::run::query::log_entry::EntryShown>"))]
    pub new: Vec<Value>,
    /// The number of items per status, `pending` and `ready` included.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Counts"))]
    pub counts: BTreeMap<&'static str, u64>,
    /// True if the run waits for a person or an agent.
    pub settled: bool,
    /// True if the run is sealed.
    pub sealed: bool,
}
