//! How a run grows: items added after it was submitted.

use std::collections::{BTreeMap, BTreeSet};

use super::{ItemState, RunState};
use crate::model::extension::{Cause, RunExtended, digest};
use crate::model::illegal::Illegal;
use crate::model::name::{FilePath, ItemId, clashes};
use crate::model::plan::Item;
use crate::model::rule::{Rule, Seen};

impl RunState {
    /// Puts the rules in force that were sealed at submit: the plan's own, then the queue's.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<Rule>) -> Self {
        for declared in rules.iter().flat_map(|rule| rule.create.documents()) {
            self.documents.take(&declared.name);
        }
        self.rules = rules;
        self
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: &ItemId) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id() == id)
    }

    /// Returns the items that a rule created, the first one first.
    pub fn created_by(&self, rule: &ItemId) -> &[ItemId] {
        self.created.get(rule).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the current revisions of the documents that a rule looks at.
    pub fn seen(&self, rule: &Rule) -> BTreeMap<FilePath, Seen> {
        let latest = |name: &FilePath| {
            let revision = self.documents.latest(name)?;
            Some((name.clone(), Seen { revision: revision.number, sha256: revision.product.sha256 }))
        };
        rule.documents().into_iter().filter_map(latest).collect()
    }

    /// Applies `run.extended` with the items that it names, or says why it may not follow what came before.
    ///
    /// Whether the documents make a rule create what it is said to have created is not for the fold to say, which has no
    /// bytes. On an error the state is as it was.
    pub fn extend(&mut self, e: &RunExtended, items: Vec<Item>) -> Result<(), Illegal> {
        if self.sealed {
            return Err(Illegal::AfterSeal);
        }
        if self.closed.is_some() || self.cancelled.is_some() {
            return Err(Illegal::ExtendedAfterEnd);
        }
        if items.is_empty() || !items.iter().map(|item| (&item.id, digest(item))).eq(named(e)) {
            return Err(Illegal::OtherItems);
        }
        if let Cause::Rule(id) = &e.cause {
            let rule = self.rule(id).ok_or_else(|| Illegal::UnknownRule(id.clone()))?;
            if items.len() != 1 || self.created_by(id).len() as u64 >= rule.when.at_most {
                return Err(Illegal::TooManyByRule(id.clone()));
            }
        } else if !self.submitted.open_ended {
            return Err(Illegal::NotOpenEnded);
        }
        let names: BTreeSet<FilePath> = items.iter().flat_map(Item::documents).map(|declared| declared.name).collect();
        names.iter().try_for_each(|name| self.expect_place(name))?;
        if let Some((one, other)) = clashes(names.iter().map(FilePath::as_str)).into_iter().next() {
            let known =
                |text: &str| names.iter().find(|name| name.as_str() == text).cloned().expect("it is one of them");
            return Err(Illegal::NoPlace(known(&one), known(&other)));
        }
        let ids: Vec<ItemId> = items.iter().map(|item| item.id.clone()).collect();
        self.graph.extend(items)?;
        names.iter().for_each(|name| self.documents.take(name));
        self.items.resize_with(self.items.len() + ids.len(), ItemState::new);
        self.open += ids.len();
        if let Cause::Rule(rule) = &e.cause {
            self.created.entry(rule.clone()).or_default().extend(ids);
        }
        self.entries += 1;
        Ok(())
    }
}

/// Returns the items that an entry names, in the order of their ids.
fn named(e: &RunExtended) -> impl Iterator<Item = (&ItemId, crate::model::digest::Digest)> {
    e.items.iter().map(|(id, digest)| (id, *digest))
}
