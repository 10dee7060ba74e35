//! `git handoff thread list`

use git_handoff::git::refs;
use git_handoff::model::format;
use git_handoff::thread::own_threads;
use serde_json::json;

use super::super::table;
use super::target::ThreadTarget;
use super::{Ending, Failure, Output, Repository};

/// List the threads of this repository
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line a thread. One that cannot be read is listed as such and does not hide the others.
pub(crate) fn run(_: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for thread in own_threads(&repository.store)? {
        let reference = format::thread_ref(&thread);
        let Some(tip) = refs::read(&repository.store, &reference)? else { continue };
        let target = ThreadTarget { thread: thread.clone(), reference, tip, checkpoint: None };
        match target.sound(&repository.store) {
            Ok(sound) => {
                let Some(latest) = sound.trail.latest() else { continue };
                let count = sound.trail.checkpoints.len();
                let summary = latest.content.summary.clone().unwrap_or_default();
                let shown = if count == 1 { "1 checkpoint".to_owned() } else { format!("{count} checkpoints") };
                rows.push(vec![thread.to_string(), shown, latest.id.to_string(), summary]);
                values.push(json!({
                    "thread_id": thread, "checkpoints": count, "checkpoint_id": latest.id,
                    "at": latest.entry.at, "summary": latest.content.summary,
                }));
            }
            Err(failure) => {
                rows.push(vec![thread.to_string(), "unreadable".into(), String::new(), failure.message.clone()]);
                values.push(json!({ "thread_id": thread, "checkpoints": null, "error": failure.message }));
            }
        }
    }
    if output.json {
        output.value(&json!({ "schema": "git-handoff.threads/1", "threads": values }));
    } else {
        table::lines(&rows).iter().for_each(|line| output.line(line));
        if rows.is_empty() {
            output.note("there are no threads here");
        }
    }
    Ok(Ending::Done)
}
