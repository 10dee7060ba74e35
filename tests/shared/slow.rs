//! Remotes whose answers take long.

use serde_json::Value;

use super::stuck::wait_for_note;
use super::{Hub, items, plan, succeeds};
use crate::common::repo::{after, wait_for};
use crate::common::report::find_line;

impl Hub {
    /// Makes each push take some time once the run is shared, until there is a file `fast`.
    fn slow_down(&self, seconds: &str) {
        let fast = self.repo.path("fast");
        self.hook(
            "pre-receive",
            Some(&format!(
                "[ -e {} ] || {{ git log --format=%b refs/handoff/runs/r 2>&1 | grep -q run.shared && sleep {seconds}; }}; \
                 exit 0",
                fast.display()
            )),
        );
    }
}

/// The driver claims once, hands everything back, says why, and goes on once pushes are fast again.
#[test]
fn a_driver_whose_pushes_are_too_slow_hands_its_claims_back() {
    let hub = Hub::new(&plan(&items(3, "0")));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    hub.slow_down("3");
    let driver = hub.drive("repo");
    let note = wait_for_note(&driver, "which is more than the heartbeat of this run allows (");
    assert!(note.contains("a push takes "), "{note}");
    hub.repo.env.write("fast", "");
    hub.wait_for_kind("item.requeued");
    succeeds(driver);
    hub.ends_well(3);
    let back = hub.of_kind("item.requeued");
    assert!(back.iter().all(|entry| entry["detail"] == "pushes are too slow on its machine"), "{back:?}");
    assert!(hub.of_kind("item.fired").len() <= 3 + back.len() && hub.lines("ran").len() == 3);
}

/// Alone, it ends instead of waiting for ever, and has claimed nothing but the first round.
#[test]
fn a_driver_that_is_too_slow_and_alone_ends_with_a_hint() {
    let hub = Hub::new(&plan(&items(3, "0")));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    hub.slow_down("3");
    let (status, output) = hub.drive("repo").wait();
    assert_eq!(status.code(), Some(1), "{output}");
    let error = find_line(&output, "error: ");
    assert!(error.ends_with("and no other driver of the run is alive"), "{output}");
    insta::assert_snapshot!(find_line(&output, "hint: "), @"hint: git config handoff.heartbeat 1m   # before a run is first shared; this one: from a machine nearer to the remote");
    assert_eq!((hub.of_kind("item.fired").len(), hub.of_kind("item.requeued").len()), (1, 1));
    assert!(hub.lines("ran").is_empty());
}

/// An item that was claimed while another one runs is not called running.
#[test]
fn an_item_is_claimed_until_its_worker_starts() {
    let quick: Vec<Value> = items(6, "0");
    let names: Vec<&str> = quick.iter().map(|item| item["id"].as_str().unwrap()).collect();
    let waits = "until test -e \"$HOME/../go\"; do sleep 0.02; done";
    let slow: Vec<Value> = (0..5).map(|at| after(&format!("w{at}"), &names, waits)).collect();
    let hub = Hub::new(&plan(&[&quick[..], &slow].concat()));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    hub.hook("pre-receive", Some("sleep 0.3"));
    let driver = hub.drive("repo");
    let statuses = || {
        let (_, out, stderr) = hub.command("repo", &["status", "r", "--json"]);
        let status: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{stderr}"));
        let count =
            |word: &str| status["items"].as_array().unwrap().iter().filter(|item| item["status"] == word).count();
        (count("running"), count("claimed"))
    };
    wait_for("a claim beside a running item", || matches!(statuses(), (1, 1..)));
    let (_, out, _) = hub.command("repo", &["status", "r"]);
    assert!(out.lines().any(|line| line.contains(" claimed ")), "{out}");
    hub.repo.env.write("go", "");
    succeeds(driver);
    hub.ends_well(11);
}

/// The run gets times that its remote allows.
#[test]
fn a_heartbeat_that_is_too_short_for_the_remote_is_raised() {
    let hub = Hub::new(&plan(&items(1, "0")));
    hub.hook("pre-receive", Some("sleep 0.4"));
    succeeds(hub.drive("repo"));
    let shared = hub.of_kind("run.shared").remove(0);
    let heartbeat = shared["heartbeat"].as_u64().unwrap_or_default();
    assert!(heartbeat >= 1200 && shared["lostAfter"].as_u64() >= Some(4 * heartbeat), "{shared}");
    hub.ends_well(1);
}

/// A push that makes progress is not ended, however long it takes; one that stands still is.
#[test]
fn a_push_ends_only_when_it_stands_still() {
    let hub = Hub::new(&plan(&items(1, "0")));
    hub.repo.env.git(["config", "--global", "handoff.remoteTimeout", "1s"]).success();
    hub.hook("pre-receive", Some("for i in 1 2 3 4 5 6 7 8 9 10; do echo working >&2; sleep 0.3; done"));
    succeeds(hub.drive("repo"));
    hub.ends_well(1);
    let second_hub = Hub::new(&plan(&items(1, "0")));
    second_hub.repo.env.git(["config", "--global", "handoff.remoteTimeout", "1s"]).success();
    second_hub.hook("pre-receive", Some("sleep 1000"));
    let (status, output) = second_hub.drive("repo").wait();
    assert_ne!(status.code(), Some(0), "{output}");
    assert!(
        find_line(&output, "error: ").ends_with("git made no progress for 1 seconds (handoff.remoteTimeout)"),
        "{output}"
    );
}
