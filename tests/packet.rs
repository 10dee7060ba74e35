//! The check of packets: every rule with packets as people and agents write them, those it is for
//! and those it must let pass.

mod auto;
mod command;
mod data;
mod examples;
mod facts;
mod fences;
mod notes;
mod quoting;
mod replay;
mod rows;
mod token;
mod untrusted;

use git_handoff::model::time::Moment;
use git_handoff::thread::packet::{self, Report, Row, Terms};
use serde_json::{Value, json};

/// The packet that the check was first described with.
fn sample() -> Value {
    json!({
        "objective": "Migrate user database to new schema",
        "completed": ["audit existing schema", "draft migration script"],
        "unresolved": ["confirm rollback strategy with DBA"],
        "assumptions": ["downtime window approved for Saturday 02:00\u{2013}04:00 UTC"],
        "next_action": "Review migration script with DBA before Saturday",
        "risks": ["data loss if rollback untested"],
        "updated_at": "2024-06-10T14:32:00Z",
        "resume_token": "handoff-mig-v2-20240610",
    })
}

/// Returns the sample with some fields replaced.
fn with(fields: &Value) -> Value {
    let mut packet = sample();
    for (field, value) in fields.as_object().expect("fields are an object") {
        packet[field] = value.clone();
    }
    packet
}

/// Two hours after the sample was written.
fn terms() -> Terms {
    let now: Moment = "2024-06-10T16:32:00.000Z".parse().expect("it is a moment");
    Terms::new(now)
}

fn check(packet: &Value) -> Report {
    check_bytes(packet.to_string().as_bytes(), &terms())
}

fn check_bytes(bytes: &[u8], terms: &Terms) -> Report {
    let read = packet::read(bytes);
    let facts = match &read {
        Ok(packet) => packet::facts::look_up(&packet.claims, None, packet::facts::Absent::Fails, false),
        Err(_) => packet::no_facts(),
    };
    packet::check(&read, facts, terms)
}

fn row<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.row(name).expect("every row is always there")
}

/// Returns the ids of the rules that a packet breaks.
fn broken(packet: &Value) -> Vec<&'static str> {
    check(packet).findings().map(|finding| finding.rule).collect()
}

/// Fails unless a rule finds fault with all packets of the first list and with none of the second,
/// which break no rule at all.
#[track_caller]
fn tells_apart(rule: &str, wrong: &[Value], right: &[Value]) {
    assert!(wrong.len() >= 5 && right.len() >= 5, "{rule} has too few cases");
    let mut bad = Vec::new();
    for fields in wrong {
        let found = broken(&with(fields));
        if !found.contains(&rule) {
            bad.push(format!("{rule} misses {fields}: {found:?}"));
        }
    }
    for fields in right {
        let report = check(&with(fields));
        let found: Vec<_> = report.findings().map(|finding| (finding.rule, &finding.what)).collect();
        if !found.is_empty() {
            bad.push(format!("{rule} aside, {fields} is taken for {found:?}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn the_documentation_has_every_rule() {
    let text = include_str!("../docs/reference/packet.md");
    for (id, name) in packet::RULES {
        assert!(text.contains(&format!("| {id} | `{name}` |")), "docs/reference/packet.md lacks {id} {name}");
    }
}
