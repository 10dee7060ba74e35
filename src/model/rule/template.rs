//! Templates of created items; [`crate::model::grow`] instantiates them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, Selector};

/// The placeholder for the path of the output that an item is created for.
pub const KEY: &str = "{{key}}";

/// The placeholder for the number of times the rule has acted, including this time.
pub const ROUND: &str = "{{n}}";

/// A group of templates.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// The templates, in order.
    pub made: Vec<Made>,
    /// The item for each of whose outputs, by path, the group is instantiated.
    pub for_each: Option<ItemId>,
}

/// A template.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// A written item.
    Template(Box<Template>),
    /// A copy of an item and everything skipped because of it, with references to the newest
    /// replacements.
    Again(ItemId),
}

/// An item with parts that are known when it is created.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The item.
    pub item: Item,
    /// Needs that are omitted if the product does not exist.
    pub optional: BTreeSet<FilePath>,
    /// Needs for each output of an item.
    pub each: Option<Each>,
    /// Inputs with reasons of failures, by input key; omitted if the item did not fail.
    pub reasons: BTreeMap<String, ItemId>,
}

/// Needs for each output of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// The item.
    pub outputs_of: ItemId,
    /// The input key.
    pub key: FilePath,
    /// The source.
    pub from: ItemId,
    /// The product.
    pub select: Selector,
    /// Whether to omit it if the product does not exist.
    pub survivors: bool,
}

impl Several {
    /// Returns the templates.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.made.iter().filter_map(|made| match made {
            Made::Template(template) => Some(&**template),
            Made::Again(_) => None,
        })
    }
}

impl Template {
    /// Returns true if an id matches the text around the placeholders.
    pub(super) fn may_be_called(&self, id: &ItemId) -> bool {
        let (written, id) = (self.item.id.as_str(), id.as_str());
        let places = |mark: &str| {
            written.find(mark).into_iter().chain(written.rfind(mark)).map(|at| (at, at + mark.len())).collect()
        };
        let places: Vec<(usize, usize)> =
            [ROUND, KEY].into_iter().flat_map(|mark| -> Vec<(usize, usize)> { places(mark) }).collect();
        let (Some(first), Some(last)) =
            (places.iter().map(|place| place.0).min(), places.iter().map(|place| place.1).max())
        else {
            return written == id;
        };
        let rest = id.strip_prefix(&written[..first]).and_then(|rest| rest.strip_suffix(&written[last..]));
        // The form of a round is known.
        rest.is_some_and(|put_in| written[first..last] != *ROUND || put_in.parse::<u64>().is_ok())
    }
}
