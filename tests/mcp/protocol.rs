//! Common behaviour of all tools.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, actor, repository};
use crate::common::program_path;
use crate::common::report::find_line;

/// Every tool. Operators alone remove things, drive workers, publish runs and decide whom to trust.
pub(super) const TOOLS: [&str; 23] = [
    "adopt_checkpoint",
    "cat",
    "checkpoint",
    "diff",
    "doc_get",
    "doc_list",
    "doc_log",
    "doc_put",
    "fork",
    "handoff_checkpoint",
    "packet_check",
    "plan_validate",
    "resume",
    "rollback",
    "schemas_list",
    "status",
    "subagents_list",
    "submit",
    "thread_fetch",
    "thread_list",
    "thread_push",
    "verify",
    "watch",
];

#[test]
fn these_are_the_tools_and_no_others() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let answer = client.ask("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().expect("a list").clone();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, TOOLS);
    for tool in &tools {
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &tool["outputSchema"]["type"]), (&"object".into(), &"object".into()), "{tool}");
        assert!(jsonschema::validator_for(&tool["outputSchema"]).is_ok(), "{tool}");
        // A call can change neither the name that the server acts under nor what it accepts.
        for reserved in ["actor", "me", "accept", "accept_unknown_signer", "signers"] {
            assert_eq!(schema["properties"][reserved], Value::Null, "{tool}");
        }
        // A tool that takes nothing has none.
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{name} of {tool}");
        }
    }
    let lists = ["plan_validate", "schemas_list", "subagents_list", "thread_list"];
    let reads = ["cat", "diff", "doc_get", "doc_list", "doc_log", "packet_check", "status", "verify", "watch"];
    let reads = [&reads[..], &lists].concat();
    for tool in &tools {
        let is_reading = reads.contains(&tool["name"].as_str().expect("a name"));
        assert_eq!(tool["annotations"]["readOnlyHint"], is_reading, "{tool}");
    }
    client.end();
}

#[test]
fn server_survives_failed_calls() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let (text, error) = client.refused("resume", &json!({"thread_id": "none"}), "unknown-thread");
    assert_eq!(text, "error: there is no thread \"none\" here\nhint: call `thread_list`");
    assert_eq!(error["hint"], "call `thread_list`");
    for (tool, arguments) in [
        ("resume", json!({"thread_id": "a/b"})),
        ("checkpoint", json!({"thread_id": "--help", "state": "x"})),
        ("checkpoint", json!({"thread_id": "t", "state": "no base64!", "encoding": "base64"})),
        ("checkpoint", json!({"thread_id": "t", "state": "x", "summary": "two\nlines"})),
        ("handoff_checkpoint", json!({"thread_id": "t", "expires": "soon"})),
        ("verify", json!({})),
        ("verify", json!({"run": "r", "thread_id": "t"})),
        ("watch", json!({"run": "r", "timeout": 601})),
        ("packet_check", json!({})),
        ("packet_check", json!({"packet": "x", "thread_id": "t"})),
        ("packet_check", json!({"run": "r"})),
        ("doc_get", json!({"run": "r", "name": "../x"})),
        ("rollback", json!({"thread_id": "t", "checkpoint_id": "x"})),
    ] {
        if tool == "handoff_checkpoint" {
            client.call("checkpoint", &json!({"thread_id": "t", "state": "x"}));
        }
        client.refused(tool, &arguments, "usage");
    }
    // Forbidden arguments and unknown tools are errors of the protocol.
    client.invalid("resume", &json!({}));
    client.invalid("resume", &json!({"thread_id": 7}));
    for name in ["cancel", "retry", "close", "extend", "coordinate", "key", "anchor", "push", "clean", "run", ""] {
        let answer = client.ask("tools/call", &json!({"name": name, "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let tools = client.ask("tools/list", &json!({}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(TOOLS.len()));
    client.end();
}

#[test]
fn it_acts_in_the_name_that_it_was_started_with() {
    let env = repository();
    let save = json!({"thread_id": "t", "state": "x"});
    let mut client = Client::start(&env, "repo", &[]);
    client.call("checkpoint", &save);
    assert_eq!(actor(&env, "t"), "agent:mcp");
    client.end();
    let mut command = env.command(program_path(), "repo");
    command.env("HANDOFF_ACTOR", "agent:researcher").arg("mcp");
    let mut early_client = Client::greet(command);
    early_client.call("checkpoint", &save);
    assert_eq!(actor(&env, "t"), "agent:researcher");
    early_client.end();
    let mut writer = Client::start(&env, "repo", &["--actor", "agent:writer"]);
    writer.call("checkpoint", &save);
    assert_eq!(actor(&env, "t"), "agent:writer");
    writer.end();
}

#[test]
fn it_ends_when_it_hears_nothing() {
    let env = repository();
    // Before any call; and outside a repository, with a warning.
    let _ = env.handoff(["mcp"]).exit(0);
    let warned = env.handoff_in("home", ["mcp"]).exit(0);
    assert!(warned.stdout.is_empty(), "{warned}");
    insta::assert_snapshot!(warned.stderr, @"warning: every call will fail until this is solved: not in a git repository: $TEST/home; ask the operator to start this server in a repository: by `cwd` in the client's settings, or by the command git -C DIR handoff mcp; or to run git init where it runs");
    // Messages outside the protocol get its errors, or no answer.
    let nonsense = r#"printf '%s\n' hello '[]' '{"jsonrpc": "2.0"}' '{"jsonrpc": "2.0", "id": 1, "method": "none"}' | git-handoff mcp"#;
    let answers = env.shell("repo", nonsense).exit(0).stdout;
    let is_error = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|answer| answer["error"].is_object());
    assert!(answers.lines().count() > 0 && answers.lines().all(is_error), "{answers}");
    // While a run is being watched.
    env.write(
        "repo/plan.json",
        r#"{"id": "r", "items": [{"id": "a", "executor": "command", "inputs": {"command": ["true"]}}]}"#,
    );
    env.handoff(["submit", "plan.json"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "watch", "arguments": {"run": "r", "timeout": 600}}}));
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    drop(client.to.take());
    assert_eq!(client.child.wait().expect("it ends").code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_message_that_is_too_long_or_too_deep_is_dropped_and_the_next_one_served() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in [format!("\"{}\"", "x".repeat(20 << 20)), deep] {
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{{\"name\":\"submit\",\"arguments\":{{\"plan\":{value}}}}}}}\n"
        );
        client.to.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
        // The next answer is that of the next call.
        assert_eq!(client.call("status", &json!({}))["schema"], "git-handoff.runs/1");
    }
    client.end();
}

#[test]
fn an_answer_is_not_many_times_its_request() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    // Every three bytes are wrong twice.
    let items = vec![json!({}); 10_000];
    let (text, error) = client.refused("submit", &json!({"plan": {"id": "r", "items": items}}), "invalid-plan");
    insta::assert_snapshot!(find_line(&text, "caused by: … "), @"caused by: … and 19000 more problems");
    assert_eq!(error["details"]["more"], 19_000);
    assert!(error.to_string().len() < 2 << 20);
    client.end();
}

#[test]
fn a_line_that_is_no_json_gets_no_answer_and_the_session_goes_on() {
    let env = repository();
    let mut client = Client::start(&env, "repo", &[]);
    let to = client.to.as_mut().expect("it is open");
    to.write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 7,\nno json\n\xff\n").expect("the server listens");
    // Blank lines are no messages, and the session goes on.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/unknown"}));
    client.to.as_mut().expect("it is open").write_all(b"\r\n \n").expect("the server listens");
    assert_eq!(client.call("thread_list", &json!({}))["schema"], "git-handoff.threads/1");
    // An answer in one line is as long as it was.
    let state = "x".repeat(200_000);
    client.call("checkpoint", &json!({"thread_id": "t", "state": state}));
    assert_eq!(client.call("resume", &json!({"thread_id": "t"}))["state"], state);
    client.end();
}
