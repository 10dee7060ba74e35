//! The facts that a page shows of a thread.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::claims::Found;
use super::content;
use super::words::Facts;
use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Origin};
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
    let is_checkpoint = matches!(link.entry.event, Event::ThreadCheckpointed(_));
    let contents = ["state", "packet"].into_iter().filter(|name| entry[*name].is_object());
    json!({
        "seq": entry["seq"],
        "at": entry["at"],
        "kind": entry["kind"],
        "actor": entry["actor"],
        "checkpoint": is_checkpoint.then(|| CheckpointId::new(link.entry.seq, link.hash)),
        "note": note(&link.entry.event),
        "summary": entry["summary"],
        "contents": contents.map(|name| content::product(store, omitted, name, &entry[name])).collect::<Vec<_>>(),
        "hash": entry["hash"],
    })
}

/// Says where an entry comes from, or what it goes back to.
fn note(event: &Event) -> String {
    let Event::ThreadResumed(e) = event else {
        let words = event.origin().map(Origin::to_string).unwrap_or_default();
        let Some(Origin::Adopted(offer)) = event.origin() else { return words };
        let unknown = if offer.accepted_unknown { ", a key unknown to the adopter" } else { "" };
        return format!("{words}, signed by {}{unknown}", offer.signer);
    };
    format!("resumed at {}", e.checkpoint)
}
