//! The order in which items are listed: what rules created stands where it belongs. Pure.

use std::collections::{BTreeMap, HashMap};

use super::RunState;
use crate::model::name::ItemId;
use crate::model::natural;

impl RunState {
    /// Returns the positions of all items in the order in which they are listed: the plan's own, and those that people added, in the
    /// order in which they came, each followed by what rules created for it.
    ///
    /// What one entry created is in the natural order of the names, so that `map-2` comes before `map-10`.
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

/// Returns the position of the item that a created one is named after, as `deploy~2` is after `deploy`: of several, the longest name.
fn named_after(id: &str, own: &BTreeMap<&str, usize>) -> Option<usize> {
    let ends = id.char_indices().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    ends.rev().find_map(|end| own.get(&id[..end]).copied())
}
