//! A run's ref moved by plain git.

use crate::common::repo::{Driver, TestRepo, after, item, wait_for};
use crate::common::report::find_line;

/// Starts a run whose first item waits in its first attempt; returns once it runs.
fn started(repo: &TestRepo, run: &str) -> Driver {
    // By what it left outside, not by its attempt: that a moved ref forgets.
    let waits = format!("\"$HOME/../{run}.waits\"");
    let script = format!("echo x >>{waits}; test $(wc -l <{waits}) = 1 || exit 0; sleep 99");
    let mut second_waits = item("waits", &script);
    let mut first = item("first", "echo x >outputs/x");
    for item in [&mut second_waits, &mut first] {
        item["maxAttempts"] = serde_json::json!(2);
    }
    repo.config("handoff.queue.default.concurrency", "1");
    repo.submit(run, &[first, second_waits, after("last", &["waits"], "true")]);
    let driver = repo.start(&["run", run]);
    let mark = repo.path(&format!("{run}.waits"));
    wait_for("the item", || mark.exists());
    driver
}

#[test]
fn driver_reports_a_moved_ref_and_leaves_it() {
    let repo = TestRepo::new();
    let blob = repo.env.shell("repo", "echo junk | git hash-object -w --stdin").success();
    let head = repo.env.git(["rev-parse", "HEAD"]).success();
    repo.drive("other", &[item("a", "true")]).success();
    let other = repo.tip("other").unwrap();
    let cannot_read = |oid: &str| format!("error: cannot read commit {} of the chain", oid.trim());
    let moved = "error: the ref of the run \"older\" was moved to a commit that does not continue it";
    for (run, to, error) in [
        ("commit", head.trim(), cannot_read(&head)),
        ("blob", blob.trim(), cannot_read(&blob)),
        ("stranger", other.as_str(), "error: the ref of the run \"stranger\" holds something else".to_owned()),
        ("older", "refs/handoff/runs/older~2", moved.to_owned()),
        ("gone", "", "error: there is no run \"gone\" here".to_owned()),
    ] {
        let driver = started(&repo, run);
        let name = format!("refs/handoff/runs/{run}");
        let good = repo.tip(run).unwrap();
        if to.is_empty() {
            repo.env.git(["update-ref", "-d", &name]).success();
        } else {
            repo.env.git(["update-ref", &name, to]).success();
        }
        let second_moved = repo.tip(run);
        let (status, output) = driver.wait();
        assert_eq!(status.code(), Some(1), "{run}: {output}");
        assert_eq!(find_line(&output, "error: "), error, "{run}: {output}");
        assert_eq!(repo.tip(run), second_moved, "{run}: nothing is overwritten");
        repo.is_clean();
        if run != "older" {
            // One bad ref does not keep the others from being driven, or from being put right.
            repo.env.git(["update-ref", &name, &good]).success();
        }
        let resumed = repo.env.handoff(["run", run]).exit(0);
        assert_eq!(repo.lines(&format!("{run}.waits")).len(), 2, "{resumed}");
        repo.is_clean();
        repo.is_intact(run);
    }
}

#[test]
fn one_damaged_run_does_not_keep_the_others_from_being_driven() {
    let repo = TestRepo::new();
    for run in ["a", "b", "c"] {
        repo.submit(run, &[item("a", "true")]);
    }
    repo.env.git(["update-ref", "refs/handoff/runs/b", "HEAD"]).success();
    let output = repo.env.handoff(["run"]).exit(1);
    insta::assert_snapshot!(find_line(&output.stderr, "error: "), @"error: cannot read commit e01ebe446bc002032f8fcc226ae6d5c11f2ec4a5 of the chain");
    assert!(repo.is_sealed("a") && repo.is_sealed("c"), "{output}");
    let run_output = repo.env.handoff(["run", "a", "b", "c"]).exit(1);
    insta::assert_snapshot!(run_output.stdout, @"
    ✓ a  done, nothing handed over  1 attempt
    a: 1 of 1 done, sealed
    ─ nothing changed
    proof ✓ intact, 4 entries, your key: git handoff verify a
    ✓ a  done, nothing handed over  1 attempt
    c: 1 of 1 done, sealed
    ─ nothing changed
    proof ✓ intact, 4 entries, your key: git handoff verify c
    ");
    repo.is_clean();
}

#[test]
fn a_lock_file_that_a_killed_process_left_is_removed() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "echo chatter; true")]);
    let log = repo.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    // A lock that git left is certain to be stale after ten seconds, ours at once.
    for (name, text) in [
        ("refs/handoff/runs/r", "git-handoff\n"),
        ("refs/handoff/bases/r", "git-handoff\n"),
        ("refs/handoff/transcripts/r", ""),
        ("refs/handoff/salvage/r", "git-handoff\n"),
        (log.trim(), "git-handoff\n"),
    ] {
        repo.env.write(&format!("repo/.git/{name}.lock"), text);
    }
    repo.env.handoff(["run", "r"]).success();
    repo.is_clean();
    repo.is_intact("r");
}
