//! The settings of a recorded command.

use std::path::PathBuf;

use super::{Error, Recording, real};
use crate::model::confinement::Asked;
use crate::model::plan::COMMAND;
use crate::model::problem::nearest;
use crate::repository::Repository;
use crate::repository::config::{Config, Executor, OnVerifyFail, PRESETS, Preset, SecretEnv, SecretSource};

/// Returns the configuration with the settings of the command in the place of those of the executor
/// `command`: these, those of the subagent or executor with the preset's name, and what the preset
/// needs of the machine.
pub(super) fn settings_for(repository: &Repository, recording: &Recording) -> Result<Config, Error> {
    let mut config = (*repository.config).clone();
    let program = recording.command.first().map(String::as_str).unwrap_or_default();
    let chosen = recording.agent.as_ref().or(recording.executor.as_ref());
    let preset = match chosen {
        Some(name) => PRESETS.get_key_value(name).map(|(name, preset)| (name.as_str(), preset)),
        // A program of the repository is no known agent by its name alone.
        None if is_in_work_tree(repository, program) => None,
        None => Preset::of_program(program),
    };
    let name = chosen.map(String::as_str).or(preset.map(|(name, _)| name));
    let own = name.and_then(|name| config.subagent(name).or_else(|| config.executors.get(name).cloned()));
    if let (Some(name), None, None) = (chosen, preset, &own) {
        return Err(unknown(&config, name));
    }
    let around = config.settings_of(COMMAND).unwrap_or_default();
    let mut settings = own.map_or_else(|| around.clone(), |own| own.over(&around));
    // The plan has the line, too: it names the program of the attempt.
    settings.command.clone_from(&recording.line);
    if recording.here.is_some() {
        settings.sandbox = Some(Asked::None);
    }
    if let Some((name, preset)) = preset {
        grant(repository, &mut settings, name, preset);
    }
    // The user names these files, as in a configured line.
    let named = recording.command.iter().map(PathBuf::from);
    settings.readable.extend(named.filter(|path| path.is_absolute() && path.is_file() && !path.starts_with("/proc")));
    if recording.check.is_some() {
        // The plan has it.
        settings.verify = None;
    }
    // A failed check must not cost the work.
    settings.on_verify_fail = settings.on_verify_fail.or(Some(OnVerifyFail::Keep));
    config.executors.insert(COMMAND.to_owned(), settings);
    Ok(config)
}

/// Adds what an agent needs of the machine: variables, its keys as secrets, and its paths.
fn grant(repository: &Repository, settings: &mut Executor, name: &str, preset: &Preset) {
    let is_confined = settings.sandbox.unwrap_or(repository.config.sandbox) != Asked::None;
    let confined = preset.confined.iter().filter(|_| is_confined);
    for (variable, value) in preset.env.iter().chain(confined) {
        settings.env.entry(variable.clone()).or_insert_with(|| value.clone());
    }
    settings.preset = Some(name.to_owned());
    settings.pass_env.extend(preset.pass.iter().cloned());
    for key in &preset.keys {
        let is_named = settings.secret_env.iter().any(|secret| secret.name == *key);
        if !is_named && repository.environment.variable(key).is_some() {
            let (name, key) = (key.clone(), format!("the known agent {name}"));
            settings.secret_env.push(SecretEnv { name, source: SecretSource::Environment, key });
        }
    }
    settings.readable.extend(preset.readable.iter().cloned());
    let is_there = |path: &&PathBuf| repository.environment.expand(path).exists();
    settings.writable.extend(preset.writable.iter().filter(is_there).cloned());
}

/// Returns true if a program is named by a path into the work tree.
fn is_in_work_tree(repository: &Repository, program: &str) -> bool {
    let path = real(&repository.environment.directory.join(program));
    program.contains('/') && repository.store.work_dir().is_some_and(|top| path.starts_with(real(&top)))
}

fn unknown(config: &Config, name: &str) -> Error {
    let registered = config.registered_subagents().chain(config.registered_executors());
    let known: Vec<&str> = registered.map(String::as_str).chain(PRESETS.keys().map(String::as_str)).collect();
    let near = nearest(name, known.iter().copied()).map(str::to_owned);
    Error::Executor { name: name.to_owned(), near }
}
