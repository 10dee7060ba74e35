//! Hand-overs between two servers, with the operators' settings.

use serde_json::{Value, json};

use super::{Client, repository};
use crate::common::repo::wait_for;
use crate::common::report::find_line;
use crate::common::{Environment, program_path};

/// A repository with a state that was saved, and a clone of it.
fn two() -> (Environment, Client, Client) {
    let env = repository();
    let mut sender = Client::start(&env, "repo", &[]);
    sender.call("checkpoint", &json!({"thread_id": "run-42", "state": "draft"}));
    let saved = json!({"thread_id": "run-42", "state": "gathered 3 sources", "summary": "done", "worktree": true});
    sender.call("checkpoint", &saved);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    let receiver = Client::start(&env, "other", &["--me", "writer"]);
    (env, sender, receiver)
}

fn refs(env: &Environment) -> String {
    env.git_in("other", ["for-each-ref"]).success() + &env.git_in("other", ["count-objects", "-v"]).success()
}

#[test]
fn a_checkpoint_is_offered_in_one_and_adopted_in_another() {
    let (env, mut sender, mut receiver) = two();
    let descriptor = sender.call("handoff_checkpoint", &json!({"thread_id": "run-42", "to_agent": "writer"}));
    assert_eq!((&descriptor["thread_id"], &descriptor["to_agent"]), (&"run-42".into(), &"writer".into()));
    let adopt = json!({"handoff_json": descriptor, "new_thread_id": "run-42-writer"});
    let adopted = receiver.call("adopt_checkpoint", &adopt);
    assert_eq!((&adopted["adopted_from"], &adopted["verified"]), (&descriptor["source"], &true.into()));
    let resumed = receiver.call("resume", &json!({"thread_id": "run-42-writer", "checkout": true}));
    assert_eq!((&resumed["state"], &resumed["encoding"]), (&"gathered 3 sources".into(), &"utf-8".into()));
    assert_eq!(resumed["blob_sha256"], descriptor["blob_sha256"]);
    let report = receiver.call("verify", &json!({"thread_id": "run-42-writer"}));
    assert_eq!(report["intact"], true, "{report}");
    receiver.refused("adopt_checkpoint", &json!({"handoff_json": descriptor, "new_thread_id": "again"}), "used");
    // The descriptor may come as a text, too, and from a remote of the repository.
    let text = sender.call("handoff_checkpoint", &json!({"thread_id": "run-42"})).to_string();
    receiver.call("adopt_checkpoint", &json!({"handoff_json": text, "new_thread_id": "second", "from": "origin"}));
    env.handoff_in("other", ["thread", "verify", "--all"]).success();
    sender.end();
    receiver.end();
}

#[test]
fn the_environment_names_the_adopter_unless_an_option_does() {
    let (env, mut sender, receiver) = two();
    receiver.end();
    let descriptor = sender.call("handoff_checkpoint", &json!({"thread_id": "run-42", "to_agent": "writer"}));
    let adopt = json!({"handoff_json": descriptor, "new_thread_id": "mine"});
    let started = |me: &str, options: &[&str]| {
        let mut command = env.command(program_path(), "other");
        command.env("HANDOFF_ME", me).arg("mcp").args(options);
        Client::greet(command)
    };
    for (me, options) in [("", &[][..]), ("reader", &[]), ("writer", &["--me", "reader"])] {
        let mut other_receiver = started(me, options);
        let (text, _) = other_receiver.refused("adopt_checkpoint", &adopt, "wrong-recipient");
        assert!(text.ends_with("with --me writer, or HANDOFF_ME=writer"), "{text}");
        other_receiver.end();
    }
    let mut writer = started("writer", &[]);
    writer.call("adopt_checkpoint", &adopt);
    writer.end();
    // It is the same for the command.
    let second_descriptor = sender.call("handoff_checkpoint", &json!({"thread_id": "run-42", "to_agent": "writer"}));
    env.write("other/offer.json", &second_descriptor.to_string());
    let second_adopt = |me: &str| {
        let mut command = env.command(program_path(), "other");
        command.env("HANDOFF_ME", me).args(["adopt", "offer.json", "--as", "yours"]).output().expect("it can be run")
    };
    assert_eq!((second_adopt("reader").status.code(), second_adopt("writer").status.code()), (Some(1), Some(0)));
    sender.end();
}

/// Returns how many programs a server has started that have not ended.
fn asking(server: &Client) -> usize {
    let parent = format!("PPid:\t{}", server.child.id());
    let processes = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    let status = processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    status.filter(|status| status.lines().any(|line| line == parent)).count()
}

#[test]
fn a_silent_remote_delays_no_answer_and_is_given_up() {
    let (env, mut sender, mut receiver) = two();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let url = format!("git://{}/x", silent.local_addr().expect("it has an address"));
    env.git_in("other", ["remote", "add", "quiet", &url]).success();
    let descriptor = sender.call("handoff_checkpoint", &json!({"thread_id": "run-42"}));
    let calls = 1_000..1_040;
    for id in calls.clone() {
        let arguments = json!({"handoff_json": descriptor, "new_thread_id": format!("n{id}"), "from": "quiet"});
        receiver.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "adopt_checkpoint", "arguments": arguments}}));
    }
    wait_for("the remote is asked", || asking(&receiver) > 0);
    // More calls than there are turns wait for it, and others have theirs all the same.
    assert_eq!(receiver.call("thread_list", &json!({}))["threads"], json!([]));
    for id in calls {
        let taken_back = json!({"requestId": id});
        receiver.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back}));
    }
    wait_for("nobody asks it any more", || asking(&receiver) == 0);
    receiver.call("adopt_checkpoint", &json!({"handoff_json": descriptor, "new_thread_id": "n", "from": "origin"}));
    sender.end();
    receiver.end();
}

#[test]
fn thread_can_go_back_and_branch() {
    let (env, mut sender, receiver) = two();
    receiver.end();
    let log = env.handoff(["--json", "thread", "log", "run-42"]).success();
    let first: Value = serde_json::from_str(log.lines().last().expect("there are two")).expect("it is JSON");
    let first = &first["checkpoint_id"];
    let patch = sender.call("diff", &json!({"thread_id": "run-42"}));
    assert!(patch["patch"].as_str().is_some_and(|patch| patch.contains("-draft\n")), "{patch}");
    let back = sender.call("diff", &json!({"thread_id": "run-42", "other_checkpoint_id": first}));
    assert!(back["patch"].as_str().is_some_and(|diff| diff.contains("+draft\n")), "{back}");
    sender.call("fork", &json!({"thread_id": "run-42", "checkpoint_id": first, "new_thread_id": "branch"}));
    assert_eq!(sender.call("resume", &json!({"thread_id": "branch"}))["state"], "draft");
    sender.call("rollback", &json!({"thread_id": "run-42", "checkpoint_id": first}));
    assert_eq!(sender.call("resume", &json!({"thread_id": "run-42"}))["state"], "draft");
    // Bytes that are no text travel as base64.
    sender.call("checkpoint", &json!({"thread_id": "run-42", "state": "/wD+", "encoding": "base64"}));
    let resumed = sender.call("resume", &json!({"thread_id": "run-42"}));
    assert_eq!((&resumed["state"], &resumed["encoding"]), (&"/wD+".into(), &"base64".into()));
    assert_eq!(env.handoff(["thread", "cat", "run-42"]).exit(0).raw, [0xff, 0x00, 0xfe]);
    sender.end();
}

#[test]
fn no_caller_loosens_the_terms() {
    let (env, mut sender, mut receiver) = two();
    let offer = |client: &mut Client, to: &str| {
        client.call("handoff_checkpoint", &json!({"thread_id": "run-42", "to_agent": to}))
    };
    let stranger = offer(&mut sender, "reader");
    let mine = offer(&mut sender, "writer");
    let before = refs(&env);
    let adopt = |descriptor: &Value, from: Option<&str>| {
        let mut arguments = json!({"handoff_json": descriptor, "new_thread_id": "new"});
        from.into_iter().for_each(|from| arguments["from"] = from.into());
        arguments
    };
    receiver.refused("adopt_checkpoint", &adopt(&stranger, None), "wrong-recipient");
    let pwned = env.path().join("pwned");
    for place in ["../repo", "/etc", "https://127.0.0.1:1/x.git", &format!("ext::sh -c touch% {}", pwned.display())] {
        receiver.refused("adopt_checkpoint", &adopt(&mine, Some(place)), "unknown-remote");
    }
    let mut forged = mine.clone();
    forged["blob_sha256"] = "0".repeat(64).into();
    receiver.refused("adopt_checkpoint", &adopt(&forged, None), "bad-signature");
    receiver.refused("adopt_checkpoint", &adopt(&"not json".into(), None), "bad-descriptor");
    // An unknown key.
    env.git(["config", "handoff.signingKey", ""]).success();
    sender.call("checkpoint", &json!({"thread_id": "strange", "state": "x"}));
    let strange = sender.call("handoff_checkpoint", &json!({"thread_id": "strange"}));
    receiver.refused("adopt_checkpoint", &adopt(&strange, None), "unknown-signer");
    assert_eq!(refs(&env), before);
    assert!(!pwned.exists());
    env.handoff_in("other", ["fetch"]).success();
    let fork = json!({"thread_id": "origin/strange", "new_thread_id": "forked"});
    let (text, _) = receiver.refused("fork", &fork, "unknown-signer");
    insta::assert_snapshot!(find_line(&text, "hint: "), @"hint: ask the operator whose key it is; the operator can add it to the file of handoff.signers");
    receiver.call("fork", &json!({"thread_id": "origin/run-42", "new_thread_id": "forked"}));
    // A packet that is not clean stops sender and receiver, with its report.
    let packet = json!({"objective": "Migrate user database", "next_action": "continue"});
    sender.call("checkpoint", &json!({"thread_id": "strange", "state": "x", "packet": packet}));
    let (packet_text, error) = sender.refused("handoff_checkpoint", &json!({"thread_id": "strange"}), "packet");
    insta::assert_snapshot!(find_line(&packet_text, "Classification: "), @"Classification: OPERATIONAL");
    assert_eq!(error["check"]["classification"], "operational");
    sender.refused("resume", &json!({"thread_id": "strange"}), "packet");
    assert_eq!(sender.call("packet_check", &json!({"thread_id": "strange"}))["classification"], "operational");
    assert_eq!(sender.call("packet_check", &json!({"packet": packet}))["classification"], "operational");
    assert_eq!(sender.call("packet_check", &json!({"packet": "nothing"}))["classification"], "critical");
    sender.refused("packet_check", &json!({"thread_id": "none"}), "unknown-packet");
    sender.end();
    receiver.end();
}

#[test]
fn a_state_above_one_mebibyte_is_read_in_parts() {
    let (env, mut sender, receiver) = two();
    receiver.end();
    let text = "ä".repeat(1 << 20);
    env.write("large", &text);
    env.handoff(["checkpoint", "large", "--state", "../large"]).success();
    // A state that was not resumed is not handed out by an offset.
    let (refusal, _) = sender.refused("resume", &json!({"thread_id": "large", "offset": 1}), "not-resumed");
    insta::assert_snapshot!(refusal, @r#"
    error: the latest state of the thread large was not resumed: its rest can only be read afterwards
    hint: call `resume` with {"thread_id":"large"}
    "#);
    let (mut read, mut offset) = (String::new(), json!(null));
    loop {
        let part = sender.call("resume", &json!({"thread_id": "large", "offset": offset}));
        assert_eq!((&part["size"], &part["encoding"]), (&json!(text.len()), &json!("utf-8")));
        let state = part["state"].as_str().expect("it is text");
        assert!(state.len() <= 1 << 20);
        read.push_str(state);
        offset = part["next"].clone();
        if offset.is_null() {
            break;
        }
    }
    assert!(read == text);
    // It was resumed once.
    let entries = env.git(["rev-list", "--count", "refs/handoff/threads/large"]).success();
    assert_eq!(entries, "2\n");
    // After a new checkpoint the rest is that of another state.
    sender.call("checkpoint", &json!({"thread_id": "large", "state": "new"}));
    sender.refused("resume", &json!({"thread_id": "large", "offset": 1}), "not-resumed");
    sender.end();
}
