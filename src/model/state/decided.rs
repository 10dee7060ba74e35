//! Decisions of people, and their authorization.

use std::collections::BTreeSet;

use super::{Illegal, Phase, RunState};
use crate::model::decision::{About, Decision, ItemDecided};
use crate::model::digest::Digest;
use crate::model::entry::Outcome;
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Selector, Source};
use crate::model::role::{Role, RunAdmitted};

impl RunState {
    /// Returns the subject of a decision: all products of the item's dependencies, and the needed
    /// artifacts and highest revisions of documents.
    pub fn decided_about(&self, at: ItemIndex) -> About {
        let mut about: About = self
            .graph
            .dependencies(at)
            .iter()
            .map(|on| {
                let products = self.items[*on].products.iter().map(|(key, product)| (key.clone(), product.sha256));
                (Source::Item(self.graph.item(*on).id.clone()), products.collect())
            })
            .collect();
        for need in self.graph.item(at).needs.values() {
            let digest = match (&need.from, &need.select) {
                (Source::Documents, Selector::Document { name, .. }) => {
                    self.documents.latest(name).map(|latest| latest.product.sha256)
                }
                (Source::Artifacts, Selector::Output { path }) => {
                    self.submitted.artifacts.get(path).map(|bytes| bytes.sha256)
                }
                (Source::Elsewhere(_), _) => self.submitted.import(need).map(|import| import.product.sha256),
                _ => None,
            };
            if let Some(digest) = digest {
                about.entry(need.from.clone()).or_default().insert(need.select.product_key(), digest);
            }
        }
        about
    }

    /// Returns a needed document that does not exist or does not match.
    pub fn lacks_document(&self, at: ItemIndex) -> Option<&FilePath> {
        self.graph.item(at).needs.values().find_map(|need| match (&need.from, &need.select) {
            (Source::Documents, Selector::Document { name, schema }) => {
                let latest = self.documents.latest(name);
                (latest.is_none()
                    || schema
                        .as_ref()
                        .is_some_and(|required| !required.admits(latest.and_then(|latest| latest.schema.as_ref()))))
                .then_some(name)
            }
            _ => None,
        })
    }

    /// Returns true if an item can be decided now.
    pub fn waits_for_people(&self, at: ItemIndex) -> bool {
        let for_people = self.graph.item(at).is_for_people() && self.items[at].phase == Phase::Waiting;
        for_people && !self.is_ended() && self.blocked_by(at).next().is_none() && self.lacks_document(at).is_none()
    }

    /// Returns the status of an item after a decision.
    pub fn decided_status(&self, at: ItemIndex, decision: Decision) -> Outcome {
        if decision.is_approved() || self.votes(at) { Outcome::Done } else { Outcome::Failed }
    }

    /// Returns true if an item waits only for people: for a decision, or a document for one.
    pub fn is_left_to_people(&self) -> bool {
        self.items.indices().any(|at| {
            (self.graph.item(at).is_for_people() && self.items[at].phase == Phase::Waiting)
                && self.blocked_by(at).next().is_none()
        })
    }

    fn votes(&self, at: ItemIndex) -> bool {
        self.gates.get(&self.graph.item(at).id).is_some_and(|gate| gate.votes)
    }

    /// Returns the items that can be decided now.
    pub fn waiting_for_people(&self) -> impl Iterator<Item = ItemIndex> + '_ {
        self.items.indices().filter(|at| self.waits_for_people(*at))
    }

    /// Returns true if a statement was recorded.
    pub fn was_said(&self, commit: &str) -> bool {
        self.recorded_statements.contains(&Digest::compute(commit.as_bytes()))
    }

    /// Returns the reason why a key cannot decide about an item, regardless of roles.
    pub fn expect_decider(&self, at: ItemIndex, by: &str) -> Result<(), Illegal> {
        let item = self.graph.item(at);
        if item.approvers().is_some_and(|mut approvers| !approvers.any(|approver| approver == by)) {
            return Err(Illegal::NotApprover(item.id.clone(), by.to_owned()));
        }
        match self.voted(at, by) {
            Some(other) => Err(Illegal::SecondVote(item.id.clone(), other.clone(), by.to_owned())),
            None => Ok(()),
        }
    }

    /// Returns the other votes on the same subject, if the item is a vote.
    pub fn votes_beside(&self, at: ItemIndex) -> impl Iterator<Item = ItemIndex> + '_ {
        // Regardless of their order.
        let of = |item: ItemIndex| self.graph.dependencies(item).iter().copied().collect::<BTreeSet<_>>();
        let all = of(at);
        let is_vote = self.votes(at);
        self.items.indices().filter(move |_| is_vote).filter(move |other| {
            *other != at
                && self.votes(*other)
                && self.graph.dependencies(*other).len() == all.len()
                && of(*other) == all
        })
    }

    /// Returns another vote of the same key on the same subject: each person has one vote.
    fn voted(&self, at: ItemIndex, by: &str) -> Option<&ItemId> {
        let other = self.votes_beside(at).find(|other| self.items[*other].decided_by.as_deref() == Some(by))?;
        Some(&self.graph.item(other).id)
    }

    /// Returns the position of a decision's item, if the decision is legal now.
    pub fn expect_decision(&self, e: &ItemDecided) -> Result<ItemIndex, Illegal> {
        let at = self.find(&e.item)?;
        if !self.graph.item(at).is_for_people() {
            return Err(Illegal::NotForPeople(e.item.clone()));
        }
        self.expect_phase(at, &[Phase::Waiting], e.attempt)?;
        if self.is_ended() {
            return Err(Illegal::AfterEnd(e.item.clone()));
        }
        if let Some(on) = self.blocked_by(at).next() {
            return Err(Illegal::BeforeDependency(e.item.clone(), self.graph.item(on).id.clone()));
        }
        if e.about != self.decided_about(at) || self.lacks_document(at).is_some() {
            return Err(Illegal::OtherProducts(e.item.clone()));
        }
        if e.status != self.decided_status(at, e.decision) {
            return Err(Illegal::WrongStatus(e.item.clone()));
        }
        self.expect_decider(at, &e.by)?;
        self.expect_unsaid(e.said.as_deref())?;
        Ok(at)
    }

    pub(in crate::model) fn decide(&mut self, e: &ItemDecided) -> Result<(), Illegal> {
        let at = self.expect_decision(e)?;
        self.say(e.said.as_deref());
        self.settle(at, if e.status == Outcome::Done { Phase::Done } else { Phase::Failed }, e.reason());
        self.items[at].red = e.is_red();
        self.items[at].decided_by = Some(e.by.clone());
        if e.decision.is_approved() && self.graph.item(at).is_for_people() {
            self.clear_protected(at, &e.by);
        }
        Ok(())
    }

    pub(in crate::model) fn expect_admission(&self, e: &RunAdmitted) -> Result<(), Illegal> {
        // A closed run must still be sealed.
        if self.is_ended() && e.role != Role::Seal {
            return Err(Illegal::AdmittedAfterEnd);
        }
        if self.keys.has(&e.key, e.role) {
            return Err(Illegal::AdmittedBefore(e.key.clone()));
        }
        Ok(())
    }

    pub(super) fn expect_unsaid(&self, commit: Option<&str>) -> Result<(), Illegal> {
        if commit.is_some_and(|commit| self.was_said(commit)) { Err(Illegal::SaidBefore) } else { Ok(()) }
    }

    pub(super) fn say(&mut self, commit: Option<&str>) {
        self.recorded_statements.extend(commit.map(|commit| Digest::compute(commit.as_bytes())));
    }
}
