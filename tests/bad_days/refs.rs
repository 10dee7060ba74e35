//! A run's ref moved by plain git.

use crate::common::ground::{Driver, Ground, after, item, wait_for};
use crate::common::report::find_line;

/// Starts a run whose first item waits in its first attempt; returns once it runs.
fn started(ground: &Ground, run: &str) -> Driver {
    // By what it left outside, not by its attempt: that a moved ref forgets.
    let waits = format!("\"$HOME/../{run}.waits\"");
    let script = format!("echo x >>{waits}; test $(wc -l <{waits}) = 1 || exit 0; sleep 99");
    let mut waits = item("waits", &script);
    let mut first = item("first", "echo x >outputs/x");
    for item in [&mut waits, &mut first] {
        item["maxAttempts"] = serde_json::json!(2);
    }
    ground.config("handoff.queue.default.concurrency", "1");
    ground.submit(run, &[first, waits, after("last", &["waits"], "true")]);
    let driver = ground.start(&["run", run]);
    let mark = ground.path(&format!("{run}.waits"));
    wait_for("the item", || mark.exists());
    driver
}

#[test]
fn what_is_moved_underneath_a_driver_is_told_and_not_overwritten() {
    let ground = Ground::new();
    let blob = ground.env.shell("repo", "echo junk | git hash-object -w --stdin").success();
    let head = ground.env.git(["rev-parse", "HEAD"]).success();
    ground.drive("other", &[item("a", "true")]).success();
    let other = ground.tip("other").unwrap();
    for (run, to, words) in [
        ("commit", head.trim(), "cannot read commit"),
        ("blob", blob.trim(), "cannot read commit"),
        ("stranger", other.as_str(), "holds something else"),
        ("older", "refs/handoff/runs/older~2", "does not continue it"),
        ("gone", "", "there is no run"),
    ] {
        let driver = started(&ground, run);
        let name = format!("refs/handoff/runs/{run}");
        let good = ground.tip(run).unwrap();
        if to.is_empty() {
            ground.env.git(["update-ref", "-d", &name]).success();
        } else {
            ground.env.git(["update-ref", &name, to]).success();
        }
        let moved = ground.tip(run);
        let (status, said) = driver.wait();
        assert_eq!(status.code(), Some(1), "{run}: {said}");
        assert!(said.contains("error: ") && said.contains(words), "{run}: {said}");
        assert_eq!(ground.tip(run), moved, "{run}: nothing is overwritten");
        ground.is_clean();
        if run != "older" {
            // One bad ref does not keep the others from being driven, or from being put right.
            ground.env.git(["update-ref", &name, &good]).success();
        }
        let resumed = ground.env.handoff(["run", run]).exit(0);
        assert_eq!(ground.lines(&format!("{run}.waits")).len(), 2, "{resumed}");
        ground.is_clean();
        ground.is_intact(run);
    }
}

#[test]
fn one_damaged_run_does_not_keep_the_others_from_being_driven() {
    let ground = Ground::new();
    for run in ["a", "b", "c"] {
        ground.submit(run, &[item("a", "true")]);
    }
    ground.env.git(["update-ref", "refs/handoff/runs/b", "HEAD"]).success();
    let output = ground.env.handoff(["run"]).exit(1);
    insta::assert_snapshot!(find_line(&output.stderr, "error: "), @"error: cannot read commit e01ebe446bc002032f8fcc226ae6d5c11f2ec4a5 of the chain");
    assert!(ground.is_sealed("a") && ground.is_sealed("c"), "{output}");
    let output = ground.env.handoff(["run", "a", "b", "c"]).exit(1);
    insta::assert_snapshot!(output.stdout, @"
    ✓ a  done, nothing handed over  1 attempt
    a: 1 of 1 done, sealed
    ✓ a  done, nothing handed over  1 attempt
    c: 1 of 1 done, sealed
    ");
    ground.is_clean();
}

#[test]
fn a_lock_file_that_a_killed_process_left_is_removed() {
    let ground = Ground::new();
    ground.submit("r", &[item("a", "echo chatter; true")]);
    let log = ground.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    for name in [
        "refs/handoff/runs/r",
        "refs/handoff/bases/r",
        "refs/handoff/transcripts/r",
        "refs/handoff/salvage/r",
        log.trim(),
    ] {
        ground.env.write(&format!("repo/.git/{name}.lock"), "");
    }
    ground.env.handoff(["run", "r"]).success();
    ground.is_clean();
    ground.is_intact("r");
}
