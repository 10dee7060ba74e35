//! Lists the items that wait for a decision.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::decision::{About, LogDecided};
use crate::model::entry::Role;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::{ProductKey, Source};
use crate::repository::Repository;

use super::View;
use super::declined::DeclinedItem;
use super::target::{self, Target, unarchived_runs};
use super::view::is_sealed;

/// The most bytes of a patch whose lines are counted.
const MOST_COUNTED: u64 = 8 << 20;

/// An item that waits for a decision.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Waits {
    /// Its name here: `RUN/ITEM` or `REMOTE/RUN/ITEM`.
    pub target: String,
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The products that the decision is about.
    pub about: About,
    /// The products and checks to look at.
    pub look: Vec<Look>,
    /// Whether our key can decide.
    pub mine: bool,
    /// The decision of our key, if it is only in its log so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::decision::Decision>"))]
    pub decided: Option<&'static str>,
}

/// A product that a decision is about, or the check of the item that made it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Look {
    /// `diff`, `output`, `document` or `check`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["diff", "output", "document", "check"])))]
    pub kind: &'static str,
    /// The argument for `cat`, or of a check, for `show`.
    pub target: String,
    /// The bytes of a product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The size of a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// The result of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
}

/// The size of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Changes {
    /// The files.
    pub files: usize,
    /// The lines that it adds.
    pub added: usize,
    /// The lines that it takes away.
    pub removed: usize,
}

impl Changes {
    /// Counts the changes of a patch as git does, or returns `None` if git cannot read it.
    fn read(store: &Store, patch: Vec<u8>) -> Option<Self> {
        let git = store.work_dir().map_or_else(|| store.git(), |top| store.git().work_tree(&top));
        let listed =
            git.args(["apply", "--numstat", "--allow-empty", "--whitespace=nowarn"]).input(patch).run().ok()?;
        let mut changes = Self::default();
        for line in String::from_utf8_lossy(&listed).lines() {
            // A binary file has no lines.
            let mut counts = line.split('\t').map(|count| count.parse().unwrap_or(0));
            changes.files += 1;
            changes.added += counts.next().unwrap_or(0);
            changes.removed += counts.next().unwrap_or(0);
        }
        Some(changes)
    }
}

/// All waiting items, as `waiting --json` prints them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.waiting/1")]
pub struct Waiting {
    /// In order of the runs, our own first.
    pub items: Vec<Waits>,
    /// The ready items of shared runs that every driver declines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<DeclinedItem>,
    /// The errors of runs that cannot be read.
    pub unreadable: Vec<String>,
}

impl Repository {
    /// Returns the items that wait for a decision of our key, in our own and fetched runs. With
    /// `all`, also returns those that other keys decide.
    pub fn waiting(&self, all: bool) -> Result<Waiting, target::Error> {
        let key = self.own_fingerprint();
        let mut waiting = Waiting::default();
        let own = unarchived_runs(&self.store)?;
        let fetched = Target::unarchived_fetched(&self.store)?;
        // If our own run was fetched back from a remote, only ours counts.
        let ours: BTreeSet<RunId> = own.iter().cloned().collect();
        let fetched = fetched.into_iter().filter(|target| !ours.contains(&target.run));
        for target in own.into_iter().map(Target::own).chain(fetched) {
            let name = target.name();
            if is_sealed(&self.store, &target.reference) {
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
                let mine = key
                    .as_ref()
                    .is_some_and(|key| state.keys.has(key, Role::Approve) && state.expect_decider(at, key).is_ok());
                let item = state.graph.item(at).id.clone();
                let decided = key.as_ref().and_then(|key| self.decided_elsewhere(key, &view, at));
                if mine || all {
                    let (address, run) = (format!("{name}/{item}"), view.run.clone());
                    let about = state.decided_about(at);
                    let look = self.to_look_at(&name, &view, &about);
                    waiting.items.push(Waits { target: address, run, item, about, look, mine, decided });
                }
            }
        }
        Ok(waiting)
    }

    /// Returns the products that a decision is about, and the checks of the items that made them.
    fn to_look_at(&self, name: &str, view: &View, about: &About) -> Vec<Look> {
        let mut look = Vec::new();
        for (source, products) in about {
            let Source::Item(item) = source else { continue };
            let Some(at) = view.state.graph.position(item) else { continue };
            for key in products.keys() {
                let product = view.state.items[at].products.get(key);
                let kind = match key {
                    ProductKey::Patch => "diff",
                    ProductKey::Output(_) => "output",
                    ProductKey::Document(_) => "document",
                };
                // A patch that is missing or too large is shown without its numbers.
                let patch = product.filter(|product| kind == "diff" && product.size <= MOST_COUNTED);
                let changes = patch.and_then(|recorded| self.store.read_blob(recorded.oid).ok());
                look.push(Look {
                    kind,
                    target: format!("{name}/{item}:{key}"),
                    size: product.map(|product| product.size),
                    changes: changes.and_then(|bytes| Changes::read(&self.store, bytes)),
                    passed: None,
                });
            }
            look.extend(checked(view, item).map(|passed| Look {
                kind: "check",
                target: format!("{name}/{item}"),
                size: None,
                changes: None,
                passed: Some(passed),
            }));
        }
        look
    }

    /// Returns our key's last decision on an item by its own log, if it is about the current
    /// products. A log that cannot be read has none.
    pub(crate) fn decided_elsewhere(&self, key: &str, view: &View, at: ItemIndex) -> Option<&'static str> {
        let tree = chain::tip(&self.store, &format::log_ref(key)).ok()?.tree?;
        let path = format::decided_path(&view.run, &view.state.graph.item(at).id);
        let bytes = self.store.read_blob(self.store.blob_at(tree, &path).ok()??).ok()?;
        let vote: LogDecided = serde_json::from_slice(&bytes).ok()?;
        let first = view.links.first()?.hash;
        (vote.first == first && vote.about == view.state.decided_about(at)).then(|| vote.decision.word())
    }
}

/// Returns whether the check of an item passed, or `None` if it has none.
fn checked(view: &View, item: &ItemId) -> Option<bool> {
    let end = view.links.iter().rev().find_map(|link| link.entry.event.end_of(item))?;
    end.verify.map(|verify| verify.passed)
}
