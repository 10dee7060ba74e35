//! Caches under overlays, one overlay for each.

use std::path::{Path, PathBuf};

use super::{Caches, Given};
use crate::sandbox::Confinement;
use crate::sandbox::mount_identity::MountIdentity;
use crate::sandbox::overlay::{Overlay, Overlays, folders};
use crate::sandbox::policy::ExecutorPolicy;

/// A cache under an overlay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'a> {
    /// The number of the overlay.
    pub(super) number: usize,
    /// The user's path of the cache.
    pub(super) place: &'a Path,
    /// Its usual place below a home directory.
    pub(super) usual: &'a Path,
}

/// A hidden file or folder in a cache under an overlay.
#[derive(Clone, Debug)]
pub struct HiddenInCache {
    /// The lower folder.
    pub lower: PathBuf,
    /// The upper folder, which receives writes.
    pub upper: PathBuf,
    /// The relative path in both.
    pub below: PathBuf,
}

impl Caches {
    /// Describes the overlays of an attempt with the cache folder `scratch`, or returns `None` if
    /// there are none. Fails if a lower folder was replaced.
    pub(in super::super) fn overlays(&self, scratch: &Path) -> Result<Option<Overlays>, String> {
        let all = self
            .under_overlays()
            .map(|Under { number, place, .. }: Under<'_>| {
                Overlay::new(scratch, number, place)
                    .map_err(|e| format!("{} was replaced after the run started: {e}", place.display()))
            })
            .collect::<Result<Vec<Overlay>, String>>()?;
        Ok((!all.is_empty()).then_some(Overlays(all)))
    }

    /// Returns the caches under overlays without checking their paths.
    fn numbered(&self) -> impl Iterator<Item = Under<'_>> {
        let under = self.all.iter().enumerate().filter(|(_, cache)| cache.given == Given::Over);
        under.filter_map(|(number, cache)| Some(Under { number, place: cache.place.as_deref()?, usual: &cache.below }))
    }

    /// Returns the caches under overlays whose paths are still without links.
    pub(super) fn under_overlays(&self) -> impl Iterator<Item = Under<'_>> {
        self.numbered().filter(|under| MountIdentity::at(under.place).is_ok())
    }
}

impl Confinement {
    /// Returns the folders that overlays need in an attempt with the cache folder `scratch`.
    pub fn scratch_folders(&self, scratch: &Path) -> Vec<PathBuf> {
        self.reach.caches.numbered().flat_map(|under| folders(scratch, under.number)).collect()
    }

    /// Returns the hidden paths of caches under overlays in an attempt with the cache folder
    /// `scratch`.
    pub fn hidden_in_caches(&self, scratch: &Path) -> Vec<HiddenInCache> {
        let ExecutorPolicy { map, caches, .. } = &*self.reach;
        caches
            .numbered()
            .flat_map(|Under { number, place, .. }: Under<'_>| {
                let [upper, _, _] = folders(scratch, number);
                let below = map.hidden_below(place).filter_map(|path| path.strip_prefix(place).ok());
                let hidden =
                    |hidden: &Path| HiddenInCache { lower: place.into(), upper: upper.clone(), below: hidden.into() };
                below.map(hidden).collect::<Vec<_>>()
            })
            .collect()
    }
}
