//! Caches under overlays: which overlay shows which of them, and what it leaves out.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::{Path, PathBuf};

use super::Caches;
use crate::worker::sandbox::overlay::{AT, Overlay, Overlays, Part, folders};
use crate::worker::sandbox::reach::Reach;
use crate::worker::sandbox::seen::Seen;
use crate::worker::sandbox::{Confinement, Word};

/// A cache under an overlay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'a> {
    /// The number of the overlay.
    pub(super) overlay: usize,
    /// The number of the cache.
    pub(super) number: usize,
    /// Where the user has it.
    pub(super) place: &'a Path,
    /// Its path below what the overlay lies over.
    pub(super) below: &'a Path,
    /// Its usual place below a home directory.
    pub(super) usual: &'a Path,
}

/// A file or folder in a cache under an overlay that workers must not see.
#[derive(Clone, Debug)]
pub struct HiddenInCache {
    /// What the overlay lies over.
    pub lower: PathBuf,
    /// The folder that receives what is written.
    pub upper: PathBuf,
    /// The path below both.
    pub below: PathBuf,
}

impl Caches {
    /// Describes the overlays of an attempt whose folder for caches is `scratch`, or returns `None` if there are none. Fails if
    /// what one is to lie over is not what it was.
    pub(in super::super) fn overlays(&self, scratch: &Path) -> Result<Option<Overlays>, String> {
        let mut all: BTreeMap<usize, Overlay> = BTreeMap::new();
        for Under { overlay: n, number, place, below, .. } in self.under_overlays() {
            let overlay = match all.entry(n) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let lower = &self.lowers[n];
                    let changed = |e| format!("{} is not what it was when the run began: {e}", lower.display());
                    new.insert(Overlay::of(scratch, n, lower).map_err(changed)?)
                }
            };
            let at = Word::from(&scratch.join(AT).join(number.to_string()));
            overlay.parts.push(Part { place: place.into(), below: below.into(), at });
        }
        let all: Vec<Overlay> = all.into_values().collect();
        Ok(self.entered.filter(|_| !all.is_empty()).map(|entered| Overlays {
            entered,
            at: scratch.join(AT).into(),
            all,
        }))
    }

    /// Returns the caches under overlays, whatever is there by now.
    pub(super) fn numbered(&self) -> impl Iterator<Item = Under<'_>> {
        self.all.iter().enumerate().filter_map(|(number, cache)| {
            let (overlay, place) = (cache.number()?, cache.place.as_deref()?);
            let below = place.strip_prefix(&self.lowers[overlay]).ok()?;
            Some(Under { overlay, number, place, below, usual: &cache.below })
        })
    }

    /// Returns the caches under overlays at whose places still lie no links.
    pub(super) fn under_overlays(&self) -> impl Iterator<Item = Under<'_>> {
        self.numbered().filter(|under| Seen::at(under.place).is_ok())
    }
}

impl Confinement {
    /// Returns the folders that overlays over caches need, in an attempt whose folder for caches is `scratch`.
    pub fn scratch_folders(&self, scratch: &Path) -> BTreeSet<PathBuf> {
        let overlays: BTreeSet<usize> = self.reach.caches.numbered().map(|under| under.overlay).collect();
        let at = (!overlays.is_empty()).then(|| scratch.join(AT));
        overlays.into_iter().flat_map(|n| folders(scratch, n)).chain(at).collect()
    }

    /// Returns what workers must not see of caches under overlays, in an attempt whose folder for caches is `scratch`.
    pub fn hidden_in_caches(&self, scratch: &Path) -> Vec<HiddenInCache> {
        let Reach { map, caches, .. } = &*self.reach;
        let hidden = |under: Under<'_>| {
            let lower = caches.lowers[under.overlay].clone();
            let [upper, _, _] = folders(scratch, under.overlay);
            let below = map.hidden_below(under.place).filter_map(|path| path.strip_prefix(&lower).ok());
            let below: Vec<PathBuf> = below.map(Path::to_owned).collect();
            below.into_iter().map(move |below| HiddenInCache { lower: lower.clone(), upper: upper.clone(), below })
        };
        caches.numbered().flat_map(hidden).collect()
    }
}
