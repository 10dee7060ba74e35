//! Items that a rule creates under ids of their own, as they are written. What they come to is for [`crate::model::grow`].

use std::collections::{BTreeMap, BTreeSet};

use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, Selector};

/// Stands in ids, input keys and paths for the path of the output that an item is created for.
pub const KEY: &str = "{{key}}";

/// Stands there for how often the rule has created something, this time included.
pub const ROUND: &str = "{{n}}";

/// Items that are created together.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// What is created, in order.
    pub made: Vec<Made>,
    /// The item for each of whose outputs the templates are created once, in the order of their paths.
    pub for_each: Option<ItemId>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// An item that is written here.
    Template(Box<Template>),
    /// An item of the run once more, with everything that was skipped because of it; where they name others, those that stand for
    /// them now.
    Again(ItemId),
}

/// An item with what is only known when it is created.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The item.
    pub item: Item,
    /// Its needs that are left out where there is no such product.
    pub optional: BTreeSet<FilePath>,
    /// Needs of which there is one for each output of an item.
    pub each: Option<Each>,
    /// Inputs that are the reasons for which items failed, by the keys of the inputs; left out where an item did not fail.
    pub reasons: BTreeMap<String, ItemId>,
}

/// Needs of which there is one for each output of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// The item.
    pub outputs_of: ItemId,
    /// The key of the need.
    pub key: FilePath,
    /// The item that it is bound to.
    pub from: ItemId,
    /// The product of that item.
    pub select: Selector,
    /// Whether those are left out that have no such product.
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
    /// Returns whether its item may have this id: whether that begins and ends as it is written around what is put in.
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
        // Of a round it is known what it looks like.
        rest.is_some_and(|put_in| written[first..last] != *ROUND || put_in.parse::<u64>().is_ok())
    }
}
