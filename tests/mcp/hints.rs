//! Hints name tools, or what the operator does; `Client::refused` holds every hint of these and all
//! other tests.

use serde_json::json;

use super::{Client, repository};
use crate::common::report::find_line;

#[test]
fn hints_name_the_tool_that_helps() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": "r", "items": [item]}}));
    client.call("checkpoint", &json!({"thread_id": "t", "state": "x"}));
    for (tool, arguments, code, hint) in [
        ("status", json!({"run": "none"}), "unknown-run", "call `status` without a run: it lists the runs"),
        ("resume", json!({"thread_id": "none"}), "unknown-thread", "call `thread_list`"),
        ("doc_get", json!({"run": "r", "name": "none"}), "unknown-document", r#"call `doc_list` with {"run":"r"}"#),
        ("fork", json!({"thread_id": "t", "new_thread_id": "t"}), "thread-exists", "choose another `new_thread_id`"),
        (
            "submit",
            json!({"plan": {"id": "r", "items": [{"id": "b", "executor": "command", "inputs": {"command": ["true"]}}]}}),
            "run-exists",
            r#"call `status` with {"run":"r"}, or give the plan another id"#,
        ),
        (
            "submit",
            json!({"plan": {"id": "s", "items": [item]}, "queue": "none"}),
            "unknown-queue",
            "ask the operator to run: git config handoff.queue.none.concurrency 2",
        ),
        ("rollback", json!({"thread_id": "t", "checkpoint_id": "chkpt_none"}), "usage", ""),
    ] {
        let (text, error) = client.refused(tool, &arguments, code);
        let actual = error["hint"].as_str().unwrap_or_default();
        assert_eq!(actual, hint, "{tool} {arguments} {error}");
        assert!(hint.is_empty() || text.ends_with(&format!("\nhint: {hint}")), "{text}");
    }
    client.end();
}

#[test]
fn hints_about_executors_and_schemas_name_a_tool_and_the_operator() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    env.git(["config", "--unset-all", "handoff.mcp.executors"]).success();
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    let (text, _) = client.refused("submit", &json!({"plan": {"id": "r", "items": [item]}}), "executor-not-allowed");
    let hint = "hint: call `subagents_list` for what a plan may name, or ask the operator to run: git config --add handoff.mcp.executors command";
    assert!(text.ends_with(hint), "{text}");
    // The problems of a plan have hints of their own.
    let shaped =
        json!({"id": "r", "items": [{"id": "a", "executor": "dispatch", "queue": 1, "subagentShape": "none"}]});
    let verdict = client.call("plan_validate", &json!({"plan": shaped}));
    let hints = super::hints(&json!({"details": verdict}));
    assert!(verdict["valid"] == false && hints.iter().all(|line| !line.starts_with("git ")), "{verdict}");
    hints.iter().for_each(|line_hint| client.hold_hint(line_hint));
    client.end();
}

#[test]
fn the_steps_of_recovery_name_tools() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let packet = json!({"objective": "Migrate user database", "next_action": "continue"});
    client.call("checkpoint", &json!({"thread_id": "t", "state": "x", "packet": packet}));
    let report = client.call("packet_check", &json!({"thread_id": "t"}));
    let steps = report["recovery"].to_string();
    insta::assert_snapshot!(steps, @r#"["Confirm the actual state before anything else, and what of it changed since the packet was written: `git status --short --branch`, `git log --oneline -20`, `thread_list`.","Correct whatever the packet says that is not so any more: first `completed`, `unresolved` and `next_action`.","Complete the packet: `completed`, `assumptions`, `risks` (an empty list is written `[\"none\"]`).","Re-confirm current objective and next action with task owner.","Generate a new plain `resume_token` continuity ID before proceeding, such as `handoff-migrate-user-database-20260604`.","Only then, and last, set `updated_at`: it states that everything was confirmed at that time."]"#);
    let (text, error) = client.refused("resume", &json!({"thread_id": "t"}), "packet");
    assert!(!text.contains("git handoff "), "{text}");
    insta::assert_snapshot!(find_line(&text, "1. "), @"1. Confirm the actual state before anything else, and what of it changed since the packet was written: `git status --short --branch`, `git log --oneline -20`, `thread_list`.");
    assert!(!error["check"]["recovery"].to_string().contains("git handoff"), "{error}");
    let missing = client.call("packet_check", &json!({"packet": "nothing"}));
    assert!(!missing["recovery"].to_string().contains("git handoff"), "{missing}");
    client.end();
}
