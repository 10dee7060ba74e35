//! What waits for people: items about which this repository's key can decide now.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::ledger::chain;
use crate::model::decision::{About, LogDecided};
use crate::model::digest::Digest;
use crate::model::entry::Role;
use crate::model::format;
use crate::model::name::{ItemId, RunId};

use crate::model::state::RunState;
use crate::repository::Repository;

use super::steer;
use super::target::{self, Target, unarchived_runs};

/// An item that waits for a decision.
#[derive(Clone, Debug, Serialize)]
pub struct Waits {
    /// What it is called here: `RUN/ITEM` or `REMOTE/RUN/ITEM`.
    pub target: String,
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The products that the decision is about.
    pub about: About,
    /// Whether our key can decide: it has the role, and the item is not for others.
    pub mine: bool,
    /// What our key decided already, in its log, where that was not taken in yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<&'static str>,
}

/// What waits: what `waiting --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Waiting {
    schema: &'static str,
    /// In order of the runs, our own first.
    pub items: Vec<Waits>,
    /// The runs that could not be read, each with why.
    pub unreadable: Vec<String>,
}

impl Repository {
    /// Returns what waits for a decision, in our own runs and those that were fetched; with `all`, also what is for others to decide.
    pub fn waiting(&self, all: bool) -> Result<Waiting, target::Error> {
        let key = self.own_fingerprint();
        let mut waiting = Waiting { schema: "git-handoff.waiting/1", items: Vec::new(), unreadable: Vec::new() };
        let own = unarchived_runs(&self.store)?;
        let fetched = Target::unarchived_fetched(&self.store)?;
        // Of a run that came back from a remote, ours is the one to decide on.
        let ours: BTreeSet<RunId> = own.iter().cloned().collect();
        let fetched = fetched.into_iter().filter(|target| !ours.contains(&target.run));
        for target in own.into_iter().map(Target::own).chain(fetched) {
            let name = target.name();
            if steer::is_sealed(&self.store, &target.reference) {
                continue;
            }
            let view = match target.view(&self.store) {
                Ok(view) => view,
                Err(error) => {
                    waiting.unreadable.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let state = &view.state;
            for at in state.waiting_for_people() {
                let may = |key: &String| state.keys.has(key, Role::Approve) && state.expect_decider(at, key).is_ok();
                let mine = key.as_ref().is_some_and(may);
                let item = state.graph.item(at).id.clone();
                let first = view.links.first().map(|link| link.hash);
                let decided = match (&key, first) {
                    (Some(key), Some(first)) => self.decided_elsewhere(key, &view.run, first, (at, state)),
                    _ => None,
                };
                if mine || all {
                    let (target, run) = (format!("{name}/{item}"), view.run.clone());
                    waiting.items.push(Waits { target, run, item, about: state.decided_about(at), mine, decided });
                }
            }
        }
        Ok(waiting)
    }

    /// Returns what our key last decided about an item, by its log: the word counts for these products alone. A log that cannot be read
    /// says nothing.
    pub(super) fn decided_elsewhere(
        &self,
        key: &str,
        run: &RunId,
        first: Digest,
        (at, state): (usize, &RunState),
    ) -> Option<&'static str> {
        let tree = chain::tip(&self.store, &format::log_ref(key)).ok()?.tree?;
        let path = format::decided_path(run, &state.graph.item(at).id);
        let bytes = self.store.read_blob(self.store.blob_at(tree, &path).ok()??).ok()?;
        let said: LogDecided = serde_json::from_slice(&bytes).ok()?;
        (said.first == first && said.about == state.decided_about(at)).then(|| said.decision.word())
    }
}
