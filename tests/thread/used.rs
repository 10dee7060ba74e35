//! The chains at hand are the record of what was used: nonces of offers, and resume tokens of
//! packets.

use serde_json::{Value, json as value};

use super::{adopt_in, json, packet, repository, save, traces};
use crate::common::Environment;
use crate::common::report::error_code;

/// A sender in `repo` with a thread that has a packet, and a clone of it in `other`, which the
/// sender can fetch from.
fn two_repositories() -> Environment {
    let env = repository();
    packet(&env, &value!({}));
    save(&env, "t", b"the state", &["--packet", "packet.json"]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.git(["remote", "add", "theirs", "../other"]).success();
    env
}

/// Asserts that a command fails with an exit code and an error code, and changes nothing. Returns
/// what it prints on stderr as JSON.
#[track_caller]
fn stopped(env: &Environment, dir: &str, args: &[&str], code: i32, error: &str) -> Value {
    let before = traces(env, dir);
    let output = env.handoff_in(dir, ["--json"].iter().chain(args)).exit(code);
    assert_eq!(error_code(&output.stderr), error, "{output}");
    assert_eq!(traces(env, dir), before);
    json(output.stderr.lines().last().expect("an error"))
}

/// Asserts that a packet cannot be used, since its token was.
#[track_caller]
fn consumed(env: &Environment, args: &[&str]) {
    let error = stopped(env, "repo", args, 3, "packet");
    let row = &error["check"]["checks"]["resume_token"];
    let why = "handoff-t-20260604 is already consumed (the thread was resumed with it) — fails continuity ID check";
    assert_eq!((&row["ok"], &row["detail"]), (&false.into(), &why.into()));
}

#[test]
fn nonce_in_an_entry_is_used_without_its_file() {
    let env = two_repositories();
    let descriptor = json(&env.handoff(["offer", "t"]).success());
    adopt_in(&env, "other", &descriptor, &["--as", "u"]).success();
    std::fs::remove_dir_all(env.path().join("other/.git/handoff/nonces")).expect("it is there");
    stopped(&env, "other", &["adopt", "../descriptor.json", "--as", "v"], 1, "used");
    // Behind another thread that began as this one, too.
    env.handoff_in("other", ["fork", "u", "--as", "w"]).success();
    env.git_in("other", ["update-ref", "-d", "refs/handoff/threads/u"]).success();
    stopped(&env, "other", &["adopt", "../descriptor.json", "--as", "v"], 1, "used");
    // Elsewhere it is not, until that thread is fetched.
    env.handoff(["adopt", "../descriptor.json", "--as", "mine"]).success();
    let offer_descriptor = json(&env.handoff(["offer", "t"]).success());
    adopt_in(&env, "other", &offer_descriptor, &["--as", "x"]).success();
    env.handoff(["fetch", "theirs"]).success();
    stopped(&env, "repo", &["adopt", "../descriptor.json", "--as", "again"], 1, "used");
    // An unsigned entry does not count.
    let second_descriptor = json(&env.handoff(["offer", "t"]).success());
    let script = format!(
        "
        commit=$(git cat-file commit refs/handoff/remotes/theirs/threads/x | sed 's/\"nonce\":\"[^\"]*\"/\"nonce\":{}/' \
            | git hash-object -w -t commit --stdin)
        git update-ref refs/handoff/remotes/theirs/threads/x $commit",
        second_descriptor["nonce"]
    );
    env.shell("repo", &script).success();
    adopt_in(&env, "repo", &second_descriptor, &["--as", "still-mine"]).success();
}

#[test]
fn a_token_is_used_once_through_whichever_thread() {
    let env = two_repositories();
    env.handoff(["fork", "t", "--as", "f"]).success();
    save(&env, "another", b"x", &["--packet", "packet.json"]);
    env.handoff(["resume", "t"]).success();
    for thread in ["f", "another"] {
        consumed(&env, &["resume", thread]);
        consumed(&env, &["offer", thread]);
        env.handoff(["check", thread]).ends(3);
    }
    env.handoff(["resume", "f", "--accept", "operational"]).success();
    // A packet of its own is free.
    packet(&env, &value!({"resume_token": "handoff-next"}));
    save(&env, "f", b"y", &["--packet", "packet.json"]);
    env.handoff(["resume", "f"]).success();
}

#[test]
fn a_token_that_was_used_elsewhere_is_used_once_that_is_fetched() {
    let env = two_repositories();
    let descriptor = json(&env.handoff(["offer", "t"]).success());
    adopt_in(&env, "other", &descriptor, &["--as", "u"]).success();
    env.handoff_in("other", ["resume", "u"]).success();
    env.handoff(["fetch", "theirs"]).success();
    consumed(&env, &["resume", "t"]);
}

#[test]
fn unreadable_nonces_count_as_used() {
    let env = two_repositories();
    let first = save(&env, "broken", b"1", &[]);
    save(&env, "broken", b"2", &[]);
    let commit = super::text(&first["commit"]);
    crate::common::loosen(&env.repo());
    let file = env.path().join(format!("repo/.git/objects/{}/{}", &commit[..2], &commit[2..]));
    std::fs::remove_file(file).expect("it is loose");
    stopped(&env, "repo", &["offer", "t"], 1, "unreadable-thread");
}
