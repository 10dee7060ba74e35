//! What is done with the driver: runs are driven, and those that wait for it are found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::git::work_tree;
use crate::ledger::log::{self, Record};
use crate::model::digest::Digest;
use crate::model::entry::RunSealed;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::model::plan::Item;
use crate::model::registered::Unreadable;
use crate::model::role::{Refused, Role};
use crate::model::schema::Schema;
use crate::model::state::RunState;
use crate::plan::schemas::Schemas;
use crate::repository::{self, Repository, Trust, trust};
use crate::run::list::{self, ItemStatus};
use crate::run::target::{self, unarchived_runs};
use crate::run::{self, Denied, OpenRun, Target, View, taking};
use crate::worker::live::Lives;
use crate::worker::sandbox;

use super::event::Progress;
use super::machine::{Machine, NoCache};
use super::{command, drive, ground};

/// How the names of agents begin, in which entries are written.
const AGENT: &str = "agent:";

/// How a run is to be driven.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Seal what has settled even if not every item is done.
    pub close: bool,
    /// Take the products of items of sealed runs that had just the same to do, instead of making them again.
    pub reuse: bool,
    /// How many items are to run at the same time, where that is not as the queue says.
    pub jobs: Option<usize>,
}

/// A run that may be driven, which the caller can look at before it is.
pub struct Drivable<'r> {
    repository: &'r Repository,
    open: OpenRun,
    machine: Machine,
}

/// How driving a run ended.
pub struct Driven {
    /// The run as it is now.
    pub view: View,
    /// Whether it was interrupted before the run had settled.
    pub interrupted: bool,
    /// The seal, if the run was sealed now.
    pub sealed: Option<RunSealed>,
}

/// How driving a run ended: what `run --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct DrivenShown<'a> {
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// Whether nothing is left to do.
    pub settled: bool,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Whether it was interrupted before the run had settled.
    pub interrupted: bool,
    /// Its root, if it was sealed now.
    pub root: Option<Digest>,
    /// The rules that stopped before the run was done, each with the reason; absent if none did.
    #[serde(rename = "stoppedShort", skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped_short: BTreeMap<&'a ItemId, &'a str>,
    /// The number of items per status, red ones apart from those that are done.
    pub counts: BTreeMap<&'static str, u64>,
    /// How its items came out.
    pub outcome: Outcomes,
    /// Its items.
    pub items: Vec<ItemStatus>,
}

/// The runs that a driver has something to do for.
pub struct Unsettled {
    /// In order of name.
    pub runs: Vec<RunId>,
    /// Those that an agent submitted, which are not driven unless they are named.
    pub of_agents: Vec<RunId>,
    /// Why others cannot be read.
    pub unreadable: Vec<target::Error>,
}

impl Repository {
    /// Opens a run to drive it on this machine.
    pub fn drivable(&self, run: &RunId, wanted: How) -> Result<Drivable<'_>, Error> {
        let mut open = self.opened(run).map_err(|denied| denied.lacking(&[Role::Work]))?;
        if !open.state.sealed && !open.state.keys.has(&open.writer().signer.fingerprint(), Role::Work) {
            let (run, key) = (run.clone(), open.writer().signer.fingerprint());
            return Err(Error::Run(run::Error::Role { run, key, why: Refused::Role(&[Role::Work]) }));
        }
        self.expect_unrevoked(&open)?;
        // What came with a fetch while the run was not ready for it.
        self.take_in_on(&mut open)?;
        let mut machine = Machine::of(self, wanted.close)?;
        machine.jobs = wanted.jobs;
        if wanted.reuse {
            machine.reusable = Some(self.reusable(run)?);
        }
        check_schemas(&open, &machine.schemas)?;
        check_sandboxes(&open, &machine)?;
        Ok(Drivable { repository: self, open, machine })
    }

    /// Refuses to execute what a key may have added that is revoked here by now.
    fn expect_unrevoked(&self, open: &OpenRun) -> Result<(), Error> {
        let revoked = self.options(&Trust::default(), &mut |_| ())?.revoked;
        let keys = &open.state.keys;
        let adds = |key: &&str| keys.has(key, Role::Own) || keys.has(key, Role::Work);
        match keys.iter().map(|(key, _)| key).filter(adds).find(|key| revoked.contains_key(*key)) {
            Some(key) => Err(Error::Revoked { run: open.id().clone(), key: key.to_owned() }),
            None => Ok(()),
        }
    }

    /// Finds the runs that have something left to do, be it only to record their seal.
    pub fn unsettled(&self) -> Result<Unsettled, Error> {
        let own = self.own_fingerprint();
        let mut unsettled = Unsettled { runs: Vec::new(), of_agents: Vec::new(), unreadable: Vec::new() };
        for run in unarchived_runs(&self.store)? {
            let (state, is_of_agent) = match Target::own(run.clone()).view(&self.store) {
                Ok(view) => {
                    let is_of_agent = view.links.first().is_some_and(|link| link.entry.actor.starts_with(AGENT));
                    (view.state, is_of_agent)
                }
                Err(error) => {
                    unsettled.unreadable.push(error);
                    continue;
                }
            };
            let ended = state.seals_itself() || state.is_ended();
            let logged = |own: &String| {
                log::find(&self.store, own, run.clone()).map(|found| matches!(found, Some(Record::Sealed { .. })))
            };
            let unlogged = match &own {
                Some(own) if state.sealed && state.submitted.writers.first() == Some(own) => !logged(own)?,
                _ => false,
            };
            if !state.is_settled() || (ended && !state.sealed) || unlogged {
                let is_left = is_of_agent && !self.config.mcp_drive;
                if is_left { &mut unsettled.of_agents } else { &mut unsettled.runs }.push(run);
            }
        }
        Ok(unsettled)
    }

    /// Returns the setting by which the agent that an item runs would find its login, and the login's place below the home
    /// directory; none where it finds it, or nothing is known of the agent.
    pub fn login_out_of_reach(&self, item: &Item) -> Option<(String, &'static str)> {
        ground::login_out_of_reach(self, item)
    }

    /// Returns the files that the command lines of an item name and that are other in the work tree than in the base of its run: an
    /// attempt finds them as the base has them.
    pub fn older_in_base(&self, state: &RunState, item: &Item) -> Result<Vec<String>, Error> {
        let Ok(resolved) = command::resolve(item, &self.config) else { return Ok(Vec::new()) };
        let lines = resolved.argv.iter().chain(resolved.setup.iter().flatten()).chain(resolved.verify.iter().flatten());
        let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "'\";|&()<>=`".contains(c)));
        let paths =
            words.map(|word| word.strip_prefix("./").unwrap_or(word)).filter(|word| FilePath::parse(word).is_ok());
        Ok(work_tree::changed_since(&self.store, state.submitted.base, &paths.map(str::to_owned).collect())?)
    }
}

impl Drivable<'_> {
    /// Returns what the run has come to.
    pub fn state(&self) -> &RunState {
        &self.open.state
    }

    /// Says which layers of a sandbox are missing on this machine although workers are to be confined as well as it can.
    pub fn unenforced(&self) -> Option<String> {
        self.machine.sandbox.missing()
    }

    /// Returns what people should know of how this machine confines the run's workers besides that.
    pub fn remarks(&self) -> Vec<String> {
        let items = self.open.state.graph.items().iter();
        let named: BTreeMap<_, &Item> =
            items.map(|item| ((&item.executor, item.inputs.get("subagent").and_then(Value::as_str)), item)).collect();
        let executors = named.values().filter_map(|item| command::resolve(item, &self.machine.config).ok());
        let all = executors.filter_map(|resolved| ground::confine(&self.machine, &resolved.settings).ok().flatten());
        let said: BTreeSet<String> = all.flat_map(|by| by.remarks()).collect();
        said.into_iter().collect()
    }

    /// Returns what attempts say while the run is driven.
    pub fn lives(&self) -> Arc<Lives> {
        Arc::clone(&self.machine.lives)
    }

    /// Returns where moments come from.
    pub fn clock(&self) -> Clock {
        self.open.writer().clock
    }

    /// Drives the run until it settles or is interrupted, as [`drive::drive`] does.
    pub async fn drive(
        mut self,
        interrupt: watch::Receiver<bool>,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Driven, Error> {
        let settled = drive::drive(&mut self.open, self.machine, interrupt, tell).await?;
        let view = Target::own(self.open.id().clone()).view(&self.repository.store)?;
        let drive::Settled { interrupted, sealed } = settled;
        Ok(Driven { view, interrupted, sealed })
    }
}

impl Driven {
    /// Answers how it ended.
    pub fn shown(&self) -> DrivenShown<'_> {
        let state = &self.view.state;
        DrivenShown {
            schema: "git-handoff.run/1",
            run: &self.view.run,
            settled: state.is_settled(),
            sealed: state.sealed,
            interrupted: self.interrupted,
            root: self.sealed.as_ref().map(|sealed| sealed.root),
            stopped_short: state.stopped.iter().map(|(rule, why)| (rule, why.as_str())).collect(),
            counts: list::counts(&self.view),
            outcome: state.outcomes(),
            items: ItemStatus::all(&self.view),
        }
    }
}

/// Makes sure that no attempt is spent on a document whose schema is registered and cannot be read.
fn check_schemas(open: &OpenRun, schemas: &Schemas) -> Result<(), Error> {
    let items = open.state.graph.items().iter().zip(&open.state.items);
    let open_items = items.filter(|(_, state)| !state.phase.is_terminal()).map(|(item, _)| item);
    let needed = open_items.flat_map(Item::documents).filter_map(|declared| declared.schema);
    for schema in needed {
        if let Some(Err(why)) = schemas.known.get(&schema) {
            return Err(Error::Schema { schema, why });
        }
    }
    Ok(())
}

/// Makes sure that no item is dispatched to workers that cannot be confined as they are to be.
fn check_sandboxes(open: &OpenRun, machine: &Machine) -> Result<(), Error> {
    let items = open.state.graph.items().iter().zip(&open.state.items);
    for (item, _) in items.filter(|(_, state)| !state.phase.is_terminal()) {
        // One that cannot be resolved fails by itself, and says why.
        if let Ok(resolved) = command::resolve(item, &machine.config) {
            ground::confine(machine, &resolved.settings)?;
        }
    }
    Ok(())
}

/// Why runs are not driven.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the schema {schema} {why}")]
    Schema { schema: Schema, why: Unreadable },
    #[error("the key {key}, which is revoked here, may add to the run {:?}; nothing of it is executed", run.as_str())]
    Revoked { run: RunId, key: String },
    #[error(transparent)]
    TakingIn(#[from] taking::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    NoCache(#[from] NoCache),
    #[error(transparent)]
    Sandbox(#[from] sandbox::Refused),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the work tree could not be compared with the base of the run")]
    WorkTree(#[from] work_tree::Error),
    #[error(transparent)]
    Drive(#[from] drive::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
