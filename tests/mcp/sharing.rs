//! Threads go from clone to clone by agents alone, within what their operators allowed.

use serde_json::json;

use super::{Client, repository};
use crate::common::Environment;

/// The state that is handed over, which is no text.
const STATE: &[u8] = b"\xff\x00gathered \xc3\xa4\r\n\xfe";

/// The same in base64.
const ENCODED: &str = "/wBnYXRoZXJlZCDDpA0K/g==";

/// Two clones of a bare repository, without any permissions.
fn clones() -> Environment {
    let env = repository();
    env.git_in("", ["clone", "--quiet", "--bare", "repo", "hub.git"]).success();
    env.git(["remote", "add", "hub", "../hub.git"]).success();
    env.git_in("", ["clone", "--quiet", "--no-local", "--origin", "hub", "hub.git", "other"]).success();
    env
}

fn allow(env: &Environment, dir: &str, remote: &str) {
    env.git_in(dir, ["config", "--add", "handoff.mcp.remotes", remote]).success();
}

/// Returns the refs of the bare repository that are ours.
fn shared(env: &Environment) -> String {
    env.git_in("hub.git", ["for-each-ref", "--format=%(refname)", "refs/handoff/"]).success()
}

#[test]
fn a_state_goes_to_another_clone_without_a_person() {
    let env = clones();
    ["repo", "other"].iter().for_each(|dir| allow(&env, dir, "hub"));
    let mut sender = Client::start(&env, "repo", &[]);
    sender.call("checkpoint", &json!({"thread_id": "t", "state": ENCODED, "encoding": "base64"}));
    sender.call("checkpoint", &json!({"thread_id": "kept", "state": "x"}));
    let pushed = sender.call("thread_push", &json!({"thread_id": "t"}));
    assert_eq!(
        (&pushed["remote"], &pushed["refs"][0]["name"], &pushed["refs"][0]["status"]),
        (&"hub".into(), &"t".into(), &"new".into())
    );
    let there = shared(&env);
    assert!(there.lines().count() == 2 && there.contains("/threads/t\n") && there.contains("/logs/"), "{there}");
    let again = sender.call("thread_push", &json!({"thread_id": "t", "remote": "hub"}));
    assert_eq!(again["refs"][0]["status"], "up-to-date");

    let mut receiver = Client::start(&env, "other", &[]);
    let fetched = receiver.call("thread_fetch", &json!({"thread_id": "t"}));
    assert_eq!((&fetched["refs"][0]["name"], &fetched["refs"][0]["status"]), (&"t".into(), &"new".into()));
    assert_eq!(receiver.call("verify", &json!({"thread_id": "hub/t"}))["intact"], true);
    receiver.call("fork", &json!({"thread_id": "hub/t", "new_thread_id": "mine"}));
    let resumed = receiver.call("resume", &json!({"thread_id": "mine"}));
    assert_eq!((&resumed["state"], &resumed["encoding"]), (&ENCODED.into(), &"base64".into()));
    assert_eq!(env.handoff_in("other", ["thread", "cat", "mine"]).exit(0).raw, STATE);

    // And back: what came of it is another thread of the same remote.
    receiver.call("checkpoint", &json!({"thread_id": "mine", "state": "goes on"}));
    receiver.call("thread_push", &json!({"thread_id": "mine"}));
    let all = sender.call("thread_fetch", &json!({}));
    assert!(all["refs"].as_array().unwrap().iter().any(|entry| entry["name"] == "mine"), "{all}");
    sender.call("fork", &json!({"thread_id": "hub/mine", "new_thread_id": "back"}));
    assert_eq!(sender.call("resume", &json!({"thread_id": "back"}))["state"], "goes on");
    sender.end();
    receiver.end();
}

#[test]
fn sharing_allows_only_configured_remotes() {
    let env = clones();
    let mut client = Client::start(&env, "repo", &[]);
    client.call("checkpoint", &json!({"thread_id": "t", "state": "x"}));
    let places = ["hub", "../hub.git", "https://127.0.0.1:1/x.git", "ext::sh -c touch% pwned", "--upload-pack=x", ""];
    let refused = |session: &mut Client, remote: &str| {
        session.refused("thread_push", &json!({"thread_id": "t", "remote": remote}), "remote-not-allowed");
        session.refused("thread_fetch", &json!({"remote": remote}), "remote-not-allowed").0
    };
    for place in places {
        refused(&mut client, place);
    }
    let (text, _) = client.refused("thread_push", &json!({"thread_id": "t"}), "remote-not-allowed");
    assert_eq!(
        text,
        "error: \"hub\" is no remote that threads may be pushed to and fetched from here\n\
         caused by: `handoff.mcp.remotes` names none\n\
         hint: ask the operator to run: git config --add handoff.mcp.remotes hub"
    );
    // A file of the work tree allows nothing.
    env.write("repo/team.config", "[handoff \"mcp\"]\n\tremotes = hub\n");
    env.git(["config", "include.path", "../team.config"]).success();
    refused(&mut client, "hub");
    assert_eq!(shared(&env), "");
    // One allowed remote does not allow others.
    allow(&env, "repo", "backup");
    insta::assert_snapshot!(refused(&mut client, "hub"), @r#"
    error: "hub" is no remote that threads may be pushed to and fetched from here
    caused by: `handoff.mcp.remotes` names backup
    hint: ask the operator to run: git config --add handoff.mcp.remotes hub
    "#);
    let (unknown_text, _) = client.refused("thread_push", &json!({"thread_id": "t"}), "unknown-remote");
    insta::assert_snapshot!(unknown_text, @r#"
    error: `handoff.mcp.remotes` names "backup", which is no remote of this repository
    hint: ask the operator to run: git remote --verbose
    "#);
    allow(&env, "repo", "hub");
    let (usage_text, _) = client.refused("thread_push", &json!({"thread_id": "t"}), "usage");
    insta::assert_snapshot!(usage_text, @"error: give a `remote`: backup, hub are allowed");
    client.call("thread_push", &json!({"thread_id": "t", "remote": "hub"}));
    for (tool, arguments, code, hint) in [
        (
            "thread_push",
            json!({"thread_id": "none", "remote": "hub"}),
            "unknown-thread",
            Some("hint: call `thread_list`"),
        ),
        ("thread_push", json!({"thread_id": "a/b", "remote": "hub"}), "usage", None),
        (
            "thread_fetch",
            json!({"thread_id": "none", "remote": "hub"}),
            "unknown-run",
            Some("hint: call `thread_fetch` with {\"remote\":\"hub\"}"),
        ),
    ] {
        let (tool_text, _) = client.refused(tool, &arguments, code);
        assert_eq!(tool_text.lines().find(|line| line.starts_with("hint: ")), hint, "{tool_text}");
    }
    client.end();
}

#[test]
fn no_run_goes_along_and_no_log_goes_ahead_of_one() {
    let env = clones();
    ["repo", "other"].iter().for_each(|dir| allow(&env, dir, "hub"));
    let items = json!([{"id": "a", "executor": "command", "inputs": {"command": "true"}}]);
    for run in ["same", "shared"] {
        env.write(&format!("{run}.json"), &json!({"id": run, "items": items}).to_string());
        env.handoff(["submit", &format!("../{run}.json")]).success();
    }
    env.handoff(["push", "hub", "shared"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    client.call("checkpoint", &json!({"thread_id": "same", "state": "x"}));
    client.call("thread_push", &json!({"thread_id": "same"}));
    assert!(!shared(&env).contains("/runs/same\n") && shared(&env).contains("/threads/same\n"), "{}", shared(&env));
    // It went on, and is left where it was; the log that goes along does not mention it.
    let before = env.git_in("hub.git", ["rev-parse", "refs/handoff/runs/shared"]).success();
    env.handoff(["run", "shared", "--close"]).success();
    client.call("checkpoint", &json!({"thread_id": "same", "state": "y"}));
    client.call("thread_push", &json!({"thread_id": "same"}));
    assert_eq!(env.git_in("hub.git", ["rev-parse", "refs/handoff/runs/shared"]).success(), before);
    let mut receiver = Client::start(&env, "other", &[]);
    receiver.call("thread_fetch", &json!({}));
    let here = env.git_in("other", ["for-each-ref", "--format=%(refname)", "refs/handoff/remotes/"]).success();
    assert!(here.contains("/threads/same\n") && !here.contains("/runs/"), "{here}");
    // A conflicting object on the remote is reported as a failure.
    env.git_in("hub.git", ["update-ref", "refs/handoff/threads/same", "HEAD"]).success();
    receiver.refused("thread_fetch", &json!({"thread_id": "same"}), "unsound");
    client.end();
    receiver.end();
}

#[test]
fn a_secret_is_not_handed_over() {
    let env = clones();
    allow(&env, "repo", "hub");
    env.git(["config", "handoff.secrets.allow", "github-pat"]).success();
    let mut client = Client::start(&env, "repo", &[]);
    let token = format!("ghp_{}", "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4");
    client.call("checkpoint", &json!({"thread_id": "t", "state": token}));
    env.git(["config", "--unset", "handoff.secrets.allow"]).success();
    let (text, _) = client.refused("thread_push", &json!({"thread_id": "t"}), "secret-found");
    assert!(!text.contains(&token), "{text}");
    insta::assert_snapshot!(text, @"
    error: secret-found: state:1 github-pat
    hint: ask the operator to run: git config --add handoff.secrets.allow github-pat:state   # if it is none, or may be known
    ");
    assert_eq!(shared(&env), "");
    client.end();
}
