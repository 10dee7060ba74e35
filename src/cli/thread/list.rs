//! `git handoff thread list`

use git_handoff::thread::answers::ThreadSummary;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// List the threads of this repository
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line for each thread. An unreadable one does not hide the others.
pub(crate) fn run(_: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.threads()?;
    if !output.answers(&answer) {
        let rows: Vec<_> = answer.threads.iter().map(row).collect();
        table::lines(&rows).iter().for_each(|line| output.line(line));
        if rows.is_empty() {
            output.note("there are no threads here");
        }
    }
    Ok(Ending::Done)
}

/// Formats a thread.
pub(crate) fn row(thread: &ThreadSummary) -> Vec<String> {
    let name = thread.thread_id.to_string();
    if let Some(error) = &thread.error {
        return vec![name, "unreadable".into(), String::new(), error.clone()];
    }
    let count = thread.checkpoints.unwrap_or(0);
    let count_words = if count == 1 { "1 checkpoint".to_owned() } else { format!("{count} checkpoints") };
    let latest = thread.checkpoint_id.as_ref().map(ToString::to_string).unwrap_or_default();
    vec![name, count_words, latest, thread.summary.clone().flatten().unwrap_or_default()]
}
