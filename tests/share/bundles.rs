//! Runs in a file.

use std::fs;

use super::{RUN_REF, json, marks, pushed, shared};
use crate::common::assert_output;

#[test]
fn a_bundle_is_verified_where_there_is_no_repository() {
    let env = shared();
    assert_output!("bundle", env.handoff(["bundle", "handoff-dag-1", "--output", "../run.bundle"]));
    fs::create_dir(env.path().join("nowhere")).unwrap();
    fs::remove_dir_all(env.repo()).unwrap();
    assert_output!("bundle_verify", env.handoff_in("nowhere", ["verify", "--bundle", "../run.bundle"]));
    assert_eq!(fs::read_dir(env.path().join("nowhere")).unwrap().count(), 0);
    let one = env.handoff_in("nowhere", ["verify", "--json", "--bundle", "../run.bundle", "handoff-dag-1"]).exit(0);
    assert_eq!(json(&one)["intact"], true);
    assert_output!(
        "bundle_unknown_run",
        env.handoff_in("nowhere", ["verify", "--bundle", "../run.bundle", "x"]).exit(1)
    );
    // Whom to trust is said by whoever verifies.
    env.write("nobody", "");
    let strict = ["verify", "--bundle", "../run.bundle", "--signers", "../nobody"];
    assert!(env.handoff_in("nowhere", strict).exit(3).stdout.contains("✗ UNTRUSTED"));
    assert!(env.handoff_in("nowhere", ["verify", "handoff-dag-1"]).exit(1).stderr.contains("not in a git repository"));
}

#[test]
fn stock_git_reads_it() {
    let env = shared();
    let out = env.handoff(["bundle", "--all"]).exit(0);
    fs::write(env.path().join("run.bundle"), &out.raw).unwrap();
    env.git_in(".", ["init", "--quiet", "other"]).success();
    let said = env.git_in("other", ["bundle", "verify", "../run.bundle"]).exit(0).stdout;
    assert!(said.contains("The bundle records a complete history."), "{said}");
    env.git_in("other", ["fetch", "--quiet", "../run.bundle", "refs/handoff/*:refs/handoff/remotes/ada/*"]).success();
    env.handoff_in("other", ["verify", "ada/handoff-dag-1"]).success();
    // What the run starts from is not in it.
    let base = env.git(["rev-parse", "main"]).success();
    assert_ne!(env.git_in("other", ["cat-file", "-e", base.trim()]).status, Some(0));
}

#[test]
fn without_a_log_the_anchor_does_not_apply() {
    let env = shared();
    env.git(["bundle", "create", "--quiet", "../bare.bundle", RUN_REF]).success();
    let report = env.handoff_in("home", ["verify", "--bundle", "../bare.bundle"]).exit(0);
    assert_eq!(marks(&report), "✓✓✓─✓✓✓✓", "{report}");
    assert!(report.stdout.contains("TAMPER-DETECTING"), "{report}");
    // In a repository that holds the writer's log, that is a witness.
    let report = env.handoff(["verify", "--bundle", "../bare.bundle"]).exit(0);
    assert_eq!(marks(&report), "✓✓✓✓✓✓✓✓", "{report}");
}

#[test]
fn what_was_altered_is_found_out() {
    let env = shared();
    let tree = format!("{RUN_REF}^{{tree}}");
    let other = env.git(["commit-tree", &tree, "-p", RUN_REF, "-m", "x"]).success();
    env.git(["update-ref", RUN_REF, other.trim()]).success();
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    assert!(env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).exit(3).stdout.contains("✗ TAMPERED"));
}

#[test]
fn what_is_no_bundle_is_refused() {
    let env = shared();
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    let whole = fs::read(env.path().join("run.bundle")).unwrap();
    fs::write(env.path().join("cut.bundle"), &whole[..whole.len() - 40]).unwrap();
    env.write("text.bundle", "nothing of the kind\n");
    env.git(["bundle", "create", "--quiet", "../thin.bundle", &format!("{RUN_REF}^..{RUN_REF}")]).success();
    for (file, why) in [
        ("cut.bundle", "are not sound"),
        ("text.bundle", "is not a git bundle"),
        ("thin.bundle", "is not complete"),
        ("none.bundle", "could not be read"),
    ] {
        let said = env.handoff_in("home", ["verify", "--bundle", &format!("../{file}")]).exit(1).stderr;
        assert!(said.contains(why), "{said}");
    }
    env.git(["config", "--global", "handoff.maxFetchSize", "1k"]).success();
    let said = env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).exit(1).stderr;
    assert!(said.contains("is larger than 1024 bytes"), "{said}");
}

#[test]
fn a_fetched_run_is_handed_on_under_its_own_name() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["bundle", "origin/handoff-dag-1", "--output", "../run.bundle"]).exit(0).success();
    let heads = env.git_in("clone", ["bundle", "list-heads", "../run.bundle"]).success();
    assert!(heads.lines().all(|line| !line.contains("remotes")) && heads.contains(RUN_REF), "{heads}");
    env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).success();
}
