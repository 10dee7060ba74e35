//! Finds the items of a commit by content, whatever its message says.
//!
//! Tries the patch id first. If several items share one commit, or nearby lines changed, no patch
//! id matches. Then items are tried, alone and together, all of whose lines are in the commit. The
//! number of attempts is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::bstr::{BString, ByteSlice as _};

use crate::git::store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::attribution::{Attribution, Change, Comparison, Finding, Origin, Verdict};
use super::diff::Diff;
use super::index::Patch;
use super::known::Standing;

/// The maximum number of patches to check for one patch id.
const ALIKE: usize = 32;

/// The maximum number of patches to try alone.
const ALONE: usize = 8;

/// The maximum number of runs whose patches are tried together.
const RUNS: usize = 8;

/// The maximum number of patches to try together.
pub(super) const TOGETHER: usize = 64;

impl Attribution<'_> {
    /// Finds the items that made a commit's changes; empty if none did or the commit is too large.
    pub(super) fn search(&mut self, compared: &mut Comparison) -> Result<Option<Finding>, AnyError> {
        let Some(change) = self.change(compared)? else { return Ok(None) };
        match self.by_id(compared, &change)? {
            Some(found) => Ok(Some(found)),
            None => self.by_lines(compared, &change),
        }
    }

    fn by_id(&mut self, compared: &mut Comparison, change: &Change) -> Result<Option<Finding>, AnyError> {
        let contents = self.index.contents(self.store, &self.borrowed)?;
        let alike = change.id.as_ref().and_then(|id| contents.by_id.get(id));
        let (mut exact, mut nearly): (Vec<Finding>, Option<Origin>) = (Vec::new(), None);
        for origin in self.origins(alike.into_iter().flatten().take(ALIKE).cloned()) {
            let fit = self.runs.onto(&self.borrowed, std::slice::from_ref(&origin.patch), compared.before)?;
            let origin = self.origin(origin.patch);
            if fit.tree() == Some(compared.commit.tree) {
                exact.push(Finding::made(compared, &[origin], fit.placed()));
                continue;
            }
            match self.is_like(compared, &origin.patch)? {
                Some(true) => exact.push(Finding::like(compared, vec![origin])),
                // A run by an unknown key cannot contradict a person's commit.
                Some(false) if origin.standing == Standing::Proven => nearly = nearly.or(Some(origin)),
                _ => {}
            }
        }
        // Proven matches first.
        exact.sort_by_key(|found| found.verdict != Verdict::Product);
        let mut exact = exact.into_iter();
        if let Some(first) = exact.next() {
            let others = exact.filter(|other| other.verdict == first.verdict).flat_map(|other| other.origins).collect();
            return Ok(Some(Finding { others, ..first }));
        }
        Ok(nearly.map(|origin| {
            let detail = format!("but for white space it is what {} handed over", origin.name());
            let found = Finding::plain(compared.commit.clone(), Verdict::Changed, &detail);
            Finding { origins: vec![origin], ..found }
        }))
    }

    /// Returns the origins of patches, best proven first, with one copy of each run.
    pub(super) fn origins(&mut self, patches: impl Iterator<Item = Patch>) -> Vec<Origin> {
        let mut origins: Vec<Origin> = patches.map(|patch| self.origin(patch)).collect();
        origins.sort_by(|a, b| a.standing.cmp(&b.standing));
        let mut once: Vec<Origin> = Vec::new();
        for origin in origins {
            if !once.iter().any(|other| other.patch.is(&origin.patch)) {
                once.push(origin);
            }
        }
        once
    }

    fn by_lines(&mut self, compared: &Comparison, change: &Change) -> Result<Option<Finding>, AnyError> {
        let contents = self.index.contents(self.store, &self.borrowed)?;
        let mut after = After { tree: compared.commit.tree, files: BTreeMap::new() };
        let mut fitting: Vec<(Patch, Rc<Diff>)> = Vec::new();
        for (patch, diff) in &contents.known {
            if touches(diff, &change.diff) && self.is_in(&mut after, diff)? {
                fitting.push((patch.clone(), Rc::clone(diff)));
            }
        }
        fitting.sort_by_key(|(_, diff)| {
            std::cmp::Reverse(diff.files.values().map(|file| file.added.len() + file.removed.len()).sum::<usize>())
        });
        let patches = fitting.into_iter().take(TOGETHER).map(|(patch, _)| patch);
        let origins =
            self.origins(patches).into_iter().filter(|origin| !matches!(origin.standing, Standing::Barred(_)));
        for together in sets(origins.collect()) {
            let combined: Vec<Patch> = together.iter().map(|origin| origin.patch.clone()).collect();
            let fit = self.runs.onto(&self.borrowed, &combined, compared.before)?;
            if fit.tree() == Some(compared.commit.tree) {
                return Ok(Some(Finding::made(compared, &together, fit.placed())));
            }
        }
        Ok(None)
    }

    /// Returns true if a tree has every line that a patch adds and none that it removes.
    fn is_in(&self, after: &mut After, diff: &Diff) -> Result<bool, AnyError> {
        for (path, file) in &diff.files {
            let now = after.file(self.store, path)?;
            let fits = match (&file.binary, now) {
                (_, None) => file.added.is_empty() && (file.gone || file.binary.is_none()),
                (Some(blob), Some(now)) => *blob == now.blob.to_string(),
                (None, Some(now)) => file.added.is_subset(&now.lines),
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns true if a patch and a commit have a changed line or file in common.
fn touches(patch: &Diff, change: &Diff) -> bool {
    patch.files.iter().any(|(path, file)| {
        change.files.get(path).is_some_and(|changed| {
            let plain = file.added.is_empty() && file.removed.is_empty();
            plain || !file.added.is_disjoint(&changed.added) || !file.removed.is_disjoint(&changed.removed)
        })
    })
}

/// Returns the combinations of patches to try: each alone, those of each run, then all.
pub(super) fn sets(origins: Vec<Origin>) -> Vec<Vec<Origin>> {
    let mut sets: Vec<Vec<Origin>> = origins.iter().take(ALONE).map(|origin| vec![origin.clone()]).collect();
    let mut runs: Vec<Vec<Origin>> = Vec::new();
    for origin in &origins {
        match runs.iter_mut().find(|run| run[0].patch.record.at.reference == origin.patch.record.at.reference) {
            Some(run) => run.push(origin.clone()),
            None => runs.push(vec![origin.clone()]),
        }
    }
    let several = runs.len() > 1;
    sets.extend(runs.into_iter().filter(|run| run.len() > 1).take(RUNS));
    sets.extend(Some(origins).filter(|_| several));
    sets
}

/// A cache of the files of a tree.
struct After {
    tree: Oid,
    files: BTreeMap<BString, Option<Text>>,
}

/// A file of a tree.
struct Text {
    blob: Oid,
    lines: BTreeSet<Vec<u8>>,
}

impl After {
    /// Returns the blob and lines of a file, or `None` if it is missing or unreadable.
    fn file(&mut self, store: &store::Store, path: &BString) -> Result<Option<&Text>, AnyError> {
        if !self.files.contains_key(path) {
            let blob = match path.to_str() {
                Ok(path) => store.blob_at(self.tree, path)?,
                Err(_) => None,
            };
            let file = blob.and_then(|oid| {
                let bytes = store.read_blob(oid).ok()?;
                Some(Text { blob: oid, lines: bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() })
            });
            self.files.insert(path.clone(), file);
        }
        Ok(self.files.get(path).and_then(Option::as_ref))
    }
}
