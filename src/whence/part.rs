//! Commits that hold what items handed over and changes of a person as well, such as a squash with a fix-up in it.
//!
//! The patches of the items are put onto the commit's parent, and the commit itself comes on top. A line that is still as
//! a patch made it is that item's; a line that the last step brought is the person's.

use gix::bstr::BString;

use crate::model::digest::Oid;

use super::Error;
use super::commit::Commit;
use super::diff::{Diff, FileDiff};
use super::index::Patch;
use super::judge::{Case, Finding, Judge, Maker, Verdict};
use super::known::Standing;
use super::search::{TOGETHER, sets};

/// The fewest traces of a patch by which it is looked for in a commit that names no item.
const FEWEST: usize = 2;

impl Judge<'_> {
    /// Returns the trees after each item whose patch a commit holds in part; nothing where it holds none, or is made of
    /// nothing else.
    ///
    /// Where its message names items, these are looked for, and otherwise those of which more than half is in the commit.
    pub(super) fn parts(&mut self, finding: &Finding) -> Result<Vec<(Maker, Oid)>, Error> {
        let commit = &finding.commit;
        let may_be = matches!(finding.verdict, Verdict::Changed | Verdict::Person);
        if finding.how.is_some() || !may_be || commit.parents.len() > 1 {
            return Ok(Vec::new());
        }
        let before = self.before(commit)?;
        if !finding.makers.is_empty() {
            return self.steps(&finding.makers, before);
        }
        if !commit.claims.is_empty() || commit.tree == before {
            return Ok(Vec::new());
        }
        let mut case = Case { commit: commit.clone(), before, change: None };
        // The more of them fit, the more lines they explain.
        for makers in sets(self.traced(&mut case)?).into_iter().rev() {
            let steps = self.steps(&makers, before)?;
            if !steps.is_empty() {
                return Ok(steps);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the tree of a commit's parent.
    pub(super) fn before(&self, commit: &Commit) -> Result<Oid, Error> {
        Ok(match commit.parents.first() {
            Some(parent) => Commit::read(self.store, *parent)?.tree,
            None => self.store.empty_tree(),
        })
    }

    /// Returns the trees after each of some items and of those whose patches they were given, or nothing where they do
    /// not fit.
    fn steps(&mut self, makers: &[Maker], before: Oid) -> Result<Vec<(Maker, Oid)>, Error> {
        let patches: Vec<Patch> = makers.iter().map(|maker| maker.patch.clone()).collect();
        let all = self.with_given(&patches)?;
        for patches in [all, patches] {
            let placed = self.runs.onto(&self.aside, &patches, before)?.placed();
            if !placed.is_empty() {
                return Ok(self.stepped(&patches, placed));
            }
        }
        Ok(Vec::new())
    }

    /// Returns the items of whose patches a commit holds more than half.
    fn traced(&mut self, case: &mut Case) -> Result<Vec<Maker>, Error> {
        let Some(change) = self.change(case)? else { return Ok(Vec::new()) };
        let contents = self.index.contents(self.store, &self.aside)?;
        let mut traced: Vec<(usize, Patch)> = Vec::new();
        for (patch, diff) in &contents.known {
            let (found, all) = traces(diff, &change.diff);
            if found >= FEWEST && found * 2 > all {
                traced.push((found, patch.clone()));
            }
        }
        traced.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        let makers = self.makers(traced.into_iter().take(TOGETHER).map(|(_, patch)| patch));
        Ok(makers.into_iter().filter(|maker| !matches!(maker.standing, Standing::Barred(_))).collect())
    }
}

/// Counts what a patch does, and how much of that a commit does too: lines that are added or taken away, and files that
/// are made. Empty lines do not count.
fn traces(patch: &Diff, change: &Diff) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    let nothing = FileDiff::default();
    for (path, file) in &patch.files {
        let changed = change.files.get::<BString>(path).unwrap_or(&nothing);
        for (lines, others) in [(&file.added, &changed.added), (&file.removed, &changed.removed)] {
            let lines = lines.iter().filter(|line| !line.trim_ascii().is_empty());
            for line in lines {
                all += 1;
                found += usize::from(others.contains(line));
            }
        }
        all += usize::from(file.new);
        found += usize::from(file.new && changed.new);
    }
    (found, all)
}
