//! Drives a pushed run alone: beats on its remote say so, and `run --via` elsewhere respects them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::git::remote::without_password;
use crate::git::tip::{Move, Tip};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::driver::DriverId;
use crate::model::format;
use crate::model::name::RunId;
use crate::repository::Repository;
use crate::run::operate::{self, OpenRun, sharing};
use crate::run::query::Target;
use crate::run::query::pushed::Pushed;
use crate::run::query::remote_read::RemoteState;
use crate::run::query::sharing::{Home, LastDriver, Sharing};
use crate::run::query::view::is_sealed;

use super::beat::{Beats, Pulse, beat_ref};
use super::event::Progress;
use super::identity::Identity;
use super::operations::{DriveOptions, Error};

/// How many beats of a lone driver fit into the silence after which it counts as lost.
const BEATS_UNTIL_LOST: u32 = 3;

/// The longest pause between two looks at the beats of a lone driver.
const POLL: Duration = Duration::from_secs(2);

/// Together with which other drivers a run is driven.
pub(super) enum Course {
    /// With none.
    Alone,
    /// With none, which beats on this remote say.
    Announced(String),
    /// With those that drive it through this remote.
    Through(String),
}

impl Course {
    /// Returns the remote of other drivers.
    pub(super) fn shared(&self) -> Option<&String> {
        if let Self::Through(remote) = self { Some(remote) } else { None }
    }

    /// Returns the remote where beats say that the run is driven here.
    pub(super) fn announced(self) -> Option<String> {
        if let Self::Announced(remote) = self { Some(remote) } else { None }
    }
}

impl Repository {
    /// Decides together with whom a run is driven. Without `--via`, its remote decides, if it was
    /// pushed or is shared.
    pub(super) fn course(&self, run: &RunId, options: &DriveOptions) -> Result<Course, AnyError> {
        if let Some(remote) = &options.via {
            return Ok(Course::Through(remote.clone()));
        }
        let is_shared = || Target::own(run.clone()).view(&self.store).map(|view| view.state.shared.is_some());
        if !self.offline
            && let Some(sharing) = Sharing::read(&self.store, run)
            && !is_sealed(&self.store, &format::run_ref(run))
            && is_shared()?
        {
            self.note(through(run, &without_password(&sharing.remote)));
            return Ok(Course::Through(sharing.remote));
        }
        let Some(read) = self.read_remote_of(run)? else { return Ok(Course::Alone) };
        sharing::expect_continuable(run, &read)?;
        self.note(read.in_words(run));
        if read.state.shows_others() || is_shared()? {
            self.note(through(run, &read.remote));
            return Ok(Course::Through(read.name));
        }
        Ok(if read.state == RemoteState::Missing { Course::Alone } else { Course::Announced(read.name) })
    }
}

fn through(run: &RunId, remote: &str) -> String {
    format!("{run}: driven through {remote}, as with --via")
}

/// The beats of a driver that drives a run alone.
pub(super) struct Alone {
    beats: Beats,
}

impl Alone {
    /// Puts a beat on the remote, and makes sure that no other driver began meanwhile.
    ///
    /// Returns `None`, with a note, if the remote takes no beat. The run is driven all the same.
    pub(super) fn start(repository: &Repository, run: &OpenRun, remote: &str) -> Result<Option<Self>, AnyError> {
        let (id, store, tip) = (run.id(), run.store(), repository.tip(remote)?);
        let identity = Identity::new(&repository.environment.variables);
        let home = Home::find(store).map_err(sharing::Error::Record)?;
        let mut pushed = Pushed::load(store, id, run.first());
        let last = pushed.alone.replace(LastDriver { id: identity.id.clone(), home });
        pushed.keep(store, id).map_err(sharing::Error::Record)?;
        if let Some(last) = last.filter(|last| last.home == home) {
            remove(&tip, &beat_ref(id, &last.id));
        }
        let folder = store.common_dir().join("handoff").join("via");
        std::fs::create_dir_all(&folder).map_err(sharing::Error::Record)?;
        let pulse = Pulse {
            tip,
            writer: run.writer().clone(),
            run: id.clone(),
            first: run.first(),
            identity,
            heartbeat: repository.config.lost_after / BEATS_UNTIL_LOST,
            alive: folder.join(format!("{}.alive", id.encoded())),
            alone: true,
        };
        let beats = match Beats::start(pulse) {
            Ok(beats) => beats,
            Err(why) => {
                repository.note(format!("{remote} takes no beat, so other machines may drive the run, too: {why}"));
                return Ok(None);
            }
        };
        match repository.read_remote_of(id)?.map(|read| read.state) {
            Some(state) if state.shows_others() => {
                Err(Error::Joined { run: id.clone(), remote: remote.to_owned() }.into())
            }
            Some(RemoteState::Twice { .. }) => Err(Error::Joined { run: id.clone(), remote: remote.to_owned() }.into()),
            _ => Ok(Some(Self { beats })),
        }
    }

    /// Stops the beats. The last one stays on the remote if that lacks what was done here.
    pub(super) fn end(self, is_unpushed: bool) {
        if is_unpushed {
            self.beats.leave();
        }
    }
}

/// Removes a beat that an earlier driver of this repository left. It harms no one if it stays.
fn remove(tip: &Tip, name: &str) {
    let found = tip.list(&[name]).ok().and_then(|listed| listed.get(name).copied());
    if let Some(old) = found {
        let _ = tip.swap(&[Move { name: name.to_owned(), old: Some(old), new: None }]);
    }
}

/// Waits until no other driver drives the run alone: until its beat is gone or did not change for
/// `handoff.lostAfter`. Returns false if it was interrupted.
pub(super) async fn wait_for_lone_drivers(
    run: &mut OpenRun,
    repository: &Repository,
    interrupt: &mut watch::Receiver<bool>,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<bool, AnyError> {
    let lost_after = repository.config.lost_after;
    let own = Pushed::load(run.store(), run.id(), run.first()).alone.map(|alone| alone.id);
    let mut beats: BTreeMap<DriverId, (Oid, Instant)> = BTreeMap::new();
    // A shared run is driven by all.
    while run.state.shared.is_none() && !run.state.sealed && !*interrupt.borrow() {
        match run.refresh() {
            Ok(_) => {}
            // Silence counts only while the remote can be read.
            Err(error) if error.is_of_remote() => beats.values_mut().for_each(|(_, since)| *since = Instant::now()),
            Err(error) => return Err(error.into()),
        }
        let mut waits = false;
        for lone in run.lone_drivers()?.into_iter().filter(|lone| Some(&lone.id) != own.as_ref()) {
            let known = beats.get(&lone.id).copied().filter(|(beat, _)| *beat == lone.beat);
            let (_, since) = known.unwrap_or((lone.beat, Instant::now()));
            if beats.insert(lone.id.clone(), (lone.beat, since)).is_none() {
                tell(Progress::Note(waits_for(&lone, lost_after)));
            }
            waits |= since.elapsed() < lost_after;
        }
        if !waits {
            return Ok(true);
        }
        let pause = tokio::time::sleep(POLL.min(lost_after / 4));
        tokio::select! {
            () = pause => {}
            _ = interrupt.changed() => {}
        }
    }
    Ok(!*interrupt.borrow())
}

fn waits_for(lone: &operate::LoneDriver, lost_after: Duration) -> String {
    let host = lone.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    let (id, silence) = (lone.id.short(), lost_after.as_secs_f64());
    format!("driver {id}{host} drives the run, not shared: waiting until it ends or was silent for {silence} s")
}
