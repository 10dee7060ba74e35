//! Measures what an item's worktree costs on many files, against git's own commands on the same in
//! the same run, interleaved.
//!
//! `cargo bench --bench worktrees`. The folders lie where temporary files do, or in `$BENCH_DIR`:
//! on a file system where worktrees are used again.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::worktree::capture::capture;
use git_handoff::worktree::host::Host;
use git_handoff::worktree::workspace::Workspace;

/// How many files the repository has.
const FILES: usize = 20_000;

/// How often each is measured; the median counts.
const ROUNDS: usize = 5;

fn main() {
    let bench = Bench::new();
    let head: Oid = git(&bench.repository, &["rev-parse", "HEAD"]).trim().parse().expect("a commit");
    let store = Store::discover(&bench.repository).expect("it is a repository");
    let mut times: [Vec<Duration>; 7] = Default::default();
    for round in 0..ROUNDS {
        // Flushes earlier writes before the next measurement.
        let timed = |durations: &mut Vec<Duration>, work: &mut dyn FnMut()| {
            settle();
            let started = Instant::now();
            work();
            durations.push(started.elapsed());
        };
        let theirs = bench.folder.path().join(format!("theirs-{round}"));
        let path = theirs.to_str().expect("our paths are text").to_owned();
        timed(&mut times[0], &mut || drop(git(&bench.repository, &["worktree", "add", "-q", "--detach", &path])));
        git(&theirs, &["status", "--porcelain"]);
        fs::write(theirs.join("d7/f7"), "changed\n").expect("a file is written");
        timed(&mut times[1], &mut || drop(git(&theirs, &["status", "--porcelain"])));
        let host = Host::new(store.clone(), bench.folder.path().join(format!("ours-{round}"))).reusing(true);
        let (run, item) = (RunId::parse("bench").expect("an id"), ItemId::parse("item").expect("an id"));
        let create = |attempt| Workspace::create(&host, &run, &item, attempt, head).expect("a worktree is made");
        let mut made = None;
        timed(&mut times[2], &mut || made = Some(create(1)));
        let workspace = made.take().expect("it was made");
        timed(&mut times[3], &mut || drop(capture(&workspace, &host).expect("nothing is captured")));
        fs::write(workspace.tree().join("d7/f7"), "changed\n").expect("a file is written");
        timed(&mut times[4], &mut || {
            assert!(capture(&workspace, &host).expect("the change is captured").patch.is_some());
        });
        if let Err(workspace) = workspace.recycle(&host) {
            line("worktrees are not used again on this file system: set BENCH_DIR");
            workspace.remove().expect("it is removed");
        }
        timed(&mut times[5], &mut || made = Some(create(2)));
        made.take().expect("it was made").recycle(&host).expect("nothing is wrong with it");
        timed(&mut times[6], &mut || made = Some(create(3)));
        made.take().expect("it was made").remove().expect("it is removed");
        host.clear_pool().expect("the pool is removed");
        git(&bench.repository, &["worktree", "remove", "--force", &path]);
    }
    let [add, status, cold, nothing, one, warm, untouched] = times.each_mut().map(|times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    line(&format!("{FILES} files, the median of {ROUNDS} rounds"));
    line(&format!("git worktree add --detach: {add:?}; git status with one change: {status:?}"));
    ratio("a worktree, cold / add", cold, add, 0.5);
    ratio("a worktree from the pool after one change / add", warm, add, 0.1);
    ratio("a worktree from the pool after none / add", untouched, add, 0.1);
    ratio("capturing one change / status", one, status, 1.5);
    ratio("capturing nothing / status", nothing, status, 1.5);
}

/// Has everything be written that waits for it, so that one measurement does not pay for another.
fn settle() {
    let synced = Command::new("sync").status().expect("sync runs");
    assert!(synced.success());
}

/// A throw-away repository.
struct Bench {
    folder: tempfile::TempDir,
    repository: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = match std::env::var_os("BENCH_DIR") {
            Some(dir) => tempfile::tempdir_in(dir),
            None => tempfile::tempdir(),
        };
        let folder = folder.expect("a temporary folder");
        let repository = folder.path().join("repository");
        fs::create_dir_all(&repository).expect("the repository's folder");
        let bench = Self { folder, repository };
        let dir = &bench.repository;
        git(dir, &["init", "-q", "-b", "main"]);
        // Disables git's background maintenance.
        git(dir, &["config", "gc.auto", "0"]);
        git(dir, &["config", "user.name", "Bench"]);
        git(dir, &["config", "user.email", "bench@localhost"]);
        for n in 0..FILES {
            let path = dir.join(format!("d{}/f{n}", n % 200));
            fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder is made");
            fs::write(path, format!("one of many lines of file {n}\n").repeat(100)).expect("a file is written");
        }
        git(dir, &["add", "-A"]);
        git(dir, &["commit", "-q", "-m", "Many files"]);
        git(dir, &["gc", "-q"]);
        bench
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(dir).output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ratio(what: &str, ours: Duration, theirs: Duration, most: f64) {
    line(&format!("{what}: {ours:?}, {:.2} (at most {most})", ours.as_secs_f64() / theirs.as_secs_f64()));
}

fn line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").expect("the figures are printed");
}
