//! The facts that a page shows of a run. All follow from its evidence.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::picture::{self, Picture};
use super::timeline::Timing;
use super::words::{self, Facts};
use super::{content, item, timeline};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Product};
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::outcomes;
use crate::report::graph::ItemStatus;
use crate::run::query::View;
use crate::run::query::attempts::AttemptShown;
use crate::run::query::log_entry::entry_shown;
use crate::run::query::show::{self, SourceShown};

/// From this number of items on, those that are done and green are only a row of the table.
const MOST_DETAILED: usize = 2000;

/// A run on a page.
pub(super) struct RunPage<'a> {
    pub(super) store: &'a Store,
    pub(super) view: &'a View,
    /// The blobs that the evidence lacks.
    pub(super) omitted: &'a BTreeSet<Oid>,
    pub(super) timing: Timing,
    /// The position of the run on the page, for anchors.
    number: usize,
    /// The items of the plan, as it has them.
    planned: HashMap<String, Value>,
    entries: Vec<Value>,
}

impl<'a> RunPage<'a> {
    pub(super) fn new(store: &'a Store, view: &'a View, omitted: &'a BTreeSet<Oid>, number: usize) -> Self {
        let entries: Vec<Value> = view.links.iter().map(|link| entry_shown(link, &view.state)).collect();
        let plan = blob(store, &view.state.submitted.plan);
        let items = plan["items"].as_array().cloned().unwrap_or_default().into_iter();
        let planned = items.map(|item| (words::plain(&item["id"]), item)).collect();
        let timing = Timing::measure(view, &AttemptShown::all(view));
        Self { store, view, omitted, timing, number, planned, entries }
    }

    /// Returns the facts for the template.
    pub(super) fn facts(&self, picture: &Picture) -> Value {
        let items = self.items();
        let (documents, sources) = (self.documents(), SourceShown::all(self.view));
        let artifacts = self.artifacts();
        let decisions = self.entries_of(|kind| kind == "item.decided");
        json!({
            "anchor": format!("r{}", self.number),
            "run": self.view.run,
            "outcome": self.outcome(),
            "facts": self.run_facts(),
            "graph": picture::facts(self, picture),
            "timeline": timeline::facts(self),
            "items": items,
            "hasDocuments": !documents.is_empty(),
            "documents": documents,
            "hasDecisions": !decisions.is_empty(),
            "decisions": decisions,
            "hasSources": !sources.is_empty(),
            "sources": sources,
            "hasArtifacts": !artifacts.is_empty(),
            "artifacts": artifacts,
            "events": self.entries_of(|kind| kind.starts_with("run.")),
        })
    }

    fn items(&self) -> Vec<Value> {
        let mut by_item: HashMap<&str, Vec<&Value>> = HashMap::new();
        for entry in &self.entries {
            if let Some(item) = entry["item"].as_str() {
                by_item.entry(item).or_default().push(entry);
            }
        }
        let positions = self.view.state.graph.items().indices();
        let mut items: Vec<Value> =
            positions.map(|at| item::facts(self, at, by_item.get(self.id(at)).map_or(&[], Vec::as_slice))).collect();
        if let Some(first) = items.first_mut() {
            first["isFirst"] = true.into();
        }
        items
    }

    fn run_facts(&self) -> Value {
        let (view, first) = (self.view, &self.entries[0]);
        let last = &self.entries[self.entries.len() - 1];
        let mut facts = Facts::default();
        facts.add("Entries", self.entries.len().to_string());
        facts.add("Root", words::plain(&last["root"]));
        facts.add("Last commit", words::plain(&last["commit"]));
        facts.add("Submitted at", words::plain(&first["at"]));
        facts.add("Submitted by", words::plain(&first["actor"]));
        facts.add_field("Plan", &first["plan"], "sha256");
        facts.add_field("Base", first, "base");
        facts.add_field("Queue", first, "queue");
        facts.add_field("Pattern", first, "pattern");
        facts.add_field("Rules of the queue", &first["rules"], "sha256");
        facts.add("Roles of keys", words::roles(&first["roles"]));
        facts.add("Pipelines", words::plain(&json!(show::digests(&view.state.submitted.pipelines))));
        facts.add("Object format", self.store.object_format().to_owned());
        facts.add_field("Program", first, "tool");
        facts.add("Closed early", view.state.closed.clone().unwrap_or_default());
        facts.add("Cancelled", view.state.cancelled.clone().unwrap_or_default());
        facts.into_value()
    }

    fn entries_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let entries = self.entries.iter().filter(|entry| entry["kind"].as_str().is_some_and(&is_wanted));
        entries
            .map(|entry| {
                let mut row = item::step(entry);
                row["item"] = entry["item"].clone();
                row
            })
            .collect()
    }

    /// Returns every revision of every document, in the order of the entries.
    fn documents(&self) -> Vec<Value> {
        let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
        let mut rows = Vec::new();
        for entry in &self.entries {
            for (name, product, author) in written(entry) {
                let number = numbers.entry(name.clone()).or_default();
                *number += 1;
                let mut row = content::product(self.store, self.omitted, &name, product);
                row["revision"] = (*number).into();
                row["at"] = entry["at"].clone();
                row["author"] = author.into();
                rows.push(row);
            }
        }
        rows
    }

    /// Returns the files that were sealed with the plan.
    fn artifacts(&self) -> Vec<Value> {
        let artifacts = self.view.state.submitted.artifacts.iter();
        artifacts
            .map(|(path, sealed)| content::product(self.store, self.omitted, path.as_str(), &json!(sealed)))
            .collect()
    }

    /// Formats the outcome: `2 of 4 done, 1 failed, 1 skipped`.
    pub(super) fn outcome(&self) -> String {
        let outcomes = self.view.state.outcomes();
        let done = format!("{} of {} done", outcomes.done, outcomes.total);
        let others = outcomes.others().map(|(count, what)| format!("{count} {what}"));
        let claimed = (outcomes.claimed > 0).then(|| format!("{} {}", outcomes.claimed, outcomes::CLAIMED));
        std::iter::once(done)
            .chain(others)
            .chain(claimed)
            .chain(outcomes.said.iter().cloned())
            .collect::<Vec<_>>()
            .join(", ")
    }

    pub(super) fn id(&self, at: ItemIndex) -> &'a str {
        self.view.state.graph.item(at).id.as_str()
    }

    pub(super) fn anchor(&self, at: ItemIndex) -> String {
        format!("r{}i{}", self.number, at.get())
    }

    /// Returns the anchor of a box of the graph with several items.
    pub(super) fn group_anchor(&self, number: usize) -> String {
        format!("r{}g{number}", self.number)
    }

    pub(super) fn dependencies(&self, at: ItemIndex) -> Vec<&'a str> {
        self.view.state.graph.dependencies(at).iter().map(|on| self.id(*on)).collect()
    }

    /// Returns the status for the page.
    pub(super) fn status(&self, at: ItemIndex) -> ItemStatus {
        ItemStatus::read(&self.view.state, at)
    }

    pub(super) fn has_details(&self, status: ItemStatus) -> bool {
        let is_done = matches!(status, ItemStatus::Done | ItemStatus::Claimed);
        !is_done || self.view.state.graph.items().len() <= MOST_DETAILED
    }

    /// Returns the item as its plan or the entry that added it has it.
    pub(super) fn definition(&self, at: ItemIndex) -> Value {
        let id: &ItemId = &self.view.state.graph.item(at).id;
        match self.planned.get(id.as_str()) {
            Some(item) => item.clone(),
            None => self.added(id).map_or(Value::Null, |product| blob(self.store, product)),
        }
    }

    /// Returns the manifest of the last attempt, or null if there was none.
    pub(super) fn manifest(&self, at: ItemIndex) -> Value {
        self.view.state.items[at].manifest.as_ref().map_or(Value::Null, |product| blob(self.store, product))
    }

    /// Returns the definition of an item that an entry added.
    fn added(&self, id: &ItemId) -> Option<&'a Product> {
        self.view.links.iter().find_map(|link| match &link.entry.event {
            Event::RunExtended(e) => e.items.get(id),
            _ => None,
        })
    }
}

/// Reads JSON that an entry names, or returns null.
fn blob(store: &Store, product: &Product) -> Value {
    let bytes = store.contains(product.oid).then(|| store.read_blob(product.oid).ok()).flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Returns the documents that an entry writes: name, product and author.
fn written(entry: &Value) -> Vec<(String, &Value, String)> {
    if entry["kind"] == "document.written" {
        let author = entry.get("author").unwrap_or(&entry["actor"]);
        return vec![(words::plain(&entry["name"]), entry, words::plain(author))];
    }
    let products = entry["products"].as_object().into_iter().flatten();
    products
        .filter_map(|(key, product)| {
            Some((key.strip_prefix("documents/")?.to_owned(), product, words::plain(&entry["item"])))
        })
        .collect()
}
