//! What `whence` answers about the lines of a file.

use serde::Serialize;

use super::{ItemShown, Named};
use crate::model::digest::Oid;
use crate::whence::judge::Verdict;
use crate::whence::known::Standing;
use crate::whence::lines::Line;

/// Lines that stand together and are of one origin.
#[derive(Clone, Debug, Serialize)]
pub struct LinesShown {
    /// The file, from the top of the repository.
    pub path: String,
    /// The first line.
    pub from: u64,
    /// The last line.
    pub to: u64,
    /// The commit that brought them; none of what is not committed yet.
    pub commit: Option<Oid>,
    /// The items that made them: more than one where each of them added the line.
    pub items: Vec<Named>,
    /// Whether that is proven.
    pub proven: bool,
    /// Who made them: items, or a person where the commit is one's or holds changes of one besides. `None` where neither
    /// can be said.
    pub by: Option<LinesBy>,
    /// Why, in a line.
    pub detail: String,
    /// The commit that changed them since, if `blame.ignoreRevsFile` passes over it.
    #[serde(rename = "passedOver", skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<Oid>,
    /// Whether the commit holds changes of a person besides what items made.
    #[serde(skip)]
    pub mixed: bool,
}

/// Who made lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinesBy {
    /// Items of a run.
    Item,
    /// A person.
    Person,
}

impl LinesShown {
    pub(super) fn of(path: &str, line: &Line) -> Self {
        let is_known = line.makers.iter().all(|maker| maker.standing == Standing::Proven);
        let proven = is_known && !line.makers.is_empty();
        let verdict = line.finding.as_ref().map(|finding| finding.verdict);
        let by = match verdict {
            _ if !line.makers.is_empty() => Some(LinesBy::Item),
            Some(Verdict::Person) => Some(LinesBy::Person),
            _ if line.mixed => Some(LinesBy::Person),
            _ => None,
        };
        Self {
            path: path.to_owned(),
            from: *line.lines.start(),
            to: *line.lines.end(),
            commit: line.finding.as_ref().map(|finding| finding.commit.oid),
            items: line.makers.iter().map(Named::of).collect(),
            proven,
            by,
            detail: line.detail(),
            passed_over: line.passed,
            mixed: line.mixed,
        }
    }
}

impl LinesShown {
    /// Returns whether an item made them.
    pub fn by_item(&self, item: &ItemShown) -> bool {
        self.items.contains(&item.named())
    }
}
