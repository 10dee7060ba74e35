//! The lines that one commit added, with the items that made them.

use gix::bstr::ByteSlice as _;

use crate::git::quoted_path;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::repository::Repository;
use crate::share::anchor::verification::Verification;

use super::answer::LinesShown;
use super::attribution::{Attribution, Comparison};
use super::commit::Commit;
use super::{Error, question};

/// The lines that a commit added to its files.
#[derive(Clone, Debug)]
pub struct CommitLines {
    /// The commit.
    pub commit: Oid,
    /// The lines, by file and in order.
    pub lines: Vec<LinesShown>,
    /// The files with added lines whose path is not UTF-8, as git quotes them.
    pub unnamed: Vec<String>,
}

impl Repository {
    /// Traces the lines that a commit added, compared with its first parent.
    pub fn commit_lines(&self, revision: &str, with: &Verification<'_>) -> Result<CommitLines, AnyError> {
        let commit = question::commit(&self.store, revision)?.ok_or_else(|| Error::NoCommit(revision.to_owned()))?;
        with.open(|gate| Attribution::new(&self.store, gate)?.added(commit))?
    }
}

impl Attribution<'_> {
    /// Attributes the lines that a commit added.
    fn added(&mut self, oid: Oid) -> Result<CommitLines, AnyError> {
        let commit = Commit::read(self.store, oid)?;
        if commit.parents.first().is_some_and(|parent| !self.store.contains(*parent)) {
            return Err(Error::NoParent(oid).into());
        }
        let before = self.before(&commit)?;
        let mut compared = Comparison { commit, before, change: None };
        let change = self.change(&mut compared)?.ok_or(Error::Large(oid))?;
        let mut added = CommitLines { commit: oid, lines: Vec::new(), unnamed: Vec::new() };
        for (path, _) in change.diff.files.iter().filter(|(_, file)| !file.places.is_empty()) {
            let Ok(name) = path.to_str() else {
                added.unnamed.push(quoted_path::quoted(path.as_ref()));
                continue;
            };
            let lines = self.lines(Some(oid), path, None)?;
            let line_answers = lines.iter().map(|line| LinesShown::from_line(name, line));
            added.lines.extend(line_answers.filter(|line| line.commit == Some(oid)));
        }
        Ok(added)
    }
}
