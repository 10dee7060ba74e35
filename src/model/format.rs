//! The format's version, canonical JSON, hashes over it, and the names of everything on disk.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::digest::Digest;
use super::json::MAX_SAFE_INTEGER;
use super::name::{FilePath, ItemId, NameError, RunId, ThreadId, encode_segment};
use super::plan::{ProductKey, ProductKind};

/// The format version that every entry carries as `v`.
pub const VERSION: u64 = 1;

/// What the outputs begin with that are changes to submodules.
const SUBMODULES: &str = "submodules/";

/// What this program calls itself in entries and manifests.
pub const TOOL: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"));

/// The e-mail address of every author and committer: entries name actors, not mailboxes.
pub const EMAIL: &str = "handoff@localhost";

/// The committer of every entry.
pub const COMMITTER: &str = "git-handoff";

/// More items than this make `items/` fan out by hash.
pub const FAN_OUT_ABOVE: usize = 256;

/// The run's plan, byte for byte, in the run's tree.
pub const PLAN: &str = "plan.json";

/// The rules that the queue adds to the plan's, byte for byte, in the run's tree.
pub const RULES: &str = "rules.json";

/// The folder of the products that were sealed from elsewhere, in the run's tree.
pub const IMPORTS: &str = "imports";

/// The evidence of the run that a run continues, in the tree of the latter.
pub const CONTINUES: &str = "continues.json";

/// The folder of the pipelines that items name, byte for byte, in the run's tree.
pub const PIPELINES: &str = "pipelines";

/// The folder of all refs of ours.
pub const REFS: &str = "refs/handoff/";

/// The folder of the refs of runs.
pub const RUN_REFS: &str = "refs/handoff/runs/";

/// The folder of the refs of threads.
pub const THREAD_REFS: &str = "refs/handoff/threads/";

/// The folder of the refs of repository logs.
pub const LOG_REFS: &str = "refs/handoff/logs/";

/// The folder of the refs of archives.
pub const ARCHIVE_REFS: &str = "refs/handoff/archives/";

/// The ref of what is kept of archived runs here, and no part of the evidence: a line of commits that reach what they start from, the
/// last of which has the rest in its tree, at [`kept_path`]. No run is called so.
pub const KEPT_REF: &str = "refs/handoff/bases/@archived";

/// The folder of the refs of salvaged work.
pub const SALVAGE_REFS: &str = "refs/handoff/salvage/";

/// The folder of the refs of transcripts.
pub const TRANSCRIPT_REFS: &str = "refs/handoff/transcripts/";

/// The folder of what was fetched: in it one for each remote, which holds what lies below [`REFS`] there.
pub const FETCHED_REFS: &str = "refs/handoff/remotes/";

/// Returns the RFC 8785 (JCS) form of a value.
///
/// Every number that this format itself writes is an integer, and what people wrote was checked to be finite when it was
/// read, so this cannot fail for values of the model.
pub fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("model values are finite and have string keys")
}

/// Returns whether every number in a value is an integer that every reader of JSON holds exactly: the format writes no other.
pub(super) fn has_safe_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let safe = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            safe.is_some_and(|magnitude| magnitude <= MAX_SAFE_INTEGER)
        }
        Value::Array(list) => list.iter().all(has_safe_numbers),
        Value::Object(map) => map.values().all(has_safe_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Returns the RFC 6962 leaf hash `SHA-256(0x00 || bytes)`.
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(bytes);
    Digest::from_bytes(hasher.finalize().into())
}

/// Returns the digest of a value's canonical form.
pub fn digest_of(value: &Value) -> Digest {
    Digest::of(&canonical(value))
}

/// Returns `refs/handoff/runs/<run>`.
pub fn run_ref(run: &RunId) -> String {
    format!("{RUN_REFS}{}", run.encoded())
}

/// Returns `refs/handoff/threads/<thread>`.
pub fn thread_ref(thread: &ThreadId) -> String {
    format!("{THREAD_REFS}{}", thread.encoded())
}

/// Returns the folder of the refs that hold what runs start from.
pub fn bases() -> String {
    format!("{REFS}bases/")
}

/// Returns `refs/handoff/bases/<run>`.
pub fn base_ref(run: &RunId) -> String {
    format!("{REFS}bases/{}", run.encoded())
}

/// Returns `refs/handoff/salvage/<run>`.
pub fn salvage_ref(run: &RunId) -> String {
    format!("{SALVAGE_REFS}{}", run.encoded())
}

/// Returns `refs/handoff/transcripts/<run>`.
pub fn transcripts_ref(run: &RunId) -> String {
    format!("{TRANSCRIPT_REFS}{}", run.encoded())
}

/// Returns `refs/handoff/stamps/<run>`.
pub fn stamps_ref(run: &RunId) -> String {
    format!("{REFS}stamps/{}", run.encoded())
}

/// Returns `refs/handoff/logs/<name>`; a log's name is the fingerprint of its key, or [`super::log_name::LogName`] says what.
pub fn log_ref(name: &str) -> String {
    format!("{LOG_REFS}{}", encode_segment(name))
}

/// Returns `refs/handoff/archives/<name>`.
pub fn archive_ref(name: &str) -> String {
    format!("{ARCHIVE_REFS}{}", encode_segment(name))
}

/// Returns where an archive's tree has the time stamps of a run: `stamps/<2 hex of sha256(run)>/<run>`.
pub fn archived_stamps_path(run: &RunId) -> String {
    format!("stamps/{}", log_path(run))
}

/// Returns where the tree of [`KEPT_REF`] has the transcripts or the salvaged work of a run: `<folder>/<2 hex of sha256(run)>/<run>`.
pub fn kept_path(folder: &str, run: &RunId) -> String {
    format!("{folder}/{}", log_path(run))
}

/// Returns the folder of what was fetched from a remote.
pub fn fetched_refs(remote: &str) -> String {
    format!("{FETCHED_REFS}{remote}/")
}

/// Returns where a repository log's tree keeps what it knows of a run: `<2 hex of sha256(run)>/<run>`.
pub fn log_path(run: &RunId) -> String {
    format!("{}/{}", fan(run.as_str()), run.encoded())
}

/// Returns where a repository log's tree keeps what it knows of a thread: `threads/<2 hex of sha256(thread)>/<thread>`.
pub fn log_thread_path(thread: &ThreadId) -> String {
    format!("threads/{}/{}", fan(thread.as_str()), thread.encoded())
}

/// The folder of a repository log's tree with what its key decided about the items of others' runs.
pub const DECIDED: &str = "decided";

/// The folder of a repository log's tree with the documents that its key wrote for others' runs.
pub const WRITTEN: &str = "written";

/// Returns where a repository log's tree keeps what its key last decided about an item: `decided/<2 hex of sha256(run)>/<run>/<item>`.
pub fn decided_path(run: &RunId, item: &ItemId) -> String {
    format!("{DECIDED}/{}/{}", log_path(run), item.encoded())
}

/// Returns where a repository log's tree keeps the document that its key last wrote: `written/<2 hex of sha256(run)>/<run>/<document>`.
pub fn written_path(run: &RunId, name: &FilePath) -> String {
    format!("{WRITTEN}/{}/{}", log_path(run), name.encoded())
}

/// Returns where a run's transcripts tree keeps one: `<2 hex of sha256(item)>/<item>/<attempt>`.
pub fn transcript_path(item: &ItemId, attempt: u32) -> String {
    format!("{}/{}/{attempt}", fan(item.as_str()), item.encoded())
}

/// Returns the output that an item's change to the files of a submodule is handed over as: `submodules/<path>.patch`.
pub fn submodule_output(path: &str) -> Result<FilePath, NameError> {
    FilePath::parse(&format!("{SUBMODULES}{path}.patch"))
}

/// Returns the path of the submodule that an output may be the change to.
pub fn submodule_of(output: &FilePath) -> Option<&str> {
    output.as_str().strip_prefix(SUBMODULES)?.strip_suffix(".patch")
}

/// Returns the tree path of a file sealed at submit.
pub fn artifact_path(path: &FilePath) -> String {
    format!("artifacts/{}", path.encoded())
}

/// Returns the tree path of a pipeline that was sealed with the run.
pub fn pipeline_path(digest: Digest) -> String {
    format!("{PIPELINES}/{}.json", digest.hex())
}

/// Returns where the run's tree keeps a product that was sealed from elsewhere, by the name that entry 0 gives it, and its evidence:
/// `imports/<sha256(name)>/product` and `imports/<sha256(name)>/evidence.json`.
pub fn import_paths(name: &str) -> [String; 2] {
    let folder = Digest::of(name.as_bytes()).hex();
    ["product", "evidence.json"].map(|file| format!("{IMPORTS}/{folder}/{file}"))
}

/// Returns the tree path of a document's current revision.
pub fn document_path(name: &FilePath) -> String {
    format!("documents/{}", name.encoded())
}

/// Where the items of one run stand in its tree; recorded as `fanOut` in entry 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether `items/` has a level of two hex digits of `sha256(id)`.
    pub fan_out: bool,
}

impl Layout {
    /// Returns the item's folder, without a slash at the end.
    pub fn item(self, item: &ItemId) -> String {
        if self.fan_out {
            format!("items/{}/{}", fan(item.as_str()), item.encoded())
        } else {
            format!("items/{}", item.encoded())
        }
    }

    /// Returns the path of the normalised item, for one that was added after submit.
    pub fn definition(self, item: &ItemId) -> String {
        self.item(item) + "/item.json"
    }

    /// Returns the path of the item's `state.json`.
    pub fn state(self, item: &ItemId) -> String {
        self.item(item) + "/state.json"
    }

    /// Returns the path of the manifest of the item's latest attempt.
    pub fn manifest(self, item: &ItemId) -> String {
        self.item(item) + "/manifest.json"
    }

    /// Returns the path of what shows that the item's products are those of another run's.
    pub fn reused(self, item: &ItemId) -> String {
        self.item(item) + "/reused.json"
    }

    /// Returns the path of the item's patch.
    pub fn patch(self, item: &ItemId) -> String {
        self.item(item) + "/patch"
    }

    /// Returns the folder of the item's outputs.
    pub fn outputs(self, item: &ItemId) -> String {
        self.item(item) + "/outputs"
    }

    /// Returns the path of one product of an item.
    pub fn product(self, item: &ItemId, key: &ProductKey) -> String {
        match key {
            ProductKey::Patch => self.patch(item),
            ProductKey::Output(path) => self.output(item, path),
            ProductKey::Document(name) => document_path(name),
        }
    }

    /// Returns where the products of an item stand that are its alone, and give way to those of its next attempt: files, and
    /// folders with a slash at the end.
    pub fn products(self, item: &ItemId) -> impl Iterator<Item = String> {
        ProductKind::ALL.iter().filter_map(move |kind| match kind {
            ProductKind::Patch => Some(self.patch(item)),
            ProductKind::Output => Some(self.outputs(item) + "/"),
            ProductKind::Document => None,
        })
    }

    /// Returns the path of one output.
    pub fn output(self, item: &ItemId, path: &FilePath) -> String {
        format!("{}/{}", self.outputs(item), path.encoded())
    }
}

fn fan(name: &str) -> String {
    Digest::of(name.as_bytes()).hex()[..2].to_owned()
}
