//! The format's version, canonical JSON, hashes over it, and the names of everything on disk.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::digest::Digest;
use super::json::MAX_SAFE_INTEGER;
use super::name::{FilePath, ItemId, NameError, RunId, ThreadId, encode_segment};
use super::plan::ProductKey;

/// The format version that every entry carries as `v`.
pub const VERSION: u64 = 2;

/// The prefix of outputs that are changes to submodules.
const SUBMODULES: &str = "submodules/";

/// The program's name and version in entries and manifests.
pub const TOOL: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"));

/// The email address of every author and committer; entries name actors, not addresses.
pub const EMAIL: &str = "handoff@localhost";

/// The committer of every entry.
pub const COMMITTER: &str = "git-handoff";

/// The path of the plan's exact bytes in the run's tree.
pub const PLAN: &str = "plan.json";

/// The path of the queue's rules, exact bytes, in the run's tree.
pub const RULES: &str = "rules.json";

/// The folder of products from outside the run, in its tree.
pub const IMPORTS: &str = "imports";

/// The path of the evidence of the continued run.
pub const CONTINUES: &str = "continues.json";

/// The patch's path in the tree of an entry.
pub const PATCH: &str = "patch";

/// The path of a dispatch manifest in the tree of its entry.
pub const MANIFEST: &str = "manifest.json";

/// The path of the evidence of reused products in the tree of their entry.
pub const REUSED: &str = "reused.json";

/// The folder of revisions of documents, with a slash.
pub const DOCUMENTS: &str = "documents/";

/// The folder of the pipelines' exact bytes.
pub const PIPELINES: &str = "pipelines";

/// The path of a base's commit, as the bytes of a blob, in the tree of a bundle's protected files.
pub const BASE_COMMIT: &str = "commit";

/// The folder of a base's trees there, each as the bytes of a blob under its id.
pub const BASE_TREES: &str = "trees";

/// The folder of a base's files there, each under the id of its blob.
pub const BASE_FILES: &str = "files";

/// The folder of all our refs.
pub const REFS: &str = "refs/handoff/";

/// The folder of the refs of runs.
pub const RUN_REFS: &str = "refs/handoff/runs/";

/// The folder of the refs of threads.
pub const THREAD_REFS: &str = "refs/handoff/threads/";

/// The folder of the refs of repository logs.
pub const LOG_REFS: &str = "refs/handoff/logs/";

/// The folder of the refs of archives.
pub const ARCHIVE_REFS: &str = "refs/handoff/archives/";

/// The ref that keeps data of archived runs that is not evidence: a chain of commits with the runs'
/// bases as parents, whose last tree has the rest at [`kept_path`]. No run can have this name.
pub const KEPT_REF: &str = "refs/handoff/bases/@archived";

/// The folder of the refs of salvaged work.
pub const SALVAGE_REFS: &str = "refs/handoff/salvage/";

/// The folder of the refs of transcripts.
pub const TRANSCRIPT_REFS: &str = "refs/handoff/transcripts/";

/// The folder of fetched refs, with one folder for each remote that mirrors its [`REFS`].
pub const FETCHED_REFS: &str = "refs/handoff/remotes/";

/// Returns the RFC 8785 (JCS) form of a value.
///
/// The format itself writes only integers, and numbers in user data are checked when parsed, so
/// this cannot fail.
pub fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("model values are finite and have string keys")
}

/// Returns the text of an entry: its RFC 8785 form with each key and each element of an array on a
/// line of its own, so that people can read it and git's packs are smaller.
///
/// Each level is indented by one space, a space follows the colon of a key, and empty objects and
/// arrays stay as they are.
pub fn entry_text<T: Serialize>(value: &T) -> Vec<u8> {
    let canonical = canonical(value);
    let mut text = Vec::with_capacity(canonical.len() * 5 / 4);
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = canonical.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(&canonical, at);
                text.extend_from_slice(&canonical[at..end]);
                at = end;
                continue;
            }
            b'{' | b'[' => {
                text.push(byte);
                depth += 1;
                if !matches!(canonical[at + 1], b'}' | b']') {
                    start_line(&mut text, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                if !matches!(canonical[at - 1], b'{' | b'[') {
                    start_line(&mut text, depth);
                }
                text.push(byte);
            }
            b',' => {
                text.push(byte);
                start_line(&mut text, depth);
            }
            b':' => text.extend(b": "),
            _ => text.push(byte),
        }
        at += 1;
    }
    text
}

/// Starts a line that is indented.
fn start_line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.resize(text.len() + depth, b' ');
}

/// Returns the position behind a string that starts at a position of valid JSON.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let next = json[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
        at += next.expect("a string of valid JSON ends");
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
}

/// Returns true if every number is an integer that JSON readers represent exactly; the format
/// writes no others.
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
pub fn digest_of<T: Serialize>(value: &T) -> Digest {
    Digest::compute(&canonical(value))
}

/// Returns `refs/handoff/runs/<run>`.
pub fn run_ref(run: &RunId) -> String {
    format!("{RUN_REFS}{}", run.encoded())
}

/// Returns the folder of the beats of a run's drivers, one ref for each driver.
pub fn driver_refs(run: &RunId) -> String {
    format!("{REFS}drivers/{}/", run.encoded())
}

/// Returns `refs/handoff/threads/<thread>`.
pub fn thread_ref(thread: &ThreadId) -> String {
    format!("{THREAD_REFS}{}", thread.encoded())
}

/// Returns the folder of the refs of runs' bases.
pub fn bases() -> String {
    format!("{REFS}bases/")
}

/// Returns `refs/handoff/bases/<run>`.
pub fn base_ref(run: &RunId) -> String {
    format!("{REFS}bases/{}", run.encoded())
}

/// Returns the folder of the refs of protected files, which only bundles have.
pub fn protected_refs() -> String {
    format!("{REFS}protected/")
}

/// Returns `refs/handoff/protected/<run>`.
pub fn protected_ref(run: &RunId) -> String {
    format!("{REFS}protected/{}", run.encoded())
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

/// Returns the name of a token in a tree of time stamps: `[<entries>.]<hex of its SHA-256>.tst`.
///
/// The number is that of the thread's entries; a token about a run has none.
pub fn stamp_name(entries: Option<u64>, token: Digest) -> String {
    let entries = entries.map(|entries| format!("{entries}.")).unwrap_or_default();
    format!("{entries}{}.tst", token.hex())
}

/// Reads the name of a token about a thread: the number of entries, and the hash in hex.
pub fn parse_thread_stamp(name: &str) -> Option<(u64, &str)> {
    let (number, hex) = name.strip_suffix(".tst")?.split_once('.')?;
    let entries: u64 = number.parse().ok()?;
    (entries > 0 && entries.to_string() == number).then_some((entries, hex))
}

/// Returns `refs/handoff/logs/<name>`; see [`super::log_name::LogName`].
pub fn log_ref(name: &str) -> String {
    format!("{LOG_REFS}{}", encode_segment(name))
}

/// Returns `refs/handoff/archives/<name>`.
pub fn archive_ref(name: &str) -> String {
    format!("{ARCHIVE_REFS}{}", encode_segment(name))
}

/// Returns the path of a run's time stamps in an archive's tree: `stamps/<2 hex of
/// sha256(run)>/<run>`.
pub fn archived_stamps_path(run: &RunId) -> String {
    format!("stamps/{}", log_path(run))
}

/// Returns the path of a run's transcripts or salvaged work in the tree of [`KEPT_REF`]:
/// `<folder>/<2 hex of sha256(run)>/<run>`.
pub fn kept_path(folder: &str, run: &RunId) -> String {
    format!("{folder}/{}", log_path(run))
}

/// Returns the folder of refs fetched from a remote.
pub fn fetched_refs(remote: &str) -> String {
    format!("{FETCHED_REFS}{remote}/")
}

/// Returns the path of a run's record in a log's tree: `<2 hex of sha256(run)>/<run>`.
pub fn log_path(run: &RunId) -> String {
    format!("{}/{}", fan(run.as_str()), run.encoded())
}

/// Returns the path of a thread's record in a log's tree: `threads/<2 hex of
/// sha256(thread)>/<thread>`.
pub fn log_thread_path(thread: &ThreadId) -> String {
    format!("threads/{}/{}", fan(thread.as_str()), thread.encoded())
}

/// The folder of decisions about others' runs in a log's tree.
pub const DECIDED: &str = "decided";

/// The folder of documents for others' runs in a log's tree.
pub const WRITTEN: &str = "written";

/// Returns the path of the latest decision about an item in a log's tree: `decided/<2 hex of
/// sha256(run)>/<run>/<item>`.
pub fn decided_path(run: &RunId, item: &ItemId) -> String {
    format!("{DECIDED}/{}/{}", log_path(run), item.encoded())
}

/// Returns the path of the latest document in a log's tree: `written/<2 hex of
/// sha256(run)>/<run>/<document>`.
pub fn written_path(run: &RunId, name: &FilePath) -> String {
    format!("{WRITTEN}/{}/{}", log_path(run), name.encoded())
}

/// Returns the path of a transcript in a run's transcripts tree: `<2 hex of
/// sha256(item)>/<item>/<attempt>`.
pub fn transcript_path(item: &ItemId, attempt: u32) -> String {
    format!("{}/{}/{attempt}", fan(item.as_str()), item.encoded())
}

/// Returns the path of a check's output in a run's transcripts tree; `before` is for the check
/// before the work.
pub fn check_path(item: &ItemId, attempt: u32, before: bool) -> String {
    let name = if before { "check-before" } else { "check" };
    format!("{}.{name}", transcript_path(item, attempt))
}

/// Returns the path of the bundle with an attempt's commits that are not in its work, in a run's
/// tree of saved work.
pub fn commits_path(item: &ItemId, attempt: u32) -> String {
    format!("{}.commits", transcript_path(item, attempt))
}

/// Returns the name of the private file with a check's withheld output, in the folder of its run.
pub fn withheld_check(item: &ItemId, attempt: u32, before: bool) -> String {
    let name = if before { "check-before" } else { "check" };
    format!("{}+{attempt}+{name}", item.encoded())
}

/// Returns the output for a change to a submodule: `submodules/<path>.patch`.
pub fn submodule_output(path: &str) -> Result<FilePath, NameError> {
    FilePath::parse(&format!("{SUBMODULES}{path}.patch"))
}

/// Returns the submodule whose change an output may be.
pub fn submodule_of(output: &FilePath) -> Option<&str> {
    output.as_str().strip_prefix(SUBMODULES)?.strip_suffix(".patch")
}

/// Returns the tree path of a file sealed at submit.
pub fn artifact_path(path: &FilePath) -> String {
    format!("artifacts/{}", path.encoded())
}

/// Returns the tree path of a pipeline.
pub fn pipeline_path(digest: Digest) -> String {
    format!("{PIPELINES}/{}.json", digest.hex())
}

/// Returns the paths of a product from outside and of its evidence, by its name in entry 0:
/// `imports/<sha256(name)>/product` and `imports/<sha256(name)>/evidence.json`.
pub fn import_paths(name: &str) -> [String; 2] {
    let folder = Digest::compute(name.as_bytes()).hex();
    ["product", "evidence.json"].map(|file| format!("{IMPORTS}/{folder}/{file}"))
}

/// Returns the tree path of a document's revision.
pub fn document_path(name: &FilePath) -> String {
    format!("{DOCUMENTS}{}", name.encoded())
}

/// Returns the tree path of the normalised item, for an item added after submit.
pub fn item_path(item: &ItemId) -> String {
    format!("items/{}.json", item.encoded())
}

/// Returns the tree path of a product of an item.
pub fn product_path(key: &ProductKey) -> String {
    match key {
        ProductKey::Patch => PATCH.to_owned(),
        ProductKey::Output(path) => format!("outputs/{}", path.encoded()),
        ProductKey::Document(name) => document_path(name),
    }
}

fn fan(name: &str) -> String {
    Digest::compute(name.as_bytes()).hex()[..2].to_owned()
}
