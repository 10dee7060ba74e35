//! Several runs at once, in one process and in several: locks and queues hold for the whole
//! repository.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, wait_for};
use crate::common::report::find_line;

/// Says in a file when it begins and when it ends.
fn marked(id: &str, locks: &[&str], more: &str) -> Value {
    let script = format!("echo + {id} >>$HOME/../marks; sleep 0.1; {more}; echo - {id} >>$HOME/../marks");
    json!({ "id": id, "executor": "command", "inputs": { "command": script }, "resourceLocks": locks })
}

fn several(name: &str, count: usize, locks: &[&str]) -> Vec<Value> {
    (0..count).map(|nth| marked(&format!("{name}{nth}"), locks, "true")).collect()
}

/// How many ran at once at most, by their own records.
fn at_once(repo: &TestRepo) -> usize {
    let (mut running, mut most) = (BTreeSet::new(), 0);
    for line in repo.lines("marks") {
        match line.split_once(' ').unwrap() {
            ("+", item) => assert!(running.insert(item.to_owned()), "{item} began twice"),
            (_, item) => assert!(running.remove(item), "{item} did not begin"),
        }
        most = most.max(running.len());
    }
    assert!(running.is_empty());
    most
}

/// Where the first and the last mark of a run stand.
fn span(repo: &TestRepo, name: &str) -> (usize, usize) {
    let marks: Vec<usize> = repo
        .lines("marks")
        .iter()
        .enumerate()
        .filter(|(_, line)| line[2..].starts_with(name))
        .map(|(at, _)| at)
        .collect();
    (marks[0], marks[marks.len() - 1])
}

#[test]
fn one_command_drives_several_runs_at_once_and_fairly() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "1");
    repo.submit("a", &several("a", 4, &[]));
    repo.submit("b", &several("b", 4, &[]));
    let output = repo.env.handoff(["run", "a", "b", "a"]).exit(0);
    insta::assert_snapshot!(find_line(&output.stderr, "a: ✓ a0  "), @"a: ✓ a0  done in 0ms, nothing handed over");
    insta::assert_snapshot!(find_line(&output.stderr, "b: ✓ b0  "), @"b: ✓ b0  done in 0ms, nothing handed over");
    assert_eq!(at_once(&repo), 1, "the queue holds for both");
    // Neither waits for the other to be done.
    let (a, b) = (span(&repo, "a"), span(&repo, "b"));
    assert!(a.0 < b.1 && b.0 < a.1, "{:?}", repo.lines("marks"));
    assert!(b.0 <= 3 && a.0 <= 3, "{:?}", repo.lines("marks"));
    for run in ["a", "b"] {
        repo.is_intact(run);
    }
}

#[test]
fn a_lock_of_one_run_is_a_lock_of_every_run() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "8");
    repo.submit("a", &several("a", 3, &["db"]));
    repo.submit("b", &several("b", 3, &["db", "port 80"]));
    let (first, second) = (repo.start(&["run", "a"]), repo.start(&["run", "b"]));
    for driver in [first, second] {
        let (status, output) = driver.wait();
        assert!(status.success(), "{output}");
    }
    assert_eq!(at_once(&repo), 1);
    let (a, b) = (span(&repo, "a"), span(&repo, "b"));
    assert!(a.0 < b.1 && b.0 < a.1, "one had to wait for all of the other: {:?}", repo.lines("marks"));
}

#[test]
fn a_queue_is_as_wide_in_two_processes_as_in_one() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "2");
    repo.submit("a", &several("a", 4, &[]));
    repo.submit("b", &several("b", 4, &[]));
    let (first, second) = (repo.start(&["run", "a"]), repo.start(&["run", "b"]));
    for driver in [first, second] {
        let (status, output) = driver.wait();
        assert!(status.success(), "{output}");
    }
    assert!(at_once(&repo) <= 2);
    // An option overrides the setting for one run.
    std::fs::remove_file(repo.path("marks")).unwrap();
    repo.config("handoff.queue.default.concurrency", "1");
    repo.submit("c", &several("c", 3, &[]));
    repo.env.handoff(["run", "c", "-j", "3"]).success();
    assert_eq!(at_once(&repo), 3);
    repo.env.handoff(["run", "c", "--jobs", "0"]).ends(2);
}

#[test]
fn an_item_that_waits_for_a_lock_stops_no_other() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "1");
    repo.config("handoff.queue.other.concurrency", "1");
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": {
        "command": "echo begun >>$HOME/../long; while ! test -e $HOME/../go; do sleep 0.05; done" } });
    repo.submit("holder", &[long]);
    let holder = repo.start(&["run", "holder"]);
    wait_for("the holder has the lock", || !repo.lines("long").is_empty());
    let plan =
        json!({ "id": "r", "queue": "other", "items": [marked("a", &["db"], "true"), marked("b", &[], "true")] });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["submit", "../plan.json"]).success();
    let other = repo.start(&["run", "r"]);
    wait_for("what needs no lock is done", || repo.item("r", "b").status == "done");
    assert_eq!(repo.item("r", "a").status, "ready");
    // A holder that is killed holds nothing any more.
    assert!(holder.kill());
    let (status, output) = other.wait();
    assert!(status.success(), "{output}");
    repo.env.write("go", "");
    repo.env.handoff(["run", "holder"]).success();
    repo.no_process_is_left();
}

#[test]
fn orphaned_processes_end_before_the_lock_passes_on() {
    let repo = TestRepo::new();
    let script = "echo $PPID >$HOME/../supervisor; echo $$ >$HOME/../worker; while :; do sleep 0.05; done";
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": { "command": script } });
    repo.submit("holder", &[long]);
    let holder = repo.start(&["run", "holder"]);
    wait_for("the worker runs", || !repo.lines("worker").is_empty());
    let (supervisor, worker) = (repo.lines("supervisor")[0].clone(), repo.lines("worker")[0].clone());
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &supervisor]).status().unwrap().success());
    };
    // It sees nothing of its driver's end, and ends nothing.
    signal("-STOP");
    assert!(holder.kill());
    signal("-KILL");
    let state = || std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
    assert!(!matches!(state().rsplit(") ").next(), Some("") | None), "the worker lives on");
    // Checked only where it matters; a lock without waiters may still be listed.
    let look = format!("! test -e /proc/{worker}/stat || grep -q ') Z ' /proc/{worker}/stat");
    let next = json!({ "id": "next", "executor": "command", "resourceLocks": ["db"], "inputs": { "command": look } });
    repo.drive("other", &[next]).success();
    // Its own run goes on as from any driver that died.
    let dir = repo.path("repo/.git/handoff/locks/resources");
    let place = |entry_dir: std::fs::DirEntry| std::fs::read(entry_dir.path().join("places/0")).unwrap();
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|dir| place(dir.unwrap())).collect();
    assert_eq!(left, [b""], "it is nobody's");
    repo.no_process_is_left();
}

#[test]
fn a_run_may_be_called_as_the_program_calls_its_own_locks() {
    let repo = TestRepo::new();
    let locks = repo.path("repo/.git/handoff/locks");
    let names = ["queues", "resources", "runs", "tickets"];
    // All of them want the same, so that they draw tickets while each is driven.
    let drivers = names.map(|name| {
        repo.submit(
            name,
            &[marked(&format!("{name}-a"), &["db"], "true"), marked(&format!("{name}-b"), &["db"], "true")],
        );
        repo.start(&["run", name])
    });
    for driver in drivers {
        let (status, output) = driver.wait();
        assert!(status.success(), "{output}");
    }
    assert_eq!(at_once(&repo), 1);
    names.iter().for_each(|name| repo.is_intact(name));
    repo.env.handoff(["doctor"]).success();
    repo.env.handoff(["clean"]).success();
    let mut actual: Vec<_> = std::fs::read_dir(locks.join("runs")).unwrap().map(|e| e.unwrap().file_name()).collect();
    actual.sort();
    assert_eq!(actual, names);
}

#[test]
fn waiting_for_a_ticket_can_be_interrupted() {
    let repo = TestRepo::new();
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": {
        "command": "echo begun >>$HOME/../long; while ! test -e $HOME/../go; do sleep 0.05; done" } });
    repo.submit("holder", &[long]);
    let holder = repo.start(&["run", "holder"]);
    wait_for("the holder has the lock", || !repo.lines("long").is_empty());
    // A process that never releases it, such as a stopped driver.
    let tickets = repo.path("repo/.git/handoff/locks/tickets");
    let ticket_file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&tickets).unwrap();
    ticket_file.lock().unwrap();
    repo.submit("r", &[marked("a", &["db"], "true"), marked("b", &[], "true")]);
    let waiting = repo.start(&["run", "r"]);
    wait_for("what needs no lock is done", || repo.item("r", "b").status == "done");
    waiting.signal(rustix::process::Signal::INT);
    let (status, output) = waiting.wait();
    assert_eq!(status.code(), Some(130), "{output}");
    insta::assert_snapshot!(find_line(&output, "interrupted"), @"interrupted; nothing that was done is lost");
    // It does not affect free slots.
    repo.env.write("go", "");
    let (holder_status, holder_output) = holder.wait();
    assert!(holder_status.success(), "{holder_output}");
    repo.env.handoff(["run", "r"]).success();
    repo.no_process_is_left();
}

#[test]
fn a_plan_is_run_under_another_id() {
    let repo = TestRepo::new();
    let file = repo.plan("nightly", &[marked("a", &[], "true")]);
    repo.env.handoff(["run", &file, "--id", "nightly-2"]).success();
    repo.is_intact("nightly-2");
    assert!(!repo.refs().contains("runs/nightly\n"));
    assert_eq!(repo.env.handoff(["submit", &file, "--id", "nightly-3"]).success(), "nightly-3\n");
    for (wrong, code) in [
        (&["run", &file, &file, "--id", "x"][..], 2),
        (&["run", "nightly-2", "--id", "x"], 2),
        (&["run", &file, "--id", "@x"], 1),
    ] {
        repo.env.handoff(wrong.iter().copied()).ends(code);
    }
}
