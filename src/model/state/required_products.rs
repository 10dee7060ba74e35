//! Undeclared products of an item that others need, and that it must therefore make.

use std::collections::BTreeMap;

use super::{Phase, RunState};
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, ProductKey, Selector, Source};
use crate::model::rule::{Each, ItemCondition, KEY, ROUND, Rule, Then};

impl RunState {
    /// Returns the needed products of an item, each with the first item that needs it.
    ///
    /// Ignores cancelled and replaced items. Includes rules that only wait for items to be done,
    /// because they will create their items; others are unknown in advance.
    pub fn wanted_of(&self, at: ItemIndex) -> BTreeMap<ProductKey, String> {
        let item = self.graph.item(at);
        let mut products = BTreeMap::new();
        for &on in self.graph.dependents(at) {
            if self.items[on].phase == Phase::Cancelled || self.is_superseded(on) {
                continue;
            }
            let consumer = self.graph.item(on);
            let ours = consumer.needs.values().filter(|need| need.from == Source::Item(item.id.clone()));
            for need in ours {
                let key = need.select.product_key();
                products.entry(key).or_insert_with(|| format!("the item {:?}", consumer.id.as_str()));
            }
        }
        for rule in self.rules.iter().filter(|rule| self.acts_once_items_are_done(rule)) {
            for key in self.wanted_by(rule, at) {
                products.entry(key).or_insert_with(|| format!("the rule {:?}", rule.id().as_str()));
            }
        }
        products
    }

    /// Returns a done item that lacks a product that another needs, with that product.
    ///
    /// `done` is final, so this cannot be corrected in this run.
    pub fn lacks(&self, at: ItemIndex) -> Option<(&ItemId, ProductKey)> {
        self.graph.item(at).needs.values().find_map(|need| {
            let Source::Item(from) = &need.from else { return None };
            let (on, key) = (self.graph.position(from)?, need.select.product_key());
            let is_lacking = self.items[on].phase == Phase::Done && !self.items[on].products.contains_key(&key);
            is_lacking.then_some((from, key))
        })
    }

    /// Returns true if a rule only waits for items to be done, and may still act.
    fn acts_once_items_are_done(&self, rule: &Rule) -> bool {
        let when = &rule.when;
        let documents = !when.present.is_empty() || !when.absent.is_empty() || !when.conditions.is_empty();
        let items = !when.items.is_empty() && when.items.iter().all(ItemCondition::is_all_done);
        !documents && items && self.rounds(rule.id()) < when.at_most
    }

    /// Returns an item's products that a rule's items will need, as far as known.
    fn wanted_by(&self, rule: &Rule, at: ItemIndex) -> Vec<ProductKey> {
        match &rule.then {
            Then::One(created) => self.needs_of(created, at).map(|(_, key)| key).collect(),
            Then::Several(several) => {
                let own = several.templates().flat_map(|template| {
                    self.needs_of(&template.item, at)
                        .filter(|(name, _)| !template.optional.contains(*name))
                        .map(|(_, key)| key)
                });
                let each = several.templates().filter_map(|template| template.each.as_ref());
                own.chain(each.filter_map(|each| self.wanted_by_each(each, at))).collect()
            }
            Then::Outcome(_) | Then::Order(_) | Then::Gate(_) => Vec::new(),
        }
    }

    /// Returns the needs of a template that are bound to an item, by input key.
    fn needs_of<'i>(&'i self, written: &'i Item, at: ItemIndex) -> impl Iterator<Item = (&'i FilePath, ProductKey)> {
        written.needs.iter().filter_map(move |(name, need)| {
            let Source::Item(from) = &need.from else { return None };
            let is_known = !is_open(&need.select, &[KEY, ROUND]) && self.newest(from) == Some(at);
            is_known.then(|| (name, need.select.product_key()))
        })
    }

    /// Returns the product that a rule needs for each output of another item.
    fn wanted_by_each(&self, each: &Each, at: ItemIndex) -> Option<ProductKey> {
        if each.survivors || is_open(&each.select, &[ROUND]) {
            return None;
        }
        let (before, after) = each.from.as_str().split_once(KEY)?;
        let put_in = self.graph.item(at).id.as_str().strip_prefix(before)?.strip_suffix(after)?;
        let of = self.newest(&each.outputs_of)?;
        let key = FilePath::parse(put_in).ok().filter(|key| self.output(of, key).is_some())?;
        match &each.select {
            Selector::Output { path } => {
                FilePath::parse(&path.as_str().replace(KEY, key.as_str())).ok().map(ProductKey::Output)
            }
            other => Some(other.product_key()),
        }
    }
}

/// Returns true if a selector contains a placeholder, so that the product is unknown in advance.
fn is_open(select: &Selector, words: &[&str]) -> bool {
    match select {
        Selector::Output { path } => words.iter().any(|word| path.as_str().contains(word)),
        Selector::Patch | Selector::Document { .. } => false,
    }
}
