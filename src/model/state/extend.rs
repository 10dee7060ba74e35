//! Items added after submit, by people or rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ItemState, RunState};
use crate::model::extension::{Cause, RunConcluded, RunExtended};
use crate::model::illegal::Illegal;
use crate::model::item_index::ItemIndex;
use crate::model::judge::{self, Act};
use crate::model::name::{FilePath, ItemId, clashes};
use crate::model::plan::{Item, Source};
use crate::model::rule::{Gate, Rule, Seen, Then};

/// The outcome if a rule would create impossible items, such as two with one id.
pub const CANNOT: &str = "name-clash";

/// The outcome of a good run that was ended although a rule had items to add.
pub const EARLY: &str = "closed-early";

/// The effects of valid new items.
pub struct Fitting {
    /// The items they replace.
    successors: BTreeMap<ItemId, ItemId>,
    /// The documents they declare.
    names: BTreeSet<FilePath>,
}

impl RunState {
    /// Adds the rules sealed at submit: the plan's, then those of queue and pattern.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<Rule>) -> Self {
        for declared in rules.iter().flat_map(Rule::written_items).flat_map(Item::documents) {
            self.documents.take(&declared.name);
        }
        for rule in &rules {
            match &rule.then {
                Then::Order(edges) => Arc::make_mut(&mut self.graph).order_also(edges),
                Then::Gate(gate) => drop(self.gates.insert(gate.item.clone(), gate.clone())),
                Then::One(_) | Then::Several(_) | Then::Outcome(_) => {}
            }
        }
        self.rules = rules;
        self
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: &ItemId) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id() == id)
    }

    /// Returns the items that a rule created, first one first.
    pub fn created_by(&self, rule: &ItemId) -> &[ItemId] {
        self.created.get(rule).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the current revisions of a rule's documents.
    pub fn latest_documents(&self, rule: &Rule) -> BTreeMap<FilePath, Seen> {
        rule.documents()
            .into_iter()
            .filter_map(|name| {
                let revision = self.documents.latest(name)?;
                Some((name.clone(), Seen { revision: revision.number, sha256: revision.product.sha256 }))
            })
            .collect()
    }

    /// Applies `run.extended` with its items, or returns why it is illegal.
    ///
    /// Does not check that the rule's documents require the items, because the state has no bytes.
    /// An error leaves the state unchanged.
    pub fn extend(&mut self, e: &RunExtended, items: Vec<Item>) -> Result<(), Illegal> {
        if self.sealed {
            return Err(Illegal::AfterSeal);
        }
        if self.closed.is_some() || self.cancelled.is_some() {
            return Err(Illegal::ExtendedAfterEnd);
        }
        if items.is_empty() || !e.names(&items) {
            return Err(Illegal::OtherItems);
        }
        if let Cause::Rule(id) = &e.cause {
            let rule = self.rule(id).ok_or_else(|| Illegal::UnknownRule(id.clone()))?;
            let fits = match rule.then {
                Then::One(_) => items.len() == 1,
                Then::Several(_) => true,
                Then::Outcome(_) | Then::Order(_) | Then::Gate(_) => false,
            };
            if !fits || self.rounds(id) >= rule.when.at_most {
                return Err(Illegal::TooManyByRule(id.clone()));
            }
        } else if !self.open_ended {
            return Err(Illegal::NotOpenEnded);
        }
        self.expect_pipelines(e, &items)?;
        let Fitting { successors, names } = self.would_take(&e.cause, &items)?;
        let ids: Vec<ItemId> = items.iter().map(|item| item.id.clone()).collect();
        Arc::make_mut(&mut self.graph).extend(items)?;
        self.pipelines.extend(e.pipelines.clone());
        names.iter().for_each(|name| self.documents.take(name));
        self.batches.push(ItemIndex::new(self.items.len()));
        self.items.extend(ids.iter().map(|_| ItemState::default()));
        self.open += ids.len();
        match &e.cause {
            Cause::Rule(rule) => {
                self.created.entry(rule.clone()).or_default().extend(ids);
                *self.rounds.entry(rule.clone()).or_default() += 1;
            }
            // A rule's reference to an item it creates does not mean an item added by others under
            // that id.
            Cause::Actor => ids.iter().for_each(|id| drop(self.gates.remove(id))),
        }
        for (old, new) in successors {
            let [from, to] = [&old, &new].map(|id| self.graph.position(id).expect("both are in the run now"));
            let replaces = self.graph.item(to).replaces.as_ref() == Some(&old);
            if let Some(gate) = self.gates.get(&old).filter(|_| replaces).cloned() {
                self.gates.entry(new.clone()).or_insert(Gate { item: new.clone(), ..gate });
            }
            self.lines.join(from, to);
            self.successors.insert(old, new);
        }
        self.stopped.clear();
        self.entries += 1;
        self.changes += 1;
        Ok(())
    }

    /// Validates that an actor adds exactly the missing pipelines of the new items; rules use
    /// sealed ones.
    fn expect_pipelines(&self, e: &RunExtended, items: &[Item]) -> Result<(), Illegal> {
        let names = items.iter().filter_map(Item::pipeline).filter(|name| !self.pipelines.contains_key(*name));
        let lacking: BTreeSet<&str> = if e.cause == Cause::Actor { names.collect() } else { BTreeSet::new() };
        if e.pipelines.keys().map(String::as_str).eq(lacking) { Ok(()) } else { Err(Illegal::OtherPipelines) }
    }

    /// Validates new items, regardless of who adds them.
    pub fn would_take(&self, cause: &Cause, items: &[Item]) -> Result<Fitting, Illegal> {
        self.expect_imports(cause, items)?;
        let successors = self.stand_ins(cause, items)?;
        let names: BTreeSet<FilePath> = items.iter().flat_map(Item::documents).map(|declared| declared.name).collect();
        names.iter().try_for_each(|name| self.expect_place(name))?;
        if let Some((one, other)) = clashes(names.iter().map(FilePath::as_str)).into_iter().next() {
            let known =
                |text: &str| names.iter().find(|name| name.as_str() == text).cloned().expect("it is one of them");
            return Err(Illegal::NoPlace(known(&one), known(&other)));
        }
        self.graph.would_take(items)?;
        Ok(Fitting { successors, names })
    }

    /// Validates that new items need no unsealed product from outside; only a rule's copy of a
    /// plan's item can need one.
    fn expect_imports(&self, cause: &Cause, items: &[Item]) -> Result<(), Illegal> {
        for item in items {
            let from_outside = item.needs.iter().filter(|(_, need)| matches!(need.from, Source::Elsewhere(_)));
            if let Some((key, _)) = from_outside
                .into_iter()
                .find(|(_, need)| !(*cause != Cause::Actor && self.submitted.import(need).is_some()))
            {
                return Err(Illegal::NotImported(item.id.clone(), key.clone()));
            }
        }
        Ok(())
    }

    /// Returns the items that new ones replace, or why one cannot.
    fn stand_ins(&self, cause: &Cause, items: &[Item]) -> Result<BTreeMap<ItemId, ItemId>, Illegal> {
        let mut successors = BTreeMap::new();
        for item in items {
            for old in item.replaces.iter().chain(&item.continues) {
                // An unfinished item cannot be replaced yet.
                let free = self
                    .graph
                    .position(old)
                    .is_some_and(|at| item.replaces.as_ref() != Some(old) || self.items[at].phase.is_terminal())
                    && !self.successors.contains_key(old);
                let is_first = successors.insert(old.clone(), item.id.clone()).is_none();
                if !matches!(cause, Cause::Rule(_)) || !free || !is_first {
                    return Err(Illegal::CannotStandFor(item.id.clone(), old.clone()));
                }
            }
        }
        Ok(successors)
    }

    /// Returns the number of times a rule acted.
    pub fn rounds(&self, rule: &ItemId) -> u64 {
        self.rounds.get(rule).copied().unwrap_or_default()
    }

    /// Returns the outcomes that are still valid: an operator's later correction invalidates one.
    pub fn conclusions(&self) -> impl Iterator<Item = &RunConcluded> {
        self.concluded.iter().filter(|concluded| {
            let rule = self.rule(&concluded.rule);
            rule.is_some_and(|rule| match rule.then {
                Then::Outcome(_) => rule.when.items.iter().all(|condition| condition.holds(self)),
                _ => true,
            })
        })
    }

    /// Returns true if any rule recorded an outcome.
    pub fn has_said(&self) -> bool {
        !self.concluded.is_empty()
    }

    /// Returns true if a rule has recorded an outcome.
    pub fn has_concluded(&self, rule: &ItemId) -> bool {
        self.concluded.iter().any(|concluded| concluded.rule == *rule)
    }

    /// Records the outcomes that rules would have recorded, and that they would have added items.
    ///
    /// Otherwise ending a run early would hide missing reviews. Skips a run that is not good
    /// anyway. Documents are not evaluated.
    pub(super) fn end_early(&mut self) {
        if !self.outcomes().are_items_green() || self.conclusions().next().is_some() {
            return;
        }
        let undocumented = self.rules.iter().filter(|rule| rule.when.conditions.is_empty());
        let acts = undocumented.filter_map(|rule| {
            let act = judge::acts(self, rule, |_, _| Err(())).ok().flatten()?;
            Some(match act {
                Act::Conclude(concluded) => concluded,
                Act::Create(_) => RunConcluded::new(rule.id().clone(), EARLY),
            })
        });
        let conclusions: Vec<RunConcluded> = acts.collect();
        self.concluded.extend(conclusions);
    }

    /// Applies `run.concluded`, without evaluating the rule.
    /// Refuses an event whose items are not given; see [`RunState::extend`].
    pub(in crate::model) fn expect_items(_: &mut Self, _: &RunExtended) -> Result<(), Illegal> {
        Err(Illegal::OtherItems)
    }

    pub(in crate::model) fn conclude(&mut self, e: &RunConcluded) -> Result<(), Illegal> {
        if self.closed.is_some() || self.cancelled.is_some() {
            return Err(Illegal::ExtendedAfterEnd);
        }
        let rule = self.rule(&e.rule).ok_or_else(|| Illegal::UnknownRule(e.rule.clone()))?;
        let fits = match &rule.then {
            Then::Outcome(word) => *word == e.outcome && e.detail.is_none(),
            Then::Several(_) => e.outcome == CANNOT && e.detail.is_some(),
            Then::One(_) | Then::Order(_) | Then::Gate(_) => false,
        };
        if !fits || self.has_concluded(&e.rule) {
            return Err(Illegal::WrongConclusion(e.rule.clone()));
        }
        self.concluded.push(e.clone());
        Ok(())
    }
}
