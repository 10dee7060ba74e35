//! Settings of executors and subagents, including the built-in executors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Config;
use super::entry::{Given, Key};
use super::secret_env::SecretEnv;
use crate::model::confinement::{Asked, Home, Network};
use crate::model::limits::Limits;
use crate::model::plan::BuiltIn;
use crate::model::problem::nearest;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{OnProtectedChange, VerifyIn};

/// The settings of an executor or a subagent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executor {
    /// The command line, for `sh -c`.
    pub command: Option<String>,
    /// The command line run before it.
    pub setup: Option<String>,
    /// The command line run after it.
    pub verify: Option<String>,
    /// The command line that prints the version of its program.
    pub version_command: Option<String>,
    /// The effect of a failed `verify` command.
    pub on_verify_fail: Option<OnVerifyFail>,
    /// The files that the worker must not change.
    pub protect: Vec<ProtectRule>,
    /// The effect of a change to a protected file.
    pub on_protected_change: Option<OnProtectedChange>,
    /// The folder of files laid over the worktree for the check.
    pub held_out: Option<PathBuf>,
    /// Whether later attempts may see the check's output in spite of held-out files.
    pub held_out_feedback: Option<bool>,
    /// Whether the check must fail before the work.
    pub red_first: Option<bool>,
    /// Where the check runs.
    pub verify_in: Option<VerifyIn>,
    /// Seconds after which an attempt is ended.
    pub timeout: Option<u64>,
    /// How many attempts an item gets.
    pub max_attempts: Option<u32>,
    /// Environment variables set for it.
    pub env: BTreeMap<String, String>,
    /// Environment variables of the driver that the worker sees.
    pub pass_env: Vec<String>,
    /// Environment variables of the worker whose values are secrets.
    pub secret_env: Vec<SecretEnv>,
    /// The requested confinement.
    pub sandbox: Option<Asked>,
    /// The network it may reach.
    pub network: Option<Network>,
    /// Which home directory it has.
    pub home: Option<Home>,
    /// Additional readable paths.
    pub readable: Vec<PathBuf>,
    /// Additional writable paths.
    pub writable: Vec<PathBuf>,
    /// Folders and files of which each attempt gets a private copy.
    pub private: Vec<PathBuf>,
    /// Files of a login, which the worker may change.
    pub login: Vec<PathBuf>,
    /// Resource limits of one attempt.
    pub limits: Limits,
    /// Limits set by files inside the work tree; they can only lower the others.
    pub tracked_limits: Limits,
    /// Command lines from files inside the work tree. The worker is not given access to the files
    /// that these name.
    pub tracked_lines: BTreeSet<String>,
    /// The known agent that it starts, if the user names one.
    pub preset: Option<String>,
    /// The keys of its settings, as git lists them, each once.
    pub keys: BTreeSet<String>,
}

/// The effect of a failed `verify` command on an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnVerifyFail {
    /// The attempt fails.
    #[default]
    Fail,
    /// The attempt is done and its item is red.
    Keep,
}

/// Settings without effect, because no `command` registers their executor or subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unregistered {
    /// `executor` or `subagent`.
    pub what: &'static str,
    /// The name that the settings have.
    pub name: String,
    /// Their keys, as git lists them.
    pub keys: Vec<String>,
    /// The most similar registered name.
    pub nearest: Option<String>,
}

impl fmt::Display for Unregistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|key| format!("`{key}`")).collect();
        let verb = if keys.len() == 1 { "has" } else { "have" };
        let Self { what, name, .. } = self;
        write!(f, "{} {verb} no effect: no {what} {name:?} is registered here", keys.join(", "))?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => write!(f, ", which takes `handoff.{what}.{name}.command`"),
        }
    }
}

impl Executor {
    /// Completes a subagent's settings with those of the executor `dispatch`.
    ///
    /// The subagent's value takes precedence and lists are joined. For `sandbox`, `network` and
    /// `home` the stricter value applies, so that no subagent reaches more than `dispatch` allows.
    #[must_use]
    pub fn over(&self, dispatch: &Self) -> Self {
        let own_names: BTreeSet<&str> = self.secret_env.iter().map(|secret| secret.name.as_str()).collect();
        let inherited = dispatch.secret_env.iter().filter(|secret| !own_names.contains(secret.name.as_str()));
        Self {
            command: self.command.clone(),
            setup: self.setup.clone().or_else(|| dispatch.setup.clone()),
            verify: self.verify.clone().or_else(|| dispatch.verify.clone()),
            version_command: self.version_command.clone().or_else(|| dispatch.version_command.clone()),
            on_verify_fail: self.on_verify_fail.or(dispatch.on_verify_fail),
            protect: dispatch.protect.iter().chain(&self.protect).cloned().collect(),
            on_protected_change: self.on_protected_change.or(dispatch.on_protected_change),
            held_out: self.held_out.clone().or_else(|| dispatch.held_out.clone()),
            held_out_feedback: self.held_out_feedback.or(dispatch.held_out_feedback),
            red_first: self.red_first.or(dispatch.red_first),
            verify_in: self.verify_in.or(dispatch.verify_in),
            timeout: self.timeout.or(dispatch.timeout),
            max_attempts: self.max_attempts.or(dispatch.max_attempts),
            env: dispatch.env.iter().chain(&self.env).map(|(name, value)| (name.clone(), value.clone())).collect(),
            pass_env: dispatch.pass_env.iter().chain(&self.pass_env).cloned().collect(),
            secret_env: inherited.chain(&self.secret_env).cloned().collect(),
            sandbox: self.sandbox.max(dispatch.sandbox),
            network: self.network.max(dispatch.network),
            home: self.home.into_iter().chain(dispatch.home).min(),
            readable: join_paths(&self.readable, &dispatch.readable),
            writable: join_paths(&self.writable, &dispatch.writable),
            private: join_paths(&self.private, &dispatch.private),
            login: join_paths(&self.login, &dispatch.login),
            limits: self.limits.or(dispatch.limits),
            tracked_limits: self.tracked_limits.at_most(dispatch.tracked_limits),
            tracked_lines: self.tracked_lines.union(&dispatch.tracked_lines).cloned().collect(),
            preset: self.preset.clone(),
            keys: self.keys.clone(),
        }
    }
}

fn join_paths(ours: &[PathBuf], theirs: &[PathBuf]) -> Vec<PathBuf> {
    theirs.iter().chain(ours).cloned().collect()
}

impl Config {
    /// Returns the effective settings of a subagent, or `None` if it has no settings.
    pub fn subagent(&self, name: &str) -> Option<Executor> {
        let own = self.subagents.get(name)?;
        Some(self.executors.get(BuiltIn::Dispatch.name()).map_or_else(|| own.clone(), |dispatch| own.over(dispatch)))
    }

    /// Returns the settings of an executor other than `dispatch`, or `None` if it has none.
    pub fn settings_of(&self, executor: &str) -> Option<Executor> {
        if let Some(settings) = self.executors.get(executor) {
            return Some(settings.clone());
        }
        let built_in = BuiltIn::from_name(executor).filter(|built_in| built_in.line().is_some())?;
        let sandbox = (built_in == BuiltIn::Claimed).then_some(Asked::None);
        Some(Executor { sandbox, ..Executor::default() })
    }

    /// Returns the names of the executors that a `command` setting registers, without the built-in
    /// ones.
    pub fn registered_executors(&self) -> impl Iterator<Item = &String> {
        self.executors.iter().filter(|(_, settings)| settings.command.is_some()).map(|(name, _)| name)
    }

    /// Returns the names of the subagents that a `command` setting registers.
    pub fn registered_subagents(&self) -> impl Iterator<Item = &String> + Clone {
        self.subagents.iter().filter(|(_, settings)| settings.command.is_some()).map(|(name, _)| name)
    }

    /// Returns the settings whose executor or subagent is not registered.
    pub fn unregistered(&self) -> Vec<Unregistered> {
        let mut executors: Vec<&str> = BuiltIn::in_plans().map(BuiltIn::name).collect();
        executors.extend(self.registered_executors().map(String::as_str));
        let subagents: Vec<&str> = self.registered_subagents().map(String::as_str).collect();
        let mut unregistered = Vec::new();
        for (what, settings, known) in
            [("executor", &self.executors, &executors), ("subagent", &self.subagents, &subagents)]
        {
            unregistered.extend(settings.iter().filter(|(name, _)| !known.contains(&name.as_str())).map(
                |(name, settings)| {
                    let keys = settings.keys.iter().cloned().collect();
                    let nearest = nearest(&name.to_ascii_lowercase(), known.iter().copied()).map(str::to_owned);
                    Unregistered { what, name: name.clone(), keys, nearest }
                },
            ));
        }
        unregistered
    }

    /// Returns the executor or subagent that a key names, and records the key.
    pub(super) fn executor(&mut self, given: &Given<'_>) -> &mut Executor {
        let executors = match given.key.section {
            Some("subagent") => &mut self.subagents,
            _ => &mut self.executors,
        };
        let executor = executors.entry(given.name()).or_default();
        executor.keys.insert(given.setting.key.clone());
        executor
    }

    /// Returns the rules of protected files of the executor or subagent that a key names, or those
    /// for all.
    pub(super) fn protect_rules(&mut self, given: &Given<'_>) -> &mut Vec<ProtectRule> {
        match given.key.section {
            None => &mut self.protect,
            Some(_) => &mut self.executor(given).protect,
        }
    }

    /// Stores a command line, and whether a file inside the work tree set it.
    pub(super) fn set_line(
        &mut self,
        given: &Given<'_>,
        place: fn(&mut Executor) -> &mut Option<String>,
        line: String,
    ) {
        let executor = self.executor(given);
        if given.tracked {
            executor.tracked_lines.insert(line.clone());
        } else {
            executor.tracked_lines.remove(&line);
        }
        *place(executor) = Some(line);
    }

    /// Returns the limits that a setting belongs to.
    pub(super) fn limits(&mut self, given: &Given<'_>) -> &mut Limits {
        match (given.key.section, given.tracked) {
            (None, false) => &mut self.limits,
            (None, true) => &mut self.tracked_limits,
            (Some(_), false) => &mut self.executor(given).limits,
            (Some(_), true) => &mut self.executor(given).tracked_limits,
        }
    }
}

/// Returns why a built-in executor cannot have this setting, or `None` if it can.
pub(super) fn refusal(key: &Key<'_>) -> Option<&'static str> {
    let name = key.name.filter(|_| key.section == Some("executor"))?;
    BuiltIn::from_name(name)?.refusal(key.field.eq_ignore_ascii_case("command"))
}
