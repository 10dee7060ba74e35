//! Summarizes all runs and threads of a repository.

use serde::Serialize;

use crate::model::any_error::AnyError;
use crate::repository::Repository;
use crate::run::query::list::{Besides, RunSummary, is_zero};
use crate::run::query::waiting::Waits;

use super::answers::ThreadSummary;

/// The overview that the program prints without a command.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.overview/1", rename_all = "camelCase")]
pub struct Overview {
    /// Our runs that are not sealed.
    pub open: Vec<RunSummary>,
    /// Our sealed runs that are not all done and green.
    pub not_green: Vec<RunSummary>,
    /// The number of our sealed runs that are done and green by their own record. Nothing is
    /// verified here.
    pub green: usize,
    /// The number of those with an item that is done without products; absent if 0.
    #[serde(rename = "handedOverNothing", skip_serializing_if = "is_zero")]
    pub handed_over_nothing: usize,
    /// The number of those with an item that takes a commit that was made before; absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub claimed: usize,
    /// The number of our archived runs. Their outcomes are not read here.
    pub archived: usize,
    /// The number of fetched runs with a ref of their own here. Their outcomes are not read either.
    pub fetched: usize,
    /// Decisions that wait for our key.
    pub waiting: Vec<Waits>,
    /// Our threads, the latest entry first.
    pub threads: Vec<ThreadSummary>,
}

impl Repository {
    /// Returns an overview of the threads of this repository, and of its runs that have refs of
    /// their own.
    pub fn overview(&self) -> Result<Overview, AnyError> {
        let runs = self.runs(Besides::default())?.runs;
        let (sealed, open): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.sealed);
        let (good, not_green): (Vec<_>, Vec<_>) = sealed.into_iter().partition(RunSummary::is_green);
        let waiting = self.waiting(false)?.items;
        let mut threads = self.threads()?.threads;
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.at));
        Ok(Overview {
            open,
            not_green,
            green: good.len(),
            handed_over_nothing: good.iter().filter(|run| run.handed_over_nothing > 0).count(),
            claimed: good.iter().filter(|run| run.claimed > 0).count(),
            archived: self.count_archived()?,
            fetched: self.count_fetched()?,
            waiting,
            threads,
        })
    }
}
