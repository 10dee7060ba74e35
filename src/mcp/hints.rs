//! Hints for agents: the next tool call, or a command for the operator.

use git_handoff::model::credential;
use git_handoff::model::hints::Hint;
use git_handoff::thread::packet::Report;
use serde_json::{Value, json};

use crate::output::Failure;

/// The program names in commands of hints.
const PROGRAMS: [&str; 9] = ["apt-get", "aws", "cargo", "chmod", "git", "git-handoff", "mkdir", "rm", "ssh-add"];

/// The hint about an unknown key.
const ASK_WHOSE: &str = "ask the operator whose key it is; the operator can add it to the file of handoff.signers";

/// Returns a failure's hint for an agent.
pub(super) fn from_failure(failure: &Failure) -> Option<String> {
    match failure.code {
        // The command `fork` can accept an unknown key; agents cannot.
        "unknown-signer" => Some(ASK_WHOSE.to_owned()),
        _ => failure.hint.as_ref().map(for_agents),
    }
}

/// Returns a hint for an agent.
pub(super) fn for_agents(hint: &Hint) -> String {
    let about: Vec<&str> = hint.about().iter().map(String::as_str).collect();
    let text = by_tool(hint.name(), &about).unwrap_or_else(|| by_operator(hint));
    credential::redact(&text).into_owned()
}

/// Returns the corresponding tool call, or `None`.
fn by_tool(name: &str, about: &[&str]) -> Option<String> {
    let text = match (name, about) {
        ("runs", []) => "call `status` without a run: it lists the runs".to_owned(),
        ("threads", []) => call("thread_list", json!({})),
        ("runs_and_threads", []) => {
            "call `status` without a run for the runs, `thread_list` for the threads".to_owned()
        }
        ("items" | "show", [run]) => call("status", json!({ "run": run })),
        ("show_or_rename", [run]) => format!("{}, or give the plan another id", call("status", json!({ "run": run }))),
        ("show_elsewhere", [run]) => {
            format!("{}; its bytes are elsewhere, or were deleted", call("status", json!({ "run": run })))
        }
        ("documents", [run]) => call("doc_list", json!({ "run": run })),
        ("revisions", [run, document]) => call("doc_log", json!({ "run": run, "name": document })),
        ("get_document", [run, document]) => {
            format!(
                "{}: it returns one part after the other",
                call("cat", json!({ "what": format!("{run}:documents/{document}") }))
            )
        }
        ("cat", [what]) => call("cat", json!({ "what": what })),
        ("pipelines", []) => call("schemas_list", json!({})),
        ("verify", [run]) => call("verify", json!({ "run": run })),
        ("verify_or_accept", [run]) => {
            format!("{}; only the operator can accept its keys", call("verify", json!({ "run": run })))
        }
        ("decide_or_accept", [run]) => {
            format!("{}; only the operator can decide which run is meant", call("verify", json!({ "run": run })))
        }
        ("verify_thread", [thread]) => call("verify", json!({ "thread_id": thread })),
        ("first_plan", []) => "call `submit` with a plan".to_owned(),
        ("again", []) => "call the tool again".to_owned(),
        ("again_with_space", []) => {
            "ask the operator to free some space on the disk, then call the tool again".to_owned()
        }
        ("again_after_space", []) => "ask the operator to free some space, then call the tool again".to_owned(),
        ("again_with_permission" | "make_writable", _) => {
            "ask the operator to make the work tree writable, then call the tool again".to_owned()
        }
        ("resume", [thread]) => call("resume", json!({ "thread_id": thread })),
        ("checkout", [thread]) => call("resume", json!({ "thread_id": thread, "checkout": true })),
        ("push_thread", [remote, thread]) => call("thread_push", json!({ "thread_id": thread, "remote": remote })),
        ("fetch", [remote]) => call("thread_fetch", json!({ "remote": remote })),
        ("fetch_and_verify_thread", [remote, thread, fetched]) => {
            let fetch = call("thread_fetch", json!({ "thread_id": thread, "remote": remote }));
            format!("{fetch}, then {}", call("verify", json!({ "thread_id": fetched })))
        }
        _ => return by_terms(name, about),
    };
    Some(text)
}

/// Returns the corresponding argument of a tool, or advice for the operator, for a command's
/// option.
fn by_terms(name: &str, about: &[&str]) -> Option<String> {
    let text = match (name, about) {
        ("fork", [thread]) => call("fork", json!({ "thread_id": thread, "new_thread_id": "NAME" })),
        ("other_name", []) => "choose another `new_thread_id`".to_owned(),
        ("ask_to_push", []) => "ask the agent that offers it to call `thread_push` first".to_owned(),
        ("me", [recipient]) => {
            format!("if that is you, ask the operator to start this server with --me {recipient}, or HANDOFF_ME={recipient}")
        }
        ("init", []) => "ask the operator to start this server in a repository: by `cwd` in the client's settings, or by the command \
                         git -C DIR handoff mcp; or to run git init where it runs"
            .to_owned(),
        ("from", []) => "name the remote that has it in `from`".to_owned(),
        ("every_part", []) => "give each of them in `packet`; an empty list is [\"none\"]".to_owned(),
        ("accept" | "confirm", [classification]) => format!(
            "follow the recovery steps, and `checkpoint` a packet that is clean; only the operator can accept a packet that is \
             {classification}"
        ),
        ("know_key" | "know_signer" | "know_sender" | "accept_lineage" | "know_writer", []) => ASK_WHOSE.to_owned(),
        ("allow_executor", [name]) => format!(
            "call `subagents_list` for what a plan may name, or ask the operator to run: git config --add handoff.mcp.executors {name}"
        ),
        ("register_schema" | "register_schema_in_plan", [schema]) => format!(
            "call `schemas_list` for those that are registered, or ask the operator to set handoff.schema.{schema}.path"
        ),
        _ => return None,
    };
    Some(text)
}

/// Returns a hint for the operator, because no tool corresponds.
fn by_operator(hint: &Hint) -> String {
    let line = hint.as_str();
    let first = line.split(' ').next().unwrap_or_default();
    if PROGRAMS.contains(&first) {
        format!("ask the operator to run: {line}")
    } else if ["--", "git handoff", "command"].iter().any(|sign| line.contains(sign)) {
        format!("for the operator: {line}")
    } else {
        line.to_owned()
    }
}

/// Formats a tool call.
fn call(tool: &str, arguments: Value) -> String {
    match arguments {
        Value::Object(none) if none.is_empty() => format!("call `{tool}`"),
        arguments => format!("call `{tool}` with {arguments}"),
    }
}

/// Returns the check of a packet as text whose steps name tools.
pub(super) fn report_text(report: &Report) -> String {
    in_text(&report.to_text())
}

/// Returns the check of a packet as JSON whose steps name tools.
pub(super) fn report_json(report: &Report) -> Value {
    let mut value = json!(report);
    for step in value["recovery"].as_array_mut().into_iter().flatten() {
        if let Some(text) = step.as_str() {
            *step = in_text(text).into();
        }
    }
    credential::redact_json(value)
}

/// Replaces the commands between backquotes that a tool of this server stands in for.
fn in_text(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(at, part)| if at % 2 == 1 { by_call(part) } else { None }.unwrap_or_else(|| part.to_owned()))
        .collect();
    parts.join("`")
}

/// Returns the call that corresponds to a command of a recovery step.
fn by_call(command: &str) -> Option<String> {
    if command == "git handoff packet new" {
        return Some("checkpoint` with a `packet".to_owned());
    }
    if command.starts_with("git handoff thread log ") {
        return Some("thread_list".to_owned());
    }
    let run = command.strip_prefix("git handoff status ")?;
    // A name that needs no quotes is its own word.
    (!run.contains(['\'', '"', '\\'])).then(|| format!("status {}", json!({ "run": run })))
}

#[cfg(test)]
mod tests {
    use git_handoff::model::hints;

    use super::*;

    #[test]
    fn a_hint_names_a_tool_or_the_operator() {
        for (hint, text) in [
            (hints::threads(), "call `thread_list`"),
            (hints::items("a b"), r#"call `status` with {"run":"a b"}"#),
            (hints::revisions("r", "notes"), r#"call `doc_log` with {"name":"notes","run":"r"}"#),
            (hints::remotes(), "ask the operator to run: git remote --verbose"),
            (hints::retry("r/a"), "ask the operator to run: git handoff retry r/a"),
            (
                hints::admit("r", "KEY", "writer"),
                "for the operator: an owner of the run can give you the role: git handoff admit r KEY --as writer",
            ),
            (hints::did_you_mean("r"), "did you mean \"r\"?"),
        ] {
            assert_eq!(for_agents(&hint), text);
        }
    }

    #[test]
    fn commands_in_a_step_become_calls() {
        let step = "Confirm: `git status --short`, `git handoff status r`, `git handoff status 'a b'`, `git handoff thread log t`.";
        let text =
            "Confirm: `git status --short`, `status {\"run\":\"r\"}`, `git handoff status 'a b'`, `thread_list`.";
        assert_eq!(in_text(step), text);
        assert_eq!(in_text("write it (`git handoff packet new`)"), "write it (`checkpoint` with a `packet`)");
    }
}
