//! `git handoff anchor`

mod add;
mod check;
mod list;
mod push;

use std::collections::BTreeMap;

use git_handoff::anchor::{self, Anchor, Place};
use git_handoff::verify::LOCAL;

use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

/// Hold runs against places outside the repository
///
/// An anchor holds the roots of runs where whoever can rewrite this repository cannot. Your own configuration alone says
/// which there are; `git handoff verify` asks each of them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Add(add::Arguments),
    List(list::Arguments),
    Push(push::Arguments),
    Check(check::Arguments),
}

/// Runs the command behind `anchor`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(arguments) => add::run(arguments, repository, output),
        Command::List(_) => list::run(repository, output),
        Command::Push(arguments) => push::run(arguments, repository, output),
        Command::Check(arguments) => check::run(arguments, repository, output),
    }
}

/// Returns what an anchor is good for in a word: its guarantee, or the time.
fn strength(anchor: &Anchor) -> &'static str {
    match anchor.place {
        Place::Rfc3161(_) => TIME,
        Place::Git(_) | Place::S3(_) => anchor.guarantee().as_str(),
    }
}

/// What stands for a guarantee where an anchor says when, and nothing more.
const TIME: &str = "time";

/// Reads one anchor's settings; no file inside the work tree says whom to trust about it.
fn read(name: &str, settings: &BTreeMap<String, String>, repository: &Repository) -> Result<Anchor, Failure> {
    let mut anchor = anchor::read(name, settings)?;
    if let Some(file) = anchor.trust_file() {
        *file = super::verify::outside(&format!("handoff.anchor.{name}.ca"), file, repository)?;
    }
    Ok(anchor)
}

/// Returns the anchors of some names; all that are configured where none is named. `local` is always there and needs no asking.
pub(crate) fn chosen(names: &[String], repository: &Repository) -> Result<Vec<Anchor>, Failure> {
    let configured = &repository.config.anchors;
    let outside = names.iter().filter(|name| *name != LOCAL);
    if let Some(unknown) = outside.clone().find(|name| !configured.contains_key(*name)) {
        let failure =
            Failure::refused("unknown-anchor", format!("there is no anchor {unknown:?} in your configuration"));
        return Err(failure.hint("git handoff anchor list"));
    }
    let wanted = configured.iter().filter(|(name, _)| names.is_empty() || outside.clone().any(|one| one == *name));
    wanted.map(|(name, settings)| read(name, settings, repository)).collect()
}
