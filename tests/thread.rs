//! Threads: saving, going back, handing over, and all that must be refused on the way.

mod adopting;
mod auto_packets;
mod branches;
mod checked;
mod differing;
mod hooks;
mod marked;
mod obstacles;
mod packets;
mod remembered;
mod saving;
mod tampering;
mod trust;
mod used;
mod worktree;

use std::io::Write as _;
use std::process::{Output as Raw, Stdio};

use serde_json::Value;

use crate::common::{Environment, Output, program_path};

/// Makes a repository with one commit.
fn repository() -> Environment {
    let env = Environment::empty();
    env.write("repo/file", "one\n");
    env.git(["init", "--quiet"]).success();
    env.git(["add", "--all"]).success();
    env.git(["commit", "--quiet", "--message", "Start"]).success();
    env
}

/// Saves bytes as a checkpoint of a thread; returns the answer.
#[track_caller]
fn save(env: &Environment, thread: &str, state: &[u8], more: &[&str]) -> Value {
    let args = ["checkpoint", thread, "--state", "-"].iter().chain(more).copied().collect::<Vec<_>>();
    let output = with_input(env, "repo", &args, state);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&String::from_utf8_lossy(&output.stdout))
}

/// Writes `packet.json`: a clean packet with some fields replaced, or something that is none at
/// all.
fn packet(env: &Environment, fields: &Value) {
    let mut packet = serde_json::json!({
        "objective": "Migrate user database to new schema",
        "completed": ["audit existing schema"],
        "unresolved": ["confirm rollback strategy with DBA"],
        "assumptions": ["downtime window approved"],
        "next_action": "Review migration script with DBA before Saturday",
        "risks": ["data loss if rollback untested"],
        "updated_at": "2026-06-04T01:00:00Z",
        "resume_token": "handoff-t-20260604",
    });
    match fields {
        Value::Object(fields) => {
            for (field, value) in fields {
                packet[field] = value.clone();
            }
        }
        other => packet = other.clone(),
    }
    env.write("repo/packet.json", &packet.to_string());
}

/// Adopts a descriptor in a repository.
fn adopt_in(env: &Environment, dir: &str, descriptor: &Value, more: &[&str]) -> Output {
    env.write("descriptor.json", &descriptor.to_string());
    env.handoff_in(dir, ["adopt", "../descriptor.json"].iter().chain(more))
}

/// Runs the program with bytes on its standard input.
fn with_input(env: &Environment, dir: &str, args: &[&str], input: &[u8]) -> Raw {
    let mut command = env.command(program_path(), dir);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be run");
    // A program that refuses may not read to the end.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    crate::common::answers::hold(&command, &output);
    output
}

/// Fails the test unless a command ends with this exit code.
#[track_caller]
fn ends(env: &Environment, code: i32, args: &[&str]) {
    let output = env.handoff(args);
    assert_eq!(output.status, Some(code), "{args:?}\n{output}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is a string"))
}

/// Writes a signing key that is not the tests' own; returns its path.
fn strange_key(env: &Environment) -> String {
    let pair = ssh_key::private::Ed25519Keypair::from_seed(b"git-handoff, a strange key, test");
    let text = ssh_key::PrivateKey::from(pair).to_openssh(ssh_key::LineEnding::LF).expect("the key is written");
    env.write("home/strange_key", &text);
    env.path().join("home/strange_key").to_str().expect("temporary folders have plain names").to_owned()
}

/// Returns every ref, and every file below `.git/handoff`: what a refusal must not change.
fn traces(env: &Environment, dir: &str) -> String {
    let refs = env.git_in(dir, ["for-each-ref"]).success();
    let files = env.shell(dir, "find .git/handoff -type f 2>/dev/null | grep -v /locks/ | sort; true").success();
    refs + &files
}
