//! Checks a packet before anyone resumes from it, and writes packets that pass. Pure but for the facts.
//!
//! The rules, each with its id, stand in `docs/reference/packet.md`. What a packet says is data: it
//! is quoted where it matters, with nothing in it that steers a terminal, and never followed.

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

/// Every rule that a finding can name: its id and what it is called.
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
];

/// What the check goes by.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The present moment.
    pub now: Moment,
    /// The oldest a packet may be.
    pub max_age: Age,
    /// The task that is being resumed, if the reader says which.
    pub objective: Option<String>,
    /// Resume tokens that are known to be used.
    pub consumed: BTreeSet<String>,
    /// The thread that the packet belongs to, as people call it here, if it is one's.
    pub thread: Option<String>,
}

impl Terms {
    /// Returns what is gone by where nobody says anything else: two days, any objective.
    pub fn new(now: Moment) -> Self {
        Self { now, max_age: Age::hours(48), objective: None, consumed: BTreeSet::new(), thread: None }
    }
}

/// How safe it is to resume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Classification {
    /// Every check passes.
    Clean,
    /// Somebody has to look first.
    Operational,
    /// There is nothing to resume from.
    Critical,
}

impl Classification {
    /// Returns the word that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Operational => Unclean::Operational.as_str(),
            Self::Critical => Unclean::Critical.as_str(),
        }
    }

    /// Returns how bad it is, unless it is clean.
    pub fn unclean(self) -> Option<Unclean> {
        match self {
            Self::Clean => None,
            Self::Operational => Some(Unclean::Operational),
            Self::Critical => Some(Unclean::Critical),
        }
    }
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule, one of [`RULES`].
    pub rule: &'static str,
    /// The field it is about.
    pub field: String,
    /// What is wrong, with the words that gave rise to it.
    pub what: String,
}

/// What became of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It passes.
    Ok,
    /// It does not pass.
    Failed,
    /// There is nothing it applies to.
    NotApplicable,
}

/// One line of the summary.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name in JSON.
    pub name: &'static str,
    /// Whether the check passes.
    pub state: State,
    /// What was seen; safe to print.
    pub detail: String,
    /// The rules that say so.
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

/// What a check of a packet comes to. Every row is there, whatever the packet is.
#[derive(Clone, Debug)]
pub struct Report {
    /// How safe it is to resume.
    pub classification: Classification,
    /// The checks, in their order.
    pub rows: Vec<Row>,
    /// What to do before resuming.
    pub recovery: Vec<String>,
    /// Whom to tell.
    pub escalation: String,
}

/// Checks what was read; `facts` is what [`facts::look_up`] found for it.
///
/// What stands in fenced code blocks is quoted: it counts for nothing in the packet's favour. Any row that fails makes the packet operational; one that nothing can be resumed from is critical. Neither is softened by
/// what the other rows say.
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

/// Returns the row of a check of facts that does not apply.
pub fn no_facts() -> Row {
    Row::not_applicable("facts", "n/a (the packet names no commits, run, items or documents)")
}

/// Returns what a rule is called.
pub fn rule_name(id: &str) -> &'static str {
    RULES.iter().find(|(known, _)| *known == id).map_or("", |(_, name)| name)
}

fn without_packet(unusable: &Unusable) -> Vec<Row> {
    let failed = |name, detail: &str| Row::new(name, false, detail);
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
