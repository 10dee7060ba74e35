//! Finds changes to submodules among a run's products. Each belongs to another repository.

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::run::query::View;

use super::Error;

/// A change to a submodule that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Left {
    /// The item.
    pub item: ItemId,
    /// The submodule's path.
    pub submodule: String,
    /// The key of the product with the change.
    pub product: String,
}

/// Returns the changes to submodules among the outputs of some items.
///
/// Such an output is named after a submodule in the run's base, whose tree is `base`.
pub(super) fn left(store: &Store, view: &View, base: Oid, items: &[ItemIndex]) -> Result<Vec<Left>, Error> {
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

/// Returns an item's outputs that are named like changes to submodules, with their paths.
pub(super) fn named_like_one(view: &View, at: ItemIndex) -> impl Iterator<Item = (&ProductKey, &str)> {
    let keys = view.state.items[at].products.keys();
    keys.filter_map(|key| Some((key, format::submodule_of(key.output()?)?)))
}
