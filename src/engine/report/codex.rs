//! Codex's `--json`.

use serde_json::Value;

use super::{Report, Session, sum_of, text_of};
use crate::model::usage::Usage;

/// Reads one event. An event `error` is no end: Codex tries again after most of them.
pub(super) fn read(report: &mut Report, event: &Value) {
    match text_of(event, "type") {
        Some("thread.started") => {
            report.session = text_of(event, "thread_id").map(str::to_owned);
        }
        Some("turn.completed") => {
            let thread = report.session.clone();
            report.record(thread.as_deref(), Session { usage: usage(event), denials: None });
            report.error = None;
        }
        Some("turn.failed") => {
            let said = event.get("error").and_then(|error| text_of(error, "message"));
            report.error = Some(said.unwrap_or("no reason is given").to_owned());
        }
        _ => {}
    }
}

/// Returns the tokens of the thread so far.
fn usage(event: &Value) -> Usage {
    let Some(usage) = event.get("usage") else { return Usage::default() };
    Usage {
        input_tokens: sum_of(usage, &["input_tokens"]),
        output_tokens: sum_of(usage, &["output_tokens"]),
        cached_tokens: sum_of(usage, &["cached_input_tokens"]),
        cost_usd: None,
    }
}
