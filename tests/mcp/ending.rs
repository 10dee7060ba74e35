//! A session ends: what is under way is finished or refused, and nothing is left behind.

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, repository};
use crate::common::{Environment, folder, program_path};

/// How many writes are under way.
const MANY: usize = 60;

/// Starts a server whose temporary files are in a folder, and sends it writes.
fn busy(env: &Environment, temporary: &Path) -> Client {
    let mut command = env.command(program_path(), "repo");
    command.env("TMPDIR", temporary).arg("mcp");
    let mut client = Client::greet(command);
    let item = json!({"id": "a", "executor": "command", "inputs": {"command": ["true"]}});
    client.call("submit", &json!({"plan": {"id": "r", "items": [item]}}));
    for id in 1000..1000 + MANY {
        let arguments = json!({"run": "r", "name": format!("d{id}"), "content": "x"});
        let parameters = json!({"name": "doc_put", "arguments": arguments});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters}));
    }
    client
}

/// Returns every answer until standard output ends.
fn rest(client: &mut Client) -> Vec<Value> {
    let lines = client.from.by_ref().lines().map(|line| line.expect("it can be read"));
    lines.map(|line| serde_json::from_str(&line).expect("it is JSON")).collect()
}

/// Returns the locks and temporary files of a repository, and everything in a folder for temporary
/// files.
fn left(env: &Environment, temporary: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("it is a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(&path, found);
            } else if name.starts_with("tmp") || path.extension().is_some_and(|end| end == "lock" || end == "keep") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&env.repo().join(".git"), &mut found);
    found.extend(std::fs::read_dir(temporary).expect("it is a folder").flatten().map(|entry| entry.path()));
    found
}

/// Returns how many documents the run has.
fn documents(env: &Environment) -> usize {
    let listed: Value =
        serde_json::from_str(&env.handoff(["--json", "doc", "list", "r"]).success()).expect("the answer is JSON");
    listed["documents"].as_array().map(Vec::len).expect("there is a list")
}

#[test]
fn queued_calls_finish_when_standard_input_ends() {
    let (env, temporary) = (repository(), folder());
    let mut client = busy(&env, temporary.path());
    drop(client.to.take());
    let answers = rest(&mut client);
    assert_eq!(client.child.wait().expect("it ends").code(), Some(0));
    let done = answers.iter().filter(|answer| answer["result"]["isError"] == false).count();
    assert_eq!((answers.len(), done, documents(&env)), (MANY, MANY, MANY));
    assert_eq!(left(&env, temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn signal_rejects_queued_calls_and_finishes_running_ones() {
    for signal in ["TERM", "INT", "HUP"] {
        let (env, temporary) = (repository(), folder());
        let mut client = busy(&env, temporary.path());
        // Until the first write is done.
        let mut line = String::new();
        client.from.read_line(&mut line).expect("the server answers");
        env.shell("repo", &format!("kill -{signal} {}", client.child.id())).success();
        let mut answers = rest(&mut client);
        answers.push(serde_json::from_str(&line).expect("it is JSON"));
        assert_eq!(client.child.wait().expect("it ends").code(), Some(130), "{signal}");
        let refused = answers.iter().filter(|answer| answer["result"]["isError"] == true);
        for answer in refused.clone() {
            let error = &answer["result"]["structuredContent"];
            assert_eq!(error["code"], "cancelled", "{answer}");
            assert_eq!(error["message"], "the call was cancelled before its turn; it has changed nothing");
        }
        let refused = refused.count();
        assert!(refused > 0 && answers.len() == MANY, "{signal}: {} answers, {refused} refused", answers.len());
        assert_eq!(documents(&env), MANY - refused, "{signal}");
        assert_eq!(left(&env, temporary.path()), Vec::<PathBuf>::new(), "{signal}");
    }
}

#[test]
fn a_client_that_neither_reads_nor_writes_is_not_waited_for() {
    let (env, temporary) = (repository(), folder());
    let mut client = busy(&env, temporary.path());
    drop(client.to.take());
    // The answers fit into the pipe, or not; the server ends either way.
    let late = std::time::Instant::now() + Duration::from_secs(62);
    while client.child.try_wait().expect("it is ours").is_none() {
        assert!(std::time::Instant::now() < late, "the server goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(documents(&env), MANY);
    assert_eq!(left(&env, temporary.path()), Vec::<PathBuf>::new());
}
