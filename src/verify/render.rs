//! Reports as text and as JSON. Pure.

mod access;
mod answer;
mod decisions;
mod same_id;
mod snapshot;
mod takeovers;
mod thread;
mod upstream;

#[cfg(feature = "schemas")]
pub(super) use answer::ReportShown;
pub(super) use decisions::OWN_KEY;
#[cfg(feature = "schemas")]
pub(super) use thread::{AncestorShown, ThreadReportShown};

use crate::model::confinement::NONE;
use crate::model::pipeline::BlockStatus;
use crate::model::printable::{Color, Painted, cut, line};
use crate::model::state::checks::unprotected_in_words;
use crate::model::time::Moment;
use serde::{Serialize, Serializer};

use super::{Guarantee, Report, Row, SameId, State, Timed};

const HEADLINE_COLUMN: usize = 64;

/// The addition to the headline of a run that is intact, but not all done and green.
const PARTIAL: &str = "PARTIAL";

/// Items with blocks above this number are counted, not listed.
const MAX_BLOCKS: usize = 20;

/// Uncovered parts above this number are counted, not listed.
const MAX_UNCOVERED: usize = 20;

impl Report {
    /// Returns the report as lines of text. Text that others wrote is sanitized.
    pub fn to_text(&self, color: bool) -> String {
        self.painted(color).into()
    }

    /// Returns the report as lines of text, optionally in colour.
    pub fn painted(&self, color: bool) -> Painted {
        let place = self.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
        let title = line(&format!("git handoff verify · {place}{}", self.run));
        let mut text = title_line(&title, self.standing(), self.headline, color);
        if self.is_partial() {
            text = text.words(" ").painted(PARTIAL, color.then_some(Color::Yellow));
        }
        let rows = self.rows.iter().fold(text.end(), |text, row| row_line(text, row, color));
        let with_rows = self
            .lines_below()
            .into_iter()
            .fold(rows, |written, (state, name, detail)| labelled(written, state, name, &detail, color));
        let with_remarks = self.remarks().iter().fold(with_rows, |written, remark| written.words(&line(remark)).end());
        let footer = self.footer();
        if footer.is_empty() { with_remarks } else { with_remarks.words(&footer).end() }
    }

    /// Returns the sentences about changed protected files that checks judged, and about checks
    /// without protected files.
    fn remarks(&self) -> Vec<String> {
        let judged = self.protected.iter().filter(|item| item.judged);
        let judged = judged.map(|item| format!("! {}", item.in_words(|key| self.whose(key))));
        let total = self.outcome.as_ref().map_or(1, |outcome| outcome.total);
        judged.chain(unprotected_in_words(&self.unprotected, total)).collect()
    }

    /// Returns the lines below the rows, each with its label.
    fn lines_below(&self) -> Vec<(State, &'static str, String)> {
        let mut lines = Vec::new();
        lines.extend(self.unmet.iter().map(|unmet| (State::Failed, "required", unmet.clone())));
        lines.extend(self.outcome.iter().map(|outcome| {
            let state = if outcome.is_green() { State::Ok } else { State::Failed };
            (state, "outcome", outcome.to_string())
        }));
        lines.extend(self.decided_lines().into_iter().map(|(state, detail)| (state, "decided", detail)));
        lines.extend(self.takeover_lines().into_iter().map(|line| (State::NotApplicable, "take-over", line)));
        let changed = self.protected.iter().filter(|item| !item.judged).map(|item| {
            let state = if item.is_red() { State::Failed } else { State::NotApplicable };
            (state, "protected", item.in_words(|key| self.whose(key)))
        });
        lines.extend(changed);
        let continues = self.continues.iter();
        lines.extend(continues.map(|run| (self.rows.handoff.state, "origin", upstream::continues(run))));
        lines.extend(upstream::lines(&self.upstream).into_iter().map(|(state, detail)| (state, "taken from", detail)));
        lines.extend(self.blocks.iter().take(MAX_BLOCKS).map(|item| {
            let all_done = item.blocks.iter().all(|block| block.status == BlockStatus::Done);
            (if all_done { State::Ok } else { State::NotApplicable }, "blocks", item.in_words())
        }));
        if let more @ 1.. = self.blocks.len().saturating_sub(MAX_BLOCKS) {
            lines.push((State::NotApplicable, "blocks", format!("of {more} more items, which --json lists")));
        }
        let same_id = self.same_id.iter().flat_map(SameId::lines);
        lines.extend(same_id.map(|detail| (State::NotApplicable, "same id", detail)));
        lines.extend(self.times.iter().map(|timed| match &timed.at {
            Ok(at) => (State::Ok, "time", format!("sealed by {at}, says {}", timed.authority)),
            Err(why) => (State::NotApplicable, "time", format!("{}: {why}", timed.authority)),
        }));
        let uncovered = self.uncovered.iter().take(MAX_UNCOVERED);
        lines.extend(uncovered.map(|it| (State::NotApplicable, "uncovered", format!("{}: {}", it.path, it.detail))));
        if let more @ 1.. = self.uncovered.len().saturating_sub(MAX_UNCOVERED) {
            lines.push((State::NotApplicable, "uncovered", format!("and {more} more, which --json lists")));
        }
        lines
    }

    /// Returns the state of the whole report; `Ok` only if it is intact, trusted, and all done and
    /// green.
    fn standing(&self) -> State {
        match self.intact {
            false => State::Failed,
            true if self.is_partial() || !self.is_trusted() => State::NotApplicable,
            true => State::Ok,
        }
    }

    fn footer(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.plan.map(|plan| format!("plan sha256:{}…", &plan.short()[..4])));
        parts.extend(self.rules.map(|rules| format!("rules sha256:{}…", &rules.short()[..4])));
        parts.extend(self.pipelines.iter().map(|(name, is)| {
            let id = name.split('@').next().unwrap_or(name);
            format!("pipeline {} sha256:{}…", cut(id.to_owned()), &is.short()[..4])
        }));
        parts.extend(self.base.map(|base| format!("base {}", base.0.to_hex_with_len(7))));
        parts.extend(self.actor.as_ref().map(|actor| format!("by {}", cut(actor.clone()))));
        if !self.sandbox.is_empty() {
            parts.push(format!(
                "sandbox {}",
                self.sandbox
                    .iter()
                    .map(|(kind, count)| {
                        let note = if kind == NONE { " (not confined)" } else { "" };
                        format!("{kind}: {count}{note}")
                    })
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        parts.extend(self.access_in_words());
        if self.pinned_clock {
            parts.push("clock pinned".to_owned());
        }
        parts.join("  ")
    }

    /// Returns the text of the first failed row, or of the first open one.
    pub(super) fn first_finding(&self) -> &str {
        let of = |state| self.rows.iter().find(move |row| row.state == state);
        of(State::Failed).or_else(|| of(State::NotApplicable)).map_or("", |row| row.detail.as_str())
    }
}

/// A time-stamping authority's statement about a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct TimedShown<'a> {
    /// The authority.
    authority: &'a str,
    /// The latest time of the seal; null if the authority does not state it.
    at: Option<Moment>,
    /// The reason why there is no time, or the contradiction to another date.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl Serialize for Timed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (at, detail) = match &self.at {
            Ok(at) => (Some(*at), self.contradiction.as_deref()),
            Err(why) => (None, Some(why.as_str())),
        };
        TimedShown { authority: &self.authority, at, detail }.serialize(serializer)
    }
}

impl std::str::FromStr for Guarantee {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|one| one.as_str() == word).ok_or(())
    }
}

/// Returns the first line of a report, with its headline.
fn title_line(title: &str, state: State, headline: &str, color: bool) -> Painted {
    let pad = HEADLINE_COLUMN.saturating_sub(title.chars().count()).max(2);
    let headline = format!("{} {headline}", state.mark());
    Painted::from(title).words(&" ".repeat(pad)).painted(&headline, color.then(|| shade(state)))
}

fn row_line(text: Painted, row: &Row, color: bool) -> Painted {
    labelled(text, row.state, row.name, &row.detail, color)
}

fn labelled(text: Painted, state: State, label: &str, detail: &str, color: bool) -> Painted {
    text.painted(state.mark(), color.then(|| shade(state))).words(&format!(" {label:<10} {detail}")).end()
}

impl State {
    /// Returns the mark at the beginning of a line.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ok => "✓",
            Self::Failed => "✗",
            Self::NotApplicable => "─",
        }
    }
}

fn shade(state: State) -> Color {
    match state {
        State::Ok => Color::Green,
        State::Failed => Color::Red,
        State::NotApplicable => Color::Dim,
    }
}
