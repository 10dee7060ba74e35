//! Reads the JSON objects that an agent prints, by the rules of `agents.toml`.

use serde_json::Value;

use super::{Report, Session, count};
use crate::model::usage::{Dollars, Usage};
use crate::repository::config::{MessageRule, TokenRule};

/// Applies each rule that fits a message.
pub(super) fn read(report: &mut Report, rules: &[MessageRule], message: &Value) {
    rules
        .iter()
        .filter(|rule| rule.when.iter().all(|(at, pattern)| fits(message.pointer(at), pattern)))
        .for_each(|rule| apply(report, rule, message));
}

/// Returns true if a value is the pattern, or begins with it if it ends with `*`. An empty pattern
/// fits an absent value.
fn fits(value: Option<&Value>, pattern: &str) -> bool {
    let text = match value {
        None | Some(Value::Null) => return pattern.is_empty(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    pattern.strip_suffix('*').map_or(text == pattern, |start| text.starts_with(start))
}

fn apply(report: &mut Report, rule: &MessageRule, message: &Value) {
    report.model = text_at(message, rule.model.as_deref()).or(report.model.take());
    let session =
        if rule.session.is_some() { text_at(message, rule.session.as_deref()) } else { report.session.clone() };
    if rule.usage.is_empty() {
        report.session = session.or(report.session.take());
    } else {
        let price = value_at(message, rule.cost.as_deref()).and_then(Value::as_f64).and_then(Dollars::rounded);
        let usage = Usage { cost_usd: price, ..tokens(report, rule, message) };
        let denials = value_at(message, rule.denials.as_deref()).and_then(Value::as_array).map(|all| all.len() as u64);
        report.record(session.as_deref(), Session { usage, denials });
        report.error = None;
    }
    if !rule.error.is_empty() {
        let mut texts = rule.error.iter().filter_map(|at| message.pointer(at)?.as_str());
        let reason = texts.find(|candidate| !candidate.is_empty());
        report.error = Some(reason.unwrap_or("no reason is given").to_owned());
    }
}

fn value_at<'v>(message: &'v Value, at: Option<&str>) -> Option<&'v Value> {
    message.pointer(at?)
}

fn text_at(message: &Value, at: Option<&str>) -> Option<String> {
    value_at(message, at)?.as_str().map(str::to_owned)
}

/// Returns the tokens by the first token rule whose object is there and not empty. Takes the model
/// from the names of its members.
fn tokens(report: &mut Report, rule: &MessageRule, message: &Value) -> Usage {
    let mut found = rule.usage.iter().filter_map(|rule| Some((rule, message.pointer(&rule.at)?)));
    let found = found.find(|(_, value)| value.as_object().is_some_and(|object| !object.is_empty()));
    let Some((usage_rule, value)) = found else { return Usage::default() };
    let Some(object) = value.as_object().filter(|_| usage_rule.each) else { return of_object(usage_rule, value) };
    let used: Vec<&str> = object
        .iter()
        .filter(|(_, model)| of_object(usage_rule, model).output_tokens.is_some_and(|tokens| tokens > 0))
        .map(|(name, _)| name.as_str())
        .collect();
    if usage_rule.names && !used.is_empty() {
        report.model = Some(used.join(", "));
    } else if !usage_rule.names && object.len() == 1 && report.model.is_none() {
        report.model = object.keys().next().cloned();
    }
    object.values().map(|model| of_object(usage_rule, model)).sum()
}

fn of_object(rule: &TokenRule, object: &Value) -> Usage {
    Usage {
        input_tokens: sum_of(object, &rule.input),
        output_tokens: sum_of(object, &rule.output),
        cached_tokens: sum_of(object, &rule.cached),
        cost_usd: None,
    }
}

/// Returns the sum of the numbers at some places of an object, of which absent ones count as 0.
/// Returns `None` if the first is absent, or one is no count.
fn sum_of(object: &Value, places: &[String]) -> Option<u64> {
    object.pointer(places.first()?)?;
    let all = places.iter().filter_map(|at| object.pointer(at)).filter(|value| !value.is_null());
    all.map(|value| value.as_u64().and_then(count)).try_fold(0_u64, |sum, value| count(sum + value?))
}
