//! A server that finds no repository, or one that it cannot use, starts and says so in each answer.

use serde_json::{Value, json};

use super::protocol::TOOLS;
use super::{Client, repository};
use crate::common::Environment;
use crate::common::report::find_line;

/// Returns arguments with which a tool gets as far as opening the repository.
fn arguments(tool: &str) -> Value {
    match tool {
        "adopt_checkpoint" => json!({"handoff_json": {}, "new_thread_id": "t"}),
        "cat" => json!({"what": "r/a:patch"}),
        "checkpoint" => json!({"thread_id": "t", "state": "x"}),
        "doc_get" | "doc_log" => json!({"run": "r", "name": "n"}),
        "doc_list" | "status" | "verify" | "watch" => json!({"run": "r"}),
        "doc_put" => json!({"run": "r", "name": "n", "content": "x"}),
        "fork" => json!({"thread_id": "t", "new_thread_id": "u"}),
        "diff" | "handoff_checkpoint" | "resume" | "thread_push" => json!({"thread_id": "t"}),
        "packet_check" => json!({"packet": {}}),
        "plan_validate" | "submit" => json!({"plan": {}}),
        "rollback" => json!({"thread_id": "t", "checkpoint_id": "x"}),
        _ => json!({}),
    }
}

#[test]
fn every_call_outside_a_repository_gives_a_hint() {
    let env = Environment::empty();
    let mut client = Client::start(&env, "home", &[]);
    let tools = client.ask("tools/list", &json!({}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(TOOLS.len()));
    for tool in TOOLS {
        let (text, _) = client.refused(tool, &arguments(tool), "no-repository");
        assert_eq!(
            find_line(&text, "hint: "),
            "hint: ask the operator to start this server in a repository: by `cwd` in the client's settings, or by the command \
             git -C DIR handoff mcp; or to run git init where it runs",
            "{tool}"
        );
    }
    let (text, _) = client.refused("status", &json!({}), "no-repository");
    insta::assert_snapshot!(text.replace(env.path().to_str().expect("a plain name"), "$TEST"), @r"
    error: not in a git repository: $TEST/home
    hint: ask the operator to start this server in a repository: by `cwd` in the client's settings, or by the command git -C DIR handoff mcp; or to run git init where it runs
    ");
    // Some clients offer no tool of a server that refuses this list.
    let listed = client.ask("resources/list", &json!({}));
    let listed = listed["result"]["resources"].as_array().expect("a list");
    for resource in listed {
        let about = resource["description"].as_str().expect("it is text");
        assert!(about.starts_with("cannot be read: not in a git repository: "), "{about}");
    }
    assert_eq!(listed.len(), 2, "{listed:?}");
    let read = client.ask("resources/read", &json!({"uri": "handoff://runs"}));
    let error = (&read["error"]["code"], &read["error"]["data"]["error"]["code"]);
    assert_eq!(error, (&json!(-32603), &json!("no-repository")), "{read}");
    // The server need not be started again.
    env.git_in("home", ["init", "--quiet"]).success();
    assert_eq!(client.call("status", &json!({}))["runs"], json!([]));
    client.refused("watch", &json!({"run": "r"}), "unknown-run");
    client.end();
}

#[test]
fn unreadable_setting_is_a_warning_in_each_answer() {
    let env = repository();
    env.git(["config", "handoff.mcp.drive", "perhaps"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let (text, _) = client.refused("status", &json!({}), "config");
    insta::assert_snapshot!(find_line(&text, "hint: "), @"hint: ask the operator to run: git config --show-origin --get-all handoff.mcp.drive");
    env.git(["config", "handoff.mcp.drive", "true"]).success();
    client.call("status", &json!({}));
    client.end();
}

#[test]
fn a_client_without_a_setting_for_the_folder_starts_it_by_git() {
    let env = repository();
    let mut command = env.command("git", "home");
    command.args(["-C", env.repo().to_str().expect("a plain name"), "handoff", "mcp"]);
    let mut client = Client::greet(command);
    assert_eq!(client.call("status", &json!({}))["runs"], json!([]));
    client.end();
}
