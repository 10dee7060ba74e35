//! Dishonest runs on a remote, and how they are handled.

use std::fs;
use std::io::Write as _;

use super::{RUN_REF, json, pushed, refs};
use crate::common::report::verdict;
use crate::common::{Environment, assert_output};

const FETCHED: &str = "refs/handoff/remotes/origin/runs/handoff-dag-1";

fn log_ref(env: &Environment) -> String {
    env.git_in("hub", ["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success().trim().to_owned()
}

#[test]
fn fetch_rejects_a_rewritten_log() {
    let env = pushed();
    env.write("state", "first");
    env.handoff(["checkpoint", "t", "--state", "../state"]).success();
    env.handoff(["push", "--all"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    let before = refs(&env, "clone");
    let log = log_ref(&env);
    env.git_in("hub", ["update-ref", &log, &format!("{log}^")]).success();
    assert_output!("fetch_rewritten_log", env.handoff_in("clone", ["fetch"]).exit(1));
    assert_eq!(refs(&env, "clone"), before);
    // The witness holds: what was sealed stays sealed.
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
}

#[test]
fn a_run_that_was_rewritten_is_refused_also_behind_a_merge() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    let before = refs(&env, "clone");
    env.git_in("hub", ["update-ref", RUN_REF, &format!("{RUN_REF}^")]).success();
    let fetched = env.handoff_in("clone", ["fetch", "--json"]).exit(1);
    assert_eq!(json(&fetched)["refs"][0]["status"], "rewritten");
    // git would call this a fast-forward: the old head is a parent, but not the first.
    let tree = format!("{RUN_REF}^{{tree}}");
    let old = env.git_in("clone", ["rev-parse", FETCHED]).success();
    let merge = env.git_in("hub", ["commit-tree", &tree, "-p", RUN_REF, "-p", old.trim(), "-m", "x"]).success();
    env.git_in("hub", ["update-ref", RUN_REF, merge.trim()]).success();
    let second_fetched = env.handoff_in("clone", ["fetch", "--json"]).exit(1);
    assert_eq!(json(&second_fetched)["refs"][0]["status"], "rewritten");
    assert_eq!(refs(&env, "clone"), before);
}

#[test]
fn names_that_are_none_of_ours_are_passed_over() {
    let env = pushed();
    for odd in ["runs/%61", "runs/a/b", "evil/x", "logs/x", "runs/\u{9b}31mred", "runs/%0Aboo", "x"] {
        env.git_in("hub", ["update-ref", &format!("refs/handoff/{odd}"), RUN_REF]).success();
    }
    for private in ["bases/a", "salvage/a", "remotes/origin/runs/a", "transcripts/handoff-dag-1"] {
        env.git_in("hub", ["update-ref", &format!("refs/handoff/{private}"), RUN_REF]).success();
    }
    assert_output!("fetch_odd_names", env.handoff_in("clone", ["fetch"]).exit(0));
    assert_eq!(refs(&env, "clone").lines().count(), 2);
}

#[test]
fn fetch_rejects_invalid_chains() {
    let env = pushed();
    env.git_in("hub", ["tag", "-a", "-m", "x", "x", RUN_REF]).success();
    let blob = env.git_in("hub", ["rev-parse", &format!("{RUN_REF}^{{/run.submitted}}:plan.json")]).success();
    for (name, oid) in [("tagged", "refs/tags/x"), ("blob", blob.trim()), ("tree", &format!("{RUN_REF}^{{tree}}"))] {
        env.git_in("hub", ["update-ref", &format!("refs/handoff/runs/{name}"), oid]).success();
    }
    env.git_in("hub", ["update-ref", "refs/handoff/transcripts/handoff-dag-1", RUN_REF]).success();
    assert_output!("fetch_unfit", env.handoff_in("clone", ["fetch", "--transcripts"]).exit(1));
    assert_eq!(refs(&env, "clone").lines().count(), 2);
    // `verify` judges what plain git fetched.
    env.git_in("hub", ["update-ref", "refs/handoff/runs/other", "main"]).success();
    env.handoff_in("clone", ["fetch", "origin", "other"]).ends(1);
    let spec = "refs/handoff/runs/other:refs/handoff/remotes/origin/runs/other";
    env.git_in("clone", ["fetch", "--quiet", "origin", spec]).success();
    let report = env.handoff_in("clone", ["verify", "origin/other"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ TAMPERED");
}

#[test]
fn objects_that_git_finds_unsound_do_not_come_in() {
    let env = pushed();
    let bad = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor no mail 0 +0000\ncommitter x <y> 0 +0000\n\nx\n";
    env.write("bad", bad);
    let oid = env.git_in("hub", ["hash-object", "--literally", "-w", "-t", "commit", "../bad"]).success();
    env.git_in("hub", ["mktree"]).success();
    env.git_in("hub", ["update-ref", "refs/handoff/runs/bad", oid.trim()]).success();
    let stderr = env.handoff_in("clone", ["fetch"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    warning: run "bad" on origin is not sound: git finds what it holds unsound: object a35f8865712de28fc56d10a2c224adcf3dba7275: missingEmail: invalid author/committer line - missing email; it was not taken
    hint: git config fetch.fsck.missingEmail ignore   # if you take such objects all the same; then the same command again
    hint: git handoff verify origin/handoff-dag-1
    "#);
    assert_eq!(refs(&env, "clone").lines().count(), 2, "all else comes in");
    assert_ne!(env.git_in("clone", ["cat-file", "-e", oid.trim()]).status, Some(0));
}

#[test]
fn a_fetch_is_bounded() {
    let env = pushed();
    let mut file = fs::File::create(env.path().join("noise")).unwrap();
    let mut seed = 1u64;
    for _ in 0..3 << 17 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        file.write_all(&(seed ^ (seed >> 29)).to_le_bytes()).unwrap();
    }
    let blob = env.git_in("hub", ["hash-object", "-w", "../noise"]).success();
    env.write("tree", &format!("100644 blob {}\tplan.json\n", blob.trim()));
    let tree = env.shell("hub", "git mktree < ../tree").success();
    let commit = env.git_in("hub", ["commit-tree", tree.trim(), "-m", "x"]).success();
    env.git_in("hub", ["update-ref", "refs/handoff/runs/huge", commit.trim()]).success();
    env.git_in("clone", ["config", "handoff.maxFetchSize", "1m"]).success();
    assert_output!(env.handoff_in("clone", ["fetch"]).exit(1), @r"
    ------- stderr -------
    error: origin sends more than 1048576 bytes
    hint: name the runs to fetch, or: git config handoff.maxFetchSize 8g
    [exit status: 1]
    ");
    assert_eq!(refs(&env, "clone"), "");
    let left = env.shell("clone", "find .git/objects -name '*tmp*'").success();
    assert_eq!(left, "", "nothing of it stays");
    env.handoff_in("clone", ["fetch", "origin", "handoff-dag-1"]).success();
}

#[test]
fn wrong_object_type_blocks_no_other_ref() {
    let env = pushed();
    env.git_in("hub", ["tag", "-a", "-m", "x", "x", RUN_REF]).success();
    let tag = env.git_in("hub", ["rev-parse", "refs/tags/x"]).success();
    let name = (0..tag.trim().len() / 2).map(|at| u8::from_str_radix(&tag[2 * at..2 * at + 2], 16).unwrap());
    fs::write(env.path().join("tree"), b"100644 patch\0".iter().copied().chain(name).collect::<Vec<u8>>()).unwrap();
    let tree = env.git_in("hub", ["hash-object", "-w", "-t", "tree", "--literally", "../tree"]).success();
    let commit = env.git_in("hub", ["commit-tree", tree.trim(), "-m", "x"]).success();
    env.git_in("hub", ["update-ref", "refs/handoff/runs/evil", commit.trim()]).success();
    let stderr = env.handoff_in("clone", ["fetch"]).exit(1).stderr;
    assert!(refs(&env, "clone").contains(FETCHED), "{stderr}");
    assert!(!refs(&env, "clone").contains("runs/evil"), "{stderr}");
}
