//! The settings of a recorded command.

use std::path::PathBuf;

use super::{Recording, real};
use crate::git::protectable::{KnownFiles, known_files};
use crate::model::confinement::Asked;
use crate::model::plan::BuiltIn;
use crate::model::problem::nearest;
use crate::repository::Repository;
use crate::repository::agent::AgentNeeds;
use crate::repository::config::{Config, Executor, OnVerifyFail, PRESETS, Preset, SecretEnv, SecretSource};

/// A name of settings that nothing here has.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is no known agent, and neither a subagent nor an executor is registered here under that name")]
pub struct Unknown {
    /// The name.
    pub name: String,
    /// The most similar known name.
    pub near: Option<String>,
}

/// A recorded command: its words, or the line of an agent's own.
pub(super) struct Recorded<'r> {
    pub(super) words: &'r [String],
    pub(super) line: Option<&'r str>,
}

/// Returns the name of the settings of a command: the given one, or that of the known agent that it
/// starts.
pub(super) fn name_for(repository: &Repository, given: Option<&String>, command: &[String]) -> Option<String> {
    let program = command.first().map(String::as_str).unwrap_or_default();
    // A program of the repository is no known agent by its name alone.
    given.cloned().or_else(|| {
        let preset = if is_in_work_tree(repository, program) { None } else { Preset::of_program(program) };
        preset.map(|(name, _)| name.to_owned())
    })
}

/// Returns the settings of the executor `command` below those of the preset, subagent or executor
/// with this name, and what the preset needs of the machine. `sandbox` replaces theirs. `grants`
/// adds these needs, and the files that the command names.
pub(super) fn settings_for(
    repository: &Repository,
    name: Option<&str>,
    command: &Recorded<'_>,
    sandbox: Option<Asked>,
    grants: bool,
) -> Result<(Executor, Option<AgentNeeds>), Unknown> {
    let config = &repository.config;
    let preset = name.and_then(|name| PRESETS.get_key_value(name));
    let own = name.and_then(|name| config.subagent(name).or_else(|| config.executors.get(name).cloned()));
    if let (Some(name), None, None) = (name, preset, &own) {
        return Err(unknown(config, name));
    }
    let around = config.settings_of(BuiltIn::Command.name()).unwrap_or_default();
    let mut settings = own.map_or_else(|| around.clone(), |own| own.over(&around));
    // The plan has the line, too: it names the program of the attempt.
    settings.command = command.line.map(str::to_owned);
    // A failed check must not cost the work.
    settings.on_verify_fail = settings.on_verify_fail.or(Some(OnVerifyFail::Keep));
    settings.preset = preset.map(|(preset_name, _)| preset_name.clone());
    settings.sandbox = sandbox.or(settings.sandbox);
    let preset = preset.filter(|_| grants);
    let needs = preset.map(|(preset_name, preset)| grant(repository, &mut settings, preset_name, preset));
    if grants {
        // The user names these files, as in a configured line.
        let paths = command.words.iter().map(PathBuf::from);
        settings
            .readable
            .extend(paths.filter(|path| path.is_absolute() && path.is_file() && !path.starts_with("/proc")));
    }
    Ok((settings, needs))
}

/// Returns the known files that the check rests on, unless settings protect files, or none for a
/// recording without a check of its own.
pub(super) fn protected(repository: &Repository, recording: &Recording) -> KnownFiles {
    let config = &repository.config;
    let settings = config.executors.get(BuiltIn::Command.name());
    let is_protected = !config.protect.is_empty() || settings.is_some_and(|it| !it.protect.is_empty());
    if recording.check.is_none() || !recording.protect || is_protected {
        return KnownFiles::default();
    }
    known_files(&repository.store)
}

/// Adds what an agent needs of the machine: variables, its keys as secrets, its paths, and private
/// copies of its folders.
fn grant(repository: &Repository, settings: &mut Executor, name: &str, preset: &Preset) -> AgentNeeds {
    let is_confined = settings.sandbox.unwrap_or(repository.config.sandbox) != Asked::None;
    let confined = preset.confined.iter().filter(|_| is_confined);
    for (variable, value) in preset.env.iter().chain(confined) {
        settings.env.entry(variable.clone()).or_insert_with(|| value.clone());
    }
    // The line of this program, whatever a sealed recording says.
    settings.version_command = settings.version_command.take().or_else(|| preset.version_command.clone());
    let needs = repository.environment.agent_needs(preset);
    for key in &needs.keys {
        let is_named = settings.secret_env.iter().any(|secret| secret.name == *key);
        if !is_named {
            let (name, key) = (key.clone(), format!("the known agent {name}"));
            settings.secret_env.push(SecretEnv { name, source: SecretSource::Environment, key });
        }
    }
    settings.pass_env.extend(needs.pass.iter().cloned());
    settings.readable.extend(needs.readable.iter().cloned());
    if is_confined {
        settings.private.extend(needs.private.iter().cloned());
    } else {
        // Unconfined, it uses the folders themselves.
        let variables = preset.folders.iter().filter_map(|folder| folder.variable());
        settings.pass_env.extend(variables.map(|(variable, _)| variable.to_owned()));
    }
    needs
}

/// Returns true if a program is named by a path into the work tree.
fn is_in_work_tree(repository: &Repository, program: &str) -> bool {
    let path = real(&repository.environment.directory.join(program));
    program.contains('/') && repository.store.work_dir().is_some_and(|top| path.starts_with(real(&top)))
}

fn unknown(config: &Config, name: &str) -> Unknown {
    let registered = config.registered_subagents().chain(config.registered_executors());
    let known: Vec<&str> = registered.map(String::as_str).chain(PRESETS.keys().map(String::as_str)).collect();
    let near = nearest(name, known.iter().copied()).map(str::to_owned);
    Unknown { name: name.to_owned(), near }
}
