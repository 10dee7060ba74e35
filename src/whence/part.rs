//! Commits that mix the products of items with a person's changes, such as a squashed fix-up.
//!
//! The patches of the items are applied to the commit's parent, then the commit itself. A line
//! unchanged since a patch is that item's; a line from the last step is the person's.

use gix::bstr::BString;

use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::attribution::{Attribution, Comparison, Finding, Origin, Verdict};
use super::commit::Commit;
use super::diff::{Diff, FileDiff};
use super::index::Patch;
use super::known::Standing;
use super::search::{TOGETHER, sets};

/// The minimum number of matching lines to find a patch in a commit that names no item.
const FEWEST: usize = 2;

/// The minimum number of letters and digits of a significant line; `}` is everywhere.
const TELLING: usize = 3;

impl Attribution<'_> {
    /// Returns the trees after each item that a commit contains in part; empty if it contains none,
    /// or nothing else.
    ///
    /// Tries the items that its message names, else those of which it contains three quarters.
    pub(super) fn parts(&mut self, finding: &Finding) -> Result<Vec<(Origin, Oid)>, AnyError> {
        let commit = &finding.commit;
        let may_be = matches!(finding.verdict, Verdict::Changed | Verdict::Person);
        if finding.how.is_some() || !may_be || commit.parents.len() > 1 {
            return Ok(Vec::new());
        }
        let before = self.before(commit)?;
        if !finding.origins.is_empty() {
            return self.steps(&finding.origins, before);
        }
        if !commit.claims.is_empty() || commit.tree == before {
            return Ok(Vec::new());
        }
        let mut compared = Comparison { commit: commit.clone(), before, change: None };
        // More fitting items explain more lines.
        for origins in sets(self.traced(&mut compared)?).into_iter().rev() {
            let steps = self.steps(&origins, before)?;
            if !steps.is_empty() {
                return Ok(steps);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the tree of a commit's parent.
    pub(super) fn before(&self, commit: &Commit) -> Result<Oid, AnyError> {
        Ok(match commit.parents.first() {
            Some(parent) => Commit::read(self.store, *parent)?.tree,
            None => self.store.empty_tree(),
        })
    }

    /// Returns the trees after each of some items and the items they consumed, or empty if they do
    /// not fit.
    fn steps(&mut self, origins: &[Origin], before: Oid) -> Result<Vec<(Origin, Oid)>, AnyError> {
        let patches: Vec<Patch> = origins.iter().map(|origin| origin.patch.clone()).collect();
        let all = self.with_given(&patches)?;
        for group in [all, patches] {
            let placed = self.runs.onto(&self.borrowed, &group, before)?.placed();
            if !placed.is_empty() {
                return Ok(self.stepped(&group, placed));
            }
        }
        Ok(Vec::new())
    }

    /// Returns the items of whose patches a commit contains at least three quarters.
    fn traced(&mut self, compared: &mut Comparison) -> Result<Vec<Origin>, AnyError> {
        let Some(change) = self.change(compared)? else { return Ok(Vec::new()) };
        let contents = self.index.contents(self.store, &self.borrowed)?;
        let mut traced: Vec<(usize, Patch)> = Vec::new();
        for (patch, diff) in &contents.known {
            let traces = Traces::count(diff, &change.diff);
            if traces.suffice() {
                traced.push((traces.lines, patch.clone()));
            }
        }
        traced.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        let origins = self.origins(traced.into_iter().take(TOGETHER).map(|(_, patch)| patch));
        Ok(origins.into_iter().filter(|origin| !matches!(origin.standing, Standing::Barred(_))).collect())
    }
}

/// The part of a patch that a commit contains.
#[derive(Default)]
struct Traces {
    /// The number of lines that the patch adds or removes.
    all: usize,
    /// The number of these that the commit adds or removes too.
    lines: usize,
    /// The number of files that both create.
    files: usize,
}

impl Traces {
    /// Counts the significant lines: those with enough letters and digits.
    fn count(patch: &Diff, change: &Diff) -> Self {
        let mut traces = Self::default();
        let nothing = FileDiff::default();
        let tells = |line: &&Vec<u8>| line.iter().filter(|byte| is_of_word(**byte)).count() >= TELLING;
        for (path, file) in &patch.files {
            let changed = change.files.get::<BString>(path).unwrap_or(&nothing);
            for (lines, others) in [(&file.added, &changed.added), (&file.removed, &changed.removed)] {
                traces.all += lines.iter().filter(tells).count();
                traces.lines += lines.intersection(others).filter(tells).count();
            }
            traces.files += usize::from(file.new && changed.new);
        }
        traces
    }

    /// Returns true if the commit may contain the patch with a person's changes.
    fn suffice(&self) -> bool {
        self.lines > 0 && self.lines + self.files >= FEWEST && self.lines * 4 >= self.all * 3
    }
}

/// Returns true for letters and digits, those of other scripts included.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}
