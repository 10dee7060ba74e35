//! Saved states are restored exactly, and never disappear.

use crate::common::{Environment, assert_output};

use super::{ends, json, packet, repository, save, text, with_input};
use crate::common::report::find_row;

#[test]
fn a_state_of_any_bytes_comes_back() {
    let env = repository();
    let states: [&[u8]; 4] = [b"", b"plain\n", b"\0\xff\xfe\r\n\x1b[31m", &vec![7u8; 5 << 20]];
    for state in states {
        let saved = save(&env, "run-42", state, &[]);
        assert_eq!(saved["schema"], "git-handoff.checkpoint/1");
        let checkpoint = format!("run-42:{}", text(&saved["checkpoint_id"]));
        assert_eq!(env.handoff(["thread", "cat", &checkpoint]).exit(0).raw, state);
        assert_eq!(env.git(["cat-file", "blob", text(&saved["blob_id"])]).exit(0).raw, state);
        assert_eq!(env.git(["rev-parse", "refs/handoff/threads/run-42"]).success().trim(), saved["commit"]);
    }
    let verified = json(&env.handoff(["--json", "thread", "verify", "run-42"]).success());
    assert_eq!((&verified["intact"], &verified["checkpoints"]), (&true.into(), &4.into()));
    assert_eq!(env.git(["fsck", "--strict"]).exit(0).stderr, "");
}

#[test]
fn the_log_is_newest_first_and_names_what_was_saved() {
    let env = repository();
    let first = save(&env, "t", b"1", &["--summary", "first"]);
    let second = save(&env, "t", b"2", &[]);
    let log = env.handoff(["--json", "thread", "log", "t"]).success();
    let lines: Vec<_> = log.lines().map(json).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["checkpoint_id"], second["checkpoint_id"]);
    assert_eq!(lines[1]["checkpoint_id"], first["checkpoint_id"]);
    assert_eq!(lines[1]["summary"], "first");
    assert_eq!(lines[1]["blob_sha256"], "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
    let list = json(&env.handoff(["--json", "thread", "list"]).success());
    assert_eq!(list["threads"][0]["checkpoint_id"], second["checkpoint_id"]);
}

#[test]
fn return_to_a_checkpoint_appends() {
    let env = repository();
    let first = save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    let to_first = format!("t:{}", text(&first["checkpoint_id"]));
    let back = json(&env.handoff(["rollback", &to_first]).success());
    assert_eq!(back["blob_id"], first["blob_id"]);
    // Also to what is the latest already.
    let again = json(&env.handoff(["rollback", &format!("t:{}", text(&back["checkpoint_id"]))]).success());
    assert_ne!(again["checkpoint_id"], back["checkpoint_id"]);
    let subjects = env.git(["log", "--format=%s", "refs/handoff/threads/t"]).success();
    assert_eq!(subjects.lines().count(), 4, "{subjects}");
    ends(&env, 1, &["rollback", "t:9-000000000000"]);
    ends(&env, 2, &["rollback", "t"]);
    ends(&env, 0, &["thread", "verify", "t"]);
}

#[test]
fn a_fork_is_a_thread_of_its_own_and_remembers_its_source() {
    let env = repository();
    let first = save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    let source = format!("t:{}", text(&first["checkpoint_id"]));
    let forked = json(&env.handoff(["fork", &source, "--as", "u"]).success());
    assert_eq!(forked["blob_id"], first["blob_id"]);
    let parents = env.git(["rev-parse", "refs/handoff/threads/u^@"]).success();
    assert_eq!(parents.trim(), first["commit"]);
    save(&env, "u", b"3", &[]);
    let verified = env.handoff(["thread", "verify", "u"]).exit(0);
    insta::assert_snapshot!(find_row(&verified.stdout, "lineage"), @"✓ lineage    goes back to 1 thread");
    let refused = env.handoff(["fork", &source, "--as", "u"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: there is a thread "u" here already
    hint: choose another name: --as NAME
    "#);
}

#[test]
fn a_resume_is_recorded_with_the_token_that_it_consumes() {
    let env = repository();
    packet(&env, &serde_json::json!({}));
    let attached = std::fs::read(env.repo().join("packet.json")).expect("it was written");
    save(&env, "t", b"state", &["--packet", "packet.json"]);
    assert_eq!(env.handoff(["resume", "t"]).exit(0).raw, b"state");
    let log = json(&env.handoff(["--json", "thread", "log", "t"]).success());
    assert_eq!(log["resumed"].as_array().map(Vec::len), Some(1));
    let entry = json(env.git(["log", "-1", "--format=%b", "refs/handoff/threads/t"]).success().trim());
    assert_eq!((&entry["kind"], &entry["resumeToken"]), (&"thread.resumed".into(), &"handoff-t-20260604".into()));
    assert_eq!(env.handoff(["thread", "cat", "--packet", "t"]).exit(0).raw, attached);
    assert_eq!(env.git(["show", "refs/handoff/threads/t:state"]).exit(0).raw, b"state");
}

#[test]
fn a_tied_run_travels_with_the_thread() {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    let saved = save(&env, "t", b"1", &[]);
    let tied = save(&env, "t", b"2", &["--run", "handoff-dag-1"]);
    let run = env.git(["rev-parse", "refs/handoff/runs/handoff-dag-1"]).success();
    let parents = env.git(["rev-parse", "refs/handoff/threads/t^@"]).success();
    assert_eq!(parents.lines().collect::<Vec<_>>(), [text(&saved["commit"]), run.trim()]);
    let verified = env.handoff(["thread", "verify", "t"]).exit(0);
    insta::assert_snapshot!(find_row(&verified.stdout, "lineage"), @"✓ lineage    tied to 1 run");
    assert_ne!(tied["commit"], saved["commit"]);
    let refused = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--run", "none"], b"x");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn sha256_repositories_have_threads_too() {
    let env = Environment::example_with("handoff-dag", &["--object-format=sha256"]);
    save(&env, "t", b"1", &[]);
    let saved = save(&env, "t", b"2", &[]);
    assert_eq!(text(&saved["commit"]).len(), 64);
    env.handoff(["fork", "t", "--as", "u"]).success();
    ends(&env, 0, &["thread", "verify", "--all"]);
}

#[test]
fn names_and_summaries_are_checked() {
    let env = repository();
    for name in ["", "a/b", "@x", " x", "x\ny"] {
        let output = with_input(&env, "repo", &["checkpoint", name, "--state", "-"], b"x");
        assert_eq!(output.status.code(), Some(2), "{name:?}");
    }
    let output = with_input(&env, "repo", &["checkpoint", "t", "--state", "-", "--summary", "a\u{1b}[31m"], b"x");
    assert_eq!(output.status.code(), Some(2));
    ends(&env, 2, &["checkpoint", "t", "--state", "-", "--packet", "-"]);
    save(&env, "nightly:a b.lock", b"x", &[]);
    env.handoff(["thread", "show", "nightly:a b.lock"]).success();
    assert_eq!(env.git(["for-each-ref", "refs/handoff/threads"]).success().lines().count(), 1);
}

#[test]
fn threads_and_their_sources_are_drawn_as_git_does() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    env.handoff(["fork", "t", "--as", "u"]).success();
    save(&env, "t", b"2", &[]);
    save(&env, "u", b"3", &[]);
    assert_output!(env.handoff(["thread", "log", "--graph", "t", "u"]), @"
    * 4968b28 2026-06-04 thread.checkpointed u
    * 6c493fa 2026-06-04 thread.checkpointed u
    | * 3ca634c 2026-06-04 thread.checkpointed t
    |/
    * 1aa97fe 2026-06-04 thread.checkpointed t
    ");
    assert_output!(env.handoff(["thread", "log", "--graph", "u"]), @"
    * 4968b28 2026-06-04 thread.checkpointed u
    * 6c493fa 2026-06-04 thread.checkpointed u
    * 1aa97fe 2026-06-04 thread.checkpointed t
    ");
    assert_output!(env.handoff(["thread", "log", "t", "u"]), @"
    ------- stderr -------
    error: several threads are shown only with --graph
    [exit status: 2]
    ");
    assert_output!(env.handoff(["thread", "log", "--graph", "nothing"]), @r#"
    ------- stderr -------
    error: there is no thread "nothing" here
    hint: git handoff thread list
    [exit status: 1]
    "#);
}
