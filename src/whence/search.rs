//! Finds the items of a commit by content, whatever its message says.
//!
//! Tries the patch id first. If several items share one commit, or nearby lines changed, no patch
//! id matches. Then items are tried, alone and together, all of whose lines are in the commit. The
//! number of attempts is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::bstr::{BString, ByteSlice as _};

use crate::git::store;
use crate::model::digest::Oid;

use super::Error;
use super::diff::{Diff, FileDiff};
use super::index::Patch;
use super::judge::{Case, Change, Finding, Judge, Maker, Verdict};
use super::known::Standing;

/// The maximum number of patches to check for one patch id.
const ALIKE: usize = 32;

/// The maximum number of patches to try alone.
const ALONE: usize = 8;

/// The maximum number of runs whose patches are tried together.
const RUNS: usize = 8;

/// The maximum number of patches to try together.
pub(super) const TOGETHER: usize = 64;

impl Judge<'_> {
    /// Finds the items that made a commit's changes; empty if none did or the commit is too large.
    pub(super) fn search(&mut self, case: &mut Case) -> Result<Option<Finding>, Error> {
        let Some(change) = self.change(case)? else { return Ok(None) };
        match self.by_id(case, &change)? {
            Some(found) => Ok(Some(found)),
            None => self.by_lines(case, &change),
        }
    }

    fn by_id(&mut self, case: &mut Case, change: &Change) -> Result<Option<Finding>, Error> {
        let contents = self.index.contents(self.store, &self.aside)?;
        let alike = change.id.as_ref().and_then(|id| contents.by_id.get(id));
        let (mut exact, mut nearly): (Vec<Finding>, Option<Maker>) = (Vec::new(), None);
        for maker in self.makers(alike.into_iter().flatten().take(ALIKE).cloned()) {
            let fit = self.runs.onto(&self.aside, std::slice::from_ref(&maker.patch), case.before)?;
            let maker = self.maker(maker.patch);
            if fit.tree() == Some(case.commit.tree) {
                exact.push(Finding::made(case, &[maker], fit.placed()));
                continue;
            }
            match self.is_like(case, &maker.patch)? {
                Some(true) => exact.push(Finding::like(case, vec![maker])),
                // A run by an unknown key cannot contradict a person's commit.
                Some(false) if maker.standing == Standing::Proven => nearly = nearly.or(Some(maker)),
                _ => {}
            }
        }
        // Proven matches first.
        exact.sort_by_key(|found| found.verdict != Verdict::Product);
        let mut exact = exact.into_iter();
        if let Some(first) = exact.next() {
            let others = exact.filter(|other| other.verdict == first.verdict).flat_map(|other| other.makers).collect();
            return Ok(Some(Finding { others, ..first }));
        }
        Ok(nearly.map(|maker| {
            let detail = format!("but for white space it is what {} handed over", maker.name());
            let found = Finding::plain(case.commit.clone(), Verdict::Changed, &detail);
            Finding { makers: vec![maker], ..found }
        }))
    }

    /// Returns the makers of patches, best proven first, with one copy of each run.
    pub(super) fn makers(&mut self, patches: impl Iterator<Item = Patch>) -> Vec<Maker> {
        let mut makers: Vec<Maker> = patches.map(|patch| self.maker(patch)).collect();
        makers.sort_by(|a, b| a.standing.cmp(&b.standing));
        let mut once: Vec<Maker> = Vec::new();
        for maker in makers {
            if !once.iter().any(|other| other.patch.is(&maker.patch)) {
                once.push(maker);
            }
        }
        once
    }

    fn by_lines(&mut self, case: &Case, change: &Change) -> Result<Option<Finding>, Error> {
        let contents = self.index.contents(self.store, &self.aside)?;
        let mut after = After { tree: case.commit.tree, files: BTreeMap::new() };
        let mut fitting: Vec<(Patch, Rc<Diff>)> = Vec::new();
        for (patch, diff) in &contents.known {
            if touches(diff, &change.diff) && self.is_in(&mut after, diff)? {
                fitting.push((patch.clone(), Rc::clone(diff)));
            }
        }
        let lines = |diff: &Diff| diff.files.values().map(|file| file.added.len() + file.removed.len()).sum::<usize>();
        fitting.sort_by_key(|(_, diff)| std::cmp::Reverse(lines(diff)));
        let patches = fitting.into_iter().take(TOGETHER).map(|(patch, _)| patch);
        let makers = self.makers(patches).into_iter().filter(|maker| !matches!(maker.standing, Standing::Barred(_)));
        for together in sets(makers.collect()) {
            let patches: Vec<Patch> = together.iter().map(|maker| maker.patch.clone()).collect();
            let fit = self.runs.onto(&self.aside, &patches, case.before)?;
            if fit.tree() == Some(case.commit.tree) {
                return Ok(Some(Finding::made(case, &together, fit.placed())));
            }
        }
        Ok(None)
    }

    /// Returns true if a tree has every line that a patch adds and none that it removes.
    fn is_in(&self, after: &mut After, diff: &Diff) -> Result<bool, Error> {
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
    let common = |(path, file): (&BString, &FileDiff)| {
        change.files.get(path).is_some_and(|changed| {
            let plain = file.added.is_empty() && file.removed.is_empty();
            plain || !file.added.is_disjoint(&changed.added) || !file.removed.is_disjoint(&changed.removed)
        })
    };
    patch.files.iter().any(common)
}

/// Returns the combinations of patches to try: each alone, those of each run, then all.
pub(super) fn sets(makers: Vec<Maker>) -> Vec<Vec<Maker>> {
    let mut sets: Vec<Vec<Maker>> = makers.iter().take(ALONE).map(|maker| vec![maker.clone()]).collect();
    let mut runs: Vec<Vec<Maker>> = Vec::new();
    for maker in &makers {
        let of = |run: &&mut Vec<Maker>| run[0].patch.told.at.reference == maker.patch.told.at.reference;
        match runs.iter_mut().find(of) {
            Some(run) => run.push(maker.clone()),
            None => runs.push(vec![maker.clone()]),
        }
    }
    let several = runs.len() > 1;
    sets.extend(runs.into_iter().filter(|run| run.len() > 1).take(RUNS));
    sets.extend(Some(makers).filter(|_| several));
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
    fn file(&mut self, store: &store::Store, path: &BString) -> Result<Option<&Text>, Error> {
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
