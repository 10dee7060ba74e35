//! Remotes that cannot go on without a person: a head that git refuses, and a lock file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use super::{Hub, plan, succeeds, works};
use crate::common::repo::{Driver, item, wait_for};
use crate::common::report::find_line;

const RUN: &str = "refs/handoff/runs/r";

impl Hub {
    /// Returns an object of the remote.
    fn resolve(&self, name: &str) -> String {
        self.repo.env.git_in("hub.git", ["rev-parse", name]).success().trim().to_owned()
    }

    /// Puts an object on the run's ref at the remote, from another one.
    fn set(&self, new: &str, old: &str) {
        self.repo.env.git_in("hub.git", ["update-ref", RUN, new, old]).success();
    }

    /// Writes a commit after the head of the remote whose author has no address. Returns it.
    fn write_refused_commit(&self) -> String {
        let (head, tree) = (self.resolve(RUN), self.resolve(&format!("{RUN}^{{tree}}")));
        self.write(&format!("tree {tree}\nparent {head}\nauthor x\n\nno entry\n"))
    }

    /// Writes a commit after the head of the remote whose tree has a file that git forbids.
    fn write_refused_tree(&self) -> String {
        let blob = self.resolve(&format!("{RUN}^{{/run.submitted}}:plan.json"));
        let digits = (0..blob.len() / 2).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap());
        fs::write(self.repo.path("tree"), b"100644 .git\0".iter().copied().chain(digits).collect::<Vec<u8>>()).unwrap();
        let write = ["hash-object", "-w", "-t", "tree", "--literally", "../tree"];
        let tree = self.repo.env.git_in("hub.git", write).success();
        let (head, who) = (self.resolve(RUN), "x <x@x> 1780000000 +0000");
        self.write(&format!("tree {tree}parent {head}\nauthor {who}\ncommitter {who}\n\nno entry\n"))
    }

    fn write(&self, commit: &str) -> String {
        self.repo.env.write("commit", commit);
        let write = ["hash-object", "-w", "-t", "commit", "--literally", "../commit"];
        self.repo.env.git_in("hub.git", write).success().trim().to_owned()
    }

    /// Puts a commit that git refuses after the current head of the run's ref. Returns it and
    /// that head.
    fn refuse_head(&self, write: fn(&Hub) -> String) -> (String, String) {
        loop {
            let (good, bad) = (self.resolve(RUN), write(self));
            let head = self.repo.env.git_in("hub.git", ["rev-parse", &format!("{bad}^")]).success();
            let set = self.repo.env.git_in("hub.git", ["update-ref", RUN, &bad, &good]);
            if head.trim() == good && set.status == Some(0) {
                return (bad, good);
            }
        }
    }

    /// Removes what was refused, so that the remote is sound again.
    fn prune(&self) {
        self.repo.env.git_in("hub.git", ["prune", "--expire=now"]).success();
    }

    fn lock(&self) -> PathBuf {
        self.repo.path("hub.git").join(format!("{RUN}.lock"))
    }

    fn beat(&self) -> String {
        let listed =
            self.repo.env.git_in("hub.git", ["for-each-ref", "--format=%(objectname)", "refs/handoff/drivers"]);
        listed.success()
    }
}

/// Waits until a driver reports something, and returns the line.
pub(super) fn wait_for_note(driver: &Driver, words: &str) -> String {
    let mut note = None;
    wait_for(words, || {
        note = driver.stderr().lines().find(|line| line.contains(words)).map(str::to_owned);
        note.is_some()
    });
    note.unwrap()
}

/// The driver names the head, what git says and the way out; it beats on, keeps the result, claims
/// nothing, and ends.
#[test]
fn rejected_head_is_reported_and_can_be_reset() {
    for write in [Hub::write_refused_commit, Hub::write_refused_tree] {
        let script = format!("while [ ! -e \"$HOME/../go\" ]; do sleep 0.05; done; {}", works("0"));
        let hub = Hub::new(&plan(&[item("i0", &script), item("i1", &works("0"))]));
        hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
        let driver = hub.drive("repo");
        hub.wait_for("item.fired", "i0");
        let (bad, good) = hub.refuse_head(write);
        hub.repo.env.write("go", "");
        let note = wait_for_note(&driver, &format!("origin has the run \"r\" at commit {bad}"));
        let names = format!("which cannot follow {good}: origin sends invalid objects: object ");
        let command = format!("git push --force-with-lease={RUN}:{bad} origin {good}:{RUN}");
        assert!(note.contains(&names) && note.ends_with(&command), "{note}");
        let beat = hub.beat();
        wait_for("another beat", || hub.beat() != beat);
        let (status, output) = driver.wait();
        assert_eq!(status.code(), Some(3), "{output}");
        assert!(
            find_line(&output, "error: ").contains(&names) && find_line(&output, "hint: ").ends_with(&command),
            "{output}"
        );
        assert_eq!((hub.resolve(RUN), hub.lines("ran")), (bad.clone(), vec!["i0 1".to_owned()]));
        hub.repo.env.shell("repo", &command).success();
        succeeds(hub.drive("repo"));
        hub.prune();
        hub.ends_well(2);
    }
}

/// A driver that met a refused head continues after a person set the ref back.
#[test]
fn a_driver_goes_on_when_a_refused_head_was_set_back() {
    let script = format!("while [ ! -e \"$HOME/../go\" ]; do sleep 0.05; done; {}", works("0"));
    let hub = Hub::new(&plan(&[item("i0", &script)]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    hub.repo.config("remote.origin.uploadpack", "echo read >>\"$HOME/../reads\"; git-upload-pack");
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    let (bad, good) = (hub.write_refused_commit(), hub.resolve(RUN));
    for _ in 0..2 {
        let notes = driver.stderr().matches(&bad).count();
        hub.set(&bad, &good);
        wait_for("the note", || driver.stderr().matches(&bad).count() > notes);
        hub.set(&good, &bad);
        // The first of them may have begun before.
        let reads = hub.lines("reads").len();
        wait_for("two reads of the remote", || hub.lines("reads").len() >= reads + 2);
    }
    hub.repo.env.write("go", "");
    succeeds(driver);
    hub.prune();
    hub.ends_well(1);
    assert_eq!(hub.lines("ran"), ["i0 1"]);
}

/// A git that was killed at the remote leaves the lock of the run's ref.
#[test]
fn stale_remote_lock_is_reported() {
    let hub = Hub::new(&plan(&[item("i0", &works("1"))]));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    fs::write(hub.lock(), "").unwrap();
    let begin = "origin cannot move the run's ref: cannot lock ref 'refs/handoff/runs/r': Unable to create '";
    let note = wait_for_note(&driver, begin);
    let folder = hub.repo.env.path().to_str().unwrap();
    insta::assert_snapshot!(note.replace(folder, "$TEST"), @"origin cannot move the run's ref: cannot lock ref 'refs/handoff/runs/r': Unable to create '$TEST/hub.git/./refs/handoff/runs/r.lock': File exists; attempts go on, and their results are kept; if no git runs in the repository of origin, remove the file there; or there, once it is an hour old: git handoff doctor --fix");
    assert!(
        driver.stderr().lines().all(|line| line == note
                || line.starts_with("▶ i0  attempt 1, ")
                // A busy machine.
                || line.starts_with("a push takes ")),
        "{}",
        driver.stderr()
    );
    let (code, _, stderr) = hub.command("repo", &["cancel", "r/i0", "--reason", "no longer wanted"]);
    assert_eq!(code, Some(5), "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "error: "), @"error: origin cannot move the run's ref: cannot lock ref 'refs/handoff/runs/r': Unable to create '$TEST/hub.git/./refs/handoff/runs/r.lock': File exists");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: if no git runs in the repository of origin, remove the file there; or there, once it is an hour old: git handoff doctor --fix");
    fs::remove_file(hub.lock()).unwrap();
    succeeds(driver);
    hub.ends_well(1);
}

/// The driver tries to seal again and again, and still ends after SIGINT.
#[test]
fn driver_blocked_by_a_lock_reports_it_and_can_be_ended() {
    let hub = Hub::new(&plan(&[item("i0", &works("0"))]));
    hub.repo.env.git(["config", "--global", "handoff.via.interval", "1s"]).success();
    let driver = hub.drive("repo");
    hub.wait_for("item.reconciled", "i0");
    fs::write(hub.lock(), "").unwrap();
    wait_for_note(&driver, "origin cannot move the run's ref: ");
    driver.signal(Signal::INT);
    let (status, output) = driver.wait();
    assert_ne!(status.code(), Some(0), "{output}");
    fs::remove_file(hub.lock()).unwrap();
    succeeds(hub.drive("repo"));
    hub.ends_well(1);
}
