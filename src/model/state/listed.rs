//! The display order of items: created items follow their cause. Pure.

use std::collections::{BTreeMap, HashMap};

use super::RunState;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::natural;

impl RunState {
    /// Returns all positions in display order: the plan's items, then those added by people, each
    /// followed by the items that rules created for it.
    ///
    /// Items of one entry are in natural order: `map-2` before `map-10`.
    pub fn listed(&self) -> Vec<ItemIndex> {
        let by_rule: HashMap<&ItemId, &ItemId> =
            self.created.iter().flat_map(|(rule, ids)| ids.iter().map(move |id| (id, rule))).collect();
        let id = |at: ItemIndex| &self.graph.item(at).id;
        let own: BTreeMap<&str, ItemIndex> =
            self.items.indices().filter(|at| !by_rule.contains_key(id(*at))).map(|at| (id(at).as_str(), at)).collect();
        let whose = |at: ItemIndex| match by_rule.get(id(at)) {
            None => Some(at),
            Some(rule) => named_after(id(at).as_str(), &own).or_else(|| {
                let (splitter, _) = rule.as_str().rsplit_once('.')?;
                own.get(splitter).copied()
            }),
        };
        let mut listed: Vec<(usize, bool, usize, ItemIndex)> = self
            .items
            .indices()
            .map(|at| {
                (
                    whose(at).map_or(usize::MAX, ItemIndex::get),
                    by_rule.contains_key(id(at)),
                    self.batches.partition_point(|first| *first <= at),
                    at,
                )
            })
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
fn named_after(id: &str, own: &BTreeMap<&str, ItemIndex>) -> Option<ItemIndex> {
    let ends = id.char_indices().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    ends.rev().find_map(|end| own.get(&id[..end]).copied())
}
