//! Traces a commit, a line or a range of commits back to the items that made them.
//!
//! The message of a commit may name a run, an item and a product: a hint where to look, never
//! evidence. Evidence is a verified run whose recorded bytes, applied to the commit's parent, make
//! exactly the commit's tree or its very lines. Anything else has an unknown origin.

pub mod answer;

mod attribution;
mod commit;
mod commit_lines;
pub(crate) mod diff;
mod index;
mod known;
mod lines;
mod part;
mod question;
mod search;
mod words;

pub use attribution::{How, Verdict};
pub use commit_lines::CommitLines;
pub use known::Standing;

use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::repository::Repository;
use crate::share::anchor::verification::Verification;

use answer::{CommitsVerified, Whence};
use attribution::Attribution;
use question::Question;

impl Repository {
    /// Traces a commit, the lines of a file, or a range of commits.
    ///
    /// Calls `warn` with what a reader of the runs should know.
    pub fn whence(&self, text: &str, with: &Verification<'_>, warn: &mut dyn FnMut(&str)) -> Result<Whence, AnyError> {
        let question = question::parse(self, text)?;
        with.open(|gate| {
            let mut attribution = Attribution::new(&self.store, gate)?;
            let answer = match question {
                Question::Commit(commit) => {
                    Whence::new(text, &[attribution.attribute(commit)?], None, &mut attribution)
                }
                Question::Range(commits) => {
                    let found = attribution.attribute_all(&commits)?;
                    Whence::new(text, &found, None, &mut attribution)
                }
                Question::Lines { commit, path, lines } => {
                    let found = attribution.lines(commit, &path, lines.as_ref())?;
                    Whence::new(text, &[], Some((&path.to_string(), &found)), &mut attribution)
                }
            };
            attribution.cautions().for_each(|caution| warn(&caution));
            Ok(answer)
        })?
    }

    /// Verifies that each commit of `A..B` is exactly the product of items, or a person's without a
    /// claim.
    ///
    /// Calls `warn` with what a reader of the runs should know.
    pub fn verify_commits(
        &self,
        range: &str,
        with: &Verification<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<CommitsVerified, AnyError> {
        let commits = question::range(&self.store, range)?;
        with.open(|gate| {
            let mut attribution = Attribution::new(&self.store, gate)?;
            let found = attribution.attribute_all(&commits)?;
            let answer = CommitsVerified::new(range, &found, &mut attribution);
            attribution.cautions().for_each(|caution| warn(&caution));
            Ok(answer)
        })?
    }
}

fn counted(lines: u64) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}

errors! {
    /// An error while tracing.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Nothing(String) "no-such-thing": "{0:?} is no commit, no file of HEAD, no line of one, and no range of commits";
    NoCommit(String) "no-commit": "{0:?} names no commit";
    NoLine { path: String, lines: u64, requested: u64 } "no-such-thing":
        "{path:?} has {}, so there is no line {requested}" [counted(*.lines)];
    Large(Oid) "cannot-trace": "the change of the commit {0} is too large to be looked through";
    NoParent(Oid) "cannot-trace": "the parent of the commit {0} is not in this repository";
    NoRange(String) "usage" 2: "{0:?} is no range of commits like main..feature";
}
