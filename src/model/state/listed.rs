//! The display order of items: created items follow their cause. Pure.

use std::collections::{BTreeMap, HashMap};

use super::RunState;
use crate::model::name::ItemId;
use crate::model::natural;

impl RunState {
    /// Returns all positions in display order: the plan's items, then those added by people, each
    /// followed by the items that rules created for it.
    ///
    /// Items of one entry are in natural order: `map-2` before `map-10`.
    pub fn listed(&self) -> Vec<usize> {
        let by_rule: HashMap<&ItemId, &ItemId> =
            self.created.iter().flat_map(|(rule, ids)| ids.iter().map(move |id| (id, rule))).collect();
        let id = |at: usize| &self.graph.item(at).id;
        let own: BTreeMap<&str, usize> =
            (0..self.items.len()).filter(|at| !by_rule.contains_key(id(*at))).map(|at| (id(at).as_str(), at)).collect();
        let whose = |at: usize| match by_rule.get(id(at)) {
            None => Some(at),
            Some(rule) => named_after(id(at).as_str(), &own).or_else(|| {
                let (splitter, _) = rule.as_str().rsplit_once('.')?;
                own.get(splitter).copied()
            }),
        };
        let batch = |at: usize| self.batches.partition_point(|first| *first <= at);
        let mut listed: Vec<(usize, bool, usize, usize)> = (0..self.items.len())
            .map(|at| (whose(at).unwrap_or(usize::MAX), by_rule.contains_key(id(at)), batch(at), at))
            .collect();
        listed.sort_by(|one, other| {
            let (a, b) = ((one.0, one.1, one.2), (other.0, other.1, other.2));
            a.cmp(&b).then_with(|| {
                if one.1 { natural::compare(id(one.3).as_str(), id(other.3).as_str()) } else { one.3.cmp(&other.3) }
            })
        });
        listed.into_iter().map(|(.., at)| at).collect()
    }
}

/// Returns the item that a created item is named after, as `deploy~2` after `deploy`; the longest
/// match.
fn named_after(id: &str, own: &BTreeMap<&str, usize>) -> Option<usize> {
    let ends = id.char_indices().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    ends.rev().find_map(|end| own.get(&id[..end]).copied())
}
