//! Formats a report as text and as JSON.

use std::fmt::Write as _;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::{Classification, Finding, Report, Row, State, rule_name};

/// The check of a packet: the output of `check` for each, and of what refuses a packet elsewhere.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.check/1")]
pub(super) struct ReportShown<'a> {
    /// The classification: how safe it is to resume.
    classification: Classification,
    /// Every check, by its name.
    checks: Checks<'a>,
    /// The steps before resuming.
    recovery: &'a [String],
    /// The person to inform.
    escalation: &'a str,
}

/// Every check of a packet.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Checks<'a> {
    /// Every field is present.
    schema: RowShown<'a>,
    /// The packet is recent.
    freshness: RowShown<'a>,
    /// Its token is valid and unused.
    resume_token: RowShown<'a>,
    /// The work can be continued from it.
    replay: RowShown<'a>,
    /// It contains no text that reads like an instruction, and no secret.
    untrusted_content: RowShown<'a>,
    /// The things that it names are as it states.
    facts: RowShown<'a>,
}

/// The result of one check.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct RowShown<'a> {
    /// True if the check passes; `n/a` if it does not apply.
    #[cfg_attr(feature = "schemas", schemars(with = "serde_json::Value", extend("enum" = [true, false, "n/a"])))]
    ok: State,
    /// One line for people.
    detail: &'a str,
    /// The findings; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<FindingShown<'a>>,
}

/// One finding of a check.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FindingShown<'a> {
    /// The id of the rule.
    rule: &'static str,
    /// The name of the rule.
    name: &'static str,
    /// The field.
    field: &'a str,
    /// The problem.
    message: &'a str,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |name: &str| self.row(name).map(RowShown::from).expect("a report has every row");
        let answer = ReportShown {
            classification: self.classification,
            checks: Checks {
                schema: row("schema"),
                freshness: row("freshness"),
                resume_token: row("resume_token"),
                replay: row("replay"),
                untrusted_content: row("untrusted_content"),
                facts: row("facts"),
            },
            recovery: &self.recovery,
            escalation: &self.escalation,
        };
        // The fields come in the order of their names.
        serde_json::to_value(answer).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'a> From<&'a Row> for RowShown<'a> {
    fn from(row: &'a Row) -> Self {
        let findings = row.findings.iter().map(|finding| FindingShown {
            rule: finding.rule,
            name: rule_name(finding.rule),
            field: &finding.field,
            message: &finding.what,
        });
        Self { ok: row.state, detail: &row.detail, findings: findings.collect() }
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
