//! Progress of calls that take a while, for clients that ask for it.

use serde_json::{Value, json};

use super::{Client, next_message, repository};
use crate::common::Environment;

fn submit(env: &Environment, run: &str) {
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    env.write(&format!("repo/{run}.json"), &json!({"id": run, "items": [item]}).to_string());
    env.handoff(["submit", &format!("{run}.json")]).success();
}

/// Sends a call with a token and returns the notifications before its answer, and the answer.
fn reported(client: &mut Client, tool: &str, arguments: &Value, token: &Value) -> (Vec<Value>, Value) {
    let parameters = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
    client.send(&json!({"jsonrpc": "2.0", "id": 9000, "method": "tools/call", "params": parameters}));
    let mut notes = Vec::new();
    loop {
        let message = next_message(client);
        if message["id"] == 9000 {
            return (notes, message);
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        notes.push(message["params"].clone());
    }
}

/// Fails unless each notification has the token and reports more progress than the one before.
#[track_caller]
fn hold(notes: &[Value], token: &Value) {
    let mut last = -1.0;
    for note in notes {
        let progress = note["progress"].as_f64().expect("a number");
        assert!(note["progressToken"] == *token && progress > last, "{notes:?}");
        last = progress;
    }
}

#[test]
fn a_watch_reports_progress_until_it_answers() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    for token in [json!("one"), json!(2)] {
        let (notes, answer) = reported(&mut client, "watch", &json!({"run": "r", "timeout": 3}), &token);
        hold(&notes, &token);
        assert!((2..=4).contains(&notes.len()), "{notes:?}");
        assert_eq!(
            (&notes[0]["total"], &notes[0]["message"]),
            (&json!(3.0), &json!("waiting after 1 entries; items: 1 ready"))
        );
        assert_eq!(answer["result"]["structuredContent"]["new"], json!([]));
    }
    // Nothing is reported after the answer, nor to a call without a token: `ask` would fail.
    client.call("watch", &json!({"run": "r", "timeout": 2}));
    client.end();
}

#[test]
fn a_watch_without_a_time_answers_before_clients_give_up() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    let parameters = json!({"name": "watch", "arguments": {"run": "r"}, "_meta": {"progressToken": "t"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": parameters}));
    assert_eq!(next_message(&mut client)["params"]["total"], 50.0);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}));
    // It ends at once, and is not answered.
    client.end();
}

#[test]
fn a_call_that_waits_for_a_remote_reports_progress() {
    let env = repository();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let url = format!("git://{}/x", silent.local_addr().expect("it has an address"));
    env.git(["remote", "add", "quiet", &url]).success();
    env.git(["config", "--add", "handoff.mcp.remotes", "quiet"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let parameters = json!({"name": "thread_fetch", "arguments": {}, "_meta": {"progressToken": "t"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": parameters}));
    let notes: Vec<Value> = (0..2).map(|_| next_message(&mut client)["params"].clone()).collect();
    hold(&notes, &json!("t"));
    assert_eq!(notes[0]["message"], "at work");
    drop(silent);
    let answer = std::iter::repeat_with(|| next_message(&mut client)).find(|message| message["id"] == 7);
    assert_eq!(answer.expect("it is answered")["result"]["isError"], true);
    client.end();
}

#[test]
fn a_call_that_waits_for_its_turn_reports_progress() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    for number in 0..40 {
        let arguments = json!({"run": "r", "name": format!("d{number}"), "content": "x"});
        let parameters = json!({"name": "doc_put", "arguments": arguments, "_meta": {"progressToken": number}});
        client.send(&json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}));
    }
    let (mut answers, mut waited) = (0, 0);
    while answers < 40 {
        let message = next_message(&mut client);
        answers += usize::from(message["result"]["isError"] == false);
        waited += usize::from(message["params"]["message"] == "waiting for its turn");
    }
    assert!(waited > 0);
    client.end();
}
