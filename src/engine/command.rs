//! What running an item means here: the resolved command, its settings, and the environment it sees.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde_json::Value;

use crate::config::{Config, Executor, OnVerifyFail};
use crate::model::catalog::default_subagent;
use crate::model::plan::{COMMAND, DISPATCH, ENV, Item};
use crate::model::state::RunState;
use crate::worker::sandbox::TOOLS;

use super::decide::Limits;

/// Seconds after which an attempt is ended unless something else is said.
const TIMEOUT: u64 = 60 * 60;
/// How many attempts an item gets unless something else is said.
const ATTEMPTS: u32 = 2;

/// Variables of our own environment that every executor sees.
const ALWAYS_PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM"];

/// One item's command with all that was decided about it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The subagent that the plan names, for the `dispatch` executor.
    pub subagent: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What the plan adds to its environment, and to that of nothing else that runs.
    pub env: BTreeMap<String, OsString>,
    /// What runs before it.
    pub setup: Option<Vec<String>>,
    /// What runs after it.
    pub verify: Option<Vec<String>>,
    /// What it means that that does not pass.
    pub on_verify_fail: OnVerifyFail,
    /// Seconds after which the attempt is ended.
    pub timeout: u64,
    /// The settings it comes from.
    pub settings: Executor,
}

/// Resolves what an item runs.
pub fn resolve(item: &Item, config: &Config) -> Result<Resolved, Unresolved> {
    let (settings, subagent) = match item.executor.as_str() {
        DISPATCH => {
            let name = subagent_of(item, config).ok_or(Unresolved::NoSubagent)?;
            let found = config.subagent(name).ok_or_else(|| Unresolved::Subagent(name.to_owned()))?;
            (found, Some(name.to_owned()))
        }
        name => (config.settings_of(name).ok_or_else(|| Unresolved::Executor(name.to_owned()))?, None),
    };
    let argv = match &settings.command {
        Some(line) => shell(line),
        None if item.executor == COMMAND => inline(item).ok_or(Unresolved::NoCommand)?,
        None => return Err(Unresolved::Commandless(subagent.unwrap_or_else(|| item.executor.clone()))),
    };
    Ok(Resolved {
        subagent,
        argv,
        env: own_environment(item, &settings),
        setup: settings.setup.as_deref().map(shell),
        verify: settings.verify.as_deref().map(shell),
        on_verify_fail: on_verify_fail(&settings),
        timeout: item.timeout.or(settings.timeout).unwrap_or(TIMEOUT),
        settings,
    })
}

/// Returns the subagent that an item of the executor `dispatch` names, or else the one that is meant where none is named.
fn subagent_of<'n>(item: &'n Item, config: &'n Config) -> Option<&'n str> {
    match item.inputs.get("subagent") {
        Some(named) => named.as_str(),
        None => default_subagent(config.registered_subagents().map(String::as_str)),
    }
}

/// Says what it means for an item that its verify command does not pass: that the attempt failed, or that the item is done and red.
///
/// This is the one place that decides it.
fn on_verify_fail(settings: &Executor) -> OnVerifyFail {
    settings.on_verify_fail.unwrap_or_default()
}

/// Returns how many attempts an item gets: its own word counts before its executor's, and that before its queue's.
pub fn max_attempts(item: &Item, queue: &str, config: &Config) -> u32 {
    let executor = match item.executor.as_str() {
        DISPATCH => subagent_of(item, config).and_then(|name| config.subagent(name)),
        name => config.settings_of(name),
    };
    let of_executor = executor.and_then(|settings| settings.max_attempts);
    let of_queue = config.queues.get(queue).and_then(|settings| settings.max_attempts);
    item.max_attempts.or(of_executor).or(of_queue).unwrap_or(ATTEMPTS)
}

/// Returns whether the item at a position gets another attempt, counted from when an operator last asked for it, and without
/// those that a crash of the driver took.
pub fn attempts_left(state: &RunState, at: usize, config: &Config) -> bool {
    let most = max_attempts(state.graph.item(at), &state.submitted.queue, config);
    state.items[at].attempts - state.items[at].granted_at < most
}

/// Returns how much of a queue runs at the same time: as many items as there are cores, unless it says otherwise.
pub fn limits(queue: &str, config: &Config) -> Limits {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Limits { concurrency: config.queues.get(queue).and_then(|queue| queue.concurrency).unwrap_or_else(cores) }
}

/// Returns the variables of our own environment that every executor sees because a tool of the person needs them.
pub fn variables(ambient: &BTreeMap<String, OsString>) -> BTreeMap<String, OsString> {
    let passed = ambient.iter().filter(|(name, value)| TOOLS.passes(name, value));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the environment of an executor: a few variables of our own, those of tools, those it is configured to get, and
/// nothing else.
pub fn environment(ambient: &BTreeMap<String, OsString>, settings: &Executor) -> BTreeMap<String, OsString> {
    let passed = |name: &str, value: &OsStr| {
        ALWAYS_PASSED.contains(&name)
            || TOOLS.passes(name, value)
            || name.starts_with("LC_")
            || settings.pass_env.iter().any(|n| n == name)
            || settings.secret_env.iter().any(|secret| secret.is_from_environment(name))
    };
    let mut env: BTreeMap<String, OsString> =
        ambient.iter().filter(|(name, value)| passed(name, value)).map(|(n, v)| (n.clone(), v.clone())).collect();
    env.extend(settings.env.iter().map(|(name, value)| (name.clone(), value.into())));
    env
}

/// Returns the variables that an item of the executor `command` sets in `inputs.env`; those that are secrets here stay what they are.
fn own_environment(item: &Item, settings: &Executor) -> BTreeMap<String, OsString> {
    let set = item.inputs.get(ENV).filter(|_| item.executor == COMMAND).and_then(Value::as_object);
    let set = set.into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
    set.filter(|(name, _)| !settings.secret_env.iter().any(|secret| secret.name == *name)).collect()
}

fn shell(line: &str) -> Vec<String> {
    vec!["sh".into(), "-c".into(), line.into()]
}

fn inline(item: &Item) -> Option<Vec<String>> {
    match item.inputs.get("command")? {
        Value::String(line) => Some(shell(line)),
        Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Why there is nothing to run, in the words of the entry that records it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unresolved {
    #[error("the executor {0:?} is not registered here")]
    Executor(String),
    #[error("the subagent {0:?} is not registered here")]
    Subagent(String),
    #[error("`inputs.subagent` is missing, and no subagent is registered that could be meant")]
    NoSubagent,
    #[error("`inputs.command` is missing")]
    NoCommand,
    #[error("{0:?} is registered here without a command")]
    Commandless(String),
}
