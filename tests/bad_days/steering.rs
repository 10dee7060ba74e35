//! Decisions of an operator during and after a run.

use crate::common::repo::{TestRepo, after, item, wait_for};

/// An executor that says that it runs and then waits to be ended.
const WAITS: &str = "echo $HANDOFF_ATTEMPT >>\"$HOME/../waits\"; sleep 99";

#[test]
fn cancelling_a_running_item_ends_it_and_the_run_goes_on() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "2");
    let items = [
        item("slow", WAITS),
        after("next", &["slow"], "true"),
        after("last", &["next"], "true"),
        item("beside", "while ! test -e \"$HOME/../go\"; do sleep 0.01; done"),
    ];
    repo.submit("r", &items);
    let driver = repo.start(&["run", "r"]);
    wait_for("the item", || repo.path("waits").exists());
    repo.env.handoff(["cancel", "r/slow", "--reason", "too slow"]).success();
    wait_for("its end", || !repo.processes().iter().any(|line| line.contains("99")));
    repo.env.write("go", "");
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let current_items = repo.items("r");
    let of = |id: &str| (current_items[id].status.as_str(), current_items[id].reason.as_str());
    assert_eq!(of("slow"), ("cancelled", "too slow"));
    assert_eq!((of("next").0, of("last").0, of("beside").0), ("skipped", "skipped", "done"));
    repo.env.handoff(["cancel", "r/slow"]).ends(1);
    repo.env.handoff(["cancel", "r/beside"]).ends(1);
    repo.is_clean();
    repo.ends_intact("r");
}

#[test]
fn cancelled_and_retried_item_runs_once_at_a_time() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "4");
    // It takes its time to end, and holds a lock that only one may hold.
    let lone = "mkdir \"$HOME/../alone\" || { echo two >\"$HOME/../two\"; exit 1; }
        trap 'sleep 0.3; rmdir \"$HOME/../alone\"; exit 1' TERM
        echo $HANDOFF_ATTEMPT >>\"$HOME/../waits\"
        test $HANDOFF_ATTEMPT = 1 && while :; do sleep 0.01; done
        rmdir \"$HOME/../alone\"";
    let mut items = [item("slow", lone), item("other", lone.replace("= 1", "= 9").as_str())];
    for item in &mut items {
        item["resourceLocks"] = serde_json::json!(["alone"]);
    }
    repo.submit("r", &items);
    let driver = repo.start(&["run", "r"]);
    wait_for("the item", || repo.path("waits").exists());
    repo.env.handoff(["cancel", "r/slow"]).success();
    repo.env.handoff(["retry", "r/slow"]).success();
    let (status, output) = driver.wait();
    assert!(!repo.path("two").exists(), "two attempts held one lock\n{output}");
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(repo.item("r", "slow").attempts, 2);
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn cancelling_a_run_that_is_driven_ends_and_seals_it() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "2");
    repo.submit("r", &[item("done", "true"), item("one", WAITS), item("two", WAITS), after("three", &["one"], "true")]);
    let driver = repo.start(&["run", "r"]);
    wait_for("both items", || repo.lines("waits").len() == 2);
    let stdout = repo.env.handoff(["cancel", "r"]).success();
    insta::assert_snapshot!(stdout, @"r: 5 entries, sealed");
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let items = repo.items("r");
    let statuses: Vec<&str> = items.values().map(|item| item.status.as_str()).collect();
    assert_eq!(statuses, ["done", "cancelled", "cancelled", "cancelled"]);
    assert!(repo.is_sealed("r"));
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn retry_restarts_a_failed_item_and_its_skipped_dependents() {
    let repo = TestRepo::new();
    let items = [
        item("a", "test -e \"$HOME/../fixed\""),
        after("b", &["a"], "true"),
        after("c", &["b"], "true"),
        item("x", "test -e \"$HOME/../fixed-x\""),
        after("d", &["c", "x"], "true"),
    ];
    repo.drive("r", &items).ends(4);
    let refused = repo.env.handoff(["retry", "r/b"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: "b" depends on "a", which is failed
    hint: git handoff retry r/a
    "#);
    repo.env.handoff(["retry", "r/a"]).success();
    let again = repo.env.handoff(["retry", "r/a"]).exit(1);
    insta::assert_snapshot!(again.stderr, @r#"error: "a" is ready; only items that failed, were skipped or were cancelled can be retried"#);
    assert_eq!(repo.item("r", "d").status, "skipped", "it waits for x as well");
    repo.env.write("fixed", "");
    repo.env.handoff(["run", "r"]).ends(4);
    assert_eq!(repo.item("r", "c").status, "done");
    repo.env.write("fixed-x", "");
    repo.env.handoff(["retry", "r/x"]).success();
    repo.env.handoff(["run"]).success();
    assert_eq!(repo.item("r", "a").attempts, 2);
    repo.is_clean();
    assert!(repo.is_sealed("r"), "a run seals by itself when every item is done");
    repo.is_intact("r");
}

#[test]
fn nothing_is_steered_after_the_seal_or_before_the_end() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "false"), item("b", "true")]).ends(4);
    repo.submit("open", &[item("a", "true")]);
    let refused = repo.env.handoff(["close", "open"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "open" has 1 item that did not end yet
    hint: git handoff run --close open
    "#);
    repo.env.handoff(["close", "r"]).success();
    let before = repo.refs();
    for arguments in [&["cancel", "r"][..], &["cancel", "r/a"], &["retry", "r/a"], &["retry", "r/b"], &["close", "r/a"]]
    {
        let second_refused = repo.env.handoff(arguments).exit(1);
        assert_eq!(
            second_refused.stderr,
            "error: the run \"r\" is sealed; nothing can follow\nhint: git handoff verify r\n"
        );
    }
    repo.env.handoff(["close", "r"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    assert_eq!(repo.refs(), before);
    repo.is_intact("r");
}

#[test]
fn second_driver_reports_the_first() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", WAITS)]);
    let first = repo.start(&["run", "r"]);
    wait_for("the item", || repo.path("waits").exists());
    let second = repo.env.handoff(["run", "r"]).exit(5);
    assert!(second.stderr.contains(&format!("process {}", first.id())), "{second}");
    repo.env.handoff(["cancel", "r"]).success();
    let (status, output) = first.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    repo.is_clean();
    repo.is_intact("r");
}
