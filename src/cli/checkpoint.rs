//! `git handoff checkpoint`

use std::path::{Path, PathBuf};

use git_handoff::repository::Repository;
use git_handoff::thread::operations::Besides;
use git_handoff::thread::target::id;

use super::{Ending, Failure, Output, context};

/// Save a state as the next checkpoint of a thread
///
/// The state can be any bytes. Creates the thread if it does not exist. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// The file with the state, or - for standard input
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Attach this packet
    #[arg(long, value_name = "FILE")]
    packet: Option<PathBuf>,
    /// Tie this run to the checkpoint, so that both are shared together
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Save the working tree, staged or not; of ignored files only names and hashes
    #[arg(long)]
    worktree: bool,
    /// A summary of one line
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
}

/// Saves and prints a checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let thread = id(&arguments.thread)?;
    let both = arguments.state == Path::new("-") && arguments.packet.as_deref() == Some(Path::new("-"));
    if both {
        return Err(Failure::usage("state and packet cannot both be standard input".into()));
    }
    let besides =
        Besides { summary: arguments.summary.as_deref(), run: arguments.run.as_deref(), worktree: arguments.worktree };
    let bytes = || -> Result<_, Failure> {
        let packet = arguments.packet.as_deref().map(|path| context::save(repository, path)).transpose()?;
        Ok((context::save(repository, &arguments.state)?, packet))
    };
    let made = repository.checkpoint(&thread, &besides, bytes)?;
    for path in &made.left_out {
        output.note(&format!("left out: {path}, another worktree of this repository"));
    }
    output.value(&made);
    Ok(Ending::Done)
}
