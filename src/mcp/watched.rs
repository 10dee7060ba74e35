//! The runs that are being watched: one look for all of them at a time, and one reading of a run for all who watch it.
//!
//! Whoever waits for a run has no thread of its own. One task looks where the refs are; a chain is read only when its ref has moved,
//! once for everybody, by few at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::repository::Environment;
use git_handoff::run::{Target, View};
use tokio::sync::{Semaphore, watch};

use crate::cli::Failure;

use super::tools::off_the_loop;

/// How often refs are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How many chains are read at the same time.
const READINGS: usize = 2;

/// What was seen of a ref: where it points, or that nobody could say; and the number of that sight, which only grows.
type Sight = (u64, Option<Oid>);

/// All runs of a server that somebody watches.
pub(super) struct Watches {
    environment: Environment,
    /// The repository as it was opened for looking at refs. Chains are read from one that is opened anew.
    store: Store,
    runs: Mutex<HashMap<String, Arc<Watched>>>,
    readings: Semaphore,
}

/// A run that somebody watches.
pub(super) struct Watched {
    target: Target,
    /// Where its ref was at the last look.
    sight: watch::Sender<Sight>,
    /// The run as it was read last, which was not before that sight.
    read: tokio::sync::Mutex<Option<(u64, Arc<View>)>>,
}

/// Somebody who watches a run; nobody looks at a run that has no such.
pub(super) struct Watcher {
    watches: Arc<Watches>,
    watched: Arc<Watched>,
    sights: watch::Receiver<Sight>,
}

impl Watches {
    /// Nobody watches anything.
    pub(super) fn new(environment: Environment, store: Store) -> Self {
        Self { environment, store, runs: Mutex::default(), readings: Semaphore::new(READINGS) }
    }

    /// Begins to watch the run that a client names, and returns it as it is now.
    pub(super) async fn begin(self: &Arc<Self>, run: String) -> Result<(Watcher, Arc<View>), Failure> {
        let reading = self.readings.acquire().await.map_err(|_| Failure::bug())?;
        let watches = self.clone();
        let target = off_the_loop(move || Ok(Target::find(&watches.store, &run)?)).await?;
        drop(reading);
        let watcher = self.join(target);
        let view = watcher.read(None).await?;
        Ok((watcher, view))
    }

    /// Adds somebody who watches a run.
    fn join(self: &Arc<Self>, target: Target) -> Watcher {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.is_empty() {
            tokio::spawn(self.clone().look());
        }
        let reference = target.reference.clone();
        let new = || Watched { target, sight: watch::Sender::new((0, None)), read: tokio::sync::Mutex::default() };
        let watched = runs.entry(reference).or_insert_with(|| Arc::new(new())).clone();
        let sights = watched.sight.subscribe();
        Watcher { watches: self.clone(), watched, sights }
    }

    /// Looks at the refs of all runs that are watched, again and again, until none is.
    async fn look(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let watched: Vec<Arc<Watched>> = {
                let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
                runs.retain(|_, watched| watched.sight.receiver_count() > 0);
                if runs.is_empty() {
                    return;
                }
                runs.values().cloned().collect()
            };
            let store = self.store.clone();
            let looked = off_the_loop(move || {
                watched.iter().for_each(|watched| watched.look(&store));
                Ok(())
            });
            // A look that failed is followed by the next; whoever waits has a time limit.
            let _ = looked.await;
        }
    }
}

impl Watched {
    /// Looks where the ref is, and tells those who wait if that is somewhere else than before.
    fn look(&self, store: &Store) {
        let tip = refs::read(store, &self.target.reference).unwrap_or_default();
        self.sight.send_if_modified(|(number, known)| {
            let has_moved = *known != tip;
            *number += u64::from(has_moved);
            *known = tip;
            has_moved
        });
    }

    /// Reads the run as it is now, unless it is as it was known.
    fn read(&self, watches: &Watches, known: Option<Arc<View>>) -> Result<Arc<View>, Failure> {
        let tip = refs::read(&watches.store, &self.target.reference)?;
        match known.filter(|known| tip.is_some() && known.head.commit == tip) {
            Some(known) => Ok(known),
            None => self
                .target
                .view(&watches.environment.store()?.unwrap_or_else(|| watches.store.clone()))
                .map(Arc::new)
                .map_err(Failure::from),
        }
    }
}

impl Watcher {
    /// Waits until the run is not as it was seen any more, and returns it as it is then.
    pub(super) async fn moved(&mut self, seen: &View) -> Result<Arc<View>, Failure> {
        loop {
            self.sights.changed().await.map_err(|_| Failure::bug())?;
            let (number, tip) = *self.sights.borrow_and_update();
            if tip.is_none() || tip != seen.head.commit {
                return self.read(Some(number)).await;
            }
        }
    }

    /// Returns the run as it was at a sight or later; without one, as it is now.
    async fn read(&self, sight: Option<u64>) -> Result<Arc<View>, Failure> {
        let mut read = self.watched.read.lock().await;
        if let (Some(sight), Some((at, view))) = (sight, read.as_ref())
            && *at >= sight
        {
            return Ok(view.clone());
        }
        let _reading = self.watches.readings.acquire().await.map_err(|_| Failure::bug())?;
        let at = self.watched.sight.borrow().0;
        let (watches, watched) = (self.watches.clone(), self.watched.clone());
        let known = read.take().map(|(_, view)| view);
        let view = off_the_loop(move || watched.read(&watches, known)).await?;
        *read = Some((at, view.clone()));
        Ok(view)
    }
}
