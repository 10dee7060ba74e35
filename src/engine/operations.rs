//! Operations that drive runs, and that find runs to drive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::git::tip::Tip;
use crate::git::work_tree;
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::driver::RunShared;
use crate::model::name::{FilePath, RunId};
use crate::model::plan::Item;
use crate::model::registered::Unreadable;
use crate::model::role::{Refused, Role};
use crate::model::schema::Schema;
use crate::model::state::RunState;
use crate::plan::schemas::Schemas;
use crate::process::live::Lives;
use crate::repository::{Repository, Trust};
use crate::run::operate::via::Via;
use crate::run::operate::{self, OpenRun, sharing};
use crate::run::query::Target;
use crate::run::query::sharing::{Home, OwnDrivers, Sharing};
use crate::run::query::target::{self, unarchived_runs};
use crate::sandbox;
use serde_json::Value;
use tokio::sync::watch;

pub use super::drive_result::{Driven, DrivenShown};

use super::drive::Joining;
use super::event::Progress;
use super::identity::Identity;
use super::lone_driver::{self, Alone};
use super::machine::Machine;
use super::record::{left, sealed};
use super::transcript_push::{self, Upload};
use super::{command, drive};

/// The prefix of actors that are agents.
const AGENT: &str = "agent:";

/// How the work of items may be done, besides by commands in worktrees of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// In no other way.
    #[default]
    Worktrees,
    /// By commands in the user's own work tree.
    Here,
    /// By commits that were made before.
    Commits,
}

/// Options for driving a run.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct DriveOptions {
    /// Seal a settled run even if not every item is done.
    pub close: bool,
    /// Reuse products of identical items from sealed runs.
    pub reuse: bool,
    /// Run at most this many items at once, instead of as many as the queue says.
    pub jobs: Option<usize>,
    /// How the work may be done.
    pub manner: Manner,
    /// In a recording, take the work that the last attempt left in its worktree.
    pub take_left: bool,
    /// The remote through which the run is driven together with other drivers.
    pub via: Option<String>,
    /// Push transcripts to that remote as well.
    pub transcripts: bool,
    /// Wait for decisions of people instead of ending.
    pub wait: bool,
}

/// A run that is ready to be driven, for the caller to inspect first.
pub struct Drivable<'r> {
    repository: &'r Repository,
    pub(super) open: OpenRun,
    pub(super) machine: Machine,
    joining: Option<Joining<'r>>,
    /// The remote where beats say that the run is driven here and not shared.
    alone: Option<String>,
}

/// The runs that a driver has work for.
pub struct Unsettled {
    /// In order of name.
    pub runs: Vec<RunId>,
    /// Runs that an agent submitted. They are driven only if named.
    pub of_agents: Vec<RunId>,
    /// Errors of runs that cannot be read.
    pub unreadable: Vec<target::Error>,
}

impl Repository {
    /// Opens a run to drive it on this machine.
    pub fn drivable(&self, run: &RunId, options: &DriveOptions) -> Result<Drivable<'_>, AnyError> {
        let course = self.course(run, options)?;
        let tip = course.shared().map(|remote| self.join_patiently(run, remote)).transpose()?;
        let mut open = self.opened_here(run).map_err(|denied| denied.lacking(&[Role::Work]))?;
        if open.state.shared.is_some() && tip.is_none() && !open.state.sealed {
            let remote = Sharing::read(&self.store, run).map(|sharing| sharing.remote);
            return Err(Error::Shared { run: run.clone(), remote }.into());
        }
        if !open.state.sealed && !open.state.keys.has(&open.writer().signer.fingerprint(), Role::Work) {
            let (run, key) = (run.clone(), open.writer().signer.fingerprint());
            return Err(operate::Error::Role { run, key, why: Refused::Role(&[Role::Work]) }.into());
        }
        self.expect_unrevoked(&open)?;
        let mut joining = tip.map(|tip| self.joining(&mut open, tip)).transpose()?;
        if let Some(joining) = joining.as_mut().filter(|_| options.transcripts) {
            let heartbeat = Duration::from_millis(open.state.shared.unwrap_or(joining.times).heartbeat);
            let interval = transcript_push::LONGEST.min(heartbeat * 2);
            let (upload_tip, store, run) = (joining.tip.clone(), self.store.clone(), run.clone());
            joining.transcripts = Some(Upload { tip: upload_tip, store, run, gate: self.gate(), interval });
        }
        // A fetch may have brought statements before the run could accept them.
        self.accept_statements_on(&mut open)?;
        let recorded = sealed::config_for(self, &open.state).map_err(Error::Recorded)?;
        let is_recording = recorded.is_some();
        let configured = recorded.map(|config| self.with_config(config)).transpose()?;
        // A recording ends with its command, whatever came of it.
        let close = options.close || is_recording;
        let mut machine = Machine::new(configured.as_ref().unwrap_or(self), close)?;
        (machine.jobs, machine.manner) = (options.jobs, options.manner);
        (machine.waits, machine.is_recording) = (options.wait, is_recording);
        if options.take_left {
            machine.left = left::left_by(&machine.host, run, &open.state).map_err(drive::Error::from)?;
        }
        if options.reuse {
            machine.reusable = Some(self.reusable(run)?);
        }
        check_schemas(&open, &machine.schemas)?;
        check_sandboxes(&open, &machine)?;
        let alone = course.announced().filter(|_| !open.state.sealed);
        Ok(Drivable { repository: self, open, machine, joining, alone })
    }

    /// Prepares to drive a run through a remote.
    fn joining(&self, open: &mut OpenRun, tip: Tip) -> Result<Joining<'_>, AnyError> {
        let identity = Identity::new(&self.environment.variables);
        let times = RunShared::new(
            u64::try_from(self.config.heartbeat.as_millis()).unwrap_or(u64::MAX),
            u64::try_from(self.config.lost_after.as_millis()).unwrap_or(u64::MAX),
        );
        if open.state.shared.is_none() && !times.is_sound() {
            return Err(Error::Times.into());
        }
        let via = Via::new(tip.clone(), open.id(), Some(identity.id.clone()), self.config.via_interval);
        open.share_via(via)?;
        let sharing = Sharing::read(&self.store, open.id());
        let home = Home::find(&self.store).map_err(sharing::Error::Record)?;
        let before = sharing.as_ref().and_then(|sharing| sharing.driver.clone());
        let drivers = OwnDrivers::followed_by(before, identity.id.clone(), home);
        let predecessors = drivers.earlier.clone();
        if let Some(sharing) = sharing {
            let sharing = Sharing { driver: Some(drivers), ..sharing };
            sharing.keep(&self.store, open.id()).map_err(sharing::Error::Record)?;
        }
        Ok(Joining { identity, tip, times, repository: self, predecessors, transcripts: None })
    }

    /// Refuses a run to which a key can append that is revoked here.
    fn expect_unrevoked(&self, open: &OpenRun) -> Result<(), AnyError> {
        let revoked = self.options(&Trust::default(), &mut |_| ())?.revoked;
        let keys = &open.state.keys;
        let mut writers =
            keys.iter().map(|(key, _)| key).filter(|key| keys.has(key, Role::Own) || keys.has(key, Role::Work));
        match writers.find(|key| revoked.contains_key(*key)) {
            Some(key) => Err(Error::Revoked { run: open.id().clone(), key: key.to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// Finds the runs that are not settled, or whose seal is not recorded yet.
    pub fn unsettled(&self) -> Result<Unsettled, AnyError> {
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
            let unlogged = match &own {
                Some(own) if state.sealed && state.submitted.roles.contains_key(own) => {
                    log::find(&self.store, own, run.clone())?.is_none_or(|known| known.root.is_none())
                }
                _ => false,
            };
            if !state.is_settled() || (ended && !state.sealed) || unlogged {
                let is_left = is_of_agent && !self.config.mcp_drive;
                if is_left { &mut unsettled.of_agents } else { &mut unsettled.runs }.push(run);
            }
        }
        Ok(unsettled)
    }

    /// Returns the files that an item's command lines name and that differ between the work tree
    /// and the base of the run. Attempts see them as they are in the base.
    pub fn older_in_base(&self, state: &RunState, item: &Item) -> Result<Vec<String>, AnyError> {
        let Ok(resolved) = command::resolve(item, &self.config) else { return Ok(Vec::new()) };
        let lines = resolved.argv.iter().chain(resolved.setup.iter().flatten()).chain(resolved.verify.iter().flatten());
        let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "'\";|&()<>=`".contains(c)));
        let paths =
            words.map(|word| word.strip_prefix("./").unwrap_or(word)).filter(|word| FilePath::parse(word).is_ok());
        let paths = paths.map(str::to_owned).collect();
        Ok(work_tree::changed_since(&self.store, state.submitted.base, &paths).map_err(Error::WorkTree)?)
    }
}

impl Drivable<'_> {
    /// Returns the state of the run.
    pub fn state(&self) -> &RunState {
        &self.open.state
    }

    /// Returns a note about the sandbox layers that this machine lacks, if confinement is optional.
    pub fn unenforced(&self) -> Option<String> {
        self.machine.sandbox.missing()
    }

    /// Returns further remarks on how this machine confines the workers of the run.
    pub fn remarks(&self) -> Vec<String> {
        let items = self.open.state.graph.items().iter();
        let distinct: BTreeMap<_, &Item> =
            items.map(|item| ((&item.executor, item.inputs.get("subagent").and_then(Value::as_str)), item)).collect();
        let executors = distinct.values().filter_map(|item| command::resolve(item, &self.machine.config).ok());
        let mut remarks: BTreeSet<String> = self.machine.host.remark.iter().cloned().collect();
        for resolved in executors {
            let by = self.machine.confine(&resolved.settings).ok().flatten();
            remarks
                .extend(self.machine.environment.open_agent_folders(&resolved.settings).map(|open| open.to_string()));
            remarks.extend(by.into_iter().flat_map(|by| by.remarks()));
        }
        remarks.into_iter().collect()
    }

    /// Returns the output of running attempts.
    pub fn lives(&self) -> Arc<Lives> {
        Arc::clone(&self.machine.lives)
    }

    /// Returns the clock of the run's writer.
    pub fn clock(&self) -> Clock {
        self.open.writer().clock
    }

    /// Drives the run until it settles or is interrupted.
    ///
    /// After an error the run is as its last entry says, no process is left running, and driving it
    /// again continues it.
    pub async fn drive(
        mut self,
        mut interrupt: watch::Receiver<bool>,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Driven, AnyError> {
        let (repository, before) = (self.repository, self.open.head().commit);
        let driver = self.joining.as_ref().map(|joining| joining.identity.id.clone());
        if self.joining.is_some()
            && !lone_driver::wait_for_lone_drivers(&mut self.open, repository, &mut interrupt, tell).await?
        {
            return Ok(Driven {
                view: Target::own(self.open.id().clone()).view(&repository.store)?,
                interrupted: true,
                sealed: None,
                driver,
                unpushed: None,
            });
        }
        if self.machine.jobs == Some(0) && !self.open.state.sealed {
            let run = self.open.id();
            tell(Progress::Note(format!("{run}: joined without working: other drivers run its items")));
        }
        let alone = self.alone.as_ref().map(|remote| Alone::start(repository, &self.open, remote)).transpose()?;
        repository.take_notes().into_iter().for_each(|note| tell(Progress::Note(note)));
        let driven = drive::drive(&mut self.open, self.machine, self.joining, interrupt, tell).await;
        let is_unpushed = self.open.head().commit != before;
        alone.flatten().into_iter().for_each(|alone| alone.end(is_unpushed));
        let drive::Settled { interrupted, sealed } = driven?;
        let unpushed = self.alone.filter(|_| is_unpushed);
        Ok(Driven {
            view: Target::own(self.open.id().clone()).view(&repository.store)?,
            interrupted,
            sealed,
            driver,
            unpushed,
        })
    }
}

/// Returns an error if an open item needs a registered schema that cannot be read.
fn check_schemas(open: &OpenRun, schemas: &Schemas) -> Result<(), AnyError> {
    let items = open.state.graph.items().iter().zip(&open.state.items);
    let open_items = items.filter(|(_, state)| !state.phase.is_terminal()).map(|(item, _)| item);
    let needed = open_items.flat_map(Item::documents).filter_map(|declared| declared.schema);
    for schema in needed {
        if let Some(Err(why)) = schemas.get(&schema) {
            return Err(Error::Schema { schema, why }.into());
        }
    }
    Ok(())
}

/// Returns an error if the workers of an open item cannot be confined as configured.
fn check_sandboxes(open: &OpenRun, machine: &Machine) -> Result<(), AnyError> {
    let items = open.state.graph.items().iter().zip(&open.state.items);
    for (item, _) in items.filter(|(_, state)| !state.phase.is_terminal()) {
        // An item that cannot be resolved fails by itself, with a reason.
        if let Ok(resolved) = command::resolve(item, &machine.config) {
            machine.confine(&resolved.settings).map_err(Error::Sandbox)?;
        }
    }
    Ok(())
}

errors! {
    /// Failures to drive a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Schema { schema: Schema, why: Unreadable } "schema-unreadable": "the schema {schema} {why}";
    Revoked { run: RunId, key: String } "revoked":
        "the key {key}, which is revoked here, can append to the run {:?}, so it is not executed" [run.as_str()];
    Shared { run: RunId, remote: Option<String> } "shared":
        "the run {:?} is shared{}"
        [run.as_str(), remote.as_ref().map(|remote| format!(" through {remote}")).unwrap_or_default()];
    Joined { run: RunId, remote: String } "lost-race" 5:
        "another driver began to drive the run {:?} through {remote} at the same time" [run.as_str()];
    Times "config": "handoff.lostAfter must be at least four times handoff.heartbeat";
    WorkTree(#[source] work_tree::Error) "git": "cannot compare the work tree with the base of the run";
    #[from] Recorded(sealed::Error);
    #[from "sandbox-unenforceable"] Sandbox(sandbox::Refused);
}
