//! Recomputes the starts and the reference states of items from the base.

use super::ProtectedFiles;
use super::not_recomputed::{NO_BASE, NO_FILES, NO_PATCH, TOO_LARGE};
use crate::git::extent::{Extent, extent};
use crate::git::merge::{self, Scratch};
use crate::git::protected::{self, Consumed, Protection};
use crate::git::start::{self, Starts};
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::bounds;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::{ItemReconciled, Product};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::model::state::RunState;

/// A recomputed value, or the reason why it is open; the error says what is wrong.
pub(super) type Recomputed<T> = Result<Result<T, &'static str>, String>;

impl ProtectedFiles<'_> {
    /// Returns the temporary index of the base, or the reason why there is none.
    fn scratch(&self, base: Oid) -> Result<&Scratch, &'static str> {
        let scratch = self.scratch.get_or_init(|| match self.case.bases {
            Some(bases) => {
                let extent = extent_of(bases, base).ok_or(NO_BASE)?;
                if !extent.is_bounded() {
                    return Err(TOO_LARGE);
                }
                Scratch::incomplete(bases, base).map_err(|_| NO_BASE)
            }
            None if self.case.store.contains(base) => Scratch::isolated(self.case.store, base).map_err(|_| NO_BASE),
            None => Err(NO_BASE),
        });
        scratch.as_ref().map_err(|reason| *reason)
    }

    /// Returns the base with the patches that an item's needs apply.
    pub(super) fn recompute_start(&self, state: &RunState, item: &ItemId) -> Recomputed<Oid> {
        let scratch = match self.scratch(state.submitted.base) {
            Ok(scratch) => scratch,
            Err(reason) => return Ok(Err(reason)),
        };
        let at = state.graph.position(item).ok_or("the item is unknown")?;
        self.start(state, scratch, &mut Starts::new(scratch, state), at)
    }

    fn start(&self, state: &RunState, scratch: &Scratch, starts: &mut Starts<'_>, at: ItemIndex) -> Recomputed<Oid> {
        let applied = state.applied(at);
        if !applied.is_empty() && !scratch.is_complete() {
            let patches = applied.iter().filter_map(|on| state.items[*on].products.get(&ProductKey::Patch));
            let Ok(patches) = patches.map(|patch| self.read(*patch)).collect::<Result<Vec<_>, _>>() else {
                return Ok(Err(NO_PATCH));
            };
            if scratch.lacks_files_of(&patches) {
                return Ok(Err(NO_FILES));
            }
        }
        if !self.may_apply(scratch, applied.len()) {
            return Ok(Err(TOO_LARGE));
        }
        match starts.start(at, &|_, patch| self.read(patch)) {
            Ok(start) => Ok(Ok(start)),
            Err(start::Error::Read(_)) => Ok(Err(NO_PATCH)),
            Err(start::Error::Patch(_, error)) if error.wants_memory() => Ok(Err(TOO_LARGE)),
            Err(start::Error::Merge(merge::Error::Git(error))) if error.wants_memory() => Ok(Err(TOO_LARGE)),
            Err(error) => Err(in_words(&error)),
        }
    }

    /// Compares an entry with the recomputed state. Returns the number of protected files.
    pub(super) fn recompute(&self, state: &RunState, e: &ItemReconciled, manifest: &Manifest) -> Recomputed<usize> {
        let scratch = match self.scratch(state.submitted.base) {
            Ok(scratch) => scratch,
            Err(reason) => return Ok(Err(reason)),
        };
        let at = state.graph.position(&e.item).ok_or("the item is unknown")?;
        let mut starts = Starts::new(scratch, state);
        let mut patches = Vec::new();
        for (on, patch, includes) in state.in_order(&state.items[at].reference) {
            match self.start(state, scratch, &mut starts, on)? {
                Ok(start) => patches.push((patch, Some(start), includes)),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        if !self.may_apply(scratch, patches.len() + 1) {
            return Ok(Err(TOO_LARGE));
        }
        let Ok(consumed) = Consumed::read(patches, |patch| self.read(patch)) else { return Ok(Err(NO_PATCH)) };
        let protection = Protection::new(scratch, &manifest.protect);
        let start = manifest.start.unwrap_or(scratch.base());
        let reference = match protection.reference(start, &consumed) {
            Ok(reference) => reference,
            Err(error) => return open_or(error),
        };
        if reference.base.keys().any(|path| scratch.lacks(path)) {
            return Ok(Err(NO_FILES));
        }
        if Some(protection.tree(&reference).map_err(|error| in_words(&error))?) != e.reference {
            return Err("the entry names another reference state".to_owned());
        }
        let product = match e.products.get(&ProductKey::Patch) {
            None => start,
            Some(patch) => {
                let Ok(patch) = self.read(*patch) else { return Ok(Err(NO_PATCH)) };
                match protection.patched_on(start, patch) {
                    Ok(product) => product,
                    Err(error) => return open_or(error),
                }
            }
        };
        let changes = protection.changes(&reference, product).map_err(|error| in_words(&error))?;
        if changes == e.protected {
            return Ok(Ok(reference.files.len().max(reference.base.len())));
        }
        let (found, recorded) = (changes.len(), e.protected.len());
        Err(format!("the patch changes {found}, and the entry lists {recorded} or others"))
    }

    /// Reads a patch. The row `content` reports a missing or wrong one.
    fn read(&self, patch: Product) -> Result<Vec<u8>, verified_stream::Error> {
        verified_stream::read(self.case.store, patch.oid, &[patch.sha256])
    }

    /// Returns true if so many patches may be applied to a base that is not ours.
    fn may_apply(&self, scratch: &Scratch, patches: usize) -> bool {
        let paths = scratch.foreign_paths().unwrap_or(0) as u64;
        self.work.set(self.work.get().saturating_add(paths.saturating_mul(patches as u64)));
        self.work.get() <= bounds::RECOMPUTED_PATHS
    }
}

/// Returns the extent of the base's tree, or `None` if a part of it is not here.
fn extent_of(bases: &Store, base: Oid) -> Option<Extent> {
    let (tree, _) = bases.commit(base).ok()?;
    Some(extent(bases, tree).ok()?.0)
}

/// Returns the reason why a value is open, or the error.
fn open_or<T>(error: protected::Error) -> Recomputed<T> {
    match error {
        protected::Error::Missing(_) => Ok(Err(NO_FILES)),
        protected::Error::Git(error) if error.wants_memory() => Ok(Err(TOO_LARGE)),
        error => Err(in_words(&error)),
    }
}
