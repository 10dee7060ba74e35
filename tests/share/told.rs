//! A push reveals nothing about unpushed runs and threads.

use super::{clone, json, shared};
use crate::common::Environment;
use crate::common::report::{find_row, verdict};

/// Runs a plan of one item in `repo`.
fn run(env: &Environment, name: &str) {
    let item = r#"{"id": "a", "executor": "command", "inputs": {"command": "true"}}"#;
    env.write(&format!("repo/{name}.json"), &format!(r#"{{"id": "{name}", "items": [{item}]}}"#));
    env.handoff(["run", &format!("{name}.json")]).success();
}

/// Returns everything that can be read in a bare repository: its refs, and all objects, whether a
/// ref reaches them or not.
fn readable(env: &Environment, dir: &str) -> String {
    let objects = "git cat-file --batch-all-objects --batch-check | while read oid type size; do \
                   git cat-file -p $oid; done; git for-each-ref";
    env.shell(dir, objects).success()
}

/// Returns the names and values by which a run can be known: its id, its commits, and what its log
/// says of it.
fn marks(env: &Environment, run: &str) -> Vec<String> {
    let mut marks = vec![run.to_owned()];
    let log = json(&env.handoff(["verify", "--json", "--anchor", "local", run]).exit(0));
    marks.push(log["root"].as_str().expect("it is sealed").to_owned());
    let commits = env.git(["rev-list", &format!("refs/handoff/runs/{run}")]).success();
    marks.extend(commits.lines().map(str::to_owned));
    marks
}

#[test]
fn a_push_by_name_tells_of_no_other_run() {
    let env = shared();
    env.git_in(".", ["init", "--quiet", "--bare", "fork"]).success();
    env.git_in(".", ["init", "--quiet", "--bare", "vault"]).success();
    env.git(["remote", "add", "fork", "../fork"]).success();
    for name in ["secret-one", "secret-two", "secret-three", "good", "better"] {
        run(&env, name);
    }
    env.write("state", "draft");
    env.handoff(["checkpoint", "musings", "--state", "../state"]).success();
    env.handoff(["push", "origin", "good"]).success();
    let hidden = ["secret-one", "secret-two", "secret-three", "better"].map(|name| marks(&env, name)).concat();
    let is_hidden = |dir: &str, marks_of_run: &[String]| {
        let there = readable(&env, dir);
        let leaked: Vec<_> = marks_of_run.iter().filter(|mark| there.contains(mark.as_str())).collect();
        assert!(leaked.is_empty() && !there.contains("musings"), "{leaked:?}");
        assert!(there.contains("good"));
    };
    is_hidden("hub", &hidden);
    // Nor about what other remotes and anchors have.
    env.handoff(["push", "fork", "secret-one"]).success();
    let vault = env.path().join("vault");
    env.handoff(["anchor", "add", "vault", "git", vault.to_str().unwrap()]).success();
    env.handoff(["anchor", "push", "secret-two"]).success();
    env.handoff(["push", "origin", "good"]).success();
    is_hidden("hub", &hidden);
    env.handoff(["push", "origin", "better"]).success();
    let second_hidden = ["secret-one", "secret-two", "secret-three"].map(|name| marks(&env, name)).concat();
    is_hidden("hub", &second_hidden);
    let there = readable(&env, "vault");
    assert!(there.contains("secret-two") && !there.contains("secret-one") && !there.contains("good"), "{there}");
    let second_there = readable(&env, "fork");
    assert!(
        second_there.contains("secret-one") && !second_there.contains("secret-two") && !second_there.contains("good"),
        "{second_there}"
    );
    // Each place has what anchors the runs that are there.
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch", "origin"]).success();
    env.handoff_in("clone", ["verify", "origin/good", "origin/better"]).success();
    env.git_in("clone", ["remote", "add", "fork", "../fork"]).success();
    env.handoff_in("clone", ["fetch", "fork"]).success();
    env.handoff_in("clone", ["verify", "fork/secret-one"]).success();
    env.handoff(["verify", "secret-two"]).success();
    env.handoff(["push", "--all"]).success();
    env.handoff_in("clone", ["fetch", "origin"]).success();
    env.handoff_in("clone", ["verify", "--all"]).success();
    env.handoff_in("clone", ["thread", "verify", "origin/musings"]).success();
}

#[test]
fn push_hides_later_entries_of_other_runs() {
    let env = shared();
    let plan = r#"{"id": "going", "openEnded": true, "items": [{"id": "a", "executor": "command", "inputs": {"command": "true"}}]}"#;
    env.write("repo/going.json", plan);
    env.handoff(["run", "going.json"]).success();
    env.handoff(["push", "origin", "going"]).success();
    env.handoff(["close", "going", "--offline"]).success();
    let seal = env.git(["rev-parse", "refs/handoff/runs/going"]).success();
    run(&env, "good");
    env.write("state", "draft");
    env.handoff(["checkpoint", "musings", "--state", "../state"]).success();
    env.handoff(["push", "origin", "good"]).success();
    env.handoff(["push", "origin", "musings"]).success();
    let there = readable(&env, "hub");
    assert!(!there.contains(seal.trim()), "{there}");
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["verify", "origin/good"]).success();
    let report = env.handoff_in("clone", ["verify", "origin/going"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ NOT SEALED");
    env.handoff(["push", "origin", "going"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["verify", "--all"]).success();
}

#[test]
fn a_bundle_tells_of_no_other_run() {
    let env = shared();
    for name in ["unnamed", "good"] {
        run(&env, name);
    }
    env.handoff(["push", "origin", "unnamed"]).success();
    env.handoff(["bundle", "good", "--output", "../good.bundle"]).success();
    env.git_in(".", ["init", "--quiet", "--bare", "opened"]).success();
    env.git_in("opened", ["fetch", "--quiet", "../good.bundle", "refs/handoff/*:refs/handoff/*"]).success();
    let there = readable(&env, "opened");
    assert!(there.contains("good") && !there.contains("unnamed"), "{there}");
    let report = env.handoff_in(".", ["verify", "--bundle", "good.bundle"]).exit(0).stdout;
    insta::assert_snapshot!(find_row(&report, "anchor"), @"✓ anchor     local (detect)");
}

#[test]
fn a_dry_run_moves_no_log() {
    let env = shared();
    run(&env, "good");
    let before = super::refs(&env, "repo");
    let stdout = env.handoff(["push", "origin", "good", "--dry-run"]).success();
    insta::assert_snapshot!(stdout, @"
    new  run  good
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.15c396112b55
    ");
    assert_eq!((super::refs(&env, "repo"), super::refs(&env, "hub")), (before, String::new()));
}

#[test]
fn a_fetch_by_name_is_silent_about_others() {
    let env = shared();
    for name in ["one", "two", "good"] {
        run(&env, name);
    }
    // A log with entries of unpushed runs, as plain git pushes it.
    env.git(["push", "--quiet", "origin", "refs/handoff/logs/*", "refs/handoff/runs/good"]).success();
    clone(&env, "clone");
    let output = env.handoff_in("clone", ["fetch", "origin", "good"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"hint: git handoff verify origin/good");
    let bare = env.handoff_in("clone", ["fetch"]).exit(0).stderr;
    insta::assert_snapshot!(bare, @"
    logs from origin name 3 runs or threads that are not there and not here: they were deleted, or never pushed
    everything is here already
    ");
    let doctor = env.handoff_in("clone", ["doctor"]).success();
    insta::assert_snapshot!(doctor, @"
    note: git does not check the objects that it fetches; `verify` does, for runs alone
      git config fetch.fsckObjects true
    note: logs from origin name 3 runs or threads that are not there and not here: they were deleted, or never pushed
      ask its owner for: git handoff push REMOTE --all   # or for: git handoff bundle
    ");
    // A real loss stays loud.
    env.git_in("hub", ["update-ref", "-d", "refs/handoff/runs/good"]).success();
    let lost = env.handoff_in("clone", ["fetch"]).exit(0).stderr;
    insta::assert_snapshot!(lost, @r#"
    warning: run "good" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/good
    logs from origin name 3 runs or threads that are not there and not here: they were deleted, or never pushed
    everything is here already
    "#);
}
