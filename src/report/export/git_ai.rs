//! The authorship log 3.0.0 of Git AI: the text of a note in `refs/notes/ai`.
//!
//! Format: <https://github.com/git-ai-project/git-ai/blob/main/specs/git_ai_standard_v3.0.0.md>.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::digest::{Digest, Oid};
use crate::model::item_index::ItemIndex;
use crate::model::printable;

use super::Error;
use super::facts::{Attempt, Facts};
use super::item_lines::{self, ItemLines, LinesIn};

/// The version of the format.
const SCHEMA_VERSION: &str = "authorship/3.0.0";

/// The line between the two sections.
const DIVIDER: &str = "---";

/// The number of hexadecimal digits of ids.
const ID_DIGITS: usize = 14;

/// The metadata section.
#[derive(Serialize)]
struct Metadata<'a> {
    schema_version: &'static str,
    base_commit_sha: Oid,
    /// The older form of sessions, which must be present.
    prompts: Map<String, Value>,
    sessions: BTreeMap<String, Session<'a>>,
}

#[derive(Serialize)]
struct Session<'a> {
    agent_id: AgentId<'a>,
    custom_attributes: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct AgentId<'a> {
    tool: &'a str,
    id: String,
    model: &'a str,
}

/// An authorship log, and what it does not say.
pub(super) struct Log {
    pub(super) text: String,
    /// Sentences about lines that are left out.
    pub(super) left_out: Vec<String>,
}

/// Returns the authorship log of a run or an item.
///
/// A log has one state of the files, so without a commit it is that of one item's patch.
pub(super) fn export(facts: &Facts<'_>, only: Option<ItemIndex>, lines_in: LinesIn<'_>) -> Result<Log, Error> {
    let mut left_out = Vec::new();
    let mut made = item_lines::made(facts, only, lines_in)?;
    made.retain(|lines| {
        let item = &lines.attempt.fired.item;
        let is_by_model = lines.attempt.is_by_model();
        if !is_by_model {
            left_out.push(format!(
                "the lines of {:?} stay untracked: its worker reported no model or session",
                item.as_str()
            ));
        }
        is_by_model
    });
    let base = match (lines_in.commit(), made.as_slice()) {
        (Some(commit), _) => commit,
        (None, [_] | []) => facts.document.base,
        (None, several) => return Err(Error::SeveralPatches(several.len())),
    };
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut sessions: BTreeMap<String, Session<'_>> = BTreeMap::new();
    for lines in &made {
        let attempt = lines.attempt;
        let id = session_id(facts, attempt);
        let key = format!("s_{}", digits(&Digest::compute(format!("{}:{id}", attempt.agent()).as_bytes())));
        let trace = digits(&attempt.entry());
        for (path, ranges) in &lines.files {
            if path.contains(|c| c == '"' || printable::is_unprintable(c)) {
                left_out.push(format!("the file {path:?} is left out: the format cannot have its name"));
                continue;
            }
            files.entry(path).or_default().push(format!("  {key}::t_{trace} {}", specification(ranges)));
        }
        let unnamed = lines.others.iter().filter(|other| other.why == item_lines::NOT_UTF8);
        left_out.extend(
            unnamed.map(|other| format!("the file {} is left out: the format cannot have its name", other.path)),
        );
        sessions.entry(key).or_insert_with(|| Session::new(facts, attempt, id, lines_in)).add(lines);
    }
    let mut text = String::new();
    for (path, entries) in files {
        text.push_str(&name(path));
        text.push('\n');
        entries.iter().for_each(|entry| writeln!(text, "{entry}").expect("writing to a string does not fail"));
    }
    let prompts = Map::new();
    let metadata = Metadata { schema_version: SCHEMA_VERSION, base_commit_sha: base, prompts, sessions };
    let metadata = serde_json::to_string_pretty(&metadata).expect("the metadata is JSON");
    Ok(Log { text: format!("{text}{DIVIDER}\n{}\n", printable::json(&metadata)), left_out })
}

/// Returns the session that the worker reported, or the name of the attempt.
fn session_id(facts: &Facts<'_>, attempt: &Attempt<'_>) -> String {
    let reported = attempt.claims().and_then(|claims| claims.session.clone());
    reported.unwrap_or_else(|| format!("{}/{}#{}", facts.run.run, attempt.fired.item, attempt.fired.attempt))
}

impl<'a> Session<'a> {
    fn new(facts: &Facts<'_>, attempt: &'a Attempt<'_>, id: String, lines_in: LinesIn<'_>) -> Self {
        let model = attempt.claims().and_then(|claims| claims.model.as_deref()).unwrap_or("unknown");
        let pairs = facts.origin.pairs().into_iter().chain([("lines", lines_in.about().to_owned())]);
        Self {
            agent_id: AgentId { tool: attempt.agent(), id, model },
            custom_attributes: pairs.map(|(name, value)| (format!("handoff.{name}"), value)).collect(),
        }
    }

    /// Adds an item, because workers can continue each other's sessions.
    fn add(&mut self, lines: &ItemLines<'_, '_>) {
        let (attempt, patch) = (lines.attempt, lines.patch.sha256);
        let red = if attempt.summary.red { ", red" } else { "" };
        let value = format!("attempt {}{red}, entry {}, patch {patch}", attempt.fired.attempt, attempt.entry());
        self.custom_attributes.insert(format!("handoff.item.{}", attempt.fired.item), value);
    }
}

fn digits(digest: &Digest) -> String {
    digest.hex()[..ID_DIGITS].to_owned()
}

/// Writes line ranges: `1-4,9,12-16`.
fn specification(ranges: &[RangeInclusive<u64>]) -> String {
    ranges
        .iter()
        .map(|range| match (range.start(), range.end()) {
            (start, end) if start == end => start.to_string(),
            (start, end) => format!("{start}-{end}"),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Quotes a path with white space, or one that reads as the divider.
fn name(path: &str) -> String {
    if path == DIVIDER || path.contains(char::is_whitespace) { format!("\"{path}\"") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_names_are_written_as_the_format_asks() {
        assert_eq!(specification(&[1..=4, 9..=9, 12..=16]), "1-4,9,12-16");
        let names = ["a/b.rs", "my file", "---", "end\u{a0}"].map(name);
        assert_eq!(names, ["a/b.rs", "\"my file\"", "\"---\"", "\"end\u{a0}\""]);
    }
}
