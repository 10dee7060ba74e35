//! Power cuts: what a command reported is on the disk, although nothing was synced since.
//!
//! The repository is on a file system in an image, without a journal or with one that is written
//! only on request. A copy of the image is what a power cut would leave.

use std::fs::{self, File};
use std::process::Command;

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use serde_json::{Value, json};

use super::mount::Mount;
use crate::common::Environment;
use crate::common::repo::{TestRepo, after, item, wait_for};

/// A repository on a file system of its own, or `None` if none can be mounted.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn on_an_image(features: &[&str], options: &str) -> Option<(Mount, TestRepo)> {
    let env = Environment::empty();
    let image = env.path().join("disk");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let made = Command::new("mkfs.ext4").arg("-q").args(features).arg(&image).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: this test needs mkfs.ext4");
        return None;
    }
    let mount = Mount::new(&["-o", options, image.to_str().unwrap()], &env.repo())?;
    let repo = TestRepo { env };
    repo.make(&[]);
    rustix::fs::syncfs(File::open(repo.env.repo()).unwrap()).unwrap();
    Some((mount, repo))
}

/// Mounts what a power cut would leave now at `later`.
#[track_caller]
fn left_by_power_cut(repo: &TestRepo) -> Mount {
    // A file of its own for each: another process may hold an earlier mount in its namespace.
    let copy = (0..100).map(|at| repo.path(&format!("copy-{at}"))).find(|copy| !copy.exists()).unwrap();
    fs::copy(repo.path("disk"), &copy).unwrap();
    // 0 is clean, 1 mended. A journal is replayed.
    let checked = Command::new("e2fsck").arg("-fy").arg(&copy).output().unwrap();
    assert!(matches!(checked.status.code(), Some(0 | 1)), "{checked:?}");
    let mount = Mount::new(&["-o", "loop", copy.to_str().unwrap()], &repo.path("later")).unwrap();
    repo.env.git_in("later", ["fsck", "--strict", "--no-dangling", "--no-progress"]).success();
    mount
}

/// Runs a command on what a power cut would leave now, and returns what it prints.
#[track_caller]
fn after_power_cut(repo: &TestRepo, arguments: &[&str]) -> String {
    let _mount = left_by_power_cut(repo);
    repo.env.handoff_in("later", arguments).success()
}

fn parsed(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap()
}

#[test]
fn a_power_cut_takes_nothing_back_that_was_reported() {
    let Some((_mount, repo)) = on_an_image(&[], "loop,commit=600") else { return };
    let waits = "until test -e \"$HOME/../go\"; do sleep 0.02; done";
    repo.submit("r", &[item("a", "echo x >outputs/x"), after("b", &["a"], waits)]);
    assert_eq!(parsed(&after_power_cut(&repo, &["status", "--json", "r"]))["items"].as_array().unwrap().len(), 2);
    let driver = repo.start(&["run", "r"]);
    wait_for("the worker of b", || repo.processes().iter().any(|line| line.contains("test -e")));
    // Nothing was flushed since a was reported as done and b as running.
    assert_eq!(after_power_cut(&repo, &["cat", "r/a:x"]), "x\n");
    repo.env.write("go", "");
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let report = parsed(&after_power_cut(&repo, &["verify", "--json", "r"]));
    assert_eq!((&report["intact"], &report["sealed"]), (&json!(true), &json!(true)), "{report}");
    let plan = json!({ "id": "s", "items": [item("a", "true")], "openEnded": true });
    repo.env.write("s.plan.json", &plan.to_string());
    repo.env.handoff(["submit", "../s.plan.json"]).success();
    repo.env.shell("repo", "printf words | git handoff doc put s note").success();
    assert_eq!(after_power_cut(&repo, &["doc", "cat", "s", "note"]), "words");
    repo.env.handoff(["cancel", "s"]).success();
    assert_eq!(parsed(&after_power_cut(&repo, &["status", "--json", "s"]))["items"][0]["status"], "cancelled");
    // The ref of a deleted run may be a file, or a line among the packed refs.
    repo.env.handoff(["delete", "s", "--yes"]).success();
    let runs = |printed: &str| parsed(printed)["runs"].as_array().unwrap().len();
    assert_eq!(runs(&after_power_cut(&repo, &["runs", "--json"])), 1);
    repo.env.git(["pack-refs", "--all"]).success();
    repo.env.handoff(["delete", "r", "--yes"]).success();
    assert_eq!(runs(&after_power_cut(&repo, &["runs", "--json"])), 0);
}

#[test]
fn a_deleted_ref_stays_deleted_if_its_folder_was_removed_with_it() {
    // Without a journal, the flush of another folder does not flush this one.
    let Some((_mount, repo)) = on_an_image(&["-O", "^has_journal"], "loop") else { return };
    let store = Store::open(&repo.env.repo()).unwrap();
    let name = "refs/handoff/drivers/r/1";
    let head = repo.env.git(["rev-parse", "HEAD"]).success().trim().parse().unwrap();
    refs::set(&store, name, head).unwrap();
    let listed = || {
        let _mounted = left_by_power_cut(&repo);
        repo.env.git_in("later", ["for-each-ref", "--format=%(refname)", "refs/handoff"]).success()
    };
    assert_eq!(listed(), format!("{name}\n"));
    refs::delete(&store, name, head).unwrap();
    assert!(!repo.env.repo().join(".git/refs/handoff/drivers").exists());
    assert_eq!(listed(), "");
}

#[test]
fn a_power_cut_during_a_push_leaves_no_broken_ref() {
    let Some((_mount, repo)) = on_an_image(&[], "loop,commit=600") else { return };
    repo.submit("r", &[item("a", "echo x >outputs/x")]);
    repo.env.handoff(["run", "r"]).success();
    repo.env.git_in("", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", repo.path("hub").to_str().unwrap()]).success();
    let hook = "#!/bin/sh\n: >../came; until test -e ../go; do sleep 0.02; done\n";
    repo.env.write("hub/hooks/pre-receive", hook);
    repo.env.shell("hub", "chmod +x hooks/pre-receive").success();
    let push = repo.start(&["push", "origin", "r"]);
    wait_for("the push", || repo.path("came").exists());
    // Another process flushes a file of its own, and with it the names of all others.
    let flushed = File::create(repo.env.repo().join("another")).unwrap();
    flushed.sync_all().unwrap();
    let listed = {
        let _mounted = left_by_power_cut(&repo);
        repo.env.git_in("later", ["for-each-ref", "refs/worktree"]).success()
    };
    assert!(listed.contains("refs/worktree/handoff-push-"), "the cut came during the push: {listed}");
    repo.env.write("go", "");
    assert!(push.wait().0.success());
}
