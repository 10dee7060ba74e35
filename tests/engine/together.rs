//! Several runs at once, in one process and in several: locks and queues hold for the whole
//! repository.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::ground::{Ground, wait_for};

/// Says in a file when it begins and when it ends.
fn marked(id: &str, locks: &[&str], more: &str) -> Value {
    let script = format!("echo + {id} >>$HOME/../marks; sleep 0.1; {more}; echo - {id} >>$HOME/../marks");
    json!({ "id": id, "executor": "command", "inputs": { "command": script }, "resourceLocks": locks })
}

fn several(name: &str, count: usize, locks: &[&str]) -> Vec<Value> {
    (0..count).map(|nth| marked(&format!("{name}{nth}"), locks, "true")).collect()
}

/// How many ran at once at most, by what they said.
fn at_once(ground: &Ground) -> usize {
    let (mut running, mut most) = (BTreeSet::new(), 0);
    for line in ground.lines("marks") {
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
fn span(ground: &Ground, name: &str) -> (usize, usize) {
    let marks: Vec<usize> = ground
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
    let ground = Ground::new();
    ground.config("handoff.queue.default.concurrency", "1");
    ground.submit("a", &several("a", 4, &[]));
    ground.submit("b", &several("b", 4, &[]));
    let said = ground.env.handoff(["run", "a", "b", "a"]).exit(0);
    assert!(said.stderr.contains("a: ✓ a0") && said.stderr.contains("b: ✓ b0"), "{said}");
    assert_eq!(at_once(&ground), 1, "the queue holds for both");
    // Neither waits for the other to be done.
    let (a, b) = (span(&ground, "a"), span(&ground, "b"));
    assert!(a.0 < b.1 && b.0 < a.1, "{:?}", ground.lines("marks"));
    assert!(b.0 <= 3 && a.0 <= 3, "{:?}", ground.lines("marks"));
    for run in ["a", "b"] {
        ground.is_intact(run);
    }
}

#[test]
fn a_lock_of_one_run_is_a_lock_of_every_run() {
    let ground = Ground::new();
    ground.config("handoff.queue.default.concurrency", "8");
    ground.submit("a", &several("a", 3, &["db"]));
    ground.submit("b", &several("b", 3, &["db", "port 80"]));
    let (first, second) = (ground.start(&["run", "a"]), ground.start(&["run", "b"]));
    for driver in [first, second] {
        let (status, said) = driver.wait();
        assert!(status.success(), "{said}");
    }
    assert_eq!(at_once(&ground), 1);
    let (a, b) = (span(&ground, "a"), span(&ground, "b"));
    assert!(a.0 < b.1 && b.0 < a.1, "one had to wait for all of the other: {:?}", ground.lines("marks"));
}

#[test]
fn a_queue_is_as_wide_in_two_processes_as_in_one() {
    let ground = Ground::new();
    ground.config("handoff.queue.default.concurrency", "2");
    ground.submit("a", &several("a", 4, &[]));
    ground.submit("b", &several("b", 4, &[]));
    let (first, second) = (ground.start(&["run", "a"]), ground.start(&["run", "b"]));
    for driver in [first, second] {
        let (status, said) = driver.wait();
        assert!(status.success(), "{said}");
    }
    assert!(at_once(&ground) <= 2);
    // An option overrides the setting for one run.
    std::fs::remove_file(ground.path("marks")).unwrap();
    ground.config("handoff.queue.default.concurrency", "1");
    ground.submit("c", &several("c", 3, &[]));
    ground.env.handoff(["run", "c", "-j", "3"]).success();
    assert_eq!(at_once(&ground), 3);
    ground.env.handoff(["run", "c", "--jobs", "0"]).ends(2);
}

#[test]
fn what_waits_for_a_lock_keeps_nobody_from_running() {
    let ground = Ground::new();
    ground.config("handoff.queue.default.concurrency", "1");
    ground.config("handoff.queue.other.concurrency", "1");
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": {
        "command": "echo begun >>$HOME/../long; while ! test -e $HOME/../go; do sleep 0.05; done" } });
    ground.submit("holder", &[long]);
    let holder = ground.start(&["run", "holder"]);
    wait_for("the holder has the lock", || !ground.lines("long").is_empty());
    let plan =
        json!({ "id": "r", "queue": "other", "items": [marked("a", &["db"], "true"), marked("b", &[], "true")] });
    ground.env.write("plan.json", &plan.to_string());
    ground.env.handoff(["submit", "../plan.json"]).success();
    let other = ground.start(&["run", "r"]);
    wait_for("what needs no lock is done", || ground.item("r", "b").status == "done");
    assert_eq!(ground.item("r", "a").status, "ready");
    // A holder that is killed holds nothing any more.
    assert!(holder.kill());
    let (status, said) = other.wait();
    assert!(status.success(), "{said}");
    ground.env.write("go", "");
    ground.env.handoff(["run", "holder"]).success();
    ground.no_process_is_left();
}

#[test]
fn what_outlives_its_driver_and_its_supervisor_ends_before_another_has_its_lock() {
    let ground = Ground::new();
    let script = "echo $PPID >$HOME/../supervisor; echo $$ >$HOME/../worker; while :; do sleep 0.05; done";
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": { "command": script } });
    ground.submit("holder", &[long]);
    let holder = ground.start(&["run", "holder"]);
    wait_for("the worker runs", || !ground.lines("worker").is_empty());
    let (supervisor, worker) = (ground.lines("supervisor")[0].clone(), ground.lines("worker")[0].clone());
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
    ground.drive("other", &[next]).success();
    // Its own run goes on as from any driver that died.
    let dir = ground.path("repo/.git/handoff/locks/resources");
    let place = |dir: std::fs::DirEntry| std::fs::read(dir.path().join("places/0")).unwrap();
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|dir| place(dir.unwrap())).collect();
    assert_eq!(left, [b""], "it is nobody's");
    ground.no_process_is_left();
}

#[test]
fn a_run_may_be_called_as_the_program_calls_its_own_locks() {
    let ground = Ground::new();
    let locks = ground.path("repo/.git/handoff/locks");
    let names = ["queues", "resources", "runs", "tickets"];
    // All of them want the same, so that they draw tickets while each is driven.
    let drivers = names.map(|name| {
        ground.submit(
            name,
            &[marked(&format!("{name}-a"), &["db"], "true"), marked(&format!("{name}-b"), &["db"], "true")],
        );
        ground.start(&["run", name])
    });
    for driver in drivers {
        let (status, said) = driver.wait();
        assert!(status.success(), "{said}");
    }
    assert_eq!(at_once(&ground), 1);
    names.iter().for_each(|name| ground.is_intact(name));
    ground.env.handoff(["doctor"]).success();
    ground.env.handoff(["clean"]).success();
    let mut kept: Vec<_> = std::fs::read_dir(locks.join("runs")).unwrap().map(|e| e.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, names);
}

#[test]
fn who_draws_a_ticket_can_be_told_to_stop() {
    let ground = Ground::new();
    let long = json!({ "id": "long", "executor": "command", "resourceLocks": ["db"], "inputs": {
        "command": "echo begun >>$HOME/../long; while ! test -e $HOME/../go; do sleep 0.05; done" } });
    ground.submit("holder", &[long]);
    let holder = ground.start(&["run", "holder"]);
    wait_for("the holder has the lock", || !ground.lines("long").is_empty());
    // A process that never releases it, such as a stopped driver.
    let tickets = ground.path("repo/.git/handoff/locks/tickets");
    let held = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&tickets).unwrap();
    held.lock().unwrap();
    ground.submit("r", &[marked("a", &["db"], "true"), marked("b", &[], "true")]);
    let waiting = ground.start(&["run", "r"]);
    wait_for("what needs no lock is done", || ground.item("r", "b").status == "done");
    waiting.signal(rustix::process::Signal::INT);
    let (status, said) = waiting.wait();
    assert!(status.code() == Some(130) && said.contains("interrupted"), "{status:?} {said}");
    // It does not affect free slots.
    ground.env.write("go", "");
    let (status, said) = holder.wait();
    assert!(status.success(), "{said}");
    ground.env.handoff(["run", "r"]).success();
    ground.no_process_is_left();
}

#[test]
fn a_plan_is_run_under_another_id() {
    let ground = Ground::new();
    let file = ground.plan("nightly", &[marked("a", &[], "true")]);
    ground.env.handoff(["run", &file, "--id", "nightly-2"]).success();
    ground.is_intact("nightly-2");
    assert!(!ground.refs().contains("runs/nightly\n"));
    assert_eq!(ground.env.handoff(["submit", &file, "--id", "nightly-3"]).success(), "nightly-3\n");
    for (wrong, code) in [
        (&["run", &file, &file, "--id", "x"][..], 2),
        (&["run", "nightly-2", "--id", "x"], 2),
        (&["run", &file, "--id", "@x"], 1),
    ] {
        ground.env.handoff(wrong.iter().copied()).ends(code);
    }
}
