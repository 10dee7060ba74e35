//! Checks a packet before it is resumed from, and writes packets that pass. Pure except for the
//! facts.
//!
//! `docs/reference/packet.md` describes the rules. The content of a packet is data: it is quoted
//! safely and never followed.

pub mod auto;
pub mod facts;

mod data;
mod fence;
mod freshness;
mod notes;
mod quote;
mod recovery;
mod render;
mod replay;
mod schema;
mod token;
mod untrusted;
mod vocabulary;
mod words;

pub use notes::read;
pub use quote::quoted;
pub use token::plain as plain_token;

use std::collections::BTreeSet;

use crate::model::packet::{Age, Packet, Unclean, Unusable};
use crate::model::printable::written_out;
use crate::model::time::Moment;
pub use crate::verify::State;

/// All rules: id and name.
pub const RULES: &[(&str, &str)] = &[
    ("R1", "vague-verb"),
    ("R2", "generic-object"),
    ("R3", "no-object"),
    ("R4", "placeholder"),
    ("R5", "no-verb"),
    ("R6", "generic-objective"),
    ("C1", "completed-to-be-started"),
    ("C2", "completed-still-unresolved"),
    ("O1", "another-objective"),
    ("B1", "blocked-by-nothing"),
    ("B2", "none-and-more"),
    ("B3", "unstated"),
    ("U1", "bypass-safeguards"),
    ("U2", "widen-permissions"),
    ("U3", "expose-secrets"),
    ("U4", "destructive-action"),
    ("U5", "override-instructions"),
    ("U6", "hidden-text"),
    ("U7", "publish"),
    ("U8", "obey-other-content"),
    ("F1", "another-branch"),
];

/// The parameters of a check.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The present time.
    pub now: Moment,
    /// The maximum age of a packet.
    pub max_age: Age,
    /// The task to resume, if given.
    pub objective: Option<String>,
    /// Known used resume tokens.
    pub consumed: BTreeSet<String>,
    /// The thread that the packet belongs to, if any.
    pub thread: Option<String>,
    /// Whether the work goes on elsewhere, so that the branch here does not matter.
    pub elsewhere: bool,
}

impl Terms {
    /// Returns the defaults: two days, any objective.
    pub fn new(now: Moment) -> Self {
        let (objective, consumed, thread) = (None, BTreeSet::new(), None);
        Self { now, max_age: Age::hours(48), objective, consumed, thread, elsewhere: false }
    }
}

/// The classification of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Classification {
    /// Every check passes.
    Clean,
    /// A person must look first.
    Operational,
    /// There is nothing to resume from.
    Critical,
}

impl Classification {
    /// Returns the word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Operational => Unclean::Operational.as_str(),
            Self::Critical => Unclean::Critical.as_str(),
        }
    }

    /// Returns the classification unless clean.
    pub fn unclean(self) -> Option<Unclean> {
        match self {
            Self::Clean => None,
            Self::Operational => Some(Unclean::Operational),
            Self::Critical => Some(Unclean::Critical),
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule, one of [`RULES`].
    pub rule: &'static str,
    /// The field.
    pub field: String,
    /// The problem, with a quotation.
    pub what: String,
}

/// One line of the summary.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name in JSON.
    pub name: &'static str,
    /// Whether the check passes.
    pub state: State,
    /// The details; safe to print.
    pub detail: String,
    /// The failed rules.
    pub findings: Vec<Finding>,
}

impl Row {
    fn new(name: &'static str, passes: bool, detail: impl Into<String>) -> Self {
        let state = if passes { State::Ok } else { State::Failed };
        Self { name, state, detail: detail.into(), findings: Vec::new() }
    }

    fn not_applicable(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::NotApplicable, detail: detail.into(), findings: Vec::new() }
    }

    fn fails(&self) -> bool {
        self.state == State::Failed
    }
}

/// The report of a check; it always has every row.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "schemas",
    derive(schemars::JsonSchema),
    schemars(rename = "git-handoff.check/1", with = "render::ReportShown<'static>")
)]
pub struct Report {
    /// The classification of a packet.
    pub classification: Classification,
    /// The checks, in their order.
    pub rows: Vec<Row>,
    /// Steps before resuming.
    pub recovery: Vec<String>,
    /// Whom to inform.
    pub escalation: String,
}

/// Checks a packet; `facts` is the result of [`facts::look_up`].
///
/// Fenced code blocks are quotations and count for nothing in the packet's favour. A failed row
/// makes the packet operational; a packet that cannot be resumed from is critical, whatever the
/// other rows.
pub fn check(read: &Result<Packet, Unusable>, facts: Row, terms: &Terms) -> Report {
    let read = read.as_ref().map(|packet| (packet, fence::own_words(packet)));
    let rows = match &read {
        Ok((packet, own)) => {
            let next_action = packet.next_action.as_deref().map(fence::opened);
            vec![
                schema::row(own),
                freshness::row(packet.updated_at.as_deref(), terms),
                token::row(packet, terms),
                replay::row(own, next_action.as_deref(), terms.objective.as_deref()),
                untrusted::row(&packet.passages),
                facts,
            ]
        }
        Err(unusable) => without_packet(unusable),
    };
    let packet = read.ok().map(|(_, own)| own);
    let classification = match &packet {
        None => Classification::Critical,
        Some(_) if rows.iter().any(Row::fails) => Classification::Operational,
        Some(_) => Classification::Clean,
    };
    let recovery = recovery::steps(packet.as_ref(), &rows, terms);
    let escalation = recovery::escalation(classification, &rows);
    Report { classification, rows, recovery, escalation }
}

/// Returns the row for facts that do not apply.
pub fn no_facts() -> Row {
    Row::not_applicable("facts", "n/a (the packet names no branch, commits, run, items or documents)")
}

/// Returns the name of a rule.
pub fn rule_name(id: &str) -> &'static str {
    RULES.iter().find(|(known, _)| *known == id).map_or("", |(_, name)| name)
}

fn without_packet(unusable: &Unusable) -> Vec<Row> {
    let untrusted = if unusable.passages.is_empty() {
        Row::not_applicable("untrusted_content", "n/a (there is no text to look through)")
    } else {
        untrusted::row(&unusable.passages)
    };
    vec![
        failed("schema", &written_out(&unusable.why)),
        failed("freshness", "no usable packet, so its age is unknown"),
        failed("resume_token", "no usable packet, so there is no continuity ID"),
        failed("replay", "objective, blocker, and next action could not be confirmed"),
        untrusted,
        no_facts(),
    ]
}

fn failed(name: &'static str, detail: &str) -> Row {
    Row::new(name, false, detail)
}
