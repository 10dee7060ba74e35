//! Compares the branches, the stash and `HEAD` of the user's repository before and after a command.

use std::collections::BTreeMap;

use super::store::Store;
use super::work_tree;
use crate::model::any_error::AnyError;
use crate::model::printable;

/// The digits of a commit in a sentence.
const DIGITS: usize = 7;

/// The branches, the stash and `HEAD` at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branches {
    /// The branch of `HEAD`, or its commit if it is detached.
    head: String,
    /// The commits of the branches and the stash, by the names that people use.
    tips: BTreeMap<String, String>,
}

impl Branches {
    /// Reads them.
    pub fn read(store: &Store) -> Result<Self, AnyError> {
        let format = "--format=%(objectname) %(refname)";
        let listed = store.git().args(["for-each-ref", format, "refs/heads", "refs/stash"]).run()?;
        let listed = String::from_utf8_lossy(&listed);
        let tips = listed.lines().filter_map(|line| {
            let (commit, name) = line.split_once(' ')?;
            Some((short_name(name), commit.chars().take(DIGITS).collect()))
        });
        let head = work_tree::head(store)?.map(|(commit, branch)| match branch {
            Some(branch) => short_name(&branch),
            None => commit.to_string().chars().take(DIGITS).collect(),
        });
        Ok(Self { head: head.unwrap_or_default(), tips: tips.collect() })
    }

    /// Returns a sentence for each that differs in `later`.
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.head != later.head {
            changes.push(format!("HEAD moved from {} to {}", self.head, later.head));
        }
        for (name, commit) in &later.tips {
            match self.tips.get(name) {
                None => changes.push(format!("{name} is new, at {commit}")),
                Some(before) if before != commit => changes.push(format!("{name} moved from {before} to {commit}")),
                Some(_) => {}
            }
        }
        let gone = self.tips.iter().filter(|(name, _)| !later.tips.contains_key(*name));
        changes.extend(gone.map(|(name, commit)| format!("{name} is gone; it was at {commit}")));
        changes
    }
}

fn short_name(name: &str) -> String {
    let short = name.strip_prefix(work_tree::BRANCHES).or_else(|| name.strip_prefix("refs/")).unwrap_or(name);
    match short {
        "stash" => "the stash".to_owned(),
        branch => printable::line(branch),
    }
}
