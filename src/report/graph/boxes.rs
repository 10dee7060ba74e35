//! Groups the items of an outline into boxes; the rule is in the documentation of the module above.

use std::collections::BTreeMap;

use super::outline::{Outline, OutlineItem};
use crate::model::grow::version;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::order::topological;

/// Boxes with the boxes that each depends on, without cycles.
pub(super) struct Boxes {
    /// The ids of the items.
    pub(super) ids: Vec<ItemId>,
    /// The items of each box, in order; boxes are in the order of their first items.
    pub(super) members: Vec<Vec<ItemIndex>>,
    /// The name of each group.
    pub(super) names: Vec<Option<String>>,
    /// The boxes that each box depends on, in order and without duplicates.
    pub(super) needs: Vec<Vec<usize>>,
}

/// A group: the kind, the name, and the layer if it was split by layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: usize,
    name: String,
    layer: Option<usize>,
}

/// Returns the name of the group of an item, or `None` if it belongs to none of the kind.
type Name = fn(&OutlineItem) -> Option<String>;

/// The kinds of groups, in order.
const KINDS: [Name; 5] = [
    |item| Some(format!("rule {}", item.keys.rule.as_ref()?)),
    |item| Some(format!("map of {}", item.keys.map.as_ref()?)),
    |item| numbered(version(&item.id).0),
    |item| beginning(version(&item.id).0),
    |item| Some(format!("round {}", item.keys.round?)),
];

/// Replaces the numbers of an id by `#`, or returns `None` if it has none.
fn numbered(id: &str) -> Option<String> {
    let mut name = String::new();
    for c in id.chars() {
        match c.is_ascii_digit() {
            true if name.ends_with('#') => {}
            true => name.push('#'),
            false => name.push(c),
        }
    }
    id.contains(|c: char| c.is_ascii_digit()).then_some(name)
}

/// Returns the beginning of an id up to the first digit or separator, or `None` without one.
fn beginning(id: &str) -> Option<String> {
    let end = id.find(|c: char| c.is_ascii_digit() || c.is_ascii_punctuation() || c.is_whitespace())?;
    (end > 0).then(|| format!("{}*", &id[..end]))
}

/// Groups the items into at most `most` boxes.
pub(super) fn gather(outline: &Outline, most: usize) -> Boxes {
    let mut partition = Partition::new(outline);
    for (kind, name) in KINDS.iter().enumerate() {
        if partition.count() > most {
            partition.group(kind, *name, outline, most);
        }
    }
    if partition.count() > most {
        partition.merge_layers(most);
    }
    partition.into_boxes(outline)
}

/// The items, each with its group.
struct Partition {
    /// The dependencies of each item, without cycles.
    needs: Vec<Vec<usize>>,
    /// The layer of each item.
    layers: Vec<usize>,
    groups: Vec<Option<Group>>,
}

/// The boxes of a partition.
struct Cut {
    /// The box of each item.
    box_of: Vec<usize>,
    /// The items of each box.
    members: Vec<Vec<usize>>,
}

impl Partition {
    fn new(outline: &Outline) -> Self {
        let needs = acyclic(outline);
        Self { layers: layers(&needs), groups: vec![None; needs.len()], needs }
    }

    fn cut(&self) -> Cut {
        let mut known: BTreeMap<&Group, usize> = BTreeMap::new();
        let (mut box_of, mut members) = (Vec::with_capacity(self.groups.len()), Vec::<Vec<usize>>::new());
        for (at, group) in self.groups.iter().enumerate() {
            let fresh = members.len();
            let own = group.as_ref().map_or(fresh, |group| *known.entry(group).or_insert(fresh));
            if own == fresh {
                members.push(Vec::new());
            }
            members[own].push(at);
            box_of.push(own);
        }
        Cut { box_of, members }
    }

    fn count(&self) -> usize {
        self.cut().members.len()
    }

    /// Returns the boxes that each box depends on. They may form cycles.
    fn needs_between(&self, cut: &Cut) -> Vec<Vec<usize>> {
        cut.members
            .iter()
            .enumerate()
            .map(|(own, members)| {
                let items = members.iter().flat_map(|at| &self.needs[*at]);
                let mut needs: Vec<usize> = items.map(|on| cut.box_of[*on]).filter(|on| *on != own).collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            })
            .collect()
    }

    /// Groups items that belong to no group yet: only the largest groups if those suffice.
    fn group(&mut self, kind: usize, name: Name, outline: &Outline, most: usize) {
        let free =
            outline.items.iter().zip(&self.groups).map(|(item, group)| if group.is_none() { name(item) } else { None });
        let names: Vec<Option<String>> = free.collect();
        let mut sizes: BTreeMap<&String, usize> = BTreeMap::new();
        names.iter().flatten().for_each(|group| *sizes.entry(group).or_default() += 1);
        let mut by_size: BTreeMap<usize, usize> = BTreeMap::new();
        sizes.values().filter(|size| **size > 1).for_each(|size| *by_size.entry(*size).or_default() += 1);
        let (mut left, mut smallest) = (self.count(), 2);
        for (size, groups) in by_size.iter().rev() {
            if left <= most {
                break;
            }
            left -= groups * (size - 1);
            smallest = *size;
        }
        for (at, group) in names.iter().enumerate() {
            if let Some(group_name) = group.as_ref().filter(|key| sizes[key] >= smallest) {
                self.groups[at] = Some(Group { kind, name: group_name.clone(), layer: None });
            }
        }
        self.untangle();
    }

    /// Splits groups that depend on each other in a cycle by layer.
    fn untangle(&mut self) {
        loop {
            let cut = self.cut();
            let tangled = tangled(&self.needs_between(&cut));
            if !tangled.contains(&true) {
                break;
            }
            for (at, own) in cut.box_of.iter().enumerate().filter(|(_, own)| tangled[**own]) {
                if let Some(group) = self.groups[at].as_mut().filter(|_| cut.members[*own].len() > 1) {
                    group.layer.get_or_insert(self.layers[at]);
                }
            }
        }
        // An item that is alone can still join a group of another kind.
        let alone: Vec<usize> =
            self.cut().members.iter().filter(|items| items.len() == 1).map(|items| items[0]).collect();
        alone.into_iter().for_each(|at| self.groups[at] = None);
    }

    /// Merges the boxes of whole layers, the widest first, then adjacent layers.
    fn merge_layers(&mut self, most: usize) {
        let cut = self.cut();
        let of_box = layers(&self.needs_between(&cut));
        let deep = of_box.iter().max().map_or(0, |last| last + 1);
        let mut widths = vec![0; deep];
        of_box.iter().for_each(|layer| widths[*layer] += 1);
        let mut widest: Vec<usize> = (0..deep).collect();
        widest.sort_by_key(|layer| std::cmp::Reverse(widths[*layer]));
        let (mut left, mut merged) = (cut.members.len(), vec![false; deep]);
        for layer in widest {
            if left <= most {
                break;
            }
            left -= widths[layer] - 1;
            merged[layer] = widths[layer] > 1;
        }
        let band = if left > most { deep.div_ceil(most) } else { 1 };
        for (at, own) in cut.box_of.iter().enumerate() {
            let layer = of_box[*own];
            let first = layer / band * band;
            if band > 1 {
                let last = (first + band).min(deep);
                let name = format!("layers {} to {last}", first + 1);
                self.groups[at] = Some(Group { kind: KINDS.len(), name, layer: Some(first) });
            } else if merged[layer] {
                let name = format!("layer {}", layer + 1);
                self.groups[at] = Some(Group { kind: KINDS.len(), name, layer: Some(layer) });
            }
        }
    }

    fn into_boxes(self, outline: &Outline) -> Boxes {
        let cut = self.cut();
        let needs = self.needs_between(&cut);
        let indices: Vec<ItemIndex> = outline.items.indices().collect();
        Boxes {
            ids: outline.items.iter().map(|item| item.id.clone()).collect(),
            names: cut
                .members
                .iter()
                .map(|items| {
                    let group = self.groups[items[0]].as_ref().filter(|_| items.len() > 1)?;
                    Some(group.name.clone())
                })
                .collect(),
            members: cut.members.iter().map(|items| items.iter().map(|at| indices[*at]).collect()).collect(),
            needs,
        }
    }
}

/// Returns the dependencies of each item in order. Edges that close a cycle, which only a forged
/// run has, are left out.
fn acyclic(outline: &Outline) -> Vec<Vec<usize>> {
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(outline.items.len());
    for item in &outline.items {
        let mut on: Vec<usize> = item.dependencies.iter().map(|on| on.get()).collect();
        on.sort_unstable();
        on.dedup();
        needs.push(on);
    }
    let order = topological(&needs);
    if order.len() < needs.len() {
        let mut rank = vec![usize::MAX; needs.len()];
        order.iter().enumerate().for_each(|(place, at)| rank[*at] = place);
        for (at, on) in needs.iter_mut().enumerate() {
            let own = (rank[at], at);
            on.retain(|on| (rank[*on], *on) < own);
        }
    }
    needs
}

/// Returns the layer of each node: 0 without dependencies, else one more than the greatest layer of
/// a dependency. There must be no cycle.
pub(super) fn layers(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut layers = vec![0; needs.len()];
    for at in topological(needs) {
        layers[at] = needs[at].iter().map(|on| layers[*on] + 1).max().unwrap_or(0);
    }
    layers
}

/// Returns which nodes are on a cycle, or between two cycles.
fn tangled(needs: &[Vec<usize>]) -> Vec<bool> {
    let mut dependents = vec![Vec::new(); needs.len()];
    for (at, on) in needs.iter().enumerate() {
        on.iter().for_each(|on| dependents[*on].push(at));
    }
    let mut tangled = vec![true; needs.len()];
    for edges in [needs, &dependents] {
        topological(edges).into_iter().for_each(|at| tangled[at] = false);
    }
    tangled
}
