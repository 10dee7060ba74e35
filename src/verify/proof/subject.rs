//! The subject of a proof: an item, one of its products, or an earlier state of the run.

use crate::model::digest::Digest;
use crate::model::entry::{Event, Outcome};
use crate::model::name::ItemId;
use crate::model::proof::Proof;
use crate::verify::findings::Verdict;

use super::Revealed;
use super::entries::JsonEntry;

impl Revealed<'_> {
    /// Checks that the proof is about one subject, and shows exactly what that needs.
    pub(super) fn check_subject(&self) -> Result<(), &'static str> {
        let proof = self.proof;
        match (&proof.item, &proof.since) {
            (Some(_), Some(_)) => Err("the proof is about both an item and an earlier state"),
            (None, None) => Err("the proof is about nothing"),
            (None, Some(_)) if !self.json_entries.is_empty() || proof.product.is_some() => {
                Err("a proof of growth shows no entries of items and no product")
            }
            (None, Some(_)) => Ok(()),
            (Some(item), None) => self.check_attempt(item),
        }
    }

    /// Checks the only entry shown, a decision about the item.
    fn check_decision(&self, item: &ItemId, decided: &JsonEntry<'_>) -> Result<(), &'static str> {
        let event = &decided.entry.event;
        let Event::ItemDecided(end) = event else { return Err("the entries shown are not a dispatch and an end") };
        if end.item != *item || end.status != Outcome::Done {
            return Err("the entry shown is not a decision that completed the item");
        }
        if self.proof.product.is_some() {
            return Err("an item that people decide about has no products");
        }
        match self.statement(event) {
            Some(Err(_)) => Err("the decision differs from the statement of its key"),
            _ => Ok(()),
        }
    }

    /// Checks the entries of the item: one attempt that made the product, or a decision.
    fn check_attempt(&self, item: &ItemId) -> Result<(), &'static str> {
        if let [Ok(decided)] = self.json_entries.as_slice() {
            return self.check_decision(item, decided);
        }
        let [Ok(fired), Ok(ended)] = self.json_entries.as_slice() else {
            return Err("the proof must show a dispatch and an end, and nothing else");
        };
        let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.entry.event, &ended.entry.event) else {
            return Err("the entries shown are not a dispatch and an end");
        };
        if dispatch.item != *item || end.item != *item || dispatch.attempt != end.attempt || dispatch.attempt == 0 {
            return Err("the entries shown are not one attempt of the item");
        }
        if end.status != Outcome::Done {
            return Err("the item is not done");
        }
        match &self.proof.product {
            Some(handed) if end.products.get(&handed.key) != Some(&handed.is) => {
                Err("the item does not have the product in the proof")
            }
            _ => Ok(()),
        }
    }
}

/// The row `content`: the file is the proven product.
pub(super) fn content(proof: &Proof, file: Option<(Digest, u64)>) -> Verdict {
    match (&proof.product, file) {
        (Some(handed), Some((digest, size))) if (digest, size) == (handed.is.sha256, handed.is.size) => {
            Verdict::ok(format!("the file is {} of {}", handed.key, proof.item.as_ref().map_or("", |i| i.as_str())))
        }
        (Some(handed), Some((digest, _))) => Verdict::failed(format!(
            "the file hashes to {}, {} is {}",
            digest.short(),
            handed.key,
            handed.is.sha256.short()
        )),
        (Some(handed), None) => Verdict::not_applicable(format!("{} is {}", handed.key, handed.is.sha256)),
        (None, Some(_)) => Verdict::failed("the proof names no product to compare the file with"),
        (None, None) => Verdict::not_applicable("the proof names no product"),
    }
}
