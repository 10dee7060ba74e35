//! Refuses a recording that could not start, before it is submitted.

use std::path::Path;

use super::sealed::Decided;
use super::{Error, Recording};
use crate::engine::machine::Machine;
use crate::engine::{command, drive, operations, programs};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::name::FilePath;
use crate::model::plan::BuiltIn;
use crate::repository::{Repository, Trust};

/// Fails if the command could not start here: a program that is missing, a sandbox that this
/// machine cannot enforce, a folder for worktrees that cannot be created, or unreadable trust
/// settings.
pub(super) fn expect(
    repository: &Repository,
    recording: &Recording,
    decided: &Decided,
    base: Oid,
    directory: Option<&FilePath>,
) -> Result<(), AnyError> {
    repository.options(&Trust::default(), &mut |_| ())?;
    let configured = repository.with_config(decided.config.clone())?;
    let machine = Machine::new(&configured, true)?;
    let settings = configured.config.settings_of(BuiltIn::Command.name()).unwrap_or_default();
    machine.confine(&settings).map_err(operations::Error::Sandbox)?;
    machine.host.prepare(base).map_err(drive::Error::from)?;
    let line = recording.line.as_ref().map(|line| ["sh", "-c", line].map(str::to_owned));
    let words = line.as_ref().map_or(recording.command.as_slice(), <[String; 3]>::as_slice);
    let Some(program) = programs::name_of(words, line.is_some()) else { return Ok(()) };
    if !program.contains('/') || Path::new(program).is_absolute() {
        let env = command::environment(&machine.ambient, &settings);
        return if programs::is_there(program, &env) { Ok(()) } else { Err(Error::Program(program.to_owned()).into()) };
    }
    let host = &machine.host.settings;
    if settings.setup.is_some() || !host.copy.is_empty() || !host.link.is_empty() {
        // These may provide it.
        return Ok(());
    }
    expect_in_work(repository, recording, base, directory, program)
}

/// Fails if the program of a relative path is not where the command starts.
fn expect_in_work(
    repository: &Repository,
    recording: &Recording,
    base: Oid,
    directory: Option<&FilePath>,
    program: &str,
) -> Result<(), AnyError> {
    let is_in_work_tree = repository.environment.directory.join(program).exists();
    if recording.here.is_some() {
        return if is_in_work_tree { Ok(()) } else { Err(Error::Program(program.to_owned()).into()) };
    }
    let below = directory.map_or_else(|| program.to_owned(), |directory| format!("{directory}/{program}"));
    // A path with `..` or through a link is left to the command itself.
    let Some(path) = plain(&below) else { return Ok(()) };
    let store = &repository.store;
    let (tree, _) = store.commit(base)?;
    match (store.blob_at(tree, &path)?.is_some(), is_in_work_tree) {
        (true, _) => Ok(()),
        (false, true) => Err(Error::Uncommitted(program.to_owned()).into()),
        (false, false) => Err(Error::Program(program.to_owned()).into()),
    }
}

/// Returns a path without `.`, or `None` if it has `..`.
fn plain(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    (!segments.contains(&"..")).then(|| segments.join("/"))
}
