//! Failures as clients get them.

use git_handoff::model::printable::beginning;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use serde_json::{Value, json};

use crate::output::Failure;

use super::hints;

/// The longest URI that an error repeats in its message, in bytes.
const SHOWN: usize = 300;

/// Returns the error of a tool: as text for models and people, as structured content for programs.
pub(super) fn of_tool(failure: &Failure) -> CallToolResult {
    let mut lines = vec![format!("error: {}", failure.message)];
    lines.extend(failure.causes.iter().map(|cause| format!("caused by: {cause}")));
    lines.extend(hints::from_failure(failure).iter().map(|hint| format!("hint: {hint}")));
    if let Some(report) = &failure.report {
        lines.push(format!("\n{}", hints::report_text(report)));
    }
    let mut result = CallToolResult::structured_error(to_json(failure));
    result.content = vec![ContentBlock::text(lines.join("\n"))];
    result
}

/// Returns the error of a request about a resource: by one code for what does not exist, by another
/// for what the client has to ask in another way.
pub(super) fn of_resource(uri: &str, failure: &Failure) -> ErrorData {
    let code = match failure.code {
        "unknown-run" | "unknown-document" => ErrorCode::RESOURCE_NOT_FOUND,
        "usage" | "ambiguous" => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let message = format!("cannot read {}: {}", beginning(uri, SHOWN), in_one_line(failure));
    ErrorData::new(code, message, Some(json!({ "uri": uri, "error": to_json(failure) })))
}

/// Returns the error of a request for the list of resources.
pub(super) fn of_list(failure: &Failure) -> ErrorData {
    let code = if failure.code == "usage" { ErrorCode::INVALID_PARAMS } else { ErrorCode::INTERNAL_ERROR };
    let message = format!("cannot list resources: {}", in_one_line(failure));
    ErrorData::new(code, message, Some(json!({ "error": to_json(failure) })))
}

/// Returns a warning that every call will fail.
pub(super) fn at_start(failure: &Failure) -> String {
    format!("every call will fail until this is solved: {}", in_one_line(failure))
}

/// Returns the message with the way out.
pub(super) fn in_one_line(failure: &Failure) -> String {
    let parts =
        [failure.message.clone()].into_iter().chain(failure.causes.iter().cloned()).chain(hints::from_failure(failure));
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns the error as JSON whose hints name tools.
fn to_json(failure: &Failure) -> Value {
    let mut value = failure.to_json();
    if let Some(hint) = hints::from_failure(failure) {
        value["hint"] = hint.into();
    }
    if let Some(report) = &failure.report {
        value["check"] = hints::report_json(report);
    }
    value
}
