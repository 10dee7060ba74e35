//! Caches under overlays: each lies under one of its own.

use std::path::{Path, PathBuf};

use super::{Caches, Given};
use crate::worker::sandbox::Confinement;
use crate::worker::sandbox::overlay::{Overlay, Overlays, folders};
use crate::worker::sandbox::reach::Reach;
use crate::worker::sandbox::seen::Seen;

/// A cache under an overlay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'a> {
    /// The number of the overlay.
    pub(super) number: usize,
    /// Where the user has the cache.
    pub(super) place: &'a Path,
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
        let overlay = |Under { number, place, .. }: Under<'_>| {
            let changed = |e| format!("{} is not what it was when the run began: {e}", place.display());
            Overlay::of(scratch, number, place).map_err(changed)
        };
        let all = self.under_overlays().map(overlay).collect::<Result<Vec<Overlay>, String>>()?;
        Ok((!all.is_empty()).then_some(Overlays(all)))
    }

    /// Returns the caches under overlays, whatever is there by now.
    fn numbered(&self) -> impl Iterator<Item = Under<'_>> {
        let under = self.all.iter().enumerate().filter(|(_, cache)| cache.given == Given::Over);
        under.filter_map(|(number, cache)| Some(Under { number, place: cache.place.as_deref()?, usual: &cache.below }))
    }

    /// Returns the caches under overlays at whose places still lie no links.
    pub(super) fn under_overlays(&self) -> impl Iterator<Item = Under<'_>> {
        self.numbered().filter(|under| Seen::at(under.place).is_ok())
    }
}

impl Confinement {
    /// Returns the folders that overlays over caches need, in an attempt whose folder for caches is `scratch`.
    pub fn scratch_folders(&self, scratch: &Path) -> Vec<PathBuf> {
        self.reach.caches.numbered().flat_map(|under| folders(scratch, under.number)).collect()
    }

    /// Returns what workers must not see of caches under overlays, in an attempt whose folder for caches is `scratch`.
    pub fn hidden_in_caches(&self, scratch: &Path) -> Vec<HiddenInCache> {
        let Reach { map, caches, .. } = &*self.reach;
        let hidden = |Under { number, place, .. }: Under<'_>| {
            let [upper, _, _] = folders(scratch, number);
            let below = map.hidden_below(place).filter_map(|path| path.strip_prefix(place).ok());
            let hidden =
                |below: &Path| HiddenInCache { lower: place.into(), upper: upper.clone(), below: below.into() };
            below.map(hidden).collect::<Vec<_>>()
        };
        caches.numbered().flat_map(hidden).collect()
    }
}
