//! Suggests protected files for a repository whose workers could edit the files of their checks.

use crate::git::protectable::{KnownFiles, known_files};
use crate::git::store::Store;
use crate::model::catalog::default_subagent;
use crate::model::hints::{self, Hint};
use crate::model::plan::BuiltIn;
use crate::repository::Environment;
use crate::repository::config::{Config, Executor};

/// Files to protect, because a check is configured and nothing is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The executors and subagents with such a check, such as `subagent "fix"`.
    pub checked: Vec<String>,
    /// The files to protect, and those that are left out.
    pub known: KnownFiles,
}

impl Suggestion {
    /// Returns the command that protects the files.
    pub fn hint(&self) -> Hint {
        hints::protect(&self.known.protect)
    }
}

impl Environment {
    /// Suggests protected files for the repository that contains the directory, for a plan that
    /// protects none. Returns `None` without a repository or with invalid settings, which other
    /// commands report.
    pub fn suggest_protection(&self) -> Option<Suggestion> {
        let store = Store::discover(&self.directory).ok()?;
        suggest(&store, &Config::read(&store).ok()?)
    }

    /// Returns the registered agent that items without a `subagent` get: the only one, or the one
    /// named `default`.
    pub fn default_agent(&self) -> Option<String> {
        let config = Config::read(&Store::discover(&self.directory).ok()?).ok()?;
        default_subagent(config.registered_subagents().map(String::as_str)).map(str::to_owned)
    }
}

/// Suggests protected files, unless the settings protect some or no known one is committed.
pub fn suggest(store: &Store, config: &Config) -> Option<Suggestion> {
    let checked = unprotected_checks(config);
    if checked.is_empty() {
        return None;
    }
    let known = known_files(store);
    (!known.protect.is_empty()).then_some(Suggestion { checked, known })
}

/// Returns the executors and subagents whose check rests on files that no setting protects.
fn unprotected_checks(config: &Config) -> Vec<String> {
    if !config.protect.is_empty() {
        return Vec::new();
    }
    let command = config.executors.get_key_value(BuiltIn::Command.name()).map(|(name, _)| name);
    let executors = command.into_iter().chain(config.registered_executors());
    let executors = executors.filter(|name| config.settings_of(name).is_some_and(|settings| is_unprotected(&settings)));
    let subagents = config.registered_subagents();
    let subagents = subagents.filter(|name| config.subagent(name).is_some_and(|settings| is_unprotected(&settings)));
    executors
        .map(|name| format!("executor {name:?}"))
        .chain(subagents.map(|name| format!("subagent {name:?}")))
        .collect()
}

fn is_unprotected(settings: &Executor) -> bool {
    settings.verify.is_some() && settings.protect.is_empty()
}
