//! `git handoff checkpoint`

use super::context;
use std::path::{Path, PathBuf};

use git_handoff::git::work_tree;
use git_handoff::model::entry::{Content, Product, RunTie};
use git_handoff::model::name::ThreadId;
use git_handoff::model::thread::MAX_SUMMARY;
use git_handoff::thread::Made;
use git_handoff::thread::checkpoint as stage;
use git_handoff::thread::worktree;

use super::target::Target;
use super::{Ending, Failure, Output, thread};
use git_handoff::repository::Repository;

/// Save a state as the next checkpoint of a thread
///
/// The state is any bytes. The thread is made if it is not there. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// The file that holds the state, or - for standard input
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Attach this packet
    #[arg(long, value_name = "FILE")]
    packet: Option<PathBuf>,
    /// Tie this run to the checkpoint, so that it travels with the thread
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Save the working tree as it stands, staged or not; of ignored files, only name and hash
    #[arg(long)]
    worktree: bool,
    /// One line about the state
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
}

/// Saves, and prints the checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let thread = thread::id(&arguments.thread)?;
    let both = arguments.state == Path::new("-") && arguments.packet.as_deref() == Some(Path::new("-"));
    if both {
        return Err(Failure::usage("state and packet cannot both be standard input".into()));
    }
    let besides =
        Besides { summary: arguments.summary.as_deref(), run: arguments.run.as_deref(), worktree: arguments.worktree };
    let bytes = || {
        let packet = arguments.packet.as_deref().map(|path| context::save(repository, path)).transpose()?;
        Ok((context::save(repository, &arguments.state)?, packet))
    };
    let made = make(repository, &thread, &besides, bytes)?;
    thread::print_made(&made, "checkpoint", output);
    Ok(Ending::Done)
}

/// What a checkpoint has besides its state and packet.
pub(crate) struct Besides<'a> {
    /// One line about the state.
    pub(crate) summary: Option<&'a str>,
    /// The run that it is tied to.
    pub(crate) run: Option<&'a str>,
    /// Whether the working tree is saved.
    pub(crate) worktree: bool,
}

/// Saves a checkpoint; `bytes` writes its state and packet into the repository, once everything else is in order.
pub(crate) fn make(
    repository: &Repository,
    thread: &ThreadId,
    besides: &Besides<'_>,
    bytes: impl FnOnce() -> Result<(Product, Option<Product>), Failure>,
) -> Result<Made, Failure> {
    check_summary(besides.summary)?;
    let run = besides.run.map(|run| tie(repository, run)).transpose()?;
    let writer = repository.writer()?;
    let base = work_tree::head(&repository.store).map_err(|e| Failure::refused("head", e.to_string()))?;
    let save_worktree = || {
        let (saved, kept) = worktree::save(&repository.store, repository.config.max_product_size)?;
        repository.keep(kept);
        Ok::<_, worktree::Error>(saved)
    };
    let (state, packet) = bytes()?;
    let content = Content {
        state,
        summary: besides.summary.map(str::to_owned),
        packet,
        worktree: besides.worktree.then(save_worktree).transpose()?,
        base: base.map(|(commit, _)| commit),
    };
    Ok(stage::checkpoint(&writer, thread, &content, run)?)
}

fn check_summary(summary: Option<&str>) -> Result<(), Failure> {
    match summary {
        Some(text) if text.len() > MAX_SUMMARY || text.chars().any(char::is_control) => {
            Err(Failure::usage(format!("a summary is one line of at most {MAX_SUMMARY} bytes")))
        }
        _ => Ok(()),
    }
}

fn tie(repository: &Repository, text: &str) -> Result<RunTie, Failure> {
    let Target { run, reference } = Target::find(&repository.store, text)?;
    let view = Target { run: run.clone(), reference }.view(&repository.store)?;
    let commit = view.head.commit.ok_or_else(Failure::bug)?;
    Ok(RunTie { id: run, commit })
}
