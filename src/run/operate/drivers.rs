//! The drivers of a shared run, as people see them: who lives, who holds what, who is lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::git::tip::{Move, Swap, Tip};
use crate::git::{private_files, refs};
use crate::model::any_error::AnyError;
use crate::model::beat::Declined;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::driver::{Because, DriverId};
use crate::model::entry::{Again, Event, ItemEnded};
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::{ItemId, RunId};
use crate::model::role::Role;
use crate::model::state::RunState;
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::run::query::sharing::Sharing;
use crate::run::query::target::own_runs;
use crate::run::query::{Target, View};
use crate::verify::dispatchers;

use super::NewEntry;
use super::beats::{Judge, Mark, Reader, Sign};
use super::steer::requeued;

/// The most bytes of such a file.
const LARGEST: u64 = 4 << 20;

/// The drivers of a shared run, as `status --drivers --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.drivers/1", rename_all = "camelCase")]
pub struct DriversShown {
    /// The run.
    pub run: RunId,
    /// The remote through which it is driven.
    pub remote: String,
    /// The silence after which a driver counts as lost, in milliseconds.
    pub lost_after: u64,
    /// The drivers that hold attempts, or whose ref the remote has.
    pub drivers: Vec<DriverShown>,
}

/// One driver of a shared run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DriverShown {
    /// The driver.
    pub driver: DriverId,
    /// `silent`: this clone has seen the same beat for longer than `lostAfter`. `lost`: its
    /// attempts were taken over. `unknown`: it has no beat that counts: one of this run and driver,
    /// by the key that dispatched what it holds, or by a key with the role `work` if it holds
    /// nothing.
    pub state: DriverState,
    /// The name of its host, by its own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(length(max = 255)))]
    pub host: Option<String>,
    /// The job of the engine that started it, by its own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(length(max = 255)))]
    pub job: Option<String>,
    /// The key that signed its last beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    pub key: Option<String>,
    /// The number of its last beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(range(min = 1)))]
    pub beat: Option<u64>,
    /// The time of that beat, by the driver's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// Since when this clone has seen this beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// Whether it drives the run without sharing it; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub alone: bool,
    /// The running items that it holds, by the chain.
    pub holds: Vec<ItemId>,
    /// The items that it claimed and did not start when it sent its beat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ItemId>,
    /// The things that its machine lacks, with items that need them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declines: Vec<Declined>,
    /// The value of its ref.
    #[serde(skip)]
    value: Option<Oid>,
    /// Whether that has not changed for longer than a driver may be silent.
    #[serde(skip)]
    is_silent: bool,
}

/// Whether a driver lives, as far as this clone can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DriverState {
    /// It beat lately.
    Alive,
    /// This clone has seen the same beat for longer than a driver may be silent.
    Silent,
    /// Another driver took over its attempts.
    Lost,
    /// It has no beat that counts: one of this run and driver, by a key that may drive for it.
    Unknown,
}

/// The answer of `lost --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.lost/1")]
pub struct LostShown {
    /// The run.
    pub run: RunId,
    /// The driver.
    pub driver: DriverId,
    /// The items whose attempts were taken from the driver.
    pub items: Vec<ItemId>,
}

/// The answer of `clean --remote --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.clean-remote/1", rename_all = "camelCase")]
pub struct StaleBeats {
    /// Whether nothing was removed.
    pub dry_run: bool,
    /// The beats that no driver needs.
    pub beats: Vec<StaleBeat>,
}

/// A beat on a remote that no driver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StaleBeat {
    /// The run.
    pub run: RunId,
    /// The driver.
    pub driver: DriverId,
    /// The remote.
    pub remote: String,
    /// Whether it was removed.
    pub removed: bool,
}

/// The highest beat of a driver that this clone saw, and since when.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    since: Moment,
    mark: Option<Mark>,
}

impl Repository {
    /// Reads the remote of a shared run once, and returns its drivers.
    pub fn drivers(&self, run: &RunId) -> Result<DriversShown, AnyError> {
        self.drivers_through(run, |tip| tip)
    }

    /// Returns the drivers of a shared run, as read through its remote with a limit.
    pub(super) fn drivers_through(
        &self,
        run: &RunId,
        limit: impl FnOnce(Tip) -> Tip,
    ) -> Result<DriversShown, AnyError> {
        let sharing = Sharing::read(&self.store, run).ok_or_else(|| Error::NotShared(run.clone()))?;
        let tip = limit(self.tip(&sharing.remote)?);
        let ours = format::run_ref(run);
        let read = Reader::default().read(&tip, &self.store, run)?;
        let known = refs::read_stored(&self.store, &ours)?;
        if let (Some(known), Some(head)) = (known, read.head)
            // A head that cannot follow ours is reported by the next driver.
            && self.check_following(run, known, head).is_ok()
        {
            refs::advance(&self.store, &ours, known, head)?;
        }
        drop(read.guard);
        let state = self.state_with_dispatchers(run)?;
        let judge = Judge { store: &self.store, run, first: sharing.first, state: &state };
        let lost_after = state.shared.map_or_else(|| self.lost_after_millis(), |shared| shared.lost_after);
        let signs: BTreeMap<DriverId, Option<Sign>> =
            read.values.iter().map(|(driver, value)| (driver.clone(), judge.sign(driver, *value))).collect();
        let sightings = self.remember_signs(run, &signs)?;
        let mut drivers: BTreeMap<DriverId, DriverShown> = BTreeMap::new();
        for (driver, last_sign) in signs {
            let since = sightings.get(&driver).map(|sighting| sighting.since);
            let value = read.values.get(&driver).copied();
            drivers.insert(
                driver.clone(),
                DriverShown { value, ..self.describe_driver(driver, since, last_sign, lost_after) },
            );
        }
        for (at, item) in state.items.indexed() {
            let Some(holder) = &item.holder else { continue };
            let entry = drivers.entry(holder.driver.clone());
            let entry = entry.or_insert_with(|| self.describe_driver(holder.driver.clone(), None, None, lost_after));
            entry.host = entry.host.take().or_else(|| holder.host.clone());
            entry.job = entry.job.take().or_else(|| holder.job.clone());
            entry.holds.push(state.graph.item(at).id.clone());
        }
        let drivers = drivers.into_values().collect();
        Ok(DriversShown { run: run.clone(), remote: sharing.remote, lost_after, drivers })
    }

    /// Returns the silence after which a driver counts as lost, as it is configured here.
    fn lost_after_millis(&self) -> u64 {
        u64::try_from(self.config.lost_after.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the state of a run, with the keys that dispatched what drivers hold.
    fn state_with_dispatchers(&self, run: &RunId) -> Result<RunState, AnyError> {
        let View { head, mut state, .. } = Target::own(run.clone()).view(&self.store)?;
        if let Some(tip) = head.commit {
            let found = dispatchers(&self.store, &state.keys, tip);
            let found = found.map_err(|why| super::Error::Stranger(run.clone(), why))?;
            found.into_iter().for_each(|(item, key)| state.keys.set_dispatcher(item, key));
        }
        Ok(state)
    }

    fn describe_driver(
        &self,
        driver: DriverId,
        since: Option<Moment>,
        sign: Option<Sign>,
        lost_after: u64,
    ) -> DriverShown {
        let now = self.environment.clock.now();
        let is_silent = since.is_some_and(|since| since.plus_millis(lost_after) < now);
        let (beat, key) = sign.map(|Sign { beat, key }| (beat, key)).unzip();
        DriverShown {
            driver,
            state: match &beat {
                None => DriverState::Unknown,
                Some(beat) if beat.taker.is_some() => DriverState::Lost,
                Some(_) if is_silent => DriverState::Silent,
                Some(_) => DriverState::Alive,
            },
            host: beat.as_ref().and_then(|beat| beat.host.clone()),
            job: beat.as_ref().and_then(|beat| beat.job.clone()),
            key,
            beat: beat.as_ref().and_then(|beat| beat.beat),
            at: beat.as_ref().map(|beat| beat.at),
            since,
            claims: beat.as_ref().map(|beat| beat.claims.clone()).unwrap_or_default(),
            declines: beat.as_ref().map(|beat| beat.declines.clone()).unwrap_or_default(),
            alone: beat.as_ref().is_some_and(|beat| beat.alone),
            holds: Vec::new(),
            value: None,
            is_silent,
        }
    }

    /// Returns since when this clone has seen the value of each driver's ref. A value that is no
    /// higher beat than those before it changes nothing.
    fn remember_signs(
        &self,
        run: &RunId,
        signs: &BTreeMap<DriverId, Option<Sign>>,
    ) -> Result<BTreeMap<DriverId, Seen>, AnyError> {
        let path = private_files::path(&self.store, private_files::VIA_SEEN, &run.encoded());
        let before: BTreeMap<DriverId, Seen> = private_files::read(&path, LARGEST)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let now = self.environment.clock.now();
        let sightings = signs.iter().map(|(driver, sign)| {
            let mark = sign.as_ref().and_then(Sign::mark);
            let known = before.get(driver).filter(|known| mark <= known.mark);
            (driver.clone(), known.cloned().unwrap_or(Seen { since: now, mark }))
        });
        let sightings = sightings.collect();
        private_files::put(&self.store, private_files::VIA_SEEN, &run.encoded(), &format::canonical(&sightings))
            .map_err(Error::Seen)?;
        Ok(sightings)
    }

    /// Takes the attempts of a driver from it at once, because the caller knows that it is dead.
    pub fn lost(&self, run: &RunId, driver: &DriverId) -> Result<LostShown, AnyError> {
        let mut open = self.opened(run).map_err(|denied| denied.lacking(&[Role::Own, Role::Work]))?;
        if open.state.shared.is_none() {
            return Err(Error::NotShared(run.clone()).into());
        }
        let held_items = held_by(&open.state, driver);
        let entries: Vec<NewEntry> = held_items
            .iter()
            .map(|at| {
                NewEntry::plain(Event::ItemRequeued(ItemEnded {
                    detail: Some(format!("its driver {} was reported lost", driver.short())),
                    driver: Some(driver.clone()),
                    because: Some(Because::Told),
                    ..requeued(&open.state, *at, Again::Lost)
                }))
            })
            .collect();
        let recorded = open.record(&entries)?;
        let items = recorded.iter().filter_map(|link| link.entry.event.item().map(|(item, _)| item.clone())).collect();
        Ok(LostShown { run: run.clone(), driver: driver.clone(), items })
    }

    /// Finds the beats of drivers that ended, for the runs that this repository shares, and removes
    /// them from the remotes if `remove` is true.
    ///
    /// A beat is removable if its run is sealed, or if its driver holds nothing and was silent for
    /// longer than a driver may be.
    pub fn clear_beats(&self, runs: &[RunId], remove: bool) -> Result<StaleBeats, AnyError> {
        let mut stale = Vec::new();
        for run in own_runs(&self.store)?.into_iter().filter(|run| runs.is_empty() || runs.contains(run)) {
            if Sharing::read(&self.store, &run).is_none() {
                continue;
            }
            let answer = match self.drivers(&run) {
                Ok(answer) => answer,
                // The remote that a run was only pushed to may be gone, or the run there.
                Err(error) if !Sharing::is_joined(&self.store, &run) && runs.is_empty() => {
                    self.note(format!("{run}: {}", in_words(&*error)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let view = Target::own(run.clone()).view(&self.store)?;
            let tip = self.tip(&answer.remote)?;
            for driver in answer.drivers {
                let is_idle = driver.holds.is_empty() && (driver.is_silent || driver.state == DriverState::Lost);
                let name = format!("{}{}", format::driver_refs(&run), driver.driver);
                let Some(beat) = driver.value.filter(|_| view.state.sealed || is_idle) else {
                    continue;
                };
                let mut removed = false;
                if remove {
                    let one = Move { name: name.clone(), old: Some(beat), new: None };
                    let swapped = tip.swap(&[one])?;
                    removed = swapped == Swap::Won;
                    if let Some(copy) = refs::read_stored(&self.store, &name)?.filter(|_| removed) {
                        refs::delete(&self.store, &name, copy)?;
                    }
                }
                stale.push(StaleBeat {
                    run: run.clone(),
                    driver: driver.driver,
                    remote: answer.remote.clone(),
                    removed,
                });
            }
        }
        Ok(StaleBeats { dry_run: !remove, beats: stale })
    }
}

/// Returns the running items that a driver holds.
fn held_by(state: &RunState, driver: &DriverId) -> Vec<ItemIndex> {
    state
        .items
        .indices()
        .filter(|at| state.items[*at].holder.as_ref().is_some_and(|holder| holder.driver == *driver))
        .collect()
}

errors! {
    /// Failures to look at drivers, or to declare one lost.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NotShared(RunId) "not-shared": "the run {:?} is not shared from here" [.0.as_str()];
    Seen(#[source] std::io::Error) "io": "cannot record which beats were seen";
}
