//! Threads and the anchor `git`: its log says how far a thread went.

use serde_json::Value;

use super::json;
use crate::common::Environment;

fn save(env: &Environment, thread: &str, state: &str) {
    env.write("state", state);
    env.handoff(["checkpoint", thread, "--state", "../state"]).success();
}

/// A thread of two checkpoints, and an anchor that was handed what there is.
fn anchored() -> Environment {
    let env = Environment::example("handoff-dag");
    save(&env, "research", "draft");
    save(&env, "research", "gathered");
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "../vault.git"]).success();
    env.handoff(["anchor", "push"]).success();
    env
}

/// Returns the row `anchor` of a thread, with how the command ended.
fn row(env: &Environment, thread: &str) -> (i32, String) {
    let said = env.handoff(["thread", "verify", thread, "--json"]);
    let report: Value = json(&said);
    (said.status.expect("it ends"), report["checks"]["anchor"]["detail"].as_str().expect("a row").to_owned())
}

#[test]
fn a_thread_is_anchored_and_verify_says_so() {
    let env = anchored();
    assert_eq!(row(&env, "research"), (0, "vault: git (external); local (detect)".to_owned()));
    save(&env, "research", "more");
    let behind = "vault: git (external), 2 of 3 entries; local (detect)".to_owned();
    assert_eq!(row(&env, "research"), (0, behind));
    save(&env, "other", "x");
    assert_eq!(row(&env, "other"), (0, "local (detect); vault holds nothing of it".to_owned()));
    // Only the named thread is pushed.
    env.handoff(["anchor", "push", "vault", "other"]).success();
    assert_eq!(row(&env, "other"), (0, "vault: git (external); local (detect)".to_owned()));
    assert_eq!(row(&env, "research").1, "vault: git (external), 2 of 3 entries; local (detect)");
    env.handoff(["anchor", "push"]).success();
    assert_eq!(row(&env, "research"), (0, "vault: git (external); local (detect)".to_owned()));
    assert_eq!(env.git_in("vault.git", ["for-each-ref"]).success().lines().count(), 1);
    let unknown = env.handoff(["anchor", "push", "nothing"]).exit(1).stderr;
    assert!(unknown.contains("neither an anchor in your configuration nor a run or thread here"), "{unknown}");
}

#[test]
fn a_thread_that_was_cut_or_told_anew_with_its_log_is_caught() {
    let env = anchored();
    let head = env.git(["rev-parse", "refs/handoff/threads/research"]).success();
    let logs = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    for log in logs.lines() {
        env.git(["update-ref", "-d", log]).success();
    }
    env.git(["update-ref", "refs/handoff/threads/research", &format!("{}~1", head.trim())]).success();
    let (code, detail) = row(&env, "research");
    assert_eq!((code, detail.as_str()), (3, "vault holds 2 entries: the last are gone"));
    env.git(["update-ref", "-d", "refs/handoff/threads/research"]).success();
    save(&env, "research", "another");
    save(&env, "research", "story");
    let (code, detail) = row(&env, "research");
    assert!(code == 3 && detail.starts_with("vault holds another entry "), "{code} {detail}");
}

#[test]
fn an_anchor_that_cannot_be_asked_is_no_pass() {
    let env = anchored();
    env.shell("", "mv vault.git elsewhere.git").success();
    let (code, detail) = row(&env, "research");
    assert!(code == 3 && detail.starts_with("vault: ") && detail.ends_with("; local (detect)"), "{code} {detail}");
    env.shell("", "mv elsewhere.git vault.git").success();
    assert_eq!(row(&env, "research").0, 0);
}
