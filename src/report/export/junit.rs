//! JUnit XML: a test suite for the run, with a test case for each item.
//!
//! The elements are those of Jenkins' `junit-10.xsd`, which includes the retries of Surefire.

use crate::model::entry::{Exit, VerifiedBy};
use crate::model::item_index::ItemIndex;
use crate::model::item_state::Phase;
use crate::model::protected::{VerifyIn, allowed_in_words, judged_in_words};
use crate::model::state::checks::IN_WORKTREE;
use crate::model::time::Moment;
use crate::run::query::list::ItemStatus;

use super::facts::{Attempt, Facts};
use super::xml::{Element, seconds};

/// The result of an item as a test case.
enum Verdict {
    Passed,
    /// With the type and the message.
    Failed(&'static str, String),
    Skipped(String),
}

/// Returns the report of a run.
pub(super) fn export(facts: &Facts<'_>) -> String {
    let items: Vec<(ItemIndex, &ItemStatus)> =
        facts.run.state.listed().into_iter().zip(&facts.document.items).collect();
    let verdicts: Vec<Verdict> = items.iter().map(|(at, item)| verdict(facts, *at, item)).collect();
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count().to_string();
    let failures = count(|verdict| matches!(verdict, Verdict::Failed(..)));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skipped(_)));
    let (first, last) = (&facts.run.links[0].entry, facts.run.links.last().map(|link| link.entry.at));
    let time = seconds(crate::run::query::times::between(first.at, last.unwrap_or(first.at)));
    let tests = items.len().to_string();
    let mut suite = Element::new("testsuite")
        .attribute("name", facts.run.run.as_str())
        .attribute("tests", &tests)
        .attribute("failures", &failures)
        .attribute("errors", "0")
        .attribute("skipped", &skipped)
        .attribute("time", &time)
        .attribute("timestamp", &timestamp(first.at))
        .child(properties(facts));
    for ((at, item), verdict) in items.iter().zip(&verdicts) {
        suite = suite.child(case(facts, *at, item, verdict));
    }
    let suites = Element::new("testsuites")
        .attribute("name", facts.run.run.as_str())
        .attribute("tests", &tests)
        .attribute("failures", &failures)
        .attribute("errors", "0")
        .attribute("time", &time);
    suites.child(suite).document()
}

fn properties(facts: &Facts<'_>) -> Element {
    let properties = Element::new("properties");
    facts.origin.pairs().iter().fold(properties, |all, (name, value)| all.child(property(name, value)))
}

fn property(name: &str, value: &str) -> Element {
    Element::new("property").attribute("name", &format!("handoff.{name}")).attribute("value", value)
}

/// A replaced item counts as skipped, because the run does not depend on its result.
fn verdict(facts: &Facts<'_>, at: ItemIndex, item: &ItemStatus) -> Verdict {
    let state = &facts.run.state;
    if let Some(by) = state.replaced_by(at) {
        return Verdict::Skipped(format!("superseded by {by}"));
    }
    let reason = || {
        let of_attempt = facts.attempts_of(at).next_back().and_then(Attempt::reason).map(str::to_owned);
        state.items[at].reason.clone().or(of_attempt).unwrap_or_else(|| item.status.to_owned())
    };
    match state.items[at].phase {
        Phase::Done if state.items[at].red => Verdict::Failed("red", reason()),
        Phase::Done => Verdict::Passed,
        Phase::Failed => Verdict::Failed("failed", reason()),
        Phase::Skipped => Verdict::Skipped(reason()),
        Phase::Cancelled => Verdict::Skipped(prefix_word("cancelled", reason())),
        Phase::Waiting | Phase::Running => Verdict::Skipped(format!("never ended: {}", item.status)),
    }
}

/// Begins a message with a word, unless it does already.
fn prefix_word(word: &str, message: String) -> String {
    if message.starts_with(word) { message } else { format!("{word}: {message}") }
}

fn case(facts: &Facts<'_>, at: ItemIndex, item: &ItemStatus, verdict: &Verdict) -> Element {
    let mut case = Element::new("testcase")
        .attribute("name", item.id.as_str())
        .attribute("classname", facts.run.run.as_str())
        .attribute("time", &seconds(item.times.duration_ms.unwrap_or_default()));
    case = match verdict {
        Verdict::Passed => case,
        Verdict::Failed(kind, message) => {
            case.child(Element::new("failure").attribute("type", kind).attribute("message", message).text(message))
        }
        Verdict::Skipped(message) => case.child(Element::new("skipped").attribute("message", message)),
    };
    // Surefire's words: a flaky test passed in the end, a test that was run again did not.
    let again = if matches!(verdict, Verdict::Passed) { "flakyFailure" } else { "rerunFailure" };
    let attempts: Vec<&Attempt<'_>> = facts.attempts_of(at).collect();
    let earlier = attempts.split_last().map_or(&[][..], |(_, earlier)| earlier);
    for attempt in earlier.iter().filter(|attempt| attempt.summary.status != "done") {
        let message = attempt.reason().map_or_else(|| exit(attempt), str::to_owned);
        let kind = format!("attempt {}", attempt.fired.attempt);
        case = case.child(Element::new(again).attribute("type", &kind).attribute("message", &message));
    }
    match output(facts, at, &attempts) {
        output if output.is_empty() => case,
        output => case.child(Element::new("system-out").text(&output)),
    }
}

/// Describes the end of an attempt that has no reason.
fn exit(attempt: &Attempt<'_>) -> String {
    match attempt.end.as_ref().and_then(|end| end.exit) {
        Some(Exit { code: Some(code), .. }) => format!("exit status {code}"),
        Some(Exit { signal: Some(signal), .. }) => format!("signal {signal}"),
        _ => "it ended without a result".to_owned(),
    }
}

/// Returns what the run records about an item, a line each; the format has no properties of cases.
fn output(facts: &Facts<'_>, at: ItemIndex, attempts: &[&Attempt<'_>]) -> String {
    let mut lines = Vec::new();
    for attempt in attempts {
        let (number, agent) = (attempt.fired.attempt, attempt.agent());
        lines.push(format!("attempt {number}: {}, executor {agent}, entry {}", attempt.word(), attempt.entry()));
        if let Some(model) = attempt.claims().and_then(|claims| claims.model.as_ref()) {
            lines.push(format!("attempt {number}: claimed model {model}"));
        }
        let result = attempt.result();
        lines.extend(result.and_then(|e| e.reused.as_ref()).map(|from| format!("reused from {from}")));
        let passed = result.and_then(|e| e.verify).filter(|verify| verify.passed && verify.by == VerifiedBy::Command);
        if passed.is_some() && attempt.manifest.verify_in == VerifyIn::Worktree {
            lines.push(IN_WORKTREE.to_owned());
        }
        if result.is_some_and(|e| e.grade.is_some()) {
            lines.push("claimed: the products are those of a commit that was made before".to_owned());
        }
    }
    let state = &facts.run.state.items[at];
    lines.extend(state.decided_by.as_ref().map(|by| format!("decided by {by}")));
    if state.judged {
        lines.push(judged_in_words(state.protected.len()));
    }
    lines.extend(state.approved_by.as_ref().map(|by| format!("changes to protected files approved by {by}")));
    lines.extend(state.allowed_by.as_ref().map(|by| format!("changes to protected files {}", allowed_in_words(by))));
    lines.extend(state.products.iter().map(|(key, product)| format!("product {key} {}", product.sha256)));
    lines.join("\n")
}

/// Returns a time without its zone, which is UTC, as the format's readers expect it.
fn timestamp(at: Moment) -> String {
    at.to_string().trim_end_matches('Z').to_owned()
}
