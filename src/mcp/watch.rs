//! The tool that waits for new entries of a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::name::RunId;
use git_handoff::repository::Environment;
use git_handoff::run::list::counts;
use git_handoff::run::log_entry::entry_shown;
use git_handoff::run::{Target, View};
use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use crate::cli::Failure;

use super::tools::{Call, Effect, Entry, Run, Session, Waiting, answer, off_the_loop, read, shown};

/// How often the ref of a watched run is read.
const LOOK: Duration = Duration::from_millis(500);

/// How many watched runs are looked at in one moment, so that many watches take few threads.
pub(super) const LOOKS: usize = 4;

/// The maximum time of a watch, in seconds.
const LONGEST: u64 = 600;

/// The maximum number of entries in an answer.
const MOST_ENTRIES: usize = 200;

/// The description of the tool.
const ABOUT: &str = "Wait for new entries of a run and return them. Returns early if the run has settled, and without entries \
    after the timeout. To continue, pass `entries` of the answer as `since`.";

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![Entry { tool: shown::<Watch>("watch", ABOUT, Effect::Reads, &["watch"]), run: Run::Wait(begin) }]
}

#[derive(Deserialize, JsonSchema)]
struct Watch {
    /// The run
    run: String,
    /// The number of entries that you know [default: all that there are now]
    since: Option<usize>,
    /// The seconds to wait, at most 600 [default: 60]
    timeout: Option<u64>,
}

fn begin(call: Call, arguments: JsonObject) -> Waiting {
    Box::pin(async move { watch(call, read("watch", arguments)?).await })
}

async fn watch(call: Call, parameters: Watch) -> Result<Value, Failure> {
    let timeout = parameters.timeout.unwrap_or(60);
    if timeout > LONGEST {
        return Err(Failure::usage(format!("`timeout` can be at most {LONGEST} seconds")));
    }
    let timeout = Duration::from_secs(timeout);
    let until = Instant::now() + timeout;
    call.progress.limit(timeout);
    let (watched, mut view) = Watched::begin(&call.session, parameters.run).await?;
    let since = parameters.since.unwrap_or(view.links.len());
    while view.links.len() <= since && !is_at_rest(&view) {
        call.progress.say(stand(&view));
        tokio::select! {
            biased;
            () = call.session.ending.come() => break,
            () = sleep_until(until) => break,
            moved = watched.moved(&view) => view = moved?,
        }
    }
    let new =
        view.links.iter().skip(since).take(MOST_ENTRIES).map(|link| entry_shown(link, &view.state)).collect::<Vec<_>>();
    answer(&NewEntries {
        schema: "git-handoff.watch/1",
        run: &view.run,
        entries: since.min(view.links.len()) + new.len(),
        new,
        counts: counts(&view),
        settled: is_at_rest(&view),
        sealed: view.state.sealed,
    })
}

/// A run that is being watched.
struct Watched {
    environment: Environment,
    looks: Arc<Semaphore>,
    /// The repository, opened when the watch began. Chains are read from one that is opened again.
    store: Store,
    target: Target,
}

impl Watched {
    /// Begins to watch the run that a client names, and returns it as it is now.
    async fn begin(session: &Session, run: String) -> Result<(Arc<Self>, View), Failure> {
        let (environment, looks) = (session.environment.clone(), session.looks.clone());
        let _look = session.looks.acquire().await.map_err(|_| Failure::bug())?;
        off_the_loop(move || {
            let store = Store::discover(&environment.directory)?;
            let target = Target::find(&store, &run)?;
            let view = target.view(&store)?;
            Ok((Arc::new(Self { environment, looks, store, target }), view))
        })
        .await
    }

    /// Waits until the run is no longer as it was seen, and returns it as it is then.
    async fn moved(self: &Arc<Self>, seen: &View) -> Result<View, Failure> {
        let known = seen.head.commit;
        loop {
            sleep(LOOK).await;
            let _look = self.looks.acquire().await.map_err(|_| Failure::bug())?;
            let watched = self.clone();
            let look = move || {
                if known.is_some() && refs::read(&watched.store, &watched.target.reference)? == known {
                    return Ok(None);
                }
                Ok(Some(watched.target.view(&Store::discover(&watched.environment.directory)?)?))
            };
            if let Some(view) = off_the_loop(look).await? {
                return Ok(view);
            }
        }
    }
}

/// Formats the state of a run in one line.
fn stand(view: &View) -> String {
    let counts: Vec<_> = counts(view).into_iter().map(|(status, count)| format!("{count} {status}")).collect();
    format!("waiting after {} entries; items: {}", view.links.len(), counts.join(", "))
}

/// The new entries of a run.
#[derive(Serialize)]
struct NewEntries<'a> {
    schema: &'static str,
    /// The run.
    run: &'a RunId,
    /// The number of entries known after this.
    entries: usize,
    /// The new entries, as in `log --json`.
    new: Vec<Value>,
    /// The number of items per status, `pending` and `ready` included.
    counts: BTreeMap<&'static str, u64>,
    /// Whether the run waits for a person or an agent.
    settled: bool,
    /// Whether it is sealed.
    sealed: bool,
}

/// Returns true if the run waits for a person or an agent.
fn is_at_rest(view: &View) -> bool {
    view.state.sealed || view.state.closed.is_some() || view.state.cancelled.is_some() || view.state.is_settled()
}
