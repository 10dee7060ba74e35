//! The changes to submodules that a run's items hand over, each of which belongs into another repository than the run's.

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::run::View;

use super::Error;

/// A change to a submodule that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// The item.
    pub item: ItemId,
    /// The path of the submodule.
    pub submodule: String,
    /// The product that is the change, by its key.
    pub product: String,
}

/// Returns the changes to submodules of some items, by their positions.
///
/// An output is one if it is named like one, after a submodule that the run's base has, whose tree is `base`.
pub(super) fn left(store: &Store, view: &View, base: Oid, items: &[usize]) -> Result<Vec<Left>, Error> {
    let mut found = Vec::new();
    for at in items {
        for (key, path) in named_like_one(view, *at) {
            if store.has_commit_at(base, path)? {
                let item = view.state.graph.item(*at).id.clone();
                found.push(Left { item, submodule: path.to_owned(), product: key.to_string() });
            }
        }
    }
    Ok(found)
}

/// Returns the outputs of an item that are named like changes to submodules, with the paths of these.
pub(super) fn named_like_one(view: &View, at: usize) -> impl Iterator<Item = (&ProductKey, &str)> {
    let keys = view.state.items[at].products.keys();
    keys.filter_map(|key| Some((key, format::submodule_of(key.output()?)?)))
}
