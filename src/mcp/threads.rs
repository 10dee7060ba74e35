//! Tools that save states and go on from them.

use git_handoff::git::store::Store;
use git_handoff::model::hints;
use git_handoff::model::thread::Checkpoint;
use git_handoff::thread::answers::MadeCheckpoint;
use git_handoff::thread::operations::{Besides, Source};
use git_handoff::thread::steps;
use git_handoff::thread::target::ThreadTarget;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::{Failure, thread};

use super::tools::{Call, Effect, Encoding, Entry, Json, MOST_TEXT, check_size, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "checkpoint",
            "Save a state as the next checkpoint of a thread; makes the thread if it is not there.",
            Effect::Appends,
            save,
        ),
        tool(
            "resume",
            "Return the latest state of a thread to go on from, and record that. A packet that is not clean stops this.",
            Effect::Appends,
            resume,
        ),
        tool(
            "diff",
            "Show how a checkpoint differs from another, or from the one before it, as a patch.",
            Effect::Reads,
            diff,
        ),
        tool("fork", "Begin a new thread with a checkpoint of another.", Effect::Appends, fork),
        tool(
            "rollback",
            "Make an earlier checkpoint of a thread its latest again; nothing is removed.",
            Effect::Appends,
            rollback,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Save {
    /// The thread
    thread_id: String,
    /// The state
    state: String,
    /// How the state is written
    #[serde(default)]
    encoding: Encoding,
    /// One line about the state
    summary: Option<String>,
    /// The packet that says where the work stands
    packet: Option<Json>,
    /// A run to tie to the checkpoint
    run: Option<String>,
    /// Whether to save the working tree as it stands as well
    #[serde(default)]
    worktree: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Resume {
    /// The thread
    thread_id: String,
    /// Whether to put the saved working tree back as well
    #[serde(default)]
    checkout: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names are those that clients of other systems know")]
struct Diff {
    /// The thread
    thread_id: String,
    /// The checkpoint; the latest by default
    checkpoint_id: Option<String>,
    /// The thread of the other checkpoint; the same by default
    other_thread_id: Option<String>,
    /// The other checkpoint; the one before by default
    other_checkpoint_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names are those that clients of other systems know")]
struct Fork {
    /// The thread
    thread_id: String,
    /// The checkpoint; the latest by default
    checkpoint_id: Option<String>,
    /// The new thread
    new_thread_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rollback {
    /// The thread
    thread_id: String,
    /// The checkpoint to go back to
    checkpoint_id: String,
}

/// Returns what a command line calls a checkpoint.
pub(super) fn target(thread: &str, checkpoint: Option<&str>) -> String {
    checkpoint.map_or_else(|| thread.to_owned(), |checkpoint| format!("{thread}:{checkpoint}"))
}

fn save(call: &Call, parameters: &Save) -> Result<MadeCheckpoint, Failure> {
    let repository = call.repository()?;
    let thread = thread::id(&parameters.thread_id)?;
    let state = parameters.encoding.read(&parameters.state)?;
    let packet = parameters.packet.as_ref().map(Json::bytes);
    let besides = Besides {
        summary: parameters.summary.as_deref(),
        run: parameters.run.as_deref(),
        worktree: parameters.worktree,
    };
    let write = || {
        let packet = packet.as_deref().map(|packet| repository.save_bytes(packet)).transpose()?;
        Ok((repository.save_bytes(&state)?, packet))
    };
    repository.checkpoint(&thread, &besides, write)
}

fn resume(call: &Call, parameters: &Resume) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let store = &repository.store;
    let id = thread::id(&parameters.thread_id)?;
    // Nothing is recorded of a state that cannot be handed out like this.
    let vouched = ThreadTarget::own(&repository, id.clone())?
        .vouched(&repository, false, &mut |text| call.output().warn(text))?;
    let size = steps::find(vouched.sound(), None)?.content.state.size;
    check_size("state", size, || hints::resume(&id))?;
    let (checkpoint, _) = steps::resume(&repository.writer()?, vouched, parameters.checkout, None)?;
    let content = &checkpoint.content;
    let mut state = Vec::new();
    steps::hand_out(store, &checkpoint, content.state, &mut state)?;
    let (state, encoding) = Encoding::write(state);
    Ok(json!({
        "schema": "git-handoff.resume/1",
        "thread_id": id,
        "checkpoint_id": checkpoint.id,
        "blob_sha256": content.state.sha256.hex(),
        "summary": content.summary,
        "state": state,
        "encoding": encoding,
        "packet": packet(store, &checkpoint)?,
        "checked_out": parameters.checkout,
    }))
}

/// Returns a packet that was checked, as JSON.
fn packet(store: &Store, checkpoint: &Checkpoint) -> Result<Option<Value>, Failure> {
    let Some(packet) = checkpoint.content.packet else { return Ok(None) };
    let mut text = Vec::new();
    steps::hand_out(store, checkpoint, packet, &mut text)?;
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(text).map(Some).map_err(|_| Failure::bug())
}

fn diff(call: &Call, parameters: &Diff) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let named = target(&parameters.thread_id, parameters.checkpoint_id.as_deref());
    let is_other = parameters.other_thread_id.is_some() || parameters.other_checkpoint_id.is_some();
    let other_thread = parameters.other_thread_id.as_deref().unwrap_or(&parameters.thread_id);
    let other = is_other.then(|| target(other_thread, parameters.other_checkpoint_id.as_deref()));
    let mut patch = Vec::new();
    let mut all = 0;
    let call = repository.thread_diff((&named, other.as_deref()), false, &mut |text| call.output().warn(text))?;
    call.stream(&mut |chunk| {
        all += chunk.len();
        patch.extend_from_slice(&chunk[..chunk.len().min(MOST_TEXT.saturating_sub(patch.len()))]);
        Ok(())
    })?;
    let truncated = all > patch.len();
    Ok(json!({
        "schema": "git-handoff.diff/1",
        "patch": String::from_utf8_lossy(&patch),
        "truncated": truncated,
    }))
}

fn fork(call: &Call, parameters: &Fork) -> Result<MadeCheckpoint, Failure> {
    let repository = call.repository()?;
    let new = thread::id(&parameters.new_thread_id)?;
    let named = target(&parameters.thread_id, parameters.checkpoint_id.as_deref());
    // As for an adoption: whose states are gone on from is not for a caller to say.
    Ok(repository.fork(&named, &new, Source::Known, &mut |text| call.output().warn(text))?)
}

fn rollback(call: &Call, parameters: &Rollback) -> Result<MadeCheckpoint, Failure> {
    let repository = call.repository()?;
    let thread = thread::id(&parameters.thread_id)?;
    let to = parameters.checkpoint_id.parse().map_err(|e| Failure::usage(format!("{e}")))?;
    Ok(repository.rollback(thread, &to, false, &mut |text| call.output().warn(text))?)
}
