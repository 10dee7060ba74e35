//! Resolves an item's command by the local configuration: its command lines, settings and
//! environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde_json::Value;

use crate::model::catalog::default_subagent;
use crate::model::item_index::ItemIndex;
use crate::model::name::FilePath;
use crate::model::plan::{BuiltIn, CHECK, DIRECTORY, ENV, HERE, Item, NO_STDIN, STDIN};
use crate::model::state::RunState;
use crate::repository::config::{Config, Executor, OnVerifyFail};
use crate::sandbox::TOOLS;

/// The default time limit of an attempt, in seconds.
const TIMEOUT: u64 = 60 * 60;
/// The default number of attempts of an item.
const ATTEMPTS: u32 = 2;

/// Variables of this process that every executor gets.
const ALWAYS_PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM"];

/// The command of an item, with its settings resolved.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The subagent, for the executor `dispatch`.
    pub subagent: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The variables that the plan sets, for this command alone.
    pub env: BTreeMap<String, OsString>,
    /// The folder of the worktree that the command starts in, or `None` for the top.
    pub directory: Option<FilePath>,
    /// Whether the command reads the task on standard input.
    pub reads_task: bool,
    /// Runs before the command.
    pub setup: Option<Vec<String>>,
    /// Runs after the command.
    pub verify: Option<Vec<String>>,
    /// The effect of a failed `verify`.
    pub on_verify_fail: OnVerifyFail,
    /// The time limit of an attempt, in seconds.
    pub timeout: u64,
    /// The settings of the executor or subagent.
    pub settings: Executor,
}

/// Why an item has no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// Its plan says too little.
    Item(String),
    /// This repository says too little, and another may say more.
    Here(String),
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Item(why) | Self::Here(why) => f.write_str(why),
        }
    }
}

/// Resolves the command of an item, or returns the reason why it has none.
pub fn resolve(item: &Item, config: &Config) -> Result<Resolved, Unresolved> {
    let (settings, subagent) = if item.is_for(BuiltIn::Dispatch) {
        let name = subagent_of(item, config).ok_or_else(|| {
            Unresolved::Here("it names no subagent, and no subagent is registered here as the default".to_owned())
        })?;
        let found = config.subagent(name).ok_or_else(|| unregistered("subagent", name))?;
        (found, Some(name.to_owned()))
    } else {
        let name = item.executor.as_str();
        (config.settings_of(name).ok_or_else(|| unregistered("executor", name))?, None)
    };
    let own_line = BuiltIn::from_name(&item.executor).and_then(BuiltIn::line);
    let argv = match (&settings.command, own_line) {
        (Some(line), _) => shell(line),
        (None, Some(line)) => {
            let argv = item.inputs.get(line.key).and_then(|input| line.argv(input));
            argv.ok_or_else(|| Unresolved::Item(format!("`inputs.{}` is missing", line.key)))?
        }
        (None, None) => {
            let (kind, name) = match &subagent {
                Some(name) => ("subagent", name.as_str()),
                None => ("executor", item.executor.as_str()),
            };
            return Err(Unresolved::Here(format!(
                "the {kind} {name:?} is registered here without a command; \
                 `git config handoff.{kind}.{name}.command LINE` sets it"
            )));
        }
    };
    Ok(Resolved {
        subagent,
        argv,
        env: own_environment(item, &settings),
        directory: own_text(item, DIRECTORY).and_then(|path| FilePath::parse(path).ok()),
        reads_task: own_text(item, STDIN) != Some(NO_STDIN),
        setup: settings.setup.as_deref().map(shell),
        // A plan adds a check where the settings have none.
        verify: settings.verify.as_deref().or_else(|| own_text(item, CHECK)).map(shell),
        on_verify_fail: settings.on_verify_fail.unwrap_or_default(),
        timeout: item.timeout.or(settings.timeout).unwrap_or(TIMEOUT),
        settings,
    })
}

/// Reports a command that has no setting here.
fn unregistered(kind: &str, name: &str) -> Unresolved {
    Unresolved::Here(format!(
        "the {kind} {name:?} is not registered here; `git config handoff.{kind}.{name}.command LINE` registers it"
    ))
}

/// Returns true if an item works in the user's own work tree.
pub(super) fn works_here(item: &Item) -> bool {
    item.is_for(BuiltIn::Command) && item.inputs.get(HERE).and_then(Value::as_bool) == Some(true)
}

/// Returns the subagent that an item names, or the default one.
fn subagent_of<'n>(item: &'n Item, config: &'n Config) -> Option<&'n str> {
    match item.inputs.get("subagent") {
        Some(value) => value.as_str(),
        None => default_subagent(config.registered_subagents().map(String::as_str)),
    }
}

/// Returns how many attempts an item gets: by its own field, its executor's, or its queue's.
pub fn max_attempts(item: &Item, queue: &str, config: &Config) -> u32 {
    let executor = if item.is_for(BuiltIn::Dispatch) {
        subagent_of(item, config).and_then(|name| config.subagent(name))
    } else {
        config.settings_of(&item.executor)
    };
    let of_executor = executor.and_then(|settings| settings.max_attempts);
    let of_queue = config.queues.get(queue).and_then(|settings| settings.max_attempts);
    item.max_attempts.or(of_executor).or(of_queue).unwrap_or(ATTEMPTS)
}

/// Returns true if an item has attempts left, counted since an operator last retried it. Attempts
/// that ended with a crash of the driver do not count.
pub fn attempts_left(state: &RunState, at: ItemIndex, config: &Config) -> bool {
    let most = max_attempts(state.graph.item(at), &state.submitted.queue, config);
    state.items[at].attempts - state.items[at].granted_at < most
}

/// Returns how many items of a queue run at once: by its settings, or as many as there are cores.
pub fn concurrency(queue: &str, config: &Config) -> usize {
    config
        .queues
        .get(queue)
        .and_then(|queue| queue.concurrency)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Returns the variables of tools that every executor gets.
pub fn variables(ambient: &BTreeMap<String, OsString>) -> BTreeMap<String, OsString> {
    let passed = ambient.iter().filter(|(name, value)| TOOLS.passes(name, value));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the environment of an executor: basic variables, those of tools, and those that its
/// settings name.
pub fn environment(ambient: &BTreeMap<String, OsString>, settings: &Executor) -> BTreeMap<String, OsString> {
    let mut env: BTreeMap<String, OsString> = ambient
        .iter()
        .filter(|(name, value)| is_passed(settings, name, value))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    env.extend(settings.env.iter().map(|(name, value)| (name.clone(), value.into())));
    env
}

/// Returns true if a worker gets a variable of the driver.
fn is_passed(settings: &Executor, name: &str, value: &OsStr) -> bool {
    ALWAYS_PASSED.contains(&name)
        || TOOLS.passes(name, value)
        || name.starts_with("LC_")
        || settings.pass_env.iter().any(|n| n == name)
        || settings.secret_env.iter().any(|secret| secret.is_from_environment(name))
}

/// Returns a text in the inputs of an item of the executor `command`.
fn own_text<'i>(item: &'i Item, key: &str) -> Option<&'i str> {
    item.inputs.get(key).filter(|_| item.is_for(BuiltIn::Command))?.as_str()
}

/// Returns the variables in `inputs.env` of an item of the executor `command`, except those that
/// are secrets here.
fn own_environment(item: &Item, settings: &Executor) -> BTreeMap<String, OsString> {
    let set = item.inputs.get(ENV).filter(|_| item.is_for(BuiltIn::Command)).and_then(Value::as_object);
    let set = set.into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
    set.filter(|(name, _)| !settings.secret_env.iter().any(|secret| secret.name == *name)).collect()
}

fn shell(line: &str) -> Vec<String> {
    vec!["sh".into(), "-c".into(), line.into()]
}
