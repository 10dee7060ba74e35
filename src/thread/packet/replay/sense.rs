//! B1 to B3: do blockers and risks make sense?

use crate::model::packet::Packet;
use crate::thread::packet::Finding;
use crate::thread::packet::quote::quoted;
use crate::thread::packet::vocabulary::{BLOCKING, is_none, is_placeholder};
use crate::thread::packet::words::clauses;

/// Compares open work and risks with each other and with the next action.
pub(super) fn findings(packet: &Packet, next_action: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // An entry with only quotations is empty.
    let nothing_open = !packet.unresolved.is_empty() && has_only_none(&packet.unresolved);
    if nothing_open && let Some(word) = next_action.and_then(blocked) {
        findings.push(Finding {
            rule: "B1",
            field: "unresolved".into(),
            what: format!("unresolved says none, and next_action says {}", quoted(&word)),
        });
    }
    let lists = [
        ("completed", &packet.completed),
        ("unresolved", &packet.unresolved),
        ("assumptions", &packet.assumptions),
        ("risks", &packet.risks),
    ];
    for (field, entries) in lists {
        let none = entries.iter().position(|text| is_none(text));
        if let Some(none) = none.filter(|_| !has_only_none(entries)) {
            let what = format!("{field}[{none}] says {} beside other entries", quoted(&entries[none]));
            findings.push(Finding { rule: "B2", field: field.into(), what });
        }
        let unstated = entries.iter().position(|text| !text.is_empty() && is_placeholder(text) && !is_none(text));
        if let Some(at) = unstated {
            let what = format!("{field}[{at}] {} states nothing", quoted(&entries[at]));
            findings.push(Finding { rule: "B3", field: field.into(), what });
        }
    }
    findings
}

fn has_only_none(entries: &[String]) -> bool {
    entries.iter().all(|text| text.is_empty() || is_none(text))
}

/// Returns the word that expresses waiting, if any.
fn blocked(text: &str) -> Option<String> {
    for clause in clauses(text) {
        for (at, word) in clause.iter().enumerate() {
            let before = &clause[at.saturating_sub(2)..at];
            let negated =
                before.iter().any(|earlier| matches!(earlier.form.as_str(), "no" | "not" | "never" | "without"));
            if word.is(BLOCKING) && !negated {
                return Some(word.text.clone());
            }
        }
    }
    None
}
