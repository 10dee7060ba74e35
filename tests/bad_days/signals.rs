//! Signals to the driver, and closed output streams.

use std::process::Stdio;

use rustix::process::Signal;

use crate::common::repo::{TestRepo, after, item, wait_for};
use crate::common::report::find_line;

const WAITS: &str =
    "echo $HANDOFF_ITEM >>\"$HOME/../waits\"; test $HANDOFF_ATTEMPT = 1 || exit 0; echo partial >partial; sleep 99";

#[test]
fn an_interrupted_run_is_resumed_and_counts_nothing_against_the_items() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let repo = TestRepo::new();
        repo.config("handoff.queue.default.concurrency", "2");
        repo.submit("r", &[item("a", WAITS), item("b", WAITS), item("c", "true"), after("d", &["a", "b"], "true")]);
        let driver = repo.start(&["run", "r"]);
        wait_for("both items", || repo.lines("waits").len() == 2);
        driver.signal(signal);
        let (status, output) = driver.wait();
        assert_eq!(status.code(), Some(130), "{signal:?}: {output}");
        assert_eq!(find_line(&output, "hint: git handoff"), "hint: git handoff run r");
        repo.is_clean();
        let items = repo.items("r");
        assert_eq!((items["a"].status.as_str(), items["a"].attempts), ("ready", 1));
        // The attempts' unfinished work is saved.
        let saved = repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).success();
        assert_eq!(saved.lines().filter(|path| path.ends_with("/1/partial")).count(), 2, "{saved}");
        // One attempt is all that the plan allows; an interruption is not the item's fault.
        repo.env.handoff(["run"]).success();
        repo.is_clean();
        repo.is_intact("r");
    }
}

/// Sends SIGTERM to a process, if it still runs.
fn terminate(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, Signal::TERM);
}

#[test]
fn an_engine_that_ends_a_job_gets_its_attempts_handed_back() {
    let begins = "echo $HANDOFF_ITEM >>\"$HOME/../began\"; test $HANDOFF_ATTEMPT = 1 || exit 0";
    // The workers get the signal before the driver does, or just after it.
    for (is_driver_first, waits) in [(false, "sleep 99"), (true, "trap 'exit 1' TERM; sleep 99 & wait")] {
        let repo = TestRepo::new();
        let script = format!("{begins}; {waits}");
        repo.submit("r", &[item("a", &script), item("b", &script), after("c", &["a", "b"], "true")]);
        let driver = repo.start(&["run", "r", "-j", "2"]);
        wait_for("both items", || repo.lines("began").len() == 2);
        let others: Vec<u32> = repo.process_ids().into_keys().filter(|pid| *pid != driver.id()).collect();
        assert!(others.len() >= 4, "{others:?}");
        if is_driver_first {
            driver.signal(Signal::TERM);
        }
        others.into_iter().for_each(terminate);
        if !is_driver_first {
            driver.signal(Signal::TERM);
        }
        let (status, output) = driver.wait();
        assert_eq!(status.code(), Some(130), "{output}");
        let ends = repo.entries("r");
        let ends = ends.iter().filter(|entry| entry["attempt"] == 1 && entry["kind"] != "item.fired");
        let ends: Vec<_> = ends.map(|entry| (entry["kind"].as_str(), entry["reason"].as_str())).collect();
        assert_eq!(ends, [(Some("item.requeued"), Some("operator")); 2], "{output}");
        // One attempt is all that the plan allows.
        repo.env.handoff(["run"]).success();
        repo.is_clean();
        repo.is_intact("r");
    }
}

#[test]
fn a_worker_that_ends_by_a_signal_fails_while_its_driver_goes_on() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "kill -TERM $$"), item("b", "exit 143"), item("c", "exit 1")]).ends(4);
    let reasons: Vec<_> = repo.items("r").into_values().map(|item| item.reason).collect();
    assert_eq!(reasons, ["was ended by signal 15", "exited with 143", "exited with 1"]);
}

#[test]
fn an_interrupt_stops_all_runs_that_are_driven() {
    let repo = TestRepo::new();
    // The driver is the parent of what supervises the attempt.
    repo.submit(
        "a",
        &[item("a", "test $HANDOFF_ATTEMPT != 1 || kill -INT $(ps -o ppid= $PPID); echo a >>\"$HOME/../ran\"")],
    );
    repo.submit("b", &[item("b", "test $HANDOFF_ATTEMPT != 1 || sleep 60; echo b >>\"$HOME/../ran\"")]);
    repo.env.handoff(["run", "a", "b"]).ends(130);
    assert!(!repo.lines("ran").contains(&"b".to_owned()));
    repo.is_clean();
    repo.env.handoff(["run"]).success();
    repo.is_intact("a");
    repo.is_intact("b");
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let repo = TestRepo::new();
    let items: Vec<_> = (0..20).map(|at| item(&format!("i{at}"), "echo chatter; echo x >outputs/x")).collect();
    repo.submit("r", &items);
    repo.submit("s", &items);
    repo.env.shell("repo", "git-handoff run r | head -1").success();
    repo.env.shell("repo", "git-handoff run s 2>&1 | head -1").success();
    repo.is_clean();
    repo.is_intact("r");
    repo.is_intact("s");
    // A full device behind stdout is an error, but the run is done.
    let mut command = repo.env.command(crate::common::program_path(), "repo");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.args(["status", "r"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: the answer could not be written
    caused by: No space left on device (os error 28)
    ");
}

#[test]
fn interrupted_command_leaves_no_temporary_folder() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "seq 2000 >f"), item("b", "seq 2000 >g")]);
    repo.env.handoff(["run", "r"]).success();
    repo.env.handoff(["apply", "r", "--branch", "applied"]).success();
    let temporary = repo.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let is_empty = || std::fs::read_dir(&temporary).unwrap().next().is_none();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let ended = |_: &usize| {
            let arguments = ["verify", "--commits", "applied~2..applied"];
            let mut program = repo.start_with(&arguments, |command| {
                command.env("TMPDIR", &temporary);
            });
            wait_for("a folder", || !is_empty() || program.is_over());
            if program.is_over() {
                return false;
            }
            program.signal(signal);
            let (status, output) = program.wait();
            assert!(is_empty(), "{status:?}: {output}");
            status.code() == Some(code)
        };
        // It may have been done first.
        assert!((0..50).any(|at| ended(&at)), "{signal:?}");
    }
}
