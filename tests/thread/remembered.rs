//! Appends check the signatures of new entries only. A file beside the key says how far the thread
//! was verified; nothing that others can write does.

use std::fs;
use std::path::PathBuf;

use super::{json, repository, save, text, traces};
use crate::common::Environment;
use crate::common::report::find_row;

const REFERENCE: &str = "refs/handoff/threads/t";

/// Returns the mark of the thread `t` in a repository.
fn mark(env: &Environment, dir: &str) -> PathBuf {
    env.path().join(dir).join(".git/handoff/verified-threads/t")
}

/// Returns the commit that the mark names.
fn marked(env: &Environment) -> String {
    let saved_mark = json(&fs::read_to_string(mark(env, "repo")).expect("there is a mark"));
    text(&saved_mark["commit"]).to_owned()
}

/// Replaces the commit in the mark.
fn plant(env: &Environment, commit: &str) {
    let mut saved_mark = json(&fs::read_to_string(mark(env, "repo")).expect("there is a mark"));
    saved_mark["commit"] = commit.into();
    fs::write(mark(env, "repo"), saved_mark.to_string()).expect("it is written");
}

/// Returns the commits of the thread, the first one first.
fn commits(env: &Environment) -> Vec<String> {
    let listed = env.git(["rev-list", "--first-parent", "--reverse", REFERENCE]).success();
    listed.lines().map(str::to_owned).collect()
}

/// Writes a commit again without its signature and moves the ref there.
fn unsign(env: &Environment, commit: &str) -> String {
    let script = format!(
        "git cat-file commit {commit} | awk '/^gpgsig/ {{ skip = 1; next }} skip && /^ / {{ next }} {{ skip = 0; print }}' \
         | git hash-object -t commit -w --stdin"
    );
    let forged = env.shell("repo", &script).success().trim().to_owned();
    env.git(["update-ref", REFERENCE, &forged]).success();
    forged
}

/// Fails unless a checkpoint is refused in a repository and changes nothing there.
#[track_caller]
fn refused(env: &Environment, dir: &str, why: &str) {
    env.write("state", "more");
    let before = traces(env, dir);
    let output = env.handoff_in(dir, ["checkpoint", "t", "--state", "../state"]).exit(1);
    assert!(output.stderr.starts_with(&format!("error: {why}")), "{output}");
    assert_eq!(traces(env, dir), before);
}

#[test]
fn each_append_remembers_the_head_that_it_verified() {
    let env = repository();
    save(&env, "t", b"0", &[]);
    assert!(!mark(&env, "repo").exists());
    for at in 1..5 {
        save(&env, "t", &[at], &[]);
        // The append did not verify its own entry.
        assert_eq!(marked(&env), commits(&env)[usize::from(at) - 1]);
    }
    for odd in [&b""[..], b"{", b"{}", br#"{"commit":"0000","key":"x","tool":"git-handoff"}"#] {
        fs::write(mark(&env, "repo"), odd).expect("it is written");
        save(&env, "t", odd, &[]);
        assert_eq!(Some(&marked(&env)), commits(&env).iter().rev().nth(1));
    }
    // The other appends verify everything with the signers that are known, and need no mark.
    env.handoff(["resume", "t"]).success();
    save(&env, "t", b"after", &["--packet", "auto"]);
    env.handoff(["thread", "verify", "t"]).success();
}

#[test]
fn a_forged_middle_is_refused_where_it_was_never_verified() {
    let env = repository();
    save(&env, "t", b"0", &[]);
    save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    let honest = commits(&env);
    let forged = unsign(&env, &honest[2]);
    let why = "thread t does not verify: entry 2: it is not signed";
    refused(&env, "repo", why);
    // A mark of another key or version says nothing.
    let good = fs::read_to_string(mark(&env, "repo")).expect("there is a mark");
    for (field, value) in [("key", "SHA256:x"), ("tool", "git-handoff 0.0.1")] {
        let mut saved_mark = json(&good);
        saved_mark["commit"] = forged.as_str().into();
        saved_mark[field] = value.into();
        fs::write(mark(&env, "repo"), saved_mark.to_string()).expect("it is written");
        refused(&env, "repo", why);
    }
    // Only a person who can write beside the key can plant a mark. It replaces the signatures.
    fs::write(mark(&env, "repo"), &good).expect("it is written");
    plant(&env, &forged);
    save(&env, "t", b"3", &[]);
    save(&env, "t", b"4", &[]);
    let report = env.handoff(["thread", "verify", "t"]).exit(3);
    insta::assert_snapshot!(find_row(&report.stdout, "signature"), @"✗ signature  entry 2: it is not signed");
    // A clone of the same key has no mark, so it refuses entries that are signed behind such a one.
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.git_in("other", ["fetch", "--quiet", "origin", &format!("{REFERENCE}:{REFERENCE}")]).success();
    refused(&env, "other", why);
    // An altered entry behind a mark is refused as well: only signatures are skipped.
    let commits = commits(&env);
    let replaced = format!(
        "git cat-file commit {} | sed 's/\"seq\": 4/\"seq\": 5/' | git hash-object -t commit -w --stdin",
        commits[4]
    );
    let replaced = env.shell("repo", &replaced).success().trim().to_owned();
    env.git(["update-ref", REFERENCE, &replaced]).success();
    plant(&env, &replaced);
    refused(&env, "repo", "thread t does not verify: ");
}

#[test]
fn a_ref_that_was_set_back_or_replaced_is_noticed() {
    let env = repository();
    for state in [b"0", b"1", b"2", b"3"] {
        save(&env, "t", state, &[]);
    }
    let honest = commits(&env);
    let set_back = |to: &str| env.git(["update-ref", REFERENCE, to]).success();
    for (at, commit) in honest.iter().enumerate().take(3) {
        set_back(commit);
        for mark in [&honest[at], &honest[2], &honest[3]] {
            plant(&env, mark);
            refused(&env, "repo", "the thread \"t\" has lost entries that the repository log holds");
        }
    }
    // Another thread of our key in its place is of another name.
    save(&env, "u", b"0", &[]);
    save(&env, "u", b"1", &[]);
    set_back("refs/handoff/threads/u");
    refused(&env, "repo", "thread t does not verify: entry 0 is of another thread, \"u\"");
    set_back(&honest[3]);
    save(&env, "t", b"4", &[]);
    env.handoff(["thread", "verify", "--all"]).success();
}
