//! Entries of other drivers that are dated ahead of the local clock.

use git_handoff::clock::Clock;
use git_handoff::model::driver::RunShared;
use git_handoff::model::entry::Event;
use git_handoff::model::time::Moment;

use super::forged::begun_and_crashed;
use super::{Hub, plan, succeeds, works};
use crate::common::repo::{item, wait_for};
use crate::common::report::{find_line, masked};

const MINUTE: u64 = 60 * 1000;

/// Returns a clock that is so many minutes ahead.
fn ahead(minutes: u64) -> Clock {
    Clock::Pinned(Clock::System.now().plus_millis(minutes * MINUTE))
}

fn shared() -> Event {
    Event::RunShared(RunShared::new(200, 2000))
}

/// Replaces the times of a message by `<time>`.
fn without_times(text: &str) -> String {
    let words = masked(text);
    let is_time = |word: &str| word.trim_end_matches(',').parse::<Moment>().is_ok();
    let word =
        |word: &str| if is_time(word) { word.replace(word.trim_end_matches(','), "<time>") } else { word.into() };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_with_an_entry_six_minutes_ahead_is_not_joined() {
    let hub = Hub::new(&plan(&[item("i0", &works("0"))]));
    hub.admit_b();
    hub.append(&[shared()], ahead(6), None);
    hub.clone("c", &[]);
    let (code, _, stderr) = hub.command("c", &["run", "r", "--via", "origin"]);
    assert_eq!(code, Some(1), "{stderr}");
    let error = without_times(find_line(&stderr, "error: "));
    insta::assert_snapshot!(error, @r#"error: the run "r" of origin cannot be driven here: entry 2 of the key SHA256:…: it is dated <time>, more than 5 minutes ahead of <time> here: the clock of the key SHA256:… is wrong, or the clock of this machine"#);
    let found = hub.repo.env.git_in("c", ["rev-parse", "--verify", "--quiet", "refs/handoff/runs/r"]);
    assert_ne!(found.status, Some(0), "{found}");
    // A fetch stores the remote copy, and leaves our ref where it was.
    let ours = hub.head_of("repo");
    let (fetch_code, _, fetch_stderr) = hub.command("repo", &["fetch", "origin"]);
    assert_eq!((fetch_code, hub.head_of("repo")), (Some(0), ours), "{fetch_stderr}");
    // With a plain fetch into our own ref, the run is not continued either.
    let (before, refspec) = (hub.head_of("repo"), "+refs/handoff/runs/r:refs/handoff/runs/r");
    hub.repo.env.git(["fetch", "--quiet", "origin", refspec]).success();
    assert_ne!(hub.head_of("repo"), before);
    let (run_code, _, run_stderr) = hub.command("repo", &["run", "r", "--via", "origin"]);
    assert_eq!(run_code, Some(1), "{run_stderr}");
    insta::assert_snapshot!(without_times(find_line(&run_stderr, "error: ")), @"error: cannot continue run r: entry 2 of the key SHA256:…: it is dated <time>, more than 5 minutes ahead of <time> here: the clock of the key SHA256:… is wrong, or the clock of this machine");
}

/// The clock of this machine may be the wrong one, and the reason says so.
#[test]
fn the_wrong_clock_may_be_the_local_one() {
    let hub = Hub::new(&plan(&[item("i0", &works("0"))]));
    hub.admit_b();
    hub.append(&[shared()], ahead(0), None);
    hub.clone("c", &[]);
    let mut command = hub.repo.env.command(crate::common::program_path(), "c");
    command.env("HANDOFF_CLOCK", "2026-06-04T03:00:00.000Z").args(["run", "r", "--via", "origin"]);
    let stderr = hub.repo.env.ended(command).exit(1).stderr;
    let error = masked(find_line(&stderr, "error: "));
    let (_, why) = error.split_once(" ahead of ").unwrap();
    insta::assert_snapshot!(why, @"2026-06-04T03:00:00.000Z here: the clock of the key SHA256:… is wrong, or the clock of this machine");
}

#[test]
fn a_run_with_an_entry_four_minutes_ahead_is_driven() {
    let hub = Hub::new(&plan(&[item("i0", &works("0"))]));
    hub.admit_b();
    hub.append(&[shared()], ahead(4), None);
    hub.clone("c", &[]);
    succeeds(hub.drive("c"));
    hub.ends_well(1);
}

/// A driver at work keeps what it has, names the driver whose clock is wrong, and goes on when the
/// ref was set back.
#[test]
fn a_driver_does_not_follow_an_entry_that_is_dated_ahead() {
    let hub = Hub::new(&plan(&[item("i0", &works("12")), item("i1", &works("0"))]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    hub.admit_b();
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    wait_for("our ref", || hub.head_of("repo") == hub.head_of("hub.git"));
    let good = hub.head_of("repo");
    hub.append(&begun_and_crashed("i1"), ahead(6), None);
    let (code, _, stderr) = hub.command("repo", &["close", "r"]);
    assert_eq!(code, Some(3), "{stderr}");
    let error = without_times(find_line(&stderr, "error: "));
    let why = error.split_once(&format!("which cannot follow {good}: ")).unwrap().1;
    insta::assert_snapshot!(why, @"entry 4 of the key SHA256:…: it is dated <time>, more than 5 minutes ahead of <time> here: the clock of the driver 22222222222222222222222222222222 is wrong, or the clock of this machine");
    assert_eq!(hub.head_of("repo"), good);
    let hint = find_line(&stderr, "hint: ").split_once("sets it back: ").unwrap().1.to_owned();
    hub.repo.env.shell("repo", &hint).success();
    succeeds(driver);
    hub.ends_well(2);
}
