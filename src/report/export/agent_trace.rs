//! Agent Trace 0.1.0: one record for each item with a patch.
//!
//! Format: <https://github.com/cursor/agent-trace>.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::claims::Reported;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::time::Moment;

use super::facts::{Attempt, Facts, uuid};
use super::item_lines::{self, ItemLines, LinesIn};
use super::{Error, tool_version};

/// The version of the specification.
const VERSION: &str = "0.1.0";

/// Our key in `metadata`, in reverse-domain notation.
const OURS: &str = "com.github.git-handoff";

/// The most characters of a model's name in the format.
const LONGEST_MODEL: usize = 250;

/// A trace record.
#[derive(Serialize)]
struct Record<'a> {
    version: &'static str,
    id: String,
    timestamp: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcs: Option<Vcs>,
    tool: Tool<'a>,
    files: Vec<File<'a>>,
    metadata: Value,
}

#[derive(Serialize)]
struct Vcs {
    #[serde(rename = "type")]
    kind: &'static str,
    revision: Oid,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    version: &'a str,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    conversations: [Conversation<'a>; 1],
}

#[derive(Serialize)]
struct Conversation<'a> {
    contributor: Contributor<'a>,
    ranges: Vec<Range>,
}

#[derive(Clone, Serialize)]
struct Contributor<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Range {
    start_line: u64,
    end_line: u64,
}

/// Returns the records, in plan order.
pub(super) fn export(facts: &Facts<'_>, only: Option<ItemIndex>, lines_in: LinesIn<'_>) -> Result<Vec<Value>, Error> {
    let made = item_lines::made(facts, only, lines_in)?;
    Ok(made.iter().map(|lines| json!(record(facts, lines, lines_in))).collect())
}

fn record<'l>(facts: &Facts<'_>, lines: &'l ItemLines<'_, '_>, lines_in: LinesIn<'_>) -> Record<'l> {
    let attempt = lines.attempt;
    let state = lines_in.commit().map_or_else(|| lines.patch.sha256.to_string(), |commit| commit.to_string());
    let contributor = contributor(attempt);
    let mut ours = attempt.details(facts);
    ours["evidence"] = json!(facts.origin);
    ours["patch"] = json!(lines.patch.sha256);
    ours["base"] = json!(facts.document.base);
    ours["lines"] = lines_in.about().into();
    if !lines.others.is_empty() {
        ours["otherFiles"] = json!(lines.others);
    }
    Record {
        version: VERSION,
        id: uuid(&format::digest_of(&json!([OURS, attempt.entry(), state]))),
        timestamp: attempt.summary.ended_at.unwrap_or(attempt.summary.started_at),
        vcs: lines_in.commit().map(|revision| Vcs { kind: "git", revision }),
        tool: Tool { name: "git-handoff", version: tool_version(&attempt.manifest.claims.tool) },
        files: lines
            .files
            .iter()
            .map(|(path, ranges)| File {
                path,
                conversations: [Conversation {
                    contributor: contributor.clone(),
                    ranges: ranges.iter().map(Range::from_lines).collect(),
                }],
            })
            .collect(),
        metadata: json!({ OURS: ours }),
    }
}

/// Returns `ai` if the worker reported a model or a session, and `unknown` otherwise. A run does
/// not record people's edits.
fn contributor<'a>(attempt: &'a Attempt<'_>) -> Contributor<'a> {
    let model = attempt.claims().and_then(|Reported { model, .. }| model.as_deref());
    Contributor {
        kind: if attempt.is_by_model() { "ai" } else { "unknown" },
        model_id: model.filter(|model| model.chars().count() <= LONGEST_MODEL),
    }
}

impl Range {
    fn from_lines(lines: &RangeInclusive<u64>) -> Self {
        Self { start_line: *lines.start(), end_line: *lines.end() }
    }
}
