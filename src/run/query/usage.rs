//! Sums the tokens and prices that workers report.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::claims::Reported;
use crate::model::entry::Event;
use crate::model::item_index::ItemVec;
use crate::model::usage::{Dollars, Usage};

use super::View;
use super::list::Status;

/// The use of all attempts of an item. Nothing verifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ItemUsage {
    /// The models that the worker named, each once.
    pub models: Vec<String>,
    /// The sums.
    #[serde(flatten)]
    pub sum: Usage,
    /// The number of attempts that reported nothing.
    pub unknown_attempts: u64,
    /// The number of attempts that reported tokens and no price.
    pub unpriced_attempts: u64,
}

/// The use of all items of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// The tokens that models read, including those from a cache.
    pub input_tokens: u64,
    /// The tokens that models wrote.
    pub output_tokens: u64,
    /// The tokens of the input that came from a cache.
    pub cached_tokens: u64,
    /// The price in US dollars.
    pub cost_usd: Dollars,
    /// The number of items with attempts.
    pub items: u64,
    /// The number of items of which at least one attempt reported nothing.
    pub unknown_items: u64,
    /// The number of items of which at least one attempt reported tokens and no price.
    pub unpriced_items: u64,
}

/// The attempts of an item with their claims. Attempts that reused products are left out, because
/// nothing was run.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(BTreeMap<u32, Option<Reported>>);

impl Attempts {
    /// Returns the attempts of all items, by position.
    pub(super) fn from_view(view: &View) -> ItemVec<Self> {
        let mut all = view.state.items.map(|_| Self::default());
        for link in &view.links {
            let Some((item, attempt)) = link.entry.event.item().filter(|(_, attempt)| *attempt > 0) else { continue };
            let Some(at) = view.state.graph.position(item) else { continue };
            all[at].update(&link.entry.event, attempt);
        }
        all
    }

    fn update(&mut self, event: &Event, attempt: u32) {
        let claims = match event {
            Event::ItemReconciled(e) if e.reused.is_some() => {
                self.0.remove(&attempt);
                return;
            }
            Event::ItemReconciled(e) => Reported::new(e.claims.as_deref(), e.usage),
            Event::ItemRetried(e) | Event::ItemRequeued(e) => Reported::new(e.claims.as_deref(), e.usage),
            Event::ItemFired(_) => None,
            _ => return,
        };
        let known = self.0.entry(attempt).or_default();
        if claims.is_some() {
            *known = claims;
        }
    }

    /// Returns their use, or `None` if there are none.
    pub(super) fn usage(&self) -> Option<ItemUsage> {
        if self.0.is_empty() {
            return None;
        }
        let claims = || self.0.values().flatten();
        let sum: Usage = claims().filter_map(|claims| claims.usage).sum();
        let mut models: Vec<String> = Vec::new();
        for model in claims().filter_map(|claims| claims.model.as_ref()) {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        Some(ItemUsage {
            models,
            sum,
            unknown_attempts: (self.0.len() - claims().filter_map(|claims| claims.usage).count()) as u64,
            unpriced_attempts: claims()
                .filter_map(|claims| claims.usage)
                .filter(|usage| usage.cost_usd.is_none())
                .count() as u64,
        })
    }
}

impl ItemUsage {
    /// Returns true if no attempt reported any use.
    pub fn is_unknown(&self) -> bool {
        self.sum.is_empty()
    }
}

impl Status {
    /// Adds the use of all items with attempts, known or not, and its sum.
    #[must_use]
    pub fn with_usage(mut self, view: &View) -> Self {
        let attempts = Attempts::from_view(view);
        for item in &mut self.items {
            item.usage = view.state.graph.position(&item.id).and_then(|at| attempts[at].usage());
        }
        self.usage = Some(RunUsage::from_attempts(&attempts));
        self
    }
}

impl RunUsage {
    /// Sums the use of all items of a run.
    pub(super) fn from_attempts(attempts: &ItemVec<Attempts>) -> Self {
        let used: Vec<ItemUsage> = attempts.iter().filter_map(Attempts::usage).collect();
        Self::sum(&used.iter().collect::<Vec<_>>())
    }

    /// Sums the use of items.
    pub fn sum(items: &[&ItemUsage]) -> Self {
        let sum: Usage = items.iter().map(|usage| usage.sum).sum();
        let count = |is: fn(&ItemUsage) -> bool| items.iter().filter(|usage| is(usage)).count() as u64;
        Self {
            input_tokens: sum.input_tokens.unwrap_or_default(),
            output_tokens: sum.output_tokens.unwrap_or_default(),
            cached_tokens: sum.cached_tokens.unwrap_or_default(),
            cost_usd: sum.cost_usd.unwrap_or_default(),
            items: count(|_| true),
            unknown_items: count(|usage| usage.unknown_attempts > 0),
            unpriced_items: count(|usage| usage.unpriced_attempts > 0),
        }
    }
}
