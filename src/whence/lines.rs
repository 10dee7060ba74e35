//! Attributes the lines of a file to commits and their items.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use gix::bstr::BString;

use crate::git::borrowed_repo::{self, Blamed};
use crate::git::program;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::Error;
use super::attribution::{Attribution, Finding, Origin};
use super::diff::Diff;
use super::index::Patch;
use super::known::{Placed, Standing};
use super::words;

/// Consecutive lines of one origin.
pub(super) struct Line {
    /// Their line numbers in the file.
    pub(super) lines: RangeInclusive<u64>,
    /// The commit that introduced them and its origin; `None` if they are not committed.
    pub(super) finding: Option<Rc<Finding>>,
    /// The items of the commit that made them.
    pub(super) origins: Vec<Origin>,
    /// Whether the commit also contains a person's changes.
    pub(super) mixed: bool,
    /// The later commit that `blame.ignoreRevsFile` skips.
    pub(super) passed: Option<Oid>,
}

/// A file of a commit that several items made.
struct Squash {
    path: BString,
    /// The tree before the items.
    before: Oid,
    /// The lines of the file after all items.
    now: Vec<Vec<u8>>,
    /// The items, in order of application.
    origins: Vec<Origin>,
    /// The lines that each item's own patch adds.
    added: Vec<BTreeSet<Vec<u8>>>,
    /// The lines of the file without one item; `None` if the others do not fit then.
    without: BTreeMap<usize, Option<Vec<Vec<u8>>>>,
}

impl Line {
    /// Describes origin, evidence and skipped commits in one line.
    pub(super) fn detail(&self) -> String {
        let detail = self.origin();
        let Some(passed) = self.passed.map(|passed| passed.to_string()) else { return detail };
        let short: String = passed.chars().take(12).collect();
        format!("{detail}; {short} changed the lines since, and blame.ignoreRevsFile passes over it")
    }

    fn origin(&self) -> String {
        let Some(finding) = &self.finding else { return "not committed yet".to_owned() };
        let names: Vec<String> = self.origins.iter().map(Origin::name).collect();
        let patches = words::patches(&names);
        let stranger = self.origins.iter().find_map(|origin| match &origin.standing {
            Standing::Stranger(key) => Some(key),
            Standing::Proven | Standing::Barred(_) => None,
        });
        if let Some(key) = stranger.filter(|_| self.mixed) {
            return format!("they are as in {patches}, but the run is signed with {key}, not known to you");
        }
        match (self.mixed, names.len()) {
            (true, 0) => "they differ from what the items of this commit handed over".to_owned(),
            (true, 1) => format!("{patches} makes them; other lines of this commit are a person's"),
            (true, _) => format!("{patches} make them; other lines of this commit are a person's"),
            (false, 0) => finding.detail.clone(),
            (false, 1) if finding.origins.len() == 1 && finding.origins[0].patch.is(&self.origins[0].patch) => {
                finding.detail.clone()
            }
            (false, 1) => format!("{patches} makes them, and {}", finding.detail),
            (false, _) => format!("{patches} make them, and {}", finding.detail),
        }
    }
}

impl Attribution<'_> {
    /// Attributes all or some lines of a file.
    pub(super) fn lines(
        &mut self,
        commit: Option<Oid>,
        path: &BString,
        lines: Option<&RangeInclusive<u64>>,
    ) -> Result<Vec<Line>, AnyError> {
        let mut found: Vec<Line> = Vec::new();
        let mut brought: BTreeMap<(Oid, BString), Vec<Blamed>> = BTreeMap::new();
        for blamed in self.blamed(commit, path, lines)? {
            if let Some(line_commit) = blamed.commit {
                brought.entry((line_commit, blamed.path.clone())).or_default().push(blamed);
            } else {
                let (numbers, passed) = (blamed.lines, blamed.passed);
                found.push(Line { lines: numbers, finding: None, origins: Vec::new(), mixed: false, passed });
            }
        }
        for ((revision, file), blamed) in brought {
            let finding = self.attribute(revision)?;
            let mixed = finding.how.is_none();
            let steps = if mixed { self.parts(&finding)? } else { self.expanded(&finding)? };
            if steps.len() > 1 || (mixed && !steps.is_empty()) {
                found.extend(self.within(&finding, steps, &file, &blamed)?);
                continue;
            }
            let origins = if finding.how.is_some() { finding.origins.clone() } else { Vec::new() };
            found.extend(blamed.into_iter().map(|blamed| Line {
                lines: blamed.lines,
                finding: Some(Rc::clone(&finding)),
                origins: origins.clone(),
                mixed: false,
                passed: blamed.passed,
            }));
        }
        found.sort_by_key(|line| *line.lines.start());
        Ok(found)
    }

    /// Runs `git blame` on a file.
    fn blamed(
        &self,
        commit: Option<Oid>,
        path: &BString,
        lines: Option<&RangeInclusive<u64>>,
    ) -> Result<Vec<Blamed>, AnyError> {
        let failed = match (borrowed_repo::lines(self.store, commit, path.as_ref(), lines), lines) {
            (Err(program::Error::Failed { .. }), Some(lines)) => lines,
            (blamed, _) => return Ok(blamed?),
        };
        // Usually the line does not exist; any other cause fails below as well.
        let all = borrowed_repo::lines(self.store, commit, path.as_ref(), None)?;
        let (count, requested) = (all.last().map_or(0, |last| *last.lines.end()), *failed.end());
        Err(Error::NoLine { path: path.to_string(), lines: count, requested }.into())
    }

    /// Attributes a commit's lines in a file to its items. Lines beyond those of the items have
    /// none.
    fn within(
        &mut self,
        finding: &Rc<Finding>,
        steps: Vec<(Origin, Oid)>,
        path: &BString,
        blamed: &[Blamed],
    ) -> Result<Vec<Line>, AnyError> {
        // Creates a commit for each step, so that `git blame` attributes the lines.
        let parent = finding.commit.parents.first().copied();
        let mut commits: Vec<Oid> = Vec::new();
        for (_, tree) in &steps {
            commits.push(self.borrowed.commit(*tree, commits.last().copied().or(parent))?);
        }
        let (items, mixed) = (commits.len(), finding.how.is_none());
        if mixed {
            commits.push(self.borrowed.commit(finding.commit.tree, commits.last().copied().or(parent))?);
        }
        let Some(tip) = commits.last().copied() else { return Ok(Vec::new()) };
        let mut squash = self.squash(finding, steps, path)?;
        let ranges: Vec<RangeInclusive<u64>> =
            blamed.iter().map(|one| one.there..=one.there + (one.lines.end() - one.lines.start())).collect();
        let mut parts: Vec<Line> = Vec::new();
        for part in self.borrowed.blame(parent, tip, path.as_ref(), &ranges)? {
            let at = commits[..items].iter().position(|commit| Some(*commit) == part.commit);
            for number in part.lines {
                let Some(place) = ranges.iter().position(|lines| lines.contains(&number)) else { continue };
                let here = number - blamed[place].there + blamed[place].lines.start();
                let origins = match at {
                    Some(at) => self.made(&mut squash, at, number)?,
                    None => Vec::new(),
                };
                let passed = blamed[place].passed;
                let last = parts.last_mut().filter(|last| {
                    let alike = last.passed == passed
                        && last.origins.iter().zip(&origins).all(|(one, other)| one.patch.is(&other.patch));
                    alike && last.origins.len() == origins.len() && *last.lines.end() + 1 == here
                });
                if let Some(last) = last {
                    last.lines = *last.lines.start()..=here;
                } else {
                    let finding = Some(Rc::clone(finding));
                    parts.push(Line { lines: here..=here, finding, origins, mixed, passed });
                }
            }
        }
        Ok(parts)
    }

    /// Prepares the attribution of one file of a commit.
    fn squash(&mut self, finding: &Finding, steps: Vec<(Origin, Oid)>, path: &BString) -> Result<Squash, AnyError> {
        let before = self.before(&finding.commit)?;
        let mut added = Vec::new();
        for (origin, _) in &steps {
            let bytes = self.runs.bytes(&origin.patch);
            let file = bytes.and_then(|bytes| Diff::read(&bytes).files.remove(path));
            added.push(file.map(|file| file.added).unwrap_or_default());
        }
        let now = self.text(finding.commit.tree, path)?.unwrap_or_default();
        let origins = steps.into_iter().map(|(origin, _)| origin).collect();
        Ok(Squash { path: path.clone(), before, now, origins, added, without: BTreeMap::new() })
    }

    /// Returns the item that introduced a line, and those that would have introduced it as well.
    fn made(&mut self, squash: &mut Squash, at: usize, number: u64) -> Result<Vec<Origin>, AnyError> {
        let claimed = squash.origins[at].clone();
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(line) = place.and_then(|place| squash.now.get(place)).cloned() else { return Ok(vec![claimed]) };
        let mut origins = vec![claimed.clone()];
        for (other, added) in squash.origins.iter().zip(&squash.added) {
            let is_another = !other.patch.is(&claimed.patch) && added.contains(&line);
            if is_another && !self.builds_on(other, &claimed)? && !self.builds_on(&claimed, other)? {
                origins.push(other.clone());
            }
        }
        if origins.len() == 1 {
            return Ok(origins);
        }
        if !squash.without.contains_key(&at) {
            let patches = squash.origins.iter().map(|origin| origin.patch.clone());
            let others: Vec<Patch> = patches.filter(|patch| !patch.is(&claimed.patch)).collect();
            let tree = self.runs.onto(&self.borrowed, &others, squash.before)?.tree();
            let text = tree.map(|tree| self.text(tree, &squash.path)).transpose()?;
            squash.without.insert(at, text.map(Option::unwrap_or_default));
        }
        let count = |text: &[Vec<u8>]| text.iter().filter(|other| **other == line).count();
        // If the line occurs less often without the named item, it is that item's.
        match squash.without.get(&at).and_then(Option::as_ref) {
            Some(others) if count(others) < count(&squash.now) => Ok(vec![claimed]),
            _ => Ok(origins),
        }
    }

    fn text(&self, tree: Oid, path: &BString) -> Result<Option<Vec<Vec<u8>>>, AnyError> {
        let Ok(path) = std::str::from_utf8(path) else { return Ok(None) };
        let store = self.borrowed.store();
        let Some(blob) = store.blob_at(tree, path)? else { return Ok(None) };
        Ok(Some(store.read_blob(blob)?.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()))
    }

    /// Returns true if an item consumed another's patch, directly or indirectly.
    fn builds_on(&mut self, item: &Origin, other: &Origin) -> Result<bool, AnyError> {
        let at = &item.patch.record.at;
        if at.reference != other.patch.record.at.reference {
            return Ok(false);
        }
        let Ok(composer) = self.runs.composer(&self.borrowed, at)? else { return Ok(false) };
        let position = |origin: &Origin| composer.run().state.graph.position(&origin.patch.item);
        Ok(match (position(item), position(other)) {
            (Some(item), Some(other)) => composer.run().state.built_upon(item).contains(&other),
            _ => false,
        })
    }

    /// Returns the trees after each item of a commit, including items whose patches were consumed.
    fn expanded(&mut self, finding: &Finding) -> Result<Vec<(Origin, Oid)>, AnyError> {
        let patches: Vec<Patch> = finding.steps.iter().map(|(origin, _)| origin.patch.clone()).collect();
        let all = self.with_given(&patches)?;
        if all.len() == patches.len() {
            return Ok(finding.steps.clone());
        }
        let before = self.before(&finding.commit)?;
        let fit = self.runs.onto(&self.borrowed, &all, before)?;
        if fit.tree() != Some(finding.commit.tree) {
            return Ok(finding.steps.clone());
        }
        Ok(self.stepped(&all, fit.placed()))
    }

    /// Adds the patches that the items of some patches consumed.
    pub(super) fn with_given(&mut self, patches: &[Patch]) -> Result<Vec<Patch>, AnyError> {
        let mut more = Vec::new();
        for patch in patches {
            let Ok(composer) = self.runs.composer(&self.borrowed, &patch.record.at)? else { continue };
            let state = &composer.run().state;
            let graph = &state.graph;
            let given = graph.position(&patch.item).map(|at| state.built_upon(at)).unwrap_or_default();
            let items = given.into_iter().map(|at| &graph.item(at).id);
            more.extend(items.filter_map(|id| {
                let product = patch.record.patches.get(id)?;
                Some(Patch { record: Rc::clone(&patch.record), item: id.clone(), product: *product })
            }));
        }
        more.retain(|patch| !patches.iter().any(|known| known.is(patch)));
        Ok(patches.iter().cloned().chain(more).collect())
    }

    /// Returns the trees after each patch with an effect.
    pub(super) fn stepped(&mut self, patches: &[Patch], placed: Vec<Placed>) -> Vec<(Origin, Oid)> {
        let mut steps = Vec::new();
        for entry in placed.into_iter().filter(|placed| placed.step.changed) {
            let patch = patches
                .iter()
                .find(|patch| patch.record.at.reference == entry.known.at.reference && patch.item == entry.step.item);
            if let Some(patch) = patch.cloned() {
                steps.push((self.origin(patch), entry.step.tree));
            }
        }
        steps
    }
}
