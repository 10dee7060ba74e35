//! Where things stand in a repository, at one look.

use serde::Serialize;

use crate::repository::Repository;

use super::list::{Besides, RunSummary};
use super::target;
use super::waiting::Waits;

/// Where things stand: what the program prints when it is not told what to do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    schema: &'static str,
    /// Our runs that are not sealed.
    pub open: Vec<RunSummary>,
    /// Our sealed runs that are not all done and green.
    pub not_green: Vec<RunSummary>,
    /// How many of our runs are sealed, done and green, by what they record: nothing is verified here.
    pub green: usize,
    /// How many of those have an item that is done and handed over nothing; only said where there are any.
    #[serde(rename = "handedOverNothing", skip_serializing_if = "is_zero")]
    pub handed_over_nothing: usize,
    /// How many of our runs are archived; how they came out is not looked at here.
    pub archived: usize,
    /// How many runs that were fetched have a ref of their own here; how they came out is not looked at either.
    pub fetched: usize,
    /// What waits for our key to decide.
    pub waiting: Vec<Waits>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Repository {
    /// Looks at all runs of this repository that have refs of their own.
    pub fn overview(&self) -> Result<Overview, target::Error> {
        let runs = self.runs(Besides::default())?.runs;
        let (sealed, open): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.sealed);
        let (good, not_green): (Vec<_>, Vec<_>) = sealed.into_iter().partition(RunSummary::is_green);
        let waiting = self.waiting(false)?.items;
        Ok(Overview {
            schema: "git-handoff.overview/1",
            open,
            not_green,
            green: good.len(),
            handed_over_nothing: good.iter().filter(|run| run.handed_over_nothing > 0).count(),
            archived: self.count_archived()?,
            fetched: self.count_fetched()?,
            waiting,
        })
    }
}
