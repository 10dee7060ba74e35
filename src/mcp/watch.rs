//! The tool that waits for new entries of a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use git_handoff::answers::program::NewEntries;
use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::repository::Environment;
use git_handoff::run::query::list::counts;
use git_handoff::run::query::log_entry::entry_shown;
use git_handoff::run::query::{Target, View};
use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use crate::output::Failure;

use super::server::cancelled;
use super::tools::{Call, Effect, Entry, Run, Waiting, answer, describe_tool, off_the_loop, read};

/// How often the ref of a watched run is read.
const LOOK: Duration = Duration::from_millis(500);

/// The time of a watch that gives none, in seconds. Many clients give a call up after 60 seconds.
const USUAL: u64 = 50;

/// The maximum time of a watch, in seconds.
const LONGEST: u64 = 600;

/// The maximum number of entries in an answer.
const MOST_ENTRIES: usize = 200;

/// The description of the tool.
const ABOUT: &str = "Wait for new entries of a run and return them. Returns early if the run has settled, and without entries \
    after the timeout. To continue, pass `entries` of the answer as `since`.";

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![Entry { tool: describe_tool::<Watch>("watch", ABOUT, Effect::Reads, &["watch"]), run: Run::Wait(begin) }]
}

#[derive(Deserialize, JsonSchema)]
struct Watch {
    /// The run
    run: String,
    /// The number of entries that you know [default: all that there are now]
    since: Option<usize>,
    /// The seconds to wait, at most 600 [default: 50]
    timeout: Option<u64>,
}

fn begin(call: Call, arguments: JsonObject) -> Waiting {
    Box::pin(async move { watch(call, read("watch", arguments)?).await })
}

async fn watch(call: Call, parameters: Watch) -> Result<Value, Failure> {
    let timeout = parameters.timeout.unwrap_or(USUAL);
    if timeout > LONGEST {
        return Err(Failure::usage(format!("`timeout` can be at most {LONGEST} seconds")));
    }
    let timeout = Duration::from_secs(timeout);
    let until = Instant::now() + timeout;
    call.progress.limit(timeout);
    let watches = call.session.watches.clone();
    let (target, mut view) = tokio::select! {
        biased;
        () = call.session.ending.come() => return Err(cancelled()),
        begun = watches.begin(parameters.run) => begun?,
    };
    let since = parameters.since.unwrap_or(view.links.len());
    while view.links.len() <= since && !is_at_rest(&view) {
        call.progress.say(stand(&view));
        tokio::select! {
            biased;
            () = call.session.ending.come() => break,
            () = sleep_until(until) => break,
            moved = watches.moved(&target, &view) => view = moved?,
        }
    }
    let new =
        view.links.iter().skip(since).take(MOST_ENTRIES).map(|link| entry_shown(link, &view.state)).collect::<Vec<_>>();
    answer(&NewEntries {
        run: &view.run,
        entries: since.min(view.links.len()) + new.len(),
        new,
        counts: counts(&view),
        settled: is_at_rest(&view),
        sealed: view.state.sealed,
    })
}

/// The watched runs of a session.
pub(super) struct Watches {
    environment: Environment,
    /// The repository for reading refs, once it is there. Chains are read from a newly opened one.
    store: OnceLock<Store>,
    /// Each run as it was last read, by its ref, so that all its watches read a chain once.
    views: Mutex<HashMap<String, Arc<View>>>,
    /// Held during a look, so that all watches together take one thread.
    turn: tokio::sync::Mutex<()>,
}

impl Watches {
    pub(super) fn new(environment: Environment) -> Self {
        let store = OnceLock::new();
        Self { environment, store, views: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Returns the repository for reading refs.
    fn store(&self) -> Result<&Store, Failure> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = Store::discover(&self.environment.directory)?;
        Ok(self.store.get_or_init(|| store))
    }

    /// Finds the run that a client names, and returns it as it is now.
    async fn begin(self: &Arc<Self>, run: String) -> Result<(Arc<Target>, Arc<View>), Failure> {
        self.look_alone(move |watches, views| {
            let store = watches.store()?;
            let target = Target::find(store, &run)?;
            let tip = refs::read(store, &target.reference)?;
            let view = watches.view(&target, tip, views)?;
            Ok((Arc::new(target), view))
        })
        .await
    }

    /// Waits until the run is no longer as it was seen, and returns it as it is then.
    async fn moved(self: &Arc<Self>, target: &Arc<Target>, last: &View) -> Result<Arc<View>, Failure> {
        let known = last.head.commit;
        loop {
            sleep(LOOK).await;
            let target = target.clone();
            if let Some(view) = self
                .look_alone(move |watches: &Self, views: &mut HashMap<_, _>| {
                    let tip = refs::read(watches.store()?, &target.reference)?;
                    let has_moved = tip.is_none() || tip != known;
                    has_moved.then(|| watches.view(&target, tip, views)).transpose()
                })
                .await?
            {
                return Ok(view);
            }
        }
    }

    /// Calls a function on another thread while no other watch looks.
    async fn look_alone<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self, &mut HashMap<String, Arc<View>>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _turn = self.turn.lock().await;
        let watches = self.clone();
        off_the_loop(move || look(&watches, &mut watches.views.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Returns a run whose ref points at `tip`.
    fn view(
        &self,
        target: &Target,
        tip: Option<Oid>,
        views: &mut HashMap<String, Arc<View>>,
    ) -> Result<Arc<View>, Failure> {
        let known = views.get(&target.reference).filter(|view| tip.is_some() && view.head.commit == tip);
        if let Some(view) = known {
            return Ok(view.clone());
        }
        let view = Arc::new(target.view(&Store::discover(&self.environment.directory)?)?);
        views.insert(target.reference.clone(), view.clone());
        Ok(view)
    }
}

/// Formats the state of a run in one line.
fn stand(view: &View) -> String {
    let counts: Vec<_> = counts(view).into_iter().map(|(status, count)| format!("{count} {status}")).collect();
    format!("waiting after {} entries; items: {}", view.links.len(), counts.join(", "))
}

/// Returns true if the run waits for a person or an agent.
fn is_at_rest(view: &View) -> bool {
    view.state.sealed || view.state.closed.is_some() || view.state.cancelled.is_some() || view.state.is_settled()
}
