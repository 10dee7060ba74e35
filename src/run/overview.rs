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
    /// How many of our runs are sealed, done and green.
    pub green: usize,
    /// What waits for our key to decide.
    pub waiting: Vec<Waits>,
}

impl Repository {
    /// Looks at all runs of this repository.
    pub fn overview(&self) -> Result<Overview, target::Error> {
        let runs = self.runs(Besides::default())?.runs;
        let (sealed, open): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.sealed);
        let (good, not_green): (Vec<_>, Vec<_>) = sealed.into_iter().partition(RunSummary::is_green);
        let waiting = self.waiting(false)?.items;
        Ok(Overview { schema: "git-handoff.overview/1", open, not_green, green: good.len(), waiting })
    }
}
