//! Gemini CLI's `--output-format stream-json` and `json`.

use serde_json::Value;

use super::{Report, Session, sum_of, text_of};
use crate::model::usage::Usage;

/// Reads one event, or the one object of `json`.
pub(super) fn read(report: &mut Report, event: &Value) {
    match text_of(event, "type") {
        Some("init") => {
            report.session = text_of(event, "session_id").map(str::to_owned);
            report.model = text_of(event, "model").map(str::to_owned);
        }
        Some("result") => {
            let session = report.session.clone();
            end(report, event, session.as_deref());
        }
        None if text_of(event, "session_id").is_some() => end(report, event, text_of(event, "session_id")),
        _ => {}
    }
}

/// Reads the end of a session.
fn end(report: &mut Report, event: &Value, session: Option<&str>) {
    let (stats, error) = (event.get("stats").filter(|stats| stats.is_object()), event.get("error"));
    if stats.is_none() && error.is_none() {
        return;
    }
    let models = stats.and_then(|stats| stats.get("models")).and_then(Value::as_object);
    let parts = models.into_iter().flatten();
    let used = parts.clone().filter(|(_, model)| of_model(model).output_tokens.is_some_and(|tokens| tokens > 0));
    let names: Vec<&str> = used.map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        report.model = Some(names.join(", "));
    }
    let usage = parts.map(|(_, model)| of_model(model)).sum();
    report.record(session, Session { usage, denials: None });
    let is_error = text_of(event, "status") == Some("error") || error.is_some();
    let said = error.and_then(|error| text_of(error, "message"));
    report.error = is_error.then(|| said.unwrap_or("no reason is given").to_owned());
}

/// Returns the tokens of a model: `stream-json` has them in the model's object, `json` in its
/// `tokens`, and there apart from those of its thoughts.
fn of_model(model: &Value) -> Usage {
    match model.get("tokens") {
        Some(tokens) => Usage {
            input_tokens: sum_of(tokens, &["prompt"]),
            output_tokens: sum_of(tokens, &["candidates", "thoughts"]),
            cached_tokens: sum_of(tokens, &["cached"]),
            cost_usd: None,
        },
        None => Usage {
            input_tokens: sum_of(model, &["input_tokens"]),
            output_tokens: sum_of(model, &["output_tokens"]),
            cached_tokens: sum_of(model, &["cached"]),
            cost_usd: None,
        },
    }
}
