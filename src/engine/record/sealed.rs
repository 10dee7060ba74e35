//! The settings that decide about a recorded command, sealed in its plan.
//!
//! A recording that is continued, by whatever command, has these settings again. What only this
//! machine can give (a login, the values of variables) is looked up by name, and only for the key
//! that recorded the command: a plan of another key must not open the login of an agent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Recording;
use super::plan::ITEM;
use super::settings::{self, Recorded, Unknown};
use crate::model::confinement::{Asked, Home, Network};
use crate::model::item_index::ItemIndex;
use crate::model::plan::{AGENT, BuiltIn, COMMAND, Item, RECORDED};
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{OnProtectedChange, VerifyIn};
use crate::model::state::RunState;
use crate::repository::Repository;
use crate::repository::agent::AgentNeeds;
use crate::repository::config::{Config, Executor, OnVerifyFail, SecretEnv, SecretSource};

/// The settings of a recording as its plan has them, without the check, which every plan can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Sealed {
    /// The known agent, subagent or executor whose settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) executor: Option<String>,
    sandbox: Asked,
    network: Network,
    home: Home,
    protect: BTreeSet<ProtectRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_protected_change: Option<OnProtectedChange>,
    on_verify_fail: OnVerifyFail,
    verify_in: VerifyIn,
    red_first: bool,
    /// Whether the check runs with held-out files. Their folder belongs to this machine.
    held_out: bool,
    /// The names of variables that the worker gets.
    pass_env: BTreeSet<String>,
    /// The names of variables that it gets as secrets.
    secret_env: BTreeSet<String>,
}

/// The decisions of the configuration about a recording.
pub(super) struct Decided {
    pub(super) sealed: Sealed,
    pub(super) check: Option<String>,
    pub(super) timeout: Option<u64>,
    /// The configuration for driving it.
    pub(super) config: Config,
    /// The needs of the known agent that it starts.
    pub(super) agent: Option<AgentNeeds>,
}

impl Decided {
    /// Decides about a recording by the configuration.
    pub(super) fn read(repository: &Repository, recording: &Recording) -> Result<Self, Error> {
        let chosen = recording.agent.as_ref().or(recording.executor.as_ref());
        let executor = settings::name_for(repository, chosen, &recording.command);
        let command = Recorded { words: &recording.command, line: recording.line.as_deref() };
        let (config, here) = (&repository.config, recording.here.map(|_| Asked::None));
        let (settings, agent) = settings::settings_for(repository, executor.as_deref(), &command, here, true)?;
        let sealed = Sealed {
            executor,
            sandbox: settings.sandbox.unwrap_or(config.sandbox),
            network: settings.network.unwrap_or(config.network),
            home: settings.home.unwrap_or_default(),
            protect: settings.protect.iter().chain(&config.protect).cloned().collect(),
            on_protected_change: settings.on_protected_change.or(config.on_protected_change),
            on_verify_fail: settings.on_verify_fail.unwrap_or_default(),
            verify_in: settings.verify_in.unwrap_or_default(),
            red_first: settings.red_first.unwrap_or_default(),
            held_out: settings.held_out.is_some(),
            pass_env: settings.pass_env.iter().cloned().collect(),
            secret_env: settings.secret_env.iter().map(|secret| secret.name.clone()).collect(),
        };
        let (check, timeout) = (recording.check.clone().or_else(|| settings.verify.clone()), settings.timeout);
        let own_config = sealed.configure(repository, settings, true)?;
        Ok(Self { sealed, check, timeout, config: own_config, agent })
    }
}

impl Sealed {
    /// Returns the configuration for driving the recording, with settings of today for the rest.
    fn configure(&self, repository: &Repository, today: Executor, grants: bool) -> Result<Config, Error> {
        let mut config = (*repository.config).clone();
        config.executors.insert(BuiltIn::Command.name().to_owned(), self.apply(today, grants)?);
        // The sealed settings contain these.
        config.protect.clear();
        config.on_protected_change = None;
        Ok(config)
    }

    /// Returns the settings of the executor `command` that the sealed ones make of those of today.
    fn apply(&self, today: Executor, grants: bool) -> Result<Executor, Error> {
        if self.held_out && today.held_out.is_none() {
            return Err(Error::HeldOut);
        }
        Ok(Executor {
            verify: None,
            on_verify_fail: Some(self.on_verify_fail),
            protect: self.protect.iter().cloned().collect(),
            on_protected_change: self.on_protected_change,
            held_out: today.held_out.clone().filter(|_| self.held_out),
            red_first: Some(self.red_first),
            verify_in: Some(self.verify_in),
            timeout: None,
            pass_env: if grants { self.pass_env.iter().cloned().collect() } else { today.pass_env.clone() },
            secret_env: if grants {
                self.secret_env
                    .iter()
                    .map(|name| {
                        let configured = today.secret_env.iter().find(|secret| secret.name == *name).cloned();
                        let key = format!("the recording's {RECORDED}.secretEnv");
                        configured.unwrap_or_else(|| SecretEnv {
                            name: name.clone(),
                            source: SecretSource::Environment,
                            key,
                        })
                    })
                    .collect()
            } else {
                today.secret_env.clone()
            },
            sandbox: Some(self.sandbox),
            network: Some(self.network),
            home: Some(self.home),
            ..today
        })
    }
}

/// Returns the item of a recorded command, or `None` if the run is no recording of a command.
pub(in crate::engine) fn recorded_item(state: &RunState) -> Option<(ItemIndex, &Item)> {
    let mut items = state.graph.items().indexed();
    let (at, item) = items.next().filter(|_| items.next().is_none())?;
    let is_recorded = item.is_for(BuiltIn::Command) && item.inputs.contains_key(RECORDED);
    (is_recorded && item.id.as_str() == ITEM).then_some((at, item))
}

/// Returns the configuration for driving a recording, or `None` for any other run.
pub(in crate::engine) fn config_for(repository: &Repository, state: &RunState) -> Result<Option<Config>, Error> {
    let Some((_, item)) = recorded_item(state) else { return Ok(None) };
    let sealed = Sealed::deserialize(&item.inputs[RECORDED]).map_err(|_| Error::Unreadable)?;
    let grants = is_our_own(repository, state);
    let words = item.inputs.get(COMMAND).and_then(Value::as_array).into_iter().flatten();
    let words: Vec<String> = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    let line = item.inputs.get(COMMAND).filter(|_| item.inputs.contains_key(AGENT)).and_then(Value::as_str);
    let command = Recorded { words: &words, line };
    let (executor, sandbox) = (sealed.executor.as_deref(), Some(sealed.sandbox));
    let (today, _) = settings::settings_for(repository, executor, &command, sandbox, grants)?;
    sealed.configure(repository, today, grants).map(Some)
}

/// Returns true if our own key submitted the run, not as the continuation of another one. No other
/// key has a role by entry 0 then, so none signed it.
fn is_our_own(repository: &Repository, state: &RunState) -> bool {
    let own = repository.own_fingerprint();
    own.is_some_and(|own| state.submitted.roles.keys().eq([&own])) && state.submitted.continues.is_none()
}

errors! {
    /// Failures to apply the settings of a recording.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unreadable "run": "the settings that this recording sealed cannot be read: another version wrote them";
    HeldOut "config": "the check of this recording has held-out files, and no setting here names their folder";
    #[from "unknown-executor"] Unknown(Unknown);
}
