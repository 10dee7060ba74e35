//! `kill -9` of the driver, then `git handoff run` until the run has ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, pause};

/// Six items: a diamond with a tail, and a single one. Each leaves an external trace that cannot be
/// undone, like an email or a payment.
fn workload() -> Vec<Value> {
    let item = |id: &str, on: &[&str]| {
        let needs: serde_json::Map<String, Value> = on
            .iter()
            .map(|from| ((*from).to_owned(), json!({ "from": from, "select": { "kind": "output", "path": "id" } })))
            .collect();
        let script = "echo $HANDOFF_ITEM $HANDOFF_ATTEMPT >>\"$HOME/../$HANDOFF_RUN.effects\"
            cat inputs/* 2>/dev/null; echo $HANDOFF_ITEM >outputs/id; echo $HANDOFF_ITEM >>a.txt; sleep 0.02";
        // Each kill may cost an attempt.
        json!({ "id": id, "executor": "command", "inputs": { "command": script }, "needs": needs, "maxAttempts": 20,
                "resourceLocks": if id == "left" || id == "lone" { json!(["one"]) } else { json!([]) } })
    };
    vec![
        item("top", &[]),
        item("left", &["top"]),
        item("right", &["top"]),
        item("both", &["left", "right"]),
        item("tail", &["both"]),
        item("lone", &[]),
    ]
}

/// Resumes a run to its end, and holds that nothing was lost and nothing done twice.
#[track_caller]
fn ends_whole(repo: &TestRepo, run: &str) {
    let resumed = repo.env.handoff(["run", run]);
    assert_eq!(resumed.status, Some(0), "{resumed}");
    repo.is_clean();
    repo.is_intact(run);
    let entries = repo.entries(run);
    let about = |kind: &str| entries.iter().filter(move |entry| entry["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(about("item.reconciled").len(), 6, "each item is done once");
    assert_eq!(about("run.sealed").len(), 1);
    // Every external effect is in the chain, and nothing ran after it was done.
    let mut ran: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for line in repo.lines(&format!("{run}.effects")) {
        let (item, attempt) = line.split_once(' ').unwrap();
        *ran.entry((item.to_owned(), attempt.parse().unwrap())).or_default() += 1;
    }
    let fired: Vec<(String, u64)> = about("item.fired")
        .iter()
        .map(|entry| (entry["item"].as_str().unwrap().to_owned(), entry["attempt"].as_u64().unwrap()))
        .collect();
    for (attempt, times) in &ran {
        assert_eq!(*times, 1, "{attempt:?} ran twice");
        assert!(fired.contains(attempt), "{attempt:?} ran without an entry");
    }
    for done in about("item.reconciled") {
        let id = done["item"].as_str().unwrap();
        let attempts = fired.iter().filter(|(item, _)| item == id).map(|(_, attempt)| *attempt).max();
        assert_eq!(done["attempt"].as_u64(), attempts, "{id} was dispatched again after it was done");
    }
    assert_eq!(sealed_in_log(repo, run), 1, "the log holds the seal once");
}

/// Counts the entries of the repository logs that hold a run's seal.
fn sealed_in_log(repo: &TestRepo, run: &str) -> usize {
    let names = repo.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let printed = repo.env.git(["log", "--format=%b", names.trim()]).success();
    let entries = serde_json::Deserializer::from_str(&printed).into_iter::<Value>().map(Result::unwrap);
    entries.filter(|entry| entry["root"].is_string() && entry["kind"] == "log.recorded" && entry["run"] == run).count()
}

#[test]
fn killed_after_any_time_a_run_ends_whole() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "3");
    let mut killed = 0;
    for round in 0..8_u64 {
        let run = format!("r{round}");
        repo.submit(&run, &workload());
        // Twice in a run: the second driver dies while it mends what the first left.
        for delay in [Duration::from_millis(round * 65), Duration::from_millis(round * 19)] {
            let driver = repo.start(&["run", &run]);
            std::thread::sleep(delay);
            killed += usize::from(driver.kill());
        }
        ends_whole(&repo, &run);
    }
    assert!(killed > 4, "hardly any driver was alive when it was killed");
}

#[test]
fn killed_after_any_change_of_the_ref_a_run_ends_whole() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "2");
    for changes in (0..16).step_by(2) {
        let run = format!("r{changes}");
        repo.submit(&run, &workload());
        let name = repo.path(&format!("repo/.git/refs/handoff/runs/{run}"));
        let tip = || std::fs::read_to_string(&name).ok().filter(|tip| tip.len() == 41);
        let mut driver = repo.start(&["run", &run]);
        let (mut last, mut moves) = (tip(), 0);
        let until = Instant::now() + Duration::from_secs(60);
        // A run that ends before that many changes is one that was not killed, which is as good a
        // case as any.
        while moves < changes && !driver.is_over() && Instant::now() < until {
            let now = tip();
            if now.is_some() && now != last {
                (last, moves) = (now, moves + 1);
            } else {
                std::thread::yield_now();
            }
        }
        driver.kill();
        // At every moment what stands is sound, though not ended.
        repo.passes_fsck();
        ends_whole(&repo, &run);
    }
}

#[test]
fn a_submit_killed_at_any_moment_leaves_a_run_or_none() {
    let repo = TestRepo::new();
    for round in 0..8_u64 {
        let run = format!("r{round}");
        let plan = repo.plan(&run, &workload());
        let driver = repo.start(&["submit", &plan]);
        std::thread::sleep(Duration::from_millis(round * 6));
        driver.kill();
        repo.passes_fsck();
        // The same command again is all that is to be done.
        repo.env.handoff(["submit", &plan]).success();
        if round % 4 == 0 {
            ends_whole(&repo, &run);
        }
    }
    let runs: Vec<String> = (0..8).map(|round| format!("r{round}")).collect();
    repo.env.handoff(["run"]).success();
    repo.is_clean();
    runs.iter().for_each(|run| repo.is_intact(run));
}

#[test]
fn a_submit_gets_past_the_lock_file_of_a_killed_one() {
    let repo = TestRepo::new();
    let plan = repo.plan("r", &workload());
    for (name, text) in [("runs", "git-handoff\n"), ("bases", "")] {
        repo.env.write(&format!("repo/.git/refs/handoff/{name}/r.lock"), text);
    }
    repo.env.handoff(["submit", &plan]).success();
    ends_whole(&repo, "r");
}

#[test]
fn killed_driver_ends_its_workers_and_their_work_survives() {
    let repo = TestRepo::new();
    let script = "echo half >half; echo up >>\"$HOME/../up\"; test $HANDOFF_ATTEMPT = 1 || exit 0
        setsid sleep 99 >/dev/null 2>&1 & sleep 99";
    let item = json!({ "id": "a", "executor": "command", "inputs": { "command": script }, "maxAttempts": 2 });
    repo.submit("r", &[item]);
    let driver = repo.start(&["run", "r"]);
    crate::common::repo::wait_for("the worker", || repo.path("up").exists());
    driver.kill();
    // The worker itself goes at once; what it detached is ended by the next driver.
    while repo.processes().iter().any(|line| line.starts_with("sh ")) {
        pause();
    }
    let resumed = repo.env.handoff(["run", "r"]);
    assert_eq!(resumed.status, Some(0), "{resumed}");
    insta::assert_snapshot!(resumed.stderr, @"
    a: the work of attempt 1 was saved to refs/handoff/salvage/r
    ↻ a  attempt 1: the driver died while the attempt ran
    ▶ a  attempt 2
    ✓ a  done in 0ms, 1 product
    hint: git handoff apply r   # as a commit: --commit
    ");
    let saved = repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).success();
    assert!(saved.lines().any(|path| path.ends_with("/1/half")), "{saved}");
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn work_that_no_file_can_be_opened_for_waits_for_a_driver_that_may() {
    let repo = TestRepo::new();
    let script = "echo half >half; echo up >>\"$HOME/../up\"; test $HANDOFF_ATTEMPT = 1 || exit 0; sleep 99";
    repo.submit("r", &[json!({ "id": "a", "executor": "command", "inputs": { "command": script } })]);
    let driver = repo.start(&["run", "r"]);
    crate::common::repo::wait_for("the worker", || repo.path("up").exists());
    driver.kill();
    let program = crate::common::program_path();
    // Each of them fails somewhere else on its way to what was left, until one gets to its end.
    let ended = (8..64).find(|files| {
        let output = repo.env.shell("repo", &format!("ulimit -n {files}; exec '{program}' run r"));
        assert!(!output.stderr.contains("panicked at"), "{output}");
        assert!(!output.stderr.contains("-unsaved"), "with {files} open files: {output}");
        !repo.worktrees().iter().any(|left| left.join("tree").exists())
    });
    assert!(ended.is_some_and(|files| files > 8), "{ended:?}");
    let resumed = repo.env.handoff(["run", "r"]);
    assert!(matches!(resumed.status, Some(0 | 4)), "{resumed}");
    let saved = repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).success();
    assert!(saved.lines().any(|path| path.ends_with("/1/half")), "{saved}");
    repo.is_clean();
}
