//! Threads are pushed, fetched, bundled and refused like runs.

use std::fs;

use serde_json::Value;

use super::{RUN, clone, json, refs, shared};
use crate::common::report::{find_line, find_row, verdict};
use crate::common::{Environment, assert_output};

/// The ref of the thread.
const THREAD: &str = "refs/handoff/threads/research";

/// Saves a state in `repo`.
fn save(env: &Environment, state: &str, more: &[&str]) {
    env.write("state", state);
    env.handoff(["checkpoint", "research", "--state", "../state"].iter().chain(more)).success();
}

/// An environment with a run, and a thread of two checkpoints that is tied to it, both pushed;
/// `clone` has fetched nothing yet.
fn pushed() -> Environment {
    let env = shared();
    save(&env, "draft", &[]);
    env.write("repo/notes", "not committed");
    save(&env, "gathered", &["--run", RUN, "--worktree"]);
    env.handoff(["push", "--all"]).success();
    clone(&env, "clone");
    env
}

#[test]
fn a_thread_is_pushed_and_fetched_by_its_name() {
    let env = shared();
    save(&env, "draft", &[]);
    assert_output!(env.handoff(["push", "origin", "research"]), @"
    new  thread  research
    new  log     SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.4ebc7607e91b
    ");
    assert!(!refs(&env, "hub").contains("/runs/"), "only the named thread goes");
    clone(&env, "clone");
    assert_output!(env.handoff_in("clone", ["fetch", "origin", "research"]), @"
    new  thread  research
    new  log     SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.4ebc7607e91b
    ------- stderr -------
    hint: git handoff thread verify origin/research
    ");
    assert_output!(env.handoff_in("clone", ["thread", "verify", "origin/research"]), @r"
    git handoff thread verify · origin/research                     ─ INTACT · unknown key  clock pinned
    ✓ chain      1 checkpoint in 1 entry, hash-linked, no gaps
    ─ signature  valid, key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg not known to you
    ✓ anchor     local (detect)
    ─ lineage    began by itself
    ✓ content    1 checkpoint, 5 B re-hashed
    ------- stderr -------
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    ");
    // A unique name is verified with `--all`, too; otherwise it is qualified.
    let all = env.handoff_in("clone", ["thread", "verify", "--all"]).exit(0).stdout;
    assert!(all.starts_with("git handoff thread verify · origin/research "), "{all}");
    env.handoff_in("clone", ["checkpoint", "research", "--state", "../state"]).success();
    let thread_verify_all = env.handoff_in("clone", ["thread", "verify", "--all", "--json"]).exit(0).stdout;
    let remotes: Vec<Value> =
        thread_verify_all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["remote"].take()).collect();
    assert_eq!(remotes, [Value::Null, "origin".into()]);
    save(&env, "gathered", &[]);
    env.handoff(["push", "origin", "research"]).success();
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    let threads = fetched["refs"].as_array().unwrap().iter().filter(|r| r["kind"] == "thread");
    assert_eq!(threads.map(|r| r["status"].as_str().unwrap()).collect::<Vec<_>>(), ["updated"]);
    assert_eq!(env.handoff_in("clone", ["thread", "cat", "origin/research"]).exit(0).raw, b"gathered");
    assert_output!(env.handoff(["push", "origin", "reserch"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run or thread "reserch" here
    hint: git handoff runs && git handoff thread list
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["push", "research"]).exit(1), @r#"
    ------- stderr -------
    error: "research" is neither a remote of this repository nor a URL nor the path of a repository
    hint: git handoff push origin research
    [exit status: 1]
    "#);
}

#[test]
fn push_includes_runs_tied_to_a_thread() {
    let env = pushed();
    env.handoff_in("clone", ["fetch", "origin", "research"]).success();
    assert!(!refs(&env, "clone").contains("/runs/"));
    let report = env.handoff_in("clone", ["thread", "verify", "origin/research"]).exit(0).stdout;
    insta::assert_snapshot!(find_row(&report, "lineage"), @"─ lineage    tied to 1 run, key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg not known to you");
    assert_eq!(verdict(&report), "─ INTACT · unknown key  clock pinned");
}

#[test]
fn a_partial_clone_has_the_evidence_of_a_thread() {
    let env = pushed();
    env.git_in(
        ".",
        ["clone", "--quiet", "--filter=blob:none", &format!("file://{}/hub", env.path().display()), "part"],
    )
    .success();
    env.handoff_in("part", ["fetch", "origin", "research"]).success();
    fs::rename(env.path().join("hub"), env.path().join("gone")).unwrap();
    assert_eq!(env.handoff_in("part", ["thread", "cat", "origin/research"]).exit(0).raw, b"gathered");
    let report = env.handoff_in("part", ["thread", "verify", "origin/research"]).exit(0).stdout;
    insta::assert_snapshot!(find_row(&report, "content"), @"─ content    1 objects are not in this partial clone");
}

#[test]
fn push_rejects_a_diverged_thread_with_both_heads() {
    let env = pushed();
    let ours = env.git(["rev-parse", THREAD]).success();
    let tree = format!("{THREAD}^{{tree}}");
    let theirs = env.git_in("hub", ["commit-tree", &tree, "-p", &format!("{THREAD}^"), "-m", "x"]).success();
    env.git_in("hub", ["update-ref", THREAD, theirs.trim()]).success();
    let before = refs(&env, "hub");
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    assert!(stderr.contains(ours.trim()) && stderr.contains(theirs.trim()), "{stderr}");
    let hint = "hint: git handoff fetch origin research && git handoff thread verify origin/research";
    assert_eq!(find_line(&stderr, "hint: "), hint);
    assert_eq!(refs(&env, "hub"), before);
    // The result of the hint.
    insta::assert_snapshot!(env.handoff(["fetch", "origin", "research"]).exit(1).stderr, @r#"warning: thread "research" on origin is not sound: commit 2d8ebbd: the commit is not an entry: the message is not a subject and an entry; it was not taken"#);
}

#[test]
fn a_thread_that_was_rewritten_is_refused_also_behind_a_merge() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    let before = refs(&env, "clone");
    let old = env.git(["rev-parse", THREAD]).success();
    env.git_in("hub", ["update-ref", THREAD, &format!("{THREAD}^")]).success();
    let stderr = env.handoff_in("clone", ["fetch"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    warning: thread "research" was rewritten on origin: it was at 432530be55ae042b1425fd20e8ebf10c839849f5 and is at 94c6ea9daecadc21c92063f0c8c077a72a0dc17b now, which does not go on from there; what was fetched before is kept
    hint: git update-ref -d refs/handoff/remotes/origin/threads/research   # forgets what was seen there before; then fetch again
    "#);
    let tree = format!("{THREAD}^{{tree}}");
    let merge = env.git_in("hub", ["commit-tree", &tree, "-p", THREAD, "-p", old.trim(), "-m", "x"]).success();
    env.git_in("hub", ["update-ref", THREAD, merge.trim()]).success();
    let _ = env.handoff_in("clone", ["fetch"]).exit(1);
    assert_eq!(refs(&env, "clone"), before);
    env.handoff_in("clone", ["thread", "verify", "origin/research"]).success();
}

#[test]
fn a_bundle_holds_threads_and_is_verified_anywhere() {
    let env = pushed();
    assert_output!(env.handoff(["bundle", "--all", "--output", "../all.bundle"]), @r"
    ------- stderr -------
    wrote 1 run and 1 thread to ../all.bundle
    ");
    fs::create_dir(env.path().join("nowhere")).unwrap();
    assert_output!("thread_bundle_verify", env.handoff_in("nowhere", ["verify", "--bundle", "../all.bundle"]));
    env.handoff(["bundle", "research", "--output", "../thread.bundle"]).exit(0).success();
    let one = env.handoff_in("nowhere", ["verify", "--json", "--bundle", "../thread.bundle", "research"]).exit(0);
    assert_eq!((&json(&one)["schema"], &json(&one)["intact"]), (&"git-handoff.thread-verify/1".into(), &true.into()));
    let _ = env.handoff_in("nowhere", ["verify", "--bundle", "../thread.bundle", RUN]).exit(1);
    // From the file, it can be adopted; and one that was fetched is handed on under its own name.
    env.write("descriptor.json", &env.handoff(["offer", "research"]).success());
    let adopt = ["adopt", "../descriptor.json", "--as", "mine", "--from", "../thread.bundle"];
    env.handoff_in("clone", adopt.iter().chain(&["--accept-unknown-signer"])).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["bundle", "origin/research", "--output", "../again.bundle"]).exit(0).success();
    env.handoff_in("nowhere", ["verify", "--bundle", "../again.bundle"]).success();
    // One that was altered is found out.
    let other = env.git(["commit-tree", &format!("{THREAD}^{{tree}}"), "-p", THREAD, "-m", "x"]).success();
    env.git(["update-ref", THREAD, other.trim()]).success();
    env.handoff(["bundle", "--all", "--output", "../bad.bundle"]).exit(0).success();
    let report = env.handoff_in("nowhere", ["verify", "--bundle", "../bad.bundle"]).exit(3).stdout;
    let end = "git handoff thread verify · research                            ✗ TAMPERED";
    assert_eq!(find_line(&report, "git handoff thread verify · "), end);
}
