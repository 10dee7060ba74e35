//! How many paths a tree has, without listing them: a few small trees can name billions.

use std::collections::{HashMap, HashSet};

use super::store::{Error, Store};
use crate::model::bounds;
use crate::model::digest::Oid;

/// The most folders inside one another: a path of 4,096 bytes has no more.
const DEEPEST: usize = 2048;

/// The number of paths of a tree, and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The paths of files, links and submodules.
    pub paths: u64,
    /// The bytes of these paths.
    pub bytes: u64,
}

impl Extent {
    /// Returns true if the paths are within the limits for a base that comes with a bundle.
    pub fn is_bounded(self) -> bool {
        self.paths <= bounds::BASE_PATHS && self.bytes <= bounds::BASE_PATH_BYTES
    }
}

/// Returns the extent of a tree, and the ids of all its trees. Reads each tree once.
///
/// Trees below the most folders are not read; the extent is beyond every limit then.
pub fn extent(store: &Store, tree: Oid) -> Result<(Extent, Vec<Oid>), Error> {
    let repo = store.local();
    let mut known: HashMap<Oid, Extent> = HashMap::new();
    // A tree is finished after those that were put above it.
    let mut open = vec![(tree, 0)];
    while let Some(&(oid, depth)) = open.last() {
        if known.contains_key(&oid) {
            open.pop();
            continue;
        }
        if depth > DEEPEST {
            known.insert(oid, Extent { paths: u64::MAX, bytes: u64::MAX });
            continue;
        }
        let (mut sum, mut unknown) = (Extent::default(), HashSet::new());
        for entry in store.tree(&repo, oid)?.entries {
            let (below, name) = (Oid(entry.oid), entry.filename.len() as u64);
            let (inner, length) = match (entry.mode.is_tree(), known.get(&below)) {
                (false, _) => (Extent { paths: 1, bytes: 0 }, name),
                (true, Some(inner)) => (*inner, name + 1),
                (true, None) => {
                    unknown.insert(below);
                    continue;
                }
            };
            sum.paths = sum.paths.saturating_add(inner.paths);
            let names = inner.paths.saturating_mul(length);
            sum.bytes = sum.bytes.saturating_add(inner.bytes).saturating_add(names);
        }
        if unknown.is_empty() {
            known.insert(oid, sum);
        }
        open.extend(unknown.into_iter().map(|below| (below, depth + 1)));
    }
    Ok((known[&tree], known.into_keys().collect()))
}
