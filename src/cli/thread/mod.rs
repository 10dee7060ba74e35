//! `git handoff thread`

mod cat;
mod diff;
mod list;
mod log;
mod show;
mod target;
mod verify;

use git_handoff::model::name::ThreadId;
use git_handoff::thread::Made;
use serde_json::{Value, json};

use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

pub(crate) use diff::difference;
pub(crate) use target::ThreadTarget;
pub(crate) use verify::print;

/// Look at threads and verify them
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Log(log::Arguments),
    Diff(diff::Arguments),
    Cat(cat::Arguments),
    Verify(verify::Arguments),
}

/// Looks.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments, repository, output),
        Command::Show(arguments) => show::run(arguments, repository, output),
        Command::Log(arguments) => log::run(arguments, repository, output),
        Command::Diff(arguments) => diff::run(arguments, repository, output),
        Command::Cat(arguments) => cat::run(arguments, repository, output),
        Command::Verify(arguments) => verify::run(arguments, repository, output),
    }
}

/// Reads the name of a thread.
pub(crate) fn id(text: &str) -> Result<ThreadId, Failure> {
    ThreadId::parse(text).map_err(|e| Failure::usage(format!("{text:?} cannot be a thread's name: {e}")))
}

/// Prints what an append made; always JSON, since it is for the agent that hands over.
pub(crate) fn print_made(made: &Made, what: &str, output: &mut Output) {
    output.value(&made_value(made, what));
}

/// Returns what an append made, as answers have it.
pub(crate) fn made_value(made: &Made, what: &str) -> Value {
    json!({
        "schema": format!("git-handoff.{what}/1"),
        "thread_id": made.thread,
        "checkpoint_id": made.checkpoint,
        "blob_id": made.content.state.oid,
        "blob_sha256": made.content.state.sha256.hex(),
        "commit": made.link.commit,
    })
}
