//! Whose the lines of a file are: of the commits that brought them, and of the items that these are made of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use gix::bstr::BString;

use crate::git::aside::{self, Blamed};
use crate::git::program;
use crate::model::digest::Oid;

use super::Error;
use super::diff::Diff;
use super::index::Patch;
use super::judge::{Finding, Judge, Maker};
use super::known::{Placed, Standing};
use super::words;

/// Lines that stand together and are of one origin.
pub(super) struct Line {
    /// Their numbers in the file that was asked about.
    pub(super) lines: RangeInclusive<u64>,
    /// What was found of the commit that brought them; none of lines that are not committed yet.
    pub(super) finding: Option<Rc<Finding>>,
    /// The items that made them, of those that the commit is made of.
    pub(super) makers: Vec<Maker>,
    /// Whether the commit holds changes of a person besides what items made.
    pub(super) mixed: bool,
    /// The commit that changed them since and was passed over, as `blame.ignoreRevsFile` asks.
    pub(super) passed: Option<Oid>,
}

/// One file of a commit that is made of several items.
struct Squash {
    path: BString,
    /// The tree that the items were put onto.
    before: Oid,
    /// The lines of the file after all of them.
    now: Vec<Vec<u8>>,
    /// The items, in the order in which they were put there.
    makers: Vec<Maker>,
    /// The lines that each adds to the file, by its own patch.
    added: Vec<BTreeSet<Vec<u8>>>,
    /// The lines of the file without one of them; none where the others do not fit then.
    without: BTreeMap<usize, Option<Vec<Vec<u8>>>>,
}

impl Line {
    /// Says in a line whose they are, what shows that, and what was passed over.
    pub(super) fn detail(&self) -> String {
        let detail = self.origin();
        let Some(passed) = self.passed.map(|passed| passed.to_string()) else { return detail };
        let short: String = passed.chars().take(12).collect();
        format!("{detail}; {short} changed the lines since, and blame.ignoreRevsFile passes over it")
    }

    fn origin(&self) -> String {
        let Some(finding) = &self.finding else { return "not committed yet".to_owned() };
        let names: Vec<String> = self.makers.iter().map(Maker::name).collect();
        let patches = words::patches(&names);
        let stranger = self.makers.iter().find_map(|maker| match &maker.standing {
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
            (false, 1) if finding.makers.len() == 1 && finding.makers[0].patch.is(&self.makers[0].patch) => {
                finding.detail.clone()
            }
            (false, 1) => format!("{patches} makes them, and {}", finding.detail),
            (false, _) => format!("{patches} make them, and {}", finding.detail),
        }
    }
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
        let mut brought: BTreeMap<(Oid, BString), Vec<Blamed>> = BTreeMap::new();
        for blamed in self.blamed(commit, path, lines)? {
            if let Some(commit) = blamed.commit {
                brought.entry((commit, blamed.path.clone())).or_default().push(blamed);
            } else {
                let (lines, passed) = (blamed.lines, blamed.passed);
                found.push(Line { lines, finding: None, makers: Vec::new(), mixed: false, passed });
            }
        }
        for ((commit, path), blamed) in brought {
            let finding = self.judge(commit)?;
            let mixed = finding.how.is_none();
            let steps = if mixed { self.parts(&finding)? } else { self.expanded(&finding)? };
            if steps.len() > 1 || (mixed && !steps.is_empty()) {
                found.extend(self.within(&finding, steps, (&path, &blamed))?);
                continue;
            }
            let makers = if finding.how.is_some() { finding.makers.clone() } else { Vec::new() };
            found.extend(blamed.into_iter().map(|blamed| Line {
                lines: blamed.lines,
                finding: Some(Rc::clone(&finding)),
                makers: makers.clone(),
                mixed: false,
                passed: blamed.passed,
            }));
        }
        found.sort_by_key(|line| *line.lines.start());
        Ok(found)
    }

    /// Asks git which commits brought the lines of a file.
    fn blamed(
        &self,
        commit: Option<Oid>,
        path: &BString,
        lines: Option<&RangeInclusive<u64>>,
    ) -> Result<Vec<Blamed>, Error> {
        let failed = match (aside::lines(self.store, commit, path.as_ref(), lines), lines) {
            (Err(program::Error::Failed { .. }), Some(lines)) => lines,
            (blamed, _) => return Ok(blamed?),
        };
        // Most often there is no such line; whatever else it is fails here as well.
        let all = aside::lines(self.store, commit, path.as_ref(), None)?;
        let (lines, asked) = (all.last().map_or(0, |last| *last.lines.end()), *failed.end());
        Err(Error::NoLine { path: path.to_string(), lines, asked })
    }

    /// Tells the lines of a file that a commit brought apart by the items that it is made of; in one that holds more, those
    /// that come on top have no item.
    fn within(
        &mut self,
        finding: &Rc<Finding>,
        steps: Vec<(Maker, Oid)>,
        (path, blamed): (&BString, &[Blamed]),
    ) -> Result<Vec<Line>, Error> {
        // A commit for each step, and git says which of them a line comes from.
        let parent = finding.commit.parents.first().copied();
        let mut commits: Vec<Oid> = Vec::new();
        for (_, tree) in &steps {
            commits.push(self.aside.commit(*tree, commits.last().copied().or(parent))?);
        }
        let (items, mixed) = (commits.len(), finding.how.is_none());
        if mixed {
            commits.push(self.aside.commit(finding.commit.tree, commits.last().copied().or(parent))?);
        }
        let Some(tip) = commits.last().copied() else { return Ok(Vec::new()) };
        let mut squash = self.squash(finding, steps, path)?;
        let there = |one: &Blamed| one.there..=one.there + (one.lines.end() - one.lines.start());
        let asked: Vec<RangeInclusive<u64>> = blamed.iter().map(there).collect();
        let mut parts: Vec<Line> = Vec::new();
        for part in self.aside.blame((parent, tip), path.as_ref(), &asked)? {
            let at = commits[..items].iter().position(|commit| Some(*commit) == part.commit);
            for number in part.lines {
                let Some(place) = asked.iter().position(|lines| lines.contains(&number)) else { continue };
                let here = number - blamed[place].there + blamed[place].lines.start();
                let makers = match at {
                    Some(at) => self.made(&mut squash, at, number)?,
                    None => Vec::new(),
                };
                let passed = blamed[place].passed;
                let same = |last: &&mut Line| {
                    let alike = last.passed == passed
                        && last.makers.iter().zip(&makers).all(|(one, other)| one.patch.is(&other.patch));
                    alike && last.makers.len() == makers.len() && *last.lines.end() + 1 == here
                };
                if let Some(last) = parts.last_mut().filter(same) {
                    last.lines = *last.lines.start()..=here;
                } else {
                    let finding = Some(Rc::clone(finding));
                    parts.push(Line { lines: here..=here, finding, makers, mixed, passed });
                }
            }
        }
        Ok(parts)
    }

    /// Gets ready to tell apart the lines of one file of a commit.
    fn squash(&mut self, finding: &Finding, steps: Vec<(Maker, Oid)>, path: &BString) -> Result<Squash, Error> {
        let before = self.before(&finding.commit)?;
        let mut added = Vec::new();
        for (maker, _) in &steps {
            let bytes = self.runs.bytes(&maker.patch);
            let file = bytes.and_then(|bytes| Diff::read(&bytes).files.remove(path));
            added.push(file.map(|file| file.added).unwrap_or_default());
        }
        let now = self.text(finding.commit.tree, path)?.unwrap_or_default();
        let makers = steps.into_iter().map(|(maker, _)| maker).collect();
        Ok(Squash { path: path.clone(), before, now, makers, added, without: BTreeMap::new() })
    }

    /// Returns the item that brought a line, and those that would have brought it as well.
    fn made(&mut self, squash: &mut Squash, at: usize, number: u64) -> Result<Vec<Maker>, Error> {
        let named = squash.makers[at].clone();
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(wanted) = place.and_then(|place| squash.now.get(place)).cloned() else { return Ok(vec![named]) };
        let mut makers = vec![named.clone()];
        for (other, added) in squash.makers.iter().zip(&squash.added) {
            let is_another = !other.patch.is(&named.patch) && added.contains(&wanted);
            if is_another && !self.builds_on(other, &named)? && !self.builds_on(&named, other)? {
                makers.push(other.clone());
            }
        }
        if makers.len() == 1 {
            return Ok(makers);
        }
        if !squash.without.contains_key(&at) {
            let patches = squash.makers.iter().map(|maker| maker.patch.clone());
            let others: Vec<Patch> = patches.filter(|patch| !patch.is(&named.patch)).collect();
            let tree = self.runs.onto(&self.aside, &others, squash.before)?.tree();
            let text = tree.map(|tree| self.text(tree, &squash.path)).transpose()?;
            squash.without.insert(at, text.map(Option::unwrap_or_default));
        }
        let count = |text: &[Vec<u8>]| text.iter().filter(|line| **line == wanted).count();
        // Where there are fewer of it without the one that is named, this one is its.
        match squash.without.get(&at).and_then(Option::as_ref) {
            Some(others) if count(others) < count(&squash.now) => Ok(vec![named]),
            _ => Ok(makers),
        }
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
        let Ok(composer) = self.runs.composer(&self.aside, at)? else { return Ok(false) };
        let position = |maker: &Maker| composer.run().state.graph.position(&maker.patch.item);
        Ok(match (position(item), position(other)) {
            (Some(item), Some(other)) => composer.run().state.built_upon(item).contains(&other),
            _ => false,
        })
    }

    /// Returns the trees after each item that a commit is made of, those whose patches these were given included.
    fn expanded(&mut self, finding: &Finding) -> Result<Vec<(Maker, Oid)>, Error> {
        let patches: Vec<Patch> = finding.steps.iter().map(|(maker, _)| maker.patch.clone()).collect();
        let all = self.with_given(&patches)?;
        if all.len() == patches.len() {
            return Ok(finding.steps.clone());
        }
        let before = self.before(&finding.commit)?;
        let fit = self.runs.onto(&self.aside, &all, before)?;
        if fit.tree() != Some(finding.commit.tree) {
            return Ok(finding.steps.clone());
        }
        Ok(self.stepped(&all, fit.placed()))
    }

    /// Adds to some patches those that their items were given.
    pub(super) fn with_given(&mut self, patches: &[Patch]) -> Result<Vec<Patch>, Error> {
        let mut more = Vec::new();
        for patch in patches {
            let Ok(composer) = self.runs.composer(&self.aside, &patch.told.at)? else { continue };
            let state = &composer.run().state;
            let graph = &state.graph;
            let given = graph.position(&patch.item).map(|at| state.built_upon(at)).unwrap_or_default();
            let items = given.into_iter().map(|at| &graph.item(at).id);
            more.extend(items.filter_map(|id| {
                let product = patch.told.patches.get(id)?;
                Some(Patch { told: Rc::clone(&patch.told), item: id.clone(), product: *product })
            }));
        }
        more.retain(|patch| !patches.iter().any(|known| known.is(patch)));
        Ok(patches.iter().cloned().chain(more).collect())
    }

    /// Returns the trees after each patch that changed something.
    pub(super) fn stepped(&mut self, patches: &[Patch], placed: Vec<Placed>) -> Vec<(Maker, Oid)> {
        let mut steps = Vec::new();
        for placed in placed.into_iter().filter(|placed| placed.step.changed) {
            let is =
                |patch: &&Patch| patch.told.at.reference == placed.known.at.reference && patch.item == placed.step.item;
            if let Some(patch) = patches.iter().find(is).cloned() {
                steps.push((self.maker(patch), placed.step.tree));
            }
        }
        steps
    }
}
