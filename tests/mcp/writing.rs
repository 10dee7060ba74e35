//! Many writes at the same time: they cost no more than one after the other, and none is lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, next_message, repository};
use crate::common::Environment;

/// How many writes there are at the same time.
const MANY: u64 = 60;

fn submit(client: &mut Client, run: &str) {
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": run, "items": [item]}}));
}

/// Makes the same calls one after the other and then, elsewhere, at once. Fails if the latter takes
/// more than twice as long.
#[track_caller]
fn compare(env: &Environment, call: impl Fn(&str, u64) -> (&'static str, Value)) {
    let mut client = Client::start(env, "repo", &[]);
    for run in ["row", "once"] {
        submit(&mut client, run);
    }
    let began = Instant::now();
    for number in 0..MANY {
        let (tool, arguments) = call("row", number);
        client.call(tool, &arguments);
    }
    let row = began.elapsed();
    let second_began = Instant::now();
    for number in 0..MANY {
        let (tool, arguments) = call("once", number);
        let parameters = json!({"name": tool, "arguments": arguments});
        client.send(&json!({"jsonrpc": "2.0", "id": 1000 + number, "method": "tools/call", "params": parameters}));
    }
    for _ in 0..MANY {
        let answer = next_message(&mut client);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let once = second_began.elapsed();
    // Other tests run meanwhile, so that a moment is nothing.
    assert!(once < row * 2 + Duration::from_secs(3), "{once:?} at once, {row:?} one after the other");
    client.end();
}

#[test]
fn many_documents_at_once_cost_no_more_than_one_after_the_other() {
    let env = repository();
    compare(&env, |run, number| ("doc_put", json!({"run": run, "name": format!("d{number}"), "content": "x"})));
    let listed: Value = serde_json::from_str(&env.handoff(["--json", "doc", "list", "once"]).success()).unwrap();
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(60));
    env.handoff(["run", "once"]).success();
    env.handoff(["verify", "once"]).success();
}

#[test]
fn many_revisions_at_once_cost_no_more_than_one_after_the_other() {
    let env = repository();
    compare(&env, |run, number| ("doc_put", json!({"run": run, "name": "same", "content": format!("{number}")})));
    let log: Value = serde_json::from_str(&env.handoff(["--json", "doc", "log", "once", "same"]).success()).unwrap();
    assert_eq!(log["revisions"].as_array().map(Vec::len), Some(60));
}

#[test]
fn many_threads_at_once_cost_no_more_than_one_after_the_other() {
    let env = repository();
    compare(&env, |run, number| ("checkpoint", json!({"thread_id": format!("{run}-{number}"), "state": "x"})));
    let listed: Value = serde_json::from_str(&env.handoff(["--json", "thread", "list"]).success()).unwrap();
    assert_eq!(listed["threads"].as_array().map(Vec::len), Some(120));
    env.handoff(["thread", "verify", "--all"]).success();
}

#[test]
fn two_servers_that_write_to_one_run_cost_no_more_than_one() {
    let env = repository();
    let mut clients = [Client::start(&env, "repo", &[]), Client::start(&env, "repo", &[])];
    for run in ["row", "once"] {
        submit(&mut clients[0], run);
    }
    let put = |run: &str, number: u64| json!({"run": run, "name": format!("d{number}"), "content": "x"});
    let began = Instant::now();
    for number in 0..MANY {
        clients[0].call("doc_put", &put("row", number));
    }
    let row = began.elapsed();
    let second_began = Instant::now();
    for number in 0..MANY {
        let client = &mut clients[usize::from(number % 2 == 1)];
        let parameters = json!({"name": "doc_put", "arguments": put("once", number)});
        client.send(&json!({"jsonrpc": "2.0", "id": 1000 + number, "method": "tools/call", "params": parameters}));
    }
    for number in 0..MANY {
        let answer = next_message(&mut clients[usize::from(number % 2 == 1)]);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let once = second_began.elapsed();
    assert!(once < row * 2 + Duration::from_secs(3), "{once:?} at once, {row:?} one after the other");
    clients.into_iter().for_each(Client::end);
    let listed: Value = serde_json::from_str(&env.handoff(["--json", "doc", "list", "once"]).success()).unwrap();
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(60));
}
