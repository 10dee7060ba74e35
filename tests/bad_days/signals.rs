//! Signals to the driver, and closed output streams.

use std::process::Stdio;

use rustix::process::Signal;

use crate::common::ground::{Ground, after, item, wait_for};

const WAITS: &str =
    "echo $HANDOFF_ITEM >>\"$HOME/../waits\"; test $HANDOFF_ATTEMPT = 1 || exit 0; echo partial >partial; sleep 99";

#[test]
fn an_interrupted_run_is_resumed_and_counts_nothing_against_the_items() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let ground = Ground::new();
        ground.config("handoff.queue.default.concurrency", "2");
        ground.submit("r", &[item("a", WAITS), item("b", WAITS), item("c", "true"), after("d", &["a", "b"], "true")]);
        let driver = ground.start(&["run", "r"]);
        wait_for("both items", || ground.lines("waits").len() == 2);
        driver.signal(signal);
        let (status, said) = driver.wait();
        assert_eq!(status.code(), Some(130), "{signal:?}: {said}");
        assert!(said.contains("git handoff run r"), "{said}");
        ground.is_clean();
        let seen = ground.items("r");
        assert_eq!((seen["a"].status.as_str(), seen["a"].attempts), ("ready", 1));
        // The attempts' unfinished work is saved.
        let saved = ground.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).success();
        assert_eq!(saved.lines().filter(|path| path.ends_with("/1/partial")).count(), 2, "{saved}");
        // One attempt is all that the plan allows; an interruption is not the item's fault.
        ground.env.handoff(["run"]).success();
        ground.is_clean();
        ground.is_intact("r");
    }
}

#[test]
fn an_interrupt_stops_all_runs_that_are_driven() {
    let ground = Ground::new();
    // The driver is the parent of what supervises the attempt.
    ground.submit(
        "a",
        &[item("a", "test $HANDOFF_ATTEMPT != 1 || kill -INT $(ps -o ppid= $PPID); echo a >>\"$HOME/../ran\"")],
    );
    ground.submit("b", &[item("b", "test $HANDOFF_ATTEMPT != 1 || sleep 60; echo b >>\"$HOME/../ran\"")]);
    ground.env.handoff(["run", "a", "b"]).ends(130);
    assert!(!ground.lines("ran").contains(&"b".to_owned()));
    ground.is_clean();
    ground.env.handoff(["run"]).success();
    ground.is_intact("a");
    ground.is_intact("b");
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let ground = Ground::new();
    let items: Vec<_> = (0..20).map(|at| item(&format!("i{at}"), "echo chatter; echo x >outputs/x")).collect();
    ground.submit("r", &items);
    ground.submit("s", &items);
    ground.env.shell("repo", "git-handoff run r | head -1").success();
    ground.env.shell("repo", "git-handoff run s 2>&1 | head -1").success();
    ground.is_clean();
    ground.is_intact("r");
    ground.is_intact("s");
    // A full device behind stdout is an error, but the run is done.
    let mut command = ground.env.command(crate::common::program_path(), "repo");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.args(["status", "r"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("could not be written"));
}

#[test]
fn who_is_interrupted_leaves_no_temporary_folder() {
    let ground = Ground::new();
    ground.submit("r", &[item("a", "seq 2000 >f"), item("b", "seq 2000 >g")]);
    ground.env.handoff(["run", "r"]).success();
    ground.env.handoff(["apply", "r", "--branch", "applied"]).success();
    let temporary = ground.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let is_empty = || std::fs::read_dir(&temporary).unwrap().next().is_none();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let ended = |_: &usize| {
            let arguments = ["verify", "--commits", "applied~2..applied"];
            let mut program = ground.start_with(&arguments, |command| {
                command.env("TMPDIR", &temporary);
            });
            wait_for("a folder", || !is_empty() || program.is_over());
            if program.is_over() {
                return false;
            }
            program.signal(signal);
            let (status, said) = program.wait();
            assert!(is_empty(), "{status:?}: {said}");
            status.code() == Some(code)
        };
        // It may have been done first.
        assert!((0..50).any(|at| ended(&at)), "{signal:?}");
    }
}
