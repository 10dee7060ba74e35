//! Finds the work that failed and interrupted attempts left, saved beside their run.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::git::refs;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{ItemId, RunId};

use super::View;

/// The saved work of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Saved {
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    #[cfg_attr(feature = "schemas", schemars(range(min = 1)))]
    pub attempt: u32,
    /// The worktree with its outputs, as git names a tree: `REF:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// A bundle of git's with the commits that the work does not contain, as git names a blob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<String>,
    /// The commit that the attempt started from.
    pub base: Oid,
}

impl Saved {
    /// Returns the saved work of a run of this repository, in the order of its attempts; none of a
    /// fetched run.
    pub fn all(store: &Store, view: &View) -> Result<Vec<Self>, AnyError> {
        let Some(tree) = tree_of(store, &view.run, &view.head.name)? else { return Ok(Vec::new()) };
        let attempts: BTreeSet<(&ItemId, u32)> =
            view.links.iter().filter_map(|link| link.entry.event.item()).filter(|(_, attempt)| *attempt > 0).collect();
        let reference = format::salvage_ref(&view.run);
        let mut all = Vec::new();
        for (item, attempt) in attempts {
            let (work, commits) = (format::transcript_path(item, attempt), format::commits_path(item, attempt));
            let work = store.has_tree_at(tree, &work)?.then(|| format!("{reference}:{work}"));
            let commits = store.blob_at(tree, &commits)?.map(|_| format!("{reference}:{commits}"));
            if work.is_some() || commits.is_some() {
                all.push(Self { item: item.clone(), attempt, work, commits, base: view.state.submitted.base });
            }
        }
        Ok(all)
    }

    /// Returns the names of what is saved.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.work.iter().chain(&self.commits).map(String::as_str)
    }
}

/// Returns the tree with the saved work of a run that was read from a ref of this name.
fn tree_of(store: &Store, run: &RunId, name: &str) -> Result<Option<Oid>, refs::Error> {
    if name == format::run_ref(run) { refs::read(store, &format::salvage_ref(run)) } else { Ok(None) }
}
