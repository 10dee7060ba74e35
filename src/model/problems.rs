//! Everything that is wrong with a document: counted to the last, and the first of it kept.

use crate::model::hints;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::json::locate;
use super::problem::{Code, Problem, nearest};

/// How many problems are kept of one document; nobody reads more.
pub const MAX_PROBLEMS: usize = 1000;

/// The most bytes of text that the kept problems have together, the first one aside.
const MAX_TEXT: usize = 512 << 10;

/// How much is compared in the search for nearest names, in pairs of bytes: a moment's work.
const MAX_COMPARED: usize = 1 << 26;

/// What one comparison costs at least.
const COMPARISON: usize = 256;

/// The problems of one document.
///
/// It reads as the list of those that were kept: the first ones, at most [`MAX_PROBLEMS`] and few enough that they can be shown.
/// The rest is counted. It is empty if and only if nothing was found, whatever is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    kept: Vec<Problem>,
    count: usize,
    text: usize,
    compared: usize,
    under: Option<Code>,
}

impl Problems {
    /// Returns how many there are, with those that were not kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns how many were not kept.
    pub fn more(&self) -> usize {
        self.count - self.kept.len()
    }

    /// Returns what is said in the place of those that were only counted.
    pub fn and_more(&self) -> Option<String> {
        let more = self.more();
        (more > 0).then(|| format!("… and {more} more problem{}", if more == 1 { "" } else { "s" }))
    }

    /// Returns whether what is added next may be kept, and so is worth some trouble.
    pub(crate) fn keeps_more(&self) -> bool {
        self.more() == 0 && self.kept.len() < MAX_PROBLEMS
    }

    /// Names the items and the lines of those that were kept, as they stand in the document that they are of.
    #[must_use]
    pub fn located(mut self, bytes: &[u8]) -> Self {
        locate(bytes, &mut self.kept);
        self
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.add(problem, |problem| problem);
    }

    /// Adds a problem that is only put into words if it is kept: there may be very many.
    pub(crate) fn push_with(&mut self, problem: impl FnOnce() -> Problem) {
        if self.keeps_more() {
            self.push(problem());
        } else {
            self.count_more(1);
        }
    }

    /// Counts problems that nobody has kept.
    pub(crate) fn count_more(&mut self, more: usize) {
        self.count += more;
    }

    /// Adds a problem, with the nearest of `known` as a hint if one is near enough to be what was meant.
    ///
    /// Only what is kept gets one, and none does any more once the names are too many to be gone through again.
    pub(crate) fn push_near<'a, I>(&mut self, problem: Problem, wanted: &str, known: I)
    where
        I: IntoIterator<Item = &'a str, IntoIter: Clone>,
    {
        let mut compared = self.compared;
        self.add(problem, |problem| {
            let known = known.into_iter();
            let mut costs = known.clone().map(|name| COMPARISON + wanted.len() * name.len());
            let affordable = costs.all(|cost| {
                compared = compared.saturating_add(cost);
                compared <= MAX_COMPARED
            });
            match if affordable { nearest(wanted, known) } else { None } {
                Some(name) => problem.hint(hints::did_you_mean_in_plan(name)),
                None => problem,
            }
        });
        self.compared = compared;
    }

    /// Gives every problem that `read` adds the same code.
    pub(crate) fn under<T>(&mut self, code: Code, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.under.replace(code);
        let found = read(self);
        self.under = outer;
        found
    }

    fn add(&mut self, problem: Problem, finish: impl FnOnce(Problem) -> Problem) {
        // Once one was left out, all that follow are: what is shown is the beginning.
        let keeps = self.keeps_more();
        self.count += 1;
        if !keeps {
            return;
        }
        let mut problem = finish(problem);
        problem.code = self.under.unwrap_or(problem.code);
        self.text +=
            problem.path.len() + problem.message.len() + problem.hint.as_ref().map_or(0, |hint| hint.as_str().len());
        if self.kept.is_empty() || self.text <= MAX_TEXT {
            self.kept.push(problem);
        }
    }
}

impl Deref for Problems {
    type Target = [Problem];

    fn deref(&self) -> &[Problem] {
        &self.kept
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        let mut problems = Self::default();
        problems.push(problem);
        problems
    }
}

impl Extend<Problem> for Problems {
    fn extend<T: IntoIterator<Item = Problem>>(&mut self, problems: T) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    /// Goes through those that were kept.
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl Serialize for Problems {
    /// Writes the list of those that were kept.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kept.serialize(serializer)
    }
}
