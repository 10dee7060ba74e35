//! The problems of a document: all counted, the first ones kept.

use crate::model::hints;
use std::ops::Deref;

use serde::Serialize;

use super::json::locate;
use super::problem::{Code, Problem, nearest};

/// The maximum number of kept problems.
pub const MAX_PROBLEMS: usize = 1000;

/// The maximum size of the kept texts, except the first, in bytes.
const MAX_TEXT: usize = 512 << 10;

/// The limit of the search for similar names, in pairs of bytes.
const MAX_COMPARED: usize = 1 << 26;

/// The minimum cost of a comparison.
const COMPARISON: usize = 256;

/// The problems of one document.
///
/// It dereferences to the kept ones: at most [`MAX_PROBLEMS`], within a size limit. It is empty if
/// and only if nothing was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Problems {
    listed: Vec<Problem>,
    #[serde(skip)]
    count: usize,
    #[serde(skip)]
    text: usize,
    #[serde(skip)]
    compared: usize,
    #[serde(skip)]
    under: Option<Code>,
}

impl Problems {
    /// Returns the number of problems, including those not kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of problems not kept.
    pub fn more(&self) -> usize {
        self.count - self.listed.len()
    }

    /// Formats the number of problems not kept.
    pub fn and_more(&self) -> Option<String> {
        let more = self.more();
        (more > 0).then(|| format!("… and {more} more problem{}", if more == 1 { "" } else { "s" }))
    }

    /// Returns true if another problem may be kept.
    pub(crate) fn keeps_more(&self) -> bool {
        self.more() == 0 && self.listed.len() < MAX_PROBLEMS
    }

    /// Adds item ids and line numbers of the document.
    #[must_use]
    pub fn located(mut self, bytes: &[u8]) -> Self {
        locate(bytes, &mut self.listed);
        self
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.add(problem, |problem| problem);
    }

    /// Adds a problem; the text is created only if it is kept.
    pub(crate) fn push_with(&mut self, problem: impl FnOnce() -> Problem) {
        if self.keeps_more() {
            self.push(problem());
        } else {
            self.count_more(1);
        }
    }

    /// Counts problems without keeping them.
    pub(crate) fn count_more(&mut self, more: usize) {
        self.count += more;
    }

    /// Adds a problem, with the nearest of `known` as a suggestion if similar enough.
    ///
    /// Only kept problems get one, until the limit of the search.
    pub(crate) fn push_near<'a, I>(&mut self, problem: Problem, target: &str, known: I)
    where
        I: IntoIterator<Item = &'a str, IntoIter: Clone>,
    {
        let mut compared = self.compared;
        self.add(problem, |problem| {
            let known = known.into_iter();
            let mut costs = known.clone().map(|name| COMPARISON + target.len() * name.len());
            let affordable = costs.all(|cost| {
                compared = compared.saturating_add(cost);
                compared <= MAX_COMPARED
            });
            match if affordable { nearest(target, known) } else { None } {
                Some(name) => problem.hint(hints::did_you_mean_in_plan(name)),
                None => problem,
            }
        });
        self.compared = compared;
    }

    /// Changes the code of the problems added by `read`.
    pub(crate) fn under<T>(&mut self, code: Code, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.under.replace(code);
        let found = read(self);
        self.under = outer;
        found
    }

    fn add(&mut self, problem: Problem, finish: impl FnOnce(Problem) -> Problem) {
        // After the first omission all are omitted, so that the kept ones are the first.
        let keeps = self.keeps_more();
        self.count += 1;
        if !keeps {
            return;
        }
        let mut problem = finish(problem);
        problem.code = self.under.unwrap_or(problem.code);
        self.text +=
            problem.path.len() + problem.message.len() + problem.hint.as_ref().map_or(0, |hint| hint.as_str().len());
        if self.listed.is_empty() || self.text <= MAX_TEXT {
            self.listed.push(problem);
        }
    }
}

impl Deref for Problems {
    type Target = [Problem];

    fn deref(&self) -> &[Problem] {
        &self.listed
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

    /// Iterates over the kept ones.
    fn into_iter(self) -> Self::IntoIter {
        self.listed.into_iter()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.listed.iter()
    }
}
