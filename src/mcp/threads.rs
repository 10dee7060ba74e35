//! Tools that save and resume states.

use git_handoff::answers::program::{Cut, Resumed};
use git_handoff::git::store::Store;
use git_handoff::model::thread::Checkpoint;
use git_handoff::run::query::difference::Difference;
use git_handoff::share::anchor::gate;
use git_handoff::thread::answers::{MadeCheckpoint, NewCheckpoint};
use git_handoff::thread::checkpoint::Besides;
use git_handoff::thread::operations::{GoingOn, Source};
use git_handoff::thread::steps;
use git_handoff::thread::target::id;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

use crate::output::Failure;

use super::pieces::Part;
use super::tools::{Call, Effect, Encoding, Entry, Json, MOST_TEXT, Nothing, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "checkpoint",
            "Save a state as the next checkpoint of a thread. Creates the thread if needed.",
            Effect::Appends,
            &["checkpoint"],
            save,
        ),
        tool(
            "resume",
            "Return the latest state of a thread and record that it was resumed. Refused if its packet is not clean. At most 1 MiB; if the \
             answer has `next`, continue at that offset, which is not recorded again.",
            Effect::Appends,
            &["resume"],
            resume,
        ),
        tool(
            "diff",
            "Compare a checkpoint with another, or with the one before it: as a patch, and by field if both states are JSON.",
            Effect::Reads,
            &["diff"],
            diff,
        ),
        tool(
            "thread_list",
            "List the threads of this repository, each with its latest checkpoint.",
            Effect::Reads,
            &["threads"],
            list,
        ),
        tool("fork", "Begin a new thread with a checkpoint of another.", Effect::Appends, &["fork"], fork),
        tool(
            "rollback",
            "Make an earlier checkpoint of a thread its latest again; nothing is removed.",
            Effect::Appends,
            &["rollback"],
            rollback,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Save {
    /// The thread
    thread_id: String,
    /// The state
    state: String,
    /// The encoding of the state [default: utf-8]
    #[serde(default)]
    encoding: Encoding,
    /// One line that describes the state
    summary: Option<String>,
    /// The handoff packet: its objective, its next action and so on
    packet: Option<Json>,
    /// Instead of a packet: write one from recorded facts
    #[serde(default)]
    packet_auto: bool,
    /// A run that the checkpoint refers to
    run: Option<String>,
    /// Also save the working tree
    #[serde(default)]
    worktree: bool,
    /// Append nothing if the last checkpoint holds the same
    #[serde(default)]
    if_changed: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Resume {
    /// The thread
    thread_id: String,
    /// Also restore the saved working tree
    #[serde(default)]
    checkout: bool,
    /// The first byte of the state [default: 0]
    offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those that clients of other systems know")]
struct Diff {
    /// The thread
    thread_id: String,
    /// The checkpoint [default: the latest]
    checkpoint_id: Option<String>,
    /// The thread of the other checkpoint [default: the same]
    other_thread_id: Option<String>,
    /// The other checkpoint [default: the one before]
    other_checkpoint_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those that clients of other systems know")]
struct Fork {
    /// The thread
    thread_id: String,
    /// The checkpoint [default: the latest]
    checkpoint_id: Option<String>,
    /// The new thread
    new_thread_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Rollback {
    /// The thread
    thread_id: String,
    /// The checkpoint to go back to
    checkpoint_id: String,
}

/// Returns the name of a checkpoint for a command line.
pub(super) fn target(thread: &str, checkpoint: Option<&str>) -> String {
    checkpoint.map_or_else(|| thread.to_owned(), |checkpoint| format!("{thread}:{checkpoint}"))
}

fn list(call: &Call, _: &Nothing) -> Result<Value, Failure> {
    super::tools::answer(&call.repository()?.threads()?)
}

fn save(call: &Call, parameters: &Save) -> Result<MadeCheckpoint, Failure> {
    let repository = call.repository()?;
    let thread = id(&parameters.thread_id)?;
    let state = parameters.encoding.read(&parameters.state)?;
    let packet = parameters.packet.as_ref().map(Json::bytes);
    if packet.is_some() && parameters.packet_auto {
        return Err(Failure::usage("give `packet` or `packet_auto`, not both".into()));
    }
    let besides = Besides {
        summary: parameters.summary.as_deref(),
        run: parameters.run.as_deref(),
        worktree: parameters.worktree,
        if_changed: parameters.if_changed,
        ..Besides::default()
    };
    let write = || {
        let packet = packet.as_deref().map(|packet| repository.save_bytes("packet", packet)).transpose()?;
        Ok((repository.save_bytes("state", &state)?, packet))
    };
    let warn = &mut |text: &str| call.warn(text);
    if !parameters.packet_auto {
        return repository.checkpoint(&thread, &besides, warn, write);
    }
    // As for an adoption, the caller cannot decide whom to trust.
    let keeper = repository.gatekeeper_at_hand(gate::Terms::default(), warn)?;
    keeper.open(|gate| repository.checkpoint(&thread, &Besides { auto_packet: Some(gate), ..besides }, warn, write))
}

fn resume(call: &Call, parameters: &Resume) -> Result<Resumed, Failure> {
    let repository = call.repository()?;
    let thread_id = id(&parameters.thread_id)?;
    let warn = &mut |text: &str| call.warn(text);
    let checkpoint = match parameters.offset {
        None | Some(0) => {
            let how = GoingOn { checkout: parameters.checkout, ..GoingOn::default() };
            repository.resume(thread_id.clone(), how, warn)?
        }
        Some(_) => repository.resumable(thread_id.clone(), warn)?,
    };
    let content = checkpoint.content();
    let mut part = Part::new(parameters.offset, MOST_TEXT);
    steps::hand_out(&repository.store, &checkpoint, content.state, &mut part)?;
    let Cut { size, offset, next, content: state, encoding } = part.cut();
    Ok(Resumed {
        thread_id,
        checkpoint_id: checkpoint.id.clone(),
        blob_sha256: content.state.sha256.hex(),
        summary: content.summary.clone(),
        state,
        encoding,
        size,
        offset,
        next,
        packet: packet(&repository.store, &checkpoint)?,
        checked_out: parameters.checkout && offset == 0,
    })
}

/// Returns a checked packet as JSON.
fn packet(store: &Store, checkpoint: &Checkpoint) -> Result<Option<Value>, Failure> {
    let Some(packet) = checkpoint.content().packet else { return Ok(None) };
    let mut text = Vec::new();
    steps::hand_out(store, checkpoint, packet, &mut text)?;
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(text).map(Some).map_err(|_| Failure::bug())
}

fn diff(call: &Call, parameters: &Diff) -> Result<Difference, Failure> {
    let repository = call.repository()?;
    let address = target(&parameters.thread_id, parameters.checkpoint_id.as_deref());
    let is_other = parameters.other_thread_id.is_some() || parameters.other_checkpoint_id.is_some();
    let other_thread = parameters.other_thread_id.as_deref().unwrap_or(&parameters.thread_id);
    let other = is_other.then(|| target(other_thread, parameters.other_checkpoint_id.as_deref()));
    let compared = repository.thread_diff(&address, other.as_deref(), false, &mut |text| call.warn(text))?;
    Ok(Difference::new(compared.fields()?, compared.patch(true))?)
}

fn fork(call: &Call, parameters: &Fork) -> Result<NewCheckpoint, Failure> {
    let repository = call.repository()?;
    let new = id(&parameters.new_thread_id)?;
    let address = target(&parameters.thread_id, parameters.checkpoint_id.as_deref());
    // As for an adoption, the caller cannot decide whom to trust.
    Ok(repository.fork(&address, &new, Source::Known, &mut |text| call.warn(text))?)
}

fn rollback(call: &Call, parameters: &Rollback) -> Result<NewCheckpoint, Failure> {
    let repository = call.repository()?;
    let thread = id(&parameters.thread_id)?;
    let to = parameters.checkpoint_id.parse().map_err(|e| Failure::usage(format!("{e}")))?;
    Ok(repository.rollback(thread, &to, false, &mut |text| call.warn(text))?)
}
