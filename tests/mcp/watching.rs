//! Many concurrent watches: none blocks other calls or needs a thread, and all get answers.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, repository};
use crate::common::Environment;

/// More than the threads that a runtime has for work that blocks.
const MANY: u64 = 2000;

/// The first id of the requests that watch; those of `Client::ask` are below.
const FIRST: u64 = 100_000;

fn submit(env: &Environment, run: &str) {
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    env.write(&format!("repo/{run}.json"), &json!({"id": run, "items": [item]}).to_string());
    env.handoff(["submit", &format!("{run}.json")]).success();
}

/// Asks for a watch without waiting for its answer.
fn watch(client: &mut Client, id: u64, run: &str, timeout: u64) {
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "watch", "arguments": {"run": run, "since": 1, "timeout": timeout}}}));
}

/// Reads the next answer, whatever it is to.
fn next(client: &mut Client) -> Value {
    let mut line = String::new();
    client.from.read_line(&mut line).expect("the server answers");
    let answer: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
    if answer["result"].get("structuredContent").is_some() {
        crate::common::answers::hold_answer(&answer["result"]["structuredContent"]);
    }
    answer
}

/// Returns how many threads a process has.
#[cfg(target_os = "linux")]
fn threads(client: &Client) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", client.child.id())).expect("it lives").count()
}

#[test]
fn many_watches_delay_no_answer_and_all_of_them_answer() {
    let env = repository();
    submit(&env, "one");
    submit(&env, "two");
    let mut client = Client::start(&env, "repo", &[]);
    for id in FIRST..FIRST + MANY {
        watch(&mut client, id, if id % 2 == 0 { "one" } else { "two" }, 600);
    }
    // Other calls are answered, although none of the watches is.
    for _ in 0..3 {
        assert_eq!(client.call("status", &json!({"run": "one"}))["run"], "one");
    }
    // Once everybody's run was looked up, they wait without a thread; one that has nothing to do
    // ends after ten seconds.
    #[cfg(target_os = "linux")]
    {
        let late = Instant::now() + Duration::from_secs(120);
        while threads(&client) >= 24 {
            assert!(Instant::now() < late, "{} threads", threads(&client));
            thread::sleep(Duration::from_millis(100));
        }
    }
    // Each reports only its own run.
    for (run, parity) in [("two", 1), ("one", 0)] {
        env.handoff(["cancel", run]).success();
        let mut answered = BTreeSet::new();
        while answered.len() < usize::try_from(MANY / 2).expect("it fits") {
            let answer = next(&mut client);
            let id = answer["id"].as_u64().expect("the number of a request");
            let content = &answer["result"]["structuredContent"];
            assert_eq!(
                (&content["run"], id % 2, &content["new"][0]["kind"]),
                (&run.into(), parity, &"item.cancelled".into())
            );
            assert!(answered.insert(id), "{id} was answered twice");
        }
    }
    client.end();
}

#[test]
fn watches_end_with_standard_input() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    for id in FIRST..FIRST + MANY {
        watch(&mut client, id, "r", 600);
    }
    assert_eq!(client.call("status", &json!({"run": "r"}))["run"], "r");
    let (began, late) = (Instant::now(), Duration::from_secs(60));
    drop(client.to.take());
    // Their answers are not read.
    while client.child.try_wait().expect("it is ours").is_none() {
        assert!(began.elapsed() < late, "the server goes on although nobody speaks to it");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.child.wait().expect("it ended").code(), Some(0));
}

#[test]
fn a_watch_that_is_cancelled_is_not_answered() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    for id in FIRST..FIRST + 10 {
        watch(&mut client, id, "r", 600);
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": FIRST + 7}}));
    assert_eq!(client.call("watch", &json!({"run": "r", "timeout": 0}))["run"], "r");
    env.handoff(["cancel", "r"]).success();
    let answered: BTreeSet<u64> = (1..10).map(|_| next(&mut client)["id"].as_u64().expect("a number")).collect();
    assert_eq!((answered.len(), answered.contains(&(FIRST + 7))), (9, false));
    client.end();
}

#[test]
fn watch_reports_a_timeout() {
    let env = repository();
    submit(&env, "r");
    let mut client = Client::start(&env, "repo", &[]);
    watch(&mut client, FIRST, "r", 1);
    watch(&mut client, FIRST + 1, "none", 600);
    let (first, second) = (next(&mut client), next(&mut client));
    assert_eq!(first["result"]["structuredContent"]["code"], "unknown-run", "{first}");
    assert_eq!(second["result"]["structuredContent"]["new"], json!([]), "{second}");
    // A fresh entry is visible, even in a run that others watch.
    env.write("notes.md", "hello");
    watch(&mut client, FIRST + 2, "r", 600);
    env.handoff(["doc", "put", "r", "notes.md", "../notes.md"]).success();
    watch(&mut client, FIRST + 3, "r", 0);
    let answers = [next(&mut client), next(&mut client)];
    assert!(answers.iter().all(|answer| answer["result"]["structuredContent"]["entries"] == 2), "{answers:?}");
    client.end();
}
