//! Formats a report as text and as JSON.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Finding, Report, Row, State, rule_name};

/// As `git-handoff.check/1`.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let checks: Map<String, Value> = self.rows.iter().map(|row| (row.name.to_owned(), check(row))).collect();
        let report = json!({
            "schema": "git-handoff.check/1",
            "classification": self.classification,
            "checks": checks,
            "recovery": self.recovery,
            "escalation": self.escalation,
        });
        report.serialize(serializer)
    }
}

impl Report {
    /// Formats the report as text.
    pub fn to_text(&self) -> String {
        let mut text = String::from("Check Summary:\n");
        for row in &self.rows {
            let mark = match row.state {
                State::Ok => "✅",
                State::Failed => "❌",
                State::NotApplicable => "─",
            };
            line(&mut text, &format!("{mark} {}: {}", title(row.name), row.detail));
        }
        line(&mut text, &format!("\nClassification: {}\n", self.classification.as_str().to_uppercase()));
        if self.recovery.is_empty() {
            line(&mut text, "Recovery Steps: None required.");
        } else {
            line(&mut text, "Recovery Steps:");
            for (at, step) in self.recovery.iter().enumerate() {
                line(&mut text, &format!("{}. {step}", at + 1));
            }
        }
        line(&mut text, &format!("\nEscalation: {}", self.escalation));
        text
    }

    /// Returns the row with a name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns all findings.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.rows.iter().flat_map(|row| &row.findings)
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}

fn title(name: &str) -> &str {
    match name {
        "schema" => "Schema",
        "freshness" => "Freshness",
        "resume_token" => "Resume token",
        "replay" => "Replay test",
        "untrusted_content" => "Untrusted content",
        "facts" => "Facts",
        other => other,
    }
}

fn check(row: &Row) -> Value {
    let ok = match row.state {
        State::Ok => json!(true),
        State::Failed => json!(false),
        State::NotApplicable => json!("n/a"),
    };
    let mut value = json!({ "ok": ok, "detail": row.detail });
    if !row.findings.is_empty() {
        let finding =
            |f: &Finding| json!({ "rule": f.rule, "name": rule_name(f.rule), "field": f.field, "message": f.what });
        value["findings"] = row.findings.iter().map(finding).collect();
    }
    value
}
