//! Reads the remote of a run that was pushed or is shared, before the run is shown or changed.
//!
//! The clone that pushed a run may not know that other machines drive it meanwhile.

use std::time::{Duration, Instant};

use crate::git::remote::{self, without_password};
use crate::git::tip::Tip;
use crate::git::{history, refs};
use crate::ledger::chain;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::DriverId;
use crate::model::format;
use crate::model::name::RunId;
use crate::repository::Repository;
use crate::run::query::Target;
use crate::run::query::driver_lock::is_driven_here;
use crate::run::query::pushed::Pushed;
use crate::run::query::remote_read::{Current, RemoteRead, RemoteState};
use crate::run::query::sharing::{Home, Sharing};
use crate::run::query::view::is_sealed;

use super::sharing;

/// The time limit of listing the refs of a run on a remote.
pub(super) const LISTED_WITHIN: Duration = Duration::from_secs(5);

/// The run here, as remotes are compared with it.
struct Here<'a> {
    run: &'a RunId,
    name: String,
    ours: Oid,
    /// The driver of this repository that left a beat.
    alone: Option<DriverId>,
}

impl Repository {
    /// Reads the remotes of an unsealed run of this repository that was pushed or is shared, once,
    /// and moves our ref to their later head. Returns `None` if there is no remote to read, or if a
    /// driver of this repository knows more.
    ///
    /// Listing takes at most a few seconds.
    pub fn read_remote_of(&self, run: &RunId) -> Result<Option<RemoteRead>, sharing::Error> {
        let name = format::run_ref(run);
        if self.offline || is_sealed(&self.store, &name) {
            return Ok(None);
        }
        let Some(ours) = refs::read_stored(&self.store, &name)? else { return Ok(None) };
        let Some(sharing) = Sharing::read(&self.store, run) else { return Ok(None) };
        let first = first_hash(self, run, ours)?;
        let is_joined = Sharing::is_joined(&self.store, run);
        // A driver here that is not known to share the run is ahead of every remote.
        if sharing.first != first || (!is_joined && is_driven_here(&self.store.common_dir(), run)) {
            return Ok(None);
        }
        let mut pushed = Pushed::load(&self.store, run, first);
        let remotes = if is_joined { vec![sharing.remote] } else { pushed.remotes.clone() };
        let home = Home::find(&self.store).ok();
        let alone = pushed.alone.clone().filter(|alone| Some(alone.home) == home).map(|alone| alone.id);
        let until = Instant::now() + LISTED_WITHIN;
        let mut heaviest: Option<(String, RemoteState, Option<String>)> = None;
        for remote in remotes {
            let here = Here { run, name: name.clone(), ours, alone: alone.clone() };
            // A remote that is no longer configured cannot be read by its name.
            let Ok(tip) = self.tip(&remote) else { continue };
            let (state, failure) = self.compare(&here, &tip, until)?;
            if heaviest.as_ref().is_none_or(|(_, known, _)| state.rank() > known.rank()) {
                heaviest = Some((remote, state, failure));
            }
        }
        let Some((remote_name, state, failure)) = heaviest else { return Ok(None) };
        if state != RemoteState::Unread {
            pushed.read_at = Some(self.environment.clock.now());
        }
        if state.shows_others() {
            pushed.prefer(&remote_name);
        }
        pushed.keep(&self.store, run).map_err(sharing::Error::Record)?;
        Ok(Some(RemoteRead {
            remote: without_password(&remote_name),
            read_at: pushed.read_at,
            failure,
            name: remote_name,
            state,
        }))
    }

    /// Compares a run here with the run on a remote. Fetches what the remote has more.
    fn compare(
        &self,
        here: &Here<'_>,
        tip: &Tip,
        until: Instant,
    ) -> Result<(RemoteState, Option<String>), sharing::Error> {
        let Here { run, name, ours, alone } = here;
        let folder = format::driver_refs(run);
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(500));
        let listed = match tip.clone().within(left).list(&[name, &format!("{folder}*")]) {
            Ok(listed) => listed,
            Err(why) => return Ok((RemoteState::Unread, Some(first_line(&why)))),
        };
        let drivers = listed.keys().filter_map(|path| DriverId::parse(path.strip_prefix(&folder)?));
        let drivers: Vec<DriverId> = drivers.filter(|driver| Some(driver) != alone.as_ref()).collect();
        let current = |gained, unpushed| (RemoteState::Current(Current { gained, unpushed, drivers }), None);
        let Some(theirs) = listed.get(name).copied() else { return Ok((RemoteState::Missing, None)) };
        let count = |old, new| history::since(&self.store, new, Some(old)).map_or(0, |commits| commits.len());
        if theirs == *ours {
            return Ok(current(0, 0));
        }
        if history::goes_on(&self.store, theirs, *ours) {
            return Ok(current(0, count(theirs, *ours)));
        }
        let guard = match tip.fetch(&[theirs]) {
            Ok(guard) => guard,
            Err(why) => return Ok((RemoteState::Unread, Some(first_line(&why)))),
        };
        if !history::goes_on(&self.store, *ours, theirs) {
            let (ours, theirs) = (*ours, theirs);
            let is_same_run = history::first(&self.store, ours) == history::first(&self.store, theirs);
            let twice = RemoteState::Twice { ours, theirs };
            return Ok((if is_same_run { twice } else { RemoteState::Other { ours, theirs } }, None));
        }
        if let Err(why) = self.check_following(run, *ours, theirs) {
            return Ok((RemoteState::Unread, Some(why)));
        }
        match refs::advance(&self.store, name, *ours, theirs) {
            // Another process of this repository may have moved it.
            Ok(()) | Err(refs::Error::LostRace(_)) => {}
            Err(error) => return Err(error.into()),
        }
        drop(guard);
        if is_sealed(&self.store, name) {
            self.fetch_logs_of(run, tip);
        }
        Ok(current(count(*ours, theirs), 0))
    }

    /// Fetches the logs that name the seal of a run. Without them `verify` says what is missing.
    fn fetch_logs_of(&self, run: &RunId, tip: &Tip) {
        let Ok(view) = Target::own(run.clone()).view(&self.store) else { return };
        let keys: Vec<String> = view.state.keys.iter().map(|(key, _)| key.to_owned()).collect();
        let _ = self.fetch_logs(tip, &keys);
    }
}

/// Returns the first line of git's words.
fn first_line(why: &remote::Error) -> String {
    in_words(why).lines().next().unwrap_or_default().to_owned()
}

/// Returns the leaf hash of entry 0 of a run.
fn first_hash(repository: &Repository, run: &RunId, head: Oid) -> Result<Digest, sharing::Error> {
    let first = history::first(&repository.store, head).ok_or_else(|| sharing::Error::NotARun(run.clone()))?;
    Ok(chain::decode(&repository.store, first)?.hash)
}
