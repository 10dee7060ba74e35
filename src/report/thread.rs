//! The facts that a page shows of a thread.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::claims::Found;
use super::content;
use super::words::{self, Facts};
use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::name::ThreadId;
use crate::model::thread::CheckpointId;
use crate::verify::ThreadReport;

/// A thread that a report shows, with its entries as far as they can be read.
pub(super) struct ShownThread {
    pub(super) id: ThreadId,
    pub(super) report: ThreadReport,
    pub(super) links: Vec<Link>,
}

impl ShownThread {
    pub(super) fn found(&self) -> Found {
        Found::of_thread(&self.report)
    }

    /// Returns the facts for the template.
    pub(super) fn facts(&self, number: usize, store: &Store, omitted: &BTreeSet<Oid>) -> Value {
        let anchor = format!("t{number}");
        let steps: Vec<Value> = self.links.iter().map(|link| step(link, store, omitted)).collect();
        let mut facts = Facts::default();
        facts.add("Entries", self.links.len().to_string());
        if let (Some(first), Some(last)) = (self.links.first(), self.links.last()) {
            facts.add("Begun at", first.entry.at.to_string());
            facts.add("Begun by", first.entry.actor.clone());
            facts.add("Last commit", last.commit.to_string());
        }
        json!({
            "thread": self.id,
            "claims": self.found().facts(&anchor),
            "anchor": anchor,
            "facts": facts.into_value(),
            "steps": steps,
        })
    }
}

fn step(link: &Link, store: &Store, omitted: &BTreeSet<Oid>) -> Value {
    let entry = link.to_json();
    let is_checkpoint = !matches!(link.entry.event, Event::ThreadResumed(_));
    let contents = ["state", "packet"].into_iter().filter(|name| entry[*name].is_object());
    json!({
        "seq": entry["seq"],
        "at": entry["at"],
        "kind": entry["kind"],
        "actor": entry["actor"],
        "checkpoint": is_checkpoint.then(|| CheckpointId::new(link.entry.seq, link.hash)),
        "note": note(&entry),
        "summary": entry["summary"],
        "contents": contents.map(|name| content::product(store, omitted, name, &entry[name])).collect::<Vec<_>>(),
        "hash": entry["hash"],
    })
}

/// Says where an entry comes from, or what it goes back to.
fn note(entry: &Value) -> String {
    let place = |of: &Value| format!("{}:{}", words::plain(&of["thread"]), words::plain(&of["checkpoint"]));
    let from = &entry["adopted_from"];
    let unknown = if from["acceptedUnknown"] == true { ", a key unknown to the adopter" } else { "" };
    let words = [
        entry["run"]["id"].as_str().map(|run| format!("made in run {run}")),
        from.is_object()
            .then(|| format!("adopted from {}, signed by {}{unknown}", place(from), words::plain(&from["signer"]))),
        entry["from"].is_object().then(|| format!("forked from {}", place(&entry["from"]))),
        entry["to"].as_str().map(|to| format!("back to {to}")),
        entry["checkpoint"].as_str().map(|at| format!("resumed at {at}")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
