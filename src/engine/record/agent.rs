//! Agents by name: the line of their own that a recording runs, and what a line of theirs lacks.

use super::{Error, Lacks, Recording};
use crate::model::any_error::AnyError;
use crate::model::problem::nearest;
use crate::repository::Repository;
use crate::repository::config::{PRESETS, Preset};

/// Returns the recording with the line of its agent: the line of the subagent of this name, or else
/// of the preset.
pub(super) fn with_line(repository: &Repository, recording: &Recording) -> Result<Recording, AnyError> {
    let Some(name) = &recording.agent else { return Ok(recording.clone()) };
    let registered = repository.config.subagent(name);
    let own = registered.as_ref().and_then(|settings| settings.command.clone());
    let line = own.or_else(|| PRESETS.get(name).map(|preset| preset.command.clone()));
    let line = line.ok_or_else(|| match registered {
        Some(_) => Error::NoLine(name.clone()),
        None => unknown(repository, name),
    })?;
    Ok(Recording { line: Some(line), ..recording.clone() })
}

/// Returns what the given command line of a known agent lacks, or `None` if it lacks nothing.
pub(super) fn lacks(recording: &Recording) -> Option<Lacks> {
    let (program, arguments) = recording.command.split_first()?;
    let (agent, preset) = Preset::of_program(program)?;
    let remarks = preset.remarks(arguments);
    (!remarks.is_empty()).then_some(Lacks { agent, remarks })
}

fn unknown(repository: &Repository, name: &str) -> Error {
    let known = repository.config.subagents.keys().map(String::as_str).chain(PRESETS.keys().map(String::as_str));
    let near = nearest(name, known).map(str::to_owned);
    Error::Agent { name: name.to_owned(), near }
}
