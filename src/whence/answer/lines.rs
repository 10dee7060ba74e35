//! JSON output of `whence` for lines of a file.

use serde::Serialize;

use super::{ItemShown, Named};
use crate::model::digest::Oid;
use crate::whence::attribution::Verdict;
use crate::whence::known::Standing;
use crate::whence::lines::Line;

/// Consecutive lines of one origin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LinesShown {
    /// The file, from the top of the repository.
    pub path: String,
    /// The first line.
    pub from: u64,
    /// The last line.
    pub to: u64,
    /// The commit that introduced them; null if not committed.
    pub commit: Option<Oid>,
    /// The items that made them; several if each of them added the line.
    pub items: Vec<Named>,
    /// Whether that is proven.
    pub proven: bool,
    /// The kind of author: items or a person; null if unknown.
    pub by: Option<LinesBy>,
    /// The reason, in one line.
    pub detail: String,
    /// The later commit that `blame.ignoreRevsFile` skips.
    #[serde(rename = "passedOver", skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<Oid>,
    /// Whether an item and a person share the lines.
    #[serde(skip)]
    pub mixed: bool,
}

/// The kind of author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinesBy {
    /// Items of a run.
    Item,
    /// A person.
    Person,
}

impl LinesShown {
    pub(in crate::whence) fn from_line(path: &str, line: &Line) -> Self {
        let is_known = line.origins.iter().all(|origin| origin.standing == Standing::Proven);
        let proven = is_known && !line.origins.is_empty();
        let verdict = line.finding.as_ref().map(|finding| finding.verdict);
        let by = match verdict {
            _ if !line.origins.is_empty() => Some(LinesBy::Item),
            Some(Verdict::Person) => Some(LinesBy::Person),
            _ if line.mixed => Some(LinesBy::Person),
            _ => None,
        };
        Self {
            path: path.to_owned(),
            from: *line.lines.start(),
            to: *line.lines.end(),
            commit: line.finding.as_ref().map(|finding| finding.commit.oid),
            items: line.origins.iter().map(Named::from_origin).collect(),
            proven,
            by,
            detail: line.detail(),
            passed_over: line.passed,
            mixed: line.mixed,
        }
    }
}

impl LinesShown {
    /// Returns true if an item made them.
    pub fn by_item(&self, item: &ItemShown) -> bool {
        self.items.contains(&item.item_ref)
    }
}
