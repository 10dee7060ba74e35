//! Claude Code's `--output-format json` and `stream-json`, and Qwen Code's, which took the form
//! from it.

use serde_json::Value;

use super::{Report, Session, sum_of, text_of};
use crate::model::usage::{Dollars, Usage};

/// Whether the count of input tokens includes those from a cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// It does, as for Qwen Code.
    WithCache,
    /// It does not, as for Claude Code.
    WithoutCache,
}

/// Qwen Code reports an error of the API as a success with this text.
const API_ERROR: &str = "[API Error: ";

/// Reads one message.
pub(super) fn read(report: &mut Report, message: &Value, input: Input) {
    match text_of(message, "type") {
        Some("system") if text_of(message, "subtype") == Some("init") => {
            report.model = text_of(message, "model").map(str::to_owned).or(report.model.take());
        }
        Some("result") => result(report, message, input),
        _ => {}
    }
}

fn result(report: &mut Report, message: &Value, input: Input) {
    let denials = message.get("permission_denials").and_then(Value::as_array);
    let numbers = Session { usage: usage(message, input), denials: denials.map(|all| all.len() as u64) };
    report.record(text_of(message, "session_id"), numbers);
    if report.model.is_none() {
        report.model = only_model(message).cloned();
    }
    report.error = error(message);
}

/// Returns the tokens and the price. The numbers of `modelUsage` include those of helping models.
fn usage(message: &Value, input: Input) -> Usage {
    let models = message.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    let tokens: Usage = match models {
        Some(models) => {
            let parts = models.values().map(|model| Usage {
                input_tokens: sum_of(model, &["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"]),
                output_tokens: sum_of(model, &["outputTokens"]),
                cached_tokens: sum_of(model, &["cacheReadInputTokens"]),
                cost_usd: None,
            });
            parts.sum()
        }
        None => message.get("usage").map(|usage| of_usage(usage, input)).unwrap_or_default(),
    };
    let price = message.get("total_cost_usd").and_then(Value::as_f64);
    Usage { cost_usd: price.and_then(Dollars::rounded), ..tokens }
}

fn of_usage(usage: &Value, input: Input) -> Usage {
    let names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    Usage {
        input_tokens: sum_of(usage, if input == Input::WithCache { &names[..1] } else { &names }),
        output_tokens: sum_of(usage, &["output_tokens"]),
        cached_tokens: sum_of(usage, &["cache_read_input_tokens"]),
        cost_usd: None,
    }
}

/// Returns the name of the model if there is only one.
fn only_model(message: &Value) -> Option<&String> {
    let mut models = message.get("modelUsage")?.as_object()?.keys();
    models.next().filter(|_| models.next().is_none())
}

fn error(message: &Value) -> Option<String> {
    let said = text_of(message, "result").unwrap_or_default();
    let is_error = message.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let kind = text_of(message, "subtype").filter(|kind| kind.starts_with("error"));
    if !is_error && kind.is_none() && !said.starts_with(API_ERROR) {
        return None;
    }
    let of_kind = kind.or(text_of(message, "terminal_reason")).unwrap_or("no reason is given");
    Some(if said.is_empty() { of_kind } else { said }.to_owned())
}
