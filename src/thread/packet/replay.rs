//! The row `replay`: does the packet alone tell the objective, the blocker and the next action?

mod contradiction;
mod objective;
mod sense;
mod vague;

use super::schema::listed;
use super::{Finding, Row};
use crate::model::packet::Packet;

/// The maximum number of displayed findings; the others are counted.
const SHOWN: usize = 5;

/// Checks a packet without its quotations, and against the given objective.
///
/// The next action is compared with the rest including quotations, which a reader may follow.
pub(super) fn row(packet: &Packet, next_action: Option<&str>, objective: Option<&str>) -> Row {
    let mut findings = Vec::new();
    findings.extend(packet.objective.as_deref().and_then(vague::objective));
    findings.extend(packet.next_action.as_deref().and_then(vague::next_action));
    findings.extend(contradiction::findings(packet, next_action));
    findings.extend(sense::findings(packet, next_action));
    if let (Some(expected), Some(objective)) = (objective, packet.objective.as_deref()) {
        findings.extend(objective::finding(objective, expected));
    }
    let subjects = unconfirmed(packet, &findings);
    if subjects.is_empty() {
        let detail = match objective {
            Some(_) => "objective, blocker, and next action confirmed",
            None => "objective, blocker, and next action are there; no objective to compare with was given",
        };
        return Row::new("replay", true, detail);
    }
    let subjects = subjects.join(" and ");
    let mut detail = format!("{subjects} could not be confirmed");
    if !findings.is_empty() {
        let first_findings =
            findings.iter().take(SHOWN).map(|f| format!("{} {}: {}", f.rule, super::rule_name(f.rule), f.what));
        detail = format!("{detail} — {}", listed(&first_findings.collect::<Vec<_>>(), findings.len(), "; "));
    }
    Row { findings, ..Row::new("replay", false, detail) }
}

/// Returns which of the three things is missing.
fn unconfirmed(packet: &Packet, findings: &[Finding]) -> Vec<&'static str> {
    let about = |field: &str| findings.iter().any(|finding| finding.field.split('[').next() == Some(field));
    let mut subjects = Vec::new();
    if packet.objective.is_none() || about("objective") {
        subjects.push("objective");
    }
    let lists = ["completed", "unresolved", "assumptions", "risks"];
    if packet.unresolved.is_empty() || packet.risks.is_empty() || lists.into_iter().any(about) {
        subjects.push("blocker");
    }
    if packet.next_action.is_none() || about("next_action") {
        subjects.push("next_action");
    }
    subjects
}
