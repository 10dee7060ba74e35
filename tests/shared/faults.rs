//! Drivers that stop, and remotes that refuse, are set back or poisoned.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Hub, both_succeed, items, plan, succeeds, works};
use crate::common::repo::{item, wait_for};
use crate::common::report::find_line;

impl Hub {
    /// Gives the remote a hook, or takes it away.
    pub(super) fn hook(&self, name: &str, script: Option<&str>) {
        let path = self.repo.path("hub.git/hooks").join(name);
        match script {
            Some(script) => {
                let next = path.with_extension("next");
                fs::write(&next, format!("#!/bin/sh\n{script}\n")).unwrap();
                fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
                fs::rename(&next, &path).unwrap();
            }
            None => fs::remove_file(&path).unwrap(),
        }
    }

    fn has_lost(&self) -> bool {
        self.of_kind("item.requeued").iter().any(|entry| entry["reason"] == "lost")
    }

    fn head(&self, of: &str) -> String {
        self.repo.env.git_in("hub.git", ["rev-parse", of]).success().trim().to_owned()
    }
}

#[test]
fn a_driver_that_stops_for_a_moment_is_not_robbed() {
    let hub = Hub::new(&plan(&[item("i0", &works("2")), item("i1", &works("2"))]));
    // Ample for a machine that is busy besides.
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "5s"]).success();
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    let second = hub.drive("b");
    first.signal(Signal::STOP);
    sleep(Duration::from_millis(600));
    first.signal(Signal::CONT);
    both_succeed([first, second]);
    hub.ends_well(2);
    assert!(!hub.has_lost());
}

/// The worker with the lock is dead before the other starts, and the late result is dropped.
#[test]
fn a_driver_that_stops_for_long_is_robbed_and_its_worker_with_a_lock_ends_first() {
    let script = "echo \"begin $HANDOFF_ATTEMPT\" >>\"$HOME/../ran\"; i=0; while [ $i -lt 40 ]; do sleep 0.1; i=$((i+1)); \
                  echo \"$HANDOFF_ATTEMPT\" >>\"$HOME/../ran\"; done; echo x >outputs/x";
    let mut locked = item("i0", script);
    locked["resourceLocks"] = json!(["gpu"]);
    let hub = Hub::new(&plan(&[locked]));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    wait_for("the worker", || !hub.lines("ran").is_empty());
    let second = hub.drive("b");
    first.signal(Signal::STOP);
    succeeds(second);
    first.signal(Signal::CONT);
    succeeds(first);
    hub.ends_well(1);
    assert!(hub.has_lost());
    let ran = hub.lines("ran");
    let begins = ran.iter().position(|line| line == "begin 2").unwrap();
    assert!(ran[begins..].iter().all(|line| !line.ends_with('1')), "{ran:?}");
}

#[test]
fn a_remote_that_refuses_everything_for_a_while_costs_no_claim() {
    let hub = Hub::new(&plan(&items(4, "1")));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for_kind("run.shared");
    let second = hub.drive("b");
    wait_for("both drivers", || hub.of_kind("item.fired").len() == 4);
    hub.hook("pre-receive", Some("echo push >>\"$HOME/../refused\"; echo 'maintenance' >&2; exit 1"));
    wait_for("pushes that are refused", || hub.lines("refused").len() >= 8);
    hub.hook("pre-receive", None);
    both_succeed([first, second]);
    hub.ends_well(4);
    assert!(!hub.has_lost());
}

#[test]
fn a_result_that_the_remote_refuses_fails_alone() {
    let hub = Hub::new(&plan(&[item("bad", "printf 'for%s' bidden >outputs/x"), item("good", &works("0.5"))]));
    let refuse = "while read old new ref; do case $ref in refs/handoff/runs/*) \
                  for c in $(git rev-list \"$new\" \"^$old\" 2>/dev/null); do \
                  git grep -q forbidden \"$c\" && { echo 'a secret was found' >&2; exit 1; }; done;; esac; done; exit 0";
    hub.hook("pre-receive", Some(refuse));
    let (status, output) = hub
        .drive_with("repo", |command| {
            command.arg("--close");
        })
        .wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let failed = hub.wait_for("item.reconciled", "bad");
    let reason = failed["reason"].as_str().unwrap();
    assert!(failed["status"] == "failed" && reason.starts_with("push-refused: "), "{failed}");
    assert_eq!(hub.done().into_keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(hub.of_kind("run.sealed").len(), 1);
}

#[test]
fn a_remote_that_was_set_back_gets_the_entries_again() {
    let hub = Hub::new(&plan(&[item("i0", &works("0")), item("i1", &works("4"))]));
    let driver = hub.drive("repo");
    hub.wait_for("item.reconciled", "i0");
    let (head, early) = (hub.head("refs/handoff/runs/r"), hub.head("refs/handoff/runs/r~3"));
    hub.repo.env.git_in("hub.git", ["update-ref", "refs/handoff/runs/r", &early]).success();
    let contains = || {
        let all = hub.repo.env.git_in("hub.git", ["rev-list", "refs/handoff/runs/r"]).success();
        all.lines().any(|line| line == head)
    };
    wait_for("the entries", contains);
    succeeds(driver);
    hub.ends_well(2);
}

#[test]
fn poisoned_remote_is_reported_and_can_be_reset() {
    let hub = Hub::new(&plan(&[item("i0", &works("3"))]));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    let good = hub.head("refs/handoff/runs/r");
    let bad = [
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "commit-tree",
        "-p",
        &good,
        "-m",
        "no entry",
        &format!("{good}^{{tree}}"),
    ];
    let bad = hub.repo.env.git_in("hub.git", bad).success().trim().to_owned();
    hub.repo.env.git_in("hub.git", ["update-ref", "refs/handoff/runs/r", &bad]).success();
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains(&bad), "{output}");
    hub.repo.env.git_in("hub.git", ["update-ref", "refs/handoff/runs/r", &good]).success();
    succeeds(hub.drive("repo"));
    hub.ends_well(1);
}

#[test]
fn another_run_of_the_same_name_is_refused() {
    let hub = Hub::new(&plan(&items(1, "0")));
    hub.clone("b", &[]);
    hub.repo.env.write("other.json", &plan(&[item("other", "true")]).to_string());
    hub.repo.env.handoff_in("b", ["submit", "../other.json"]).success();
    assert!(hub.drive("repo").wait().0.success());
    let (code, _, stderr) = hub.command("b", &["run", "r", "--via", "origin", "--json"]);
    assert_eq!(code, Some(1), "{stderr}");
    let refused: Value = serde_json::from_str(stderr.lines().last().unwrap_or_default()).unwrap_or_default();
    assert_eq!(refused["code"].as_str().unwrap_or("diverged"), "diverged", "{stderr}");
}

#[test]
fn a_run_whose_ref_was_deleted_at_the_remote_is_put_back() {
    let hub = Hub::new(&plan(&[item("i0", &works("1")), item("i1", &works("1"))]));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    hub.repo.env.git_in("hub.git", ["update-ref", "-d", "refs/handoff/runs/r"]).success();
    succeeds(driver);
    hub.ends_well(2);
}

/// A host that takes beats and refuses the chain takes the result later.
#[test]
fn result_survives_while_the_host_rejects_the_chain() {
    let hub = Hub::new(&plan(&items(1, "0.5")));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    let log = hub.repo.path("refused").display().to_string();
    let frozen = format!("case $1 in refs/handoff/runs/*) echo $3 >>{log:?}; echo frozen >&2; exit 1;; esac");
    hub.hook("update", Some(&frozen));
    // The last of these pushes has the failure instead of the result; then the driver pauses.
    wait_for("the refusals", || hub.lines("refused").len() > 5);
    let mut refused = 0;
    wait_for("a pause", || {
        let before = std::mem::replace(&mut refused, hub.lines("refused").len());
        sleep(Duration::from_secs(1));
        before == refused && hub.lines("refused").len() == refused
    });
    hub.hook("update", None);
    succeeds(driver);
    hub.ends_well(1);
}

#[test]
fn a_run_is_published_again_only_through_the_remote_that_had_it() {
    let hub = Hub::new(&plan(&items(1, "30")));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    hub.repo.env.git(["init", "--quiet", "--bare", "../other.git"]).success();
    hub.repo.env.git(["remote", "add", "other", "../other.git"]).success();
    assert!(driver.kill());
    let (code, _, stderr) = hub.command("repo", &["run", "r", "--via", "other"]);
    let expected = "error: the run \"r\" is shared through another remote, origin, and other does not have it\n\
                    hint: git handoff run r --via origin\n";
    assert_eq!((code, stderr.as_str()), (Some(1), expected));
    assert_eq!(hub.repo.env.git_in("other.git", ["for-each-ref"]).success(), "");
}

/// Only the repository that drove a run without a remote knows whether its driver is dead.
#[test]
fn run_driven_without_a_remote_stays_with_its_driver() {
    let hub = Hub::new(&plan(&items(1, "30")));
    let driver = hub.repo.start_with(&["run", "r"], |command| {
        command.env_remove("HANDOFF_CLOCK");
    });
    wait_for("the worker", || !hub.lines("ran").is_empty());
    hub.repo.env.git(["push", "--quiet", "origin", "refs/handoff/runs/r", "refs/handoff/bases/r"]).success();
    hub.clone("b", &[]);
    let (code, _, stderr) = hub.command("b", &["run", "r", "--via", "origin"]);
    let expected = "error: the item \"i0\" of the run \"r\" runs, and not here: another machine drives the run without \
                    --via, or did so";
    assert_eq!((code, find_line(&stderr, "error: ")), (Some(5), expected));
    assert!(driver.kill());
    assert!(hub.of_kind("item.requeued").is_empty());
}

/// A driver that starts after the cancellation does not know how long ago it was, and waits. The
/// holder's machine is cut off, so that only the supervisor ends the worker.
#[test]
fn a_driver_that_starts_after_a_cancellation_waits_for_the_lock() {
    let locked = |id: &str, script: &str| {
        let mut item = item(id, script);
        item["resourceLocks"] = json!(["gpu"]);
        item
    };
    let hub = Hub::new(&plan(&[
        locked("i0", "while :; do echo x >>\"$HOME/../ran\"; sleep 0.05; done"),
        locked("i1", "echo y >>\"$HOME/../ran\"; echo x >outputs/x"),
    ]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "5s"]).success();
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    wait_for("the worker", || !hub.lines("ran").is_empty());
    first.signal(Signal::STOP);
    let (code, _, stderr) = hub.command("repo", &["cancel", "r/i0", "--reason", "no longer wanted"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.drive("b").wait().0.code(), Some(4));
    let ran = hub.lines("ran");
    let begins = ran.iter().position(|line| line == "y").unwrap();
    assert_eq!(ran.len(), begins + 1, "the worker of i0 wrote after i1 began");
    first.signal(Signal::CONT);
    assert_eq!(first.wait().0.code(), Some(4));
}

/// The worker of a cancelled attempt has ended before another machine starts an item with its lock.
#[test]
fn a_lock_is_free_only_when_the_cancelled_worker_has_ended() {
    let locked = |id: &str, script: &str| {
        let mut item = item(id, script);
        item["resourceLocks"] = json!(["gpu"]);
        item
    };
    let long = "trap '' TERM; while :; do echo x >>\"$HOME/../ran\"; sleep 0.05; done";
    let short = "echo y >>\"$HOME/../ran\"; sleep 1; echo x >outputs/x";
    let hub = Hub::new(&plan(&[locked("i0", long), locked("i1", short)]));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    wait_for("the worker", || !hub.lines("ran").is_empty());
    let second = hub.drive("b");
    hub.wait_for_beats(2);
    let (code, _, stderr) = hub.command("repo", &["cancel", "r/i0", "--reason", "no longer wanted"]);
    assert_eq!(code, Some(0), "{stderr}");
    for driver in [first, second] {
        assert_eq!(driver.wait().0.code(), Some(4));
    }
    let ran = hub.lines("ran");
    let begins = ran.iter().position(|line| line == "y").unwrap();
    assert!(ran[begins..].iter().all(|line| line == "y"), "{ran:?}");
}
