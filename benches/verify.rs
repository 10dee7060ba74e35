//! Measures verification of large runs on the release build: `cargo bench --bench verify`.
//!
//! A word behind `--` picks what is measured: `sha1`, `sha256`, both of 10,000 entries, or `long`,
//! of 100,000. Wall clocks of shared machines are noisy; the user time is the one to compare.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Recording;
use git_handoff::git::store::Durability;
use git_handoff::model::entry::{Again, Event, Exit, ItemEnded};
use git_handoff::model::plan::Item;
use git_handoff::run::operate::NewEntry;

const BINARY: &str = env!("CARGO_BIN_EXE_git-handoff");

/// A run to measure.
struct Run {
    name: &'static str,
    format: &'static str,
    items: usize,
    /// Two entries each, a manifest with the first of them.
    attempts: u32,
}

/// Two entries an attempt, and the first and the last.
const RUNS: [Run; 3] = [
    Run { name: "sha1", format: "sha1", items: 5_000, attempts: 1 },
    Run { name: "sha256", format: "sha256", items: 5_000, attempts: 1 },
    Run { name: "long", format: "sha1", items: 10_000, attempts: 5 },
];

/// How often each figure is taken; the best counts.
const ROUNDS: usize = 5;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for run in &RUNS {
        if only.is_empty() || only.iter().any(|word| word == run.name) {
            measure(run);
        }
    }
}

fn measure(run: &Run) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path();
    git(dir, &["init", "-q", "-b", "main", "--object-format", run.format]);
    git(
        dir,
        &["-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "-q", "--allow-empty", "-m", "x"],
    );
    record(dir, run);
    for state in ["written", "packed"] {
        if state == "packed" {
            git(dir, &["gc", "-q"]);
        }
        let (wall, user, peak) = (0..ROUNDS).map(|_| verify(dir)).min().expect("there are rounds");
        let text = format!(
            "{} {state}, {} entries: {:.2} s wall, {:.2} s user, peak {} MB (aim for 10,000: under 1 s, 150 MB)\n",
            run.name,
            run.items * run.attempts as usize * 2 + 2,
            wall.as_secs_f64(),
            user.as_secs_f64(),
            peak / 1000
        );
        std::io::stdout().lock().write_all(text.as_bytes()).expect("the figures are printed");
    }
}

/// Records a run in which every item hands a report over, with its last attempt.
fn record(dir: &Path, run: &Run) {
    let mut plan = String::from(r#"{"id":"large","items":["#);
    for at in 0..run.items {
        let comma = if at == 0 { "" } else { "," };
        write!(plan, r#"{comma}{{"id":"item-{at}","executor":"command","inputs":{{"command":["true"]}}}}"#)
            .expect("text grows");
    }
    let mut recording = Recording::submit(dir, Durability::Relaxed, (plan + "]}").as_bytes());
    for item in recording.items.clone() {
        for attempt in 1..=run.attempts {
            let fired = recording.fired(&item, attempt);
            let ended = if attempt < run.attempts {
                NewEntry::plain(failed(&item, attempt))
            } else {
                recording.done(&item, attempt, Some(format!("the report of {}\n", item.id).as_bytes()))
            };
            recording.open.record(&[fired, ended]).expect("the attempt is recorded");
        }
    }
    recording.open.seal(None).expect("every item is done");
}

fn failed(item: &Item, attempt: u32) -> Event {
    Event::ItemRetried(ItemEnded {
        detail: Some("exit code 1".into()),
        exit: Some(Exit { code: Some(1), signal: None }),
        duration_ms: Some(1),
        ..ItemEnded::new(item.id.clone(), attempt, Again::Failure)
    })
}

/// Verifies in a process of its own; returns wall clock, user time and the most memory.
fn verify(dir: &Path) -> (Duration, Duration, u64) {
    let started = Instant::now();
    let mut verify = Command::new(BINARY);
    verify.args(["verify", "large"]).current_dir(dir).stdout(Stdio::null());
    let mut child = verify.spawn().expect("the program starts");
    let (mut peak, mut ticks) = (0, 0);
    // Both figures only grow, so the last look before the end is nearly all of it.
    loop {
        let (current_peak, used) = (peak_of(child.id()), ticks_of(child.id()));
        (peak, ticks) = (peak.max(current_peak.unwrap_or(0)), ticks.max(used.unwrap_or(0)));
        if let Some(ended) = child.try_wait().expect("the program is waited for") {
            assert!(ended.success(), "{ended}");
            return (started.elapsed(), Duration::from_millis(ticks * 10), peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the most kilobytes that a process had so far.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Returns the hundredths of a second that a process spent in its own code.
fn ticks_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok()
}

fn git(dir: &Path, args: &[&str]) {
    let status = Command::new("git").args(args).current_dir(dir).status().expect("git runs");
    assert!(status.success(), "git {args:?}");
}
