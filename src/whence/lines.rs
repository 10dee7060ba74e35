//! Whose the lines of a file are: of the commits that brought them, and of the items that these are made of.

use std::ops::RangeInclusive;
use std::rc::Rc;

use gix::bstr::BString;

use crate::git::aside::{self, Blamed};
use crate::model::digest::Oid;

use super::Error;
use super::diff::Diff;
use super::index::Patch;
use super::judge::{Finding, Judge, Maker};

/// Lines that stand together and are of one origin.
pub struct Line {
    /// Their numbers in the file that was asked about.
    pub lines: RangeInclusive<u64>,
    /// What was found of the commit that brought them; none of lines that are not committed yet.
    pub finding: Option<Rc<Finding>>,
    /// The items that made them, of those that the commit is made of.
    pub(super) makers: Vec<Maker>,
}

impl Judge<'_> {
    /// Says whose the lines of a file are, all of them or some.
    pub(super) fn lines(
        &mut self,
        commit: Option<Oid>,
        path: &BString,
        lines: Option<&RangeInclusive<u64>>,
    ) -> Result<Vec<Line>, Error> {
        let mut found: Vec<Line> = Vec::new();
        for blamed in aside::lines(self.store, commit, path.as_ref(), lines)? {
            let Some(oid) = blamed.commit else {
                found.push(Line { lines: blamed.lines, finding: None, makers: Vec::new() });
                continue;
            };
            let finding = self.judge(oid)?;
            if finding.how.is_none() {
                found.push(Line { lines: blamed.lines, finding: Some(finding), makers: Vec::new() });
                continue;
            }
            found.extend(self.within(&finding, &blamed)?);
        }
        Ok(found)
    }

    /// Tells the lines that a commit brought apart by the items that it is made of.
    fn within(&mut self, finding: &Rc<Finding>, blamed: &Blamed) -> Result<Vec<Line>, Error> {
        let line = |lines, makers| Line { lines, finding: Some(Rc::clone(finding)), makers };
        let steps = self.expanded(finding)?;
        if steps.len() < 2 {
            return Ok(vec![line(blamed.lines.clone(), finding.makers.clone())]);
        }
        // A commit for each step, and git says which of them a line comes from.
        let parent = finding.commit.parents.first().copied();
        let mut tip = parent;
        let mut commits: Vec<(Oid, Maker)> = Vec::new();
        for (maker, tree) in steps {
            let commit = self.aside.commit(tree, tip)?;
            commits.push((commit, maker));
            tip = Some(commit);
        }
        let Some(tip) = tip else { return Ok(Vec::new()) };
        let count = blamed.lines.end() - blamed.lines.start();
        let there = blamed.there..=blamed.there + count;
        let mut parts = Vec::new();
        for part in self.aside.blame((parent, tip), blamed.path.as_ref(), &there)? {
            let from = part.lines.start() - blamed.there + blamed.lines.start();
            let to = part.lines.end() - blamed.there + blamed.lines.start();
            let at = commits.iter().position(|(commit, _)| Some(*commit) == part.commit);
            let mut makers: Vec<Maker> = at.map(|at| commits[at].1.clone()).into_iter().collect();
            if let (Some(at), true) = (at, from == to) {
                makers.extend(self.also(finding, &commits, at, (&blamed.path, *part.lines.start()))?);
            }
            parts.push(line(from..=to, makers));
        }
        Ok(parts)
    }

    /// Returns the items of a commit that add the same line to the same file, so that it would be there without the one that is named.
    fn also(
        &mut self,
        finding: &Finding,
        commits: &[(Oid, Maker)],
        at: usize,
        (path, line): (&BString, u64),
    ) -> Result<Vec<Maker>, Error> {
        let named = &commits[at].1;
        let Some(now) = self.text(finding.commit.tree, path)? else { return Ok(Vec::new()) };
        let wanted = usize::try_from(line).ok().and_then(|line| now.get(line.checked_sub(1)?)).cloned();
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        let mut also = Vec::new();
        for (_, maker) in commits {
            if maker.patch.is(&named.patch) || self.builds_on(maker, named)? || self.builds_on(named, maker)? {
                continue;
            }
            let Some(bytes) = self.runs.bytes(&maker.patch) else { continue };
            let adds = Diff::read(&bytes).files.get(path).is_some_and(|file| file.added.contains(&wanted));
            if adds {
                also.push(maker.clone());
            }
        }
        if also.is_empty() {
            return Ok(also);
        }
        let without: Vec<Patch> = commits.iter().map(|(_, maker)| maker.patch.clone()).collect();
        let without: Vec<Patch> = without.into_iter().filter(|patch| !patch.is(&named.patch)).collect();
        let before = match finding.commit.parents.first() {
            Some(parent) => super::commit::Commit::read(self.store, *parent)?.tree,
            None => self.store.empty_tree(),
        };
        let Some(placed) = self.runs.onto(&self.aside, &without, before)? else { return Ok(also) };
        let count = |text: &[Vec<u8>]| text.iter().filter(|one| **one == wanted).count();
        let Some(last) = placed.last() else { return Ok(also) };
        let others = self.text(last.step.tree, path)?.map_or(0, |text| count(&text));
        // Where there are fewer of it without the one that is named, this one is its.
        if others < count(&now) { Ok(Vec::new()) } else { Ok(also) }
    }

    fn text(&self, tree: Oid, path: &BString) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let Ok(path) = std::str::from_utf8(path) else { return Ok(None) };
        let store = self.aside.store();
        let Some(blob) = store.blob_at(tree, path)? else { return Ok(None) };
        Ok(Some(store.read_blob(blob)?.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()))
    }

    /// Returns whether an item was given the patch of another of its run, directly or by others.
    fn builds_on(&mut self, item: &Maker, other: &Maker) -> Result<bool, Error> {
        let at = &item.patch.told.at;
        if at.reference != other.patch.told.at.reference {
            return Ok(false);
        }
        let Some(composer) = self.runs.composer(&self.aside, at)? else { return Ok(false) };
        let position = |maker: &Maker| composer.run().state.graph.position(&maker.patch.item);
        Ok(match (position(item), position(other)) {
            (Some(item), Some(other)) => composer.built_upon(item).contains(&other),
            _ => false,
        })
    }

    /// Returns the trees after each item that a commit is made of, those whose patches these were given included.
    fn expanded(&mut self, finding: &Finding) -> Result<Vec<(Maker, Oid)>, Error> {
        let mut patches: Vec<Patch> = finding.steps.iter().map(|(maker, _)| maker.patch.clone()).collect();
        let mut more = Vec::new();
        for patch in &patches {
            let Some(composer) = self.runs.composer(&self.aside, &patch.told.at)? else { continue };
            let graph = &composer.run().state.graph;
            let given = graph.position(&patch.item).map(|at| composer.built_upon(at)).unwrap_or_default();
            let items = given.into_iter().map(|at| &graph.item(at).id);
            more.extend(items.filter_map(|id| {
                let product = patch.told.patches.get(id)?;
                Some(Patch { told: Rc::clone(&patch.told), item: id.clone(), product: *product })
            }));
        }
        more.retain(|patch| !patches.iter().any(|known| known.is(patch)));
        if more.is_empty() {
            return Ok(finding.steps.clone());
        }
        patches.extend(more);
        let before = match finding.commit.parents.first() {
            Some(parent) => super::commit::Commit::read(self.store, *parent)?.tree,
            None => self.store.empty_tree(),
        };
        let placed = self.runs.onto(&self.aside, &patches, before)?.unwrap_or_default();
        if placed.last().map(|last| last.step.tree) != Some(finding.commit.tree) {
            return Ok(finding.steps.clone());
        }
        let mut steps = Vec::new();
        for placed in placed.into_iter().filter(|placed| placed.step.changed) {
            let is =
                |patch: &&Patch| patch.told.at.reference == placed.known.at.reference && patch.item == placed.step.item;
            if let Some(patch) = patches.iter().find(is).cloned() {
                steps.push((self.maker(patch), placed.step.tree));
            }
        }
        Ok(steps)
    }
}
