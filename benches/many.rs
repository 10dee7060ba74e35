//! Measures what many of a thing cost, against git's own commands on the same in the same run, on
//! the release build.
//!
//! `cargo bench --bench many` measures all; a word behind `--` picks one: `runs`, `files`, `graph`.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Recording;
use git_handoff::git::store::Durability;
use git_handoff::model::item_index::{ItemIndex, ItemVec};
use git_handoff::model::name::ItemId;
use git_handoff::report::graph::{BOXES, Keys, Outline, OutlineItem, Picture};

const BINARY: &str = env!("CARGO_BIN_EXE_git-handoff");

/// How many runs are shared.
const RUNS: usize = 5_000;

/// Pictures: the number of items, the dependencies of each 1,000 items, and the most seconds.
const PICTURES: [(usize, usize, f64); 3] = [(200, 1_614, 0.05), (1_000, 1_614, 0.3), (10_000, 1_614, 3.0)];

/// How many files an item leaves.
const FILES: usize = 100_000;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_selected = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    if is_selected("runs") {
        runs();
    }
    if is_selected("files") {
        files();
    }
    if is_selected("graph") {
        graph();
    }
}

/// Lays out plans whose items have no names in common, and depend on some items before them.
fn graph() {
    for (count, edges, most) in PICTURES {
        let indices: Vec<ItemIndex> = ItemVec::from(vec![(); count]).indices().collect();
        let item = |at: usize| {
            // The letters of a number, so that no two names have the same beginning.
            let id: String = at.to_string().bytes().rev().map(|digit| char::from(b'a' + digit - b'0')).collect();
            let needed = (at + 1) * edges / 1_000 - at * edges / 1_000;
            let dependencies = (1..=needed).filter_map(|back| Some(indices[at.checked_sub(back * 7)?])).collect();
            let id = ItemId::parse(&id).expect("letters are a name");
            OutlineItem { id, dependencies, keys: Keys::default() }
        };
        let outline = Outline { items: (0..count).map(item).collect() };
        let begun = Instant::now();
        let picture = Picture::new(&outline, BOXES);
        let took = begun.elapsed().as_secs_f64();
        let (boxes, lines) = (picture.boxes.len(), picture.edges.len());
        line(&format!("picture of {count} items: {boxes} boxes, {lines} edges, {took:.3} s (at most {most})"));
    }
}

/// Thousands of runs to a remote and from it, for the first time, for the second, and after one
/// more; against plain patterns.
fn runs() {
    let bench = Bench::new();
    let dir = bench.repository();
    for at in 0..RUNS {
        record(&dir, at);
    }
    bench.git(&["init", "-q", "--bare", "../hub"]);
    bench.git(&["init", "-q", "--bare", "../plain"]);
    let pattern = "refs/handoff/*:refs/handoff/*";
    let plain = bench.time(Command::new("git").args(["push", "-q", "../plain", pattern]));
    line(&format!("git push of {RUNS} runs by a pattern: {:.2} s", plain.as_secs_f64()));
    let first = bench.time(Command::new(BINARY).args(["push", "../hub", "--all"]));
    ratio("git handoff push / that", first, plain, 2.0);
    let listed = bench.time(Command::new("git").args(["ls-remote", "../hub", "refs/handoff/*"]));
    line(&format!("git ls-remote: {:.2} s", listed.as_secs_f64()));
    let again = bench.time(Command::new(BINARY).args(["push", "../hub", "--all"]));
    line(&format!("git handoff push, nothing new: {:.2} s", again.as_secs_f64()));
    record(&dir, RUNS);
    let one = bench.time(Command::new(BINARY).args(["push", "../hub", "--all"]));
    line(&format!("git handoff push, one run more: {:.2} s", one.as_secs_f64()));
    for name in ["theirs", "ours"] {
        bench.git(&["init", "-q", &format!("../{name}")]);
    }
    let into = "refs/handoff/*:refs/handoff/remotes/origin/*";
    let mut fetch = Command::new("git");
    let fetch_plain = bench.time(fetch.args(["-C", "../theirs", "fetch", "-q", "../hub", into]));
    line(&format!("git fetch by a pattern: {:.2} s", fetch_plain.as_secs_f64()));
    let mut second_fetch = Command::new(BINARY);
    let timed_fetch = second_fetch.args(["fetch", "../hub"]).env("GIT_DIR", bench.folder.path().join("ours/.git"));
    ratio("git handoff fetch / that", bench.time(timed_fetch), fetch_plain, 2.0);
    line(&format!("git handoff fetch, nothing new: {:.2} s", bench.time(timed_fetch).as_secs_f64()));
    for words in [&["runs"][..], &["verify", "--all"]] {
        let took = bench.time(Command::new(BINARY).args(words));
        line(&format!("git handoff {}: {:.2} s", words.join(" "), took.as_secs_f64()));
    }
}

/// Records a run of one item from its submission to its seal.
fn record(dir: &Path, at: usize) {
    let plan =
        format!(r#"{{"id":"run-{at}","items":[{{"id":"a","executor":"command","inputs":{{"command":["true"]}}}}]}}"#);
    let mut recording = Recording::submit(dir, Durability::Relaxed, plan.as_bytes());
    let item = recording.items[0].clone();
    let (fired, done) = (recording.fired(&item, 1), recording.done(&item, 1, None));
    recording.open.record(&[fired, done]).expect("the attempt is recorded");
    recording.open.seal(None).expect("the item is done");
}

/// An item that leaves very many small files, against `git add` of just these.
fn files() {
    let bench = Bench::new();
    let script = format!(
        "for folder in $(seq 100); do mkdir d$folder; \
         seq -f \"d$folder/%g\" {} | xargs -n 1000 sh -c 'for f; do echo $f > $f; done' sh; done",
        FILES / 100
    );
    let made = bench.time(Command::new("sh").args(["-c", &script]));
    line(&format!("writing {FILES} files: {:.2} s", made.as_secs_f64()));
    let plain = bench.time(Command::new("git").args(["add", "-A"]));
    line(&format!("git add: {:.2} s", plain.as_secs_f64()));
    bench.git(&["read-tree", "HEAD"]);
    bench.git(&["clean", "-fdxq"]);
    bench.git(&["prune", "--expire=now"]);
    // From the worker's end on: how long the same files take to be written differs from time to
    // time.
    let ended = bench.folder.path().join("ended");
    let script = format!("{script}; touch {}", ended.display());
    let plan = serde_json::json!({"id": "files", "items": [{
        "id": "a", "executor": "command", "inputs": {"command": ["sh", "-c", script]},
    }]});
    let path = bench.folder.path().join("files.json");
    fs::write(&path, plan.to_string()).expect("the plan is written");
    let all = bench.time(Command::new(BINARY).arg("run").arg(&path));
    let ended = fs::metadata(ended).and_then(|meta| meta.modified()).expect("the worker came to its end");
    let ours = ended.elapsed().expect("it was before now");
    line(&format!("git handoff run, with writing them: {:.2} s", all.as_secs_f64()));
    ratio("capturing them, to the seal / git add", ours, plain, 2.0);
}

/// A throw-away repository.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir_all(bench.repository()).expect("the repository's folder");
        bench.git(&["init", "-q", "-b", "main"]);
        bench.git(&["config", "user.name", "Bench"]);
        bench.git(&["config", "user.email", "bench@localhost"]);
        bench.git(&["config", "handoff.sandbox", "none"]);
        bench.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        bench
    }

    fn repository(&self) -> std::path::PathBuf {
        self.folder.path().join("repository")
    }

    fn git(&self, args: &[&str]) {
        let status = Command::new("git").args(args).current_dir(self.repository()).status().expect("git runs");
        assert!(status.success(), "git {args:?}");
    }

    /// Runs a command and returns its wall time.
    fn time(&self, command: &mut Command) -> Duration {
        let started = Instant::now();
        let status = command
            .current_dir(self.repository())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the command starts");
        assert!(status.success(), "{command:?}: {status}");
        started.elapsed()
    }
}

fn ratio(what: &str, ours: Duration, theirs: Duration, most: f64) {
    let (ours, ratio) = (ours.as_secs_f64(), ours.as_secs_f64() / theirs.as_secs_f64());
    line(&format!("{what}: {ours:.2} s, {ratio:.2} (at most {most})"));
}

fn line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").expect("the figures are printed");
}
