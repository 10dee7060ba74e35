//! Measures the main job against what a shell script would do, in one run, on the release build.
//!
//! `cargo bench --bench main_job` runs all; a word behind `--` picks one: `runs`, `layers`,
//! `appends`, `documents`, `large`, `share`. Only `layers` has workers that are confined.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Recording;
use git_handoff::git::store::Durability;

const BINARY: &str = env!("CARGO_BIN_EXE_git-handoff");
const ITEMS: usize = 1_000;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_selected = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    if is_selected("runs") {
        runs();
    }
    if is_selected("layers") {
        layers();
    }
    if is_selected("appends") {
        appends();
    }
    if is_selected("documents") {
        documents();
    }
    if is_selected("large") {
        large();
    }
    if is_selected("share") {
        share();
    }
}

/// A thousand no-op items against a loop of `git worktree add`, `git commit`, `git worktree
/// remove`.
fn runs() {
    let bench = Bench::new();
    bench.git(&["config", "handoff.queue.default.concurrency", "2"]);
    let plan = bench.plan("runs", ITEMS);
    let script = format!(
        "for i in $(seq {ITEMS}); do git worktree add -q --detach ../w$i && \
         git -C ../w$i commit -q --allow-empty -m x && git worktree remove ../w$i || exit 1; done"
    );
    let (shell, _) = bench.time(Command::new("sh").arg("-c").arg(script));
    let (ours, peak) = bench.time(Command::new(BINARY).arg("run").arg(&plan));
    report("shell loop", shell, None);
    report(&format!("git handoff run, {ITEMS} items"), ours, Some(peak));
    ratio("run / loop", ours, shell, 0.35);
    let (verify, verify_peak) = bench.time(Command::new(BINARY).args(["verify", "runs"]));
    report("verify, as written", verify, Some(verify_peak));
    bench.git(&["gc", "-q"]);
    let (second_verify, second_peak) = bench.time(Command::new(BINARY).args(["verify", "runs"]));
    report("verify, packed", second_verify, Some(second_peak));
    let size = disk(&bench.repository.join(".git"));
    line(&format!("on disk after git gc: {:.2} MB for {ITEMS} items (aim: 6)", mega(size)));
}

/// The cost of confinement for each of several sequential items: three runs in turn, five times,
/// and the median difference.
fn layers() {
    const EACH: usize = 100;
    let bench = Bench::new();
    // Everything but bubblewrap.
    let without = bench.folder.path().join("without");
    fs::create_dir(&without).expect("a folder of programs");
    for program in ["git", "true", "sh"] {
        let link = without.join(program);
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), link).expect("a program is linked");
    }
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let ways = [("none", "none", &*usual), ("inner", "auto", without.as_os_str()), ("all", "auto", &*usual)];
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..5 {
        for ((name, sandbox, path), durations) in ways.iter().zip(&mut times) {
            bench.git(&["config", "handoff.sandbox", sandbox]);
            let plan = bench.plan(&format!("{name}-{round}"), EACH);
            durations.push(bench.time(Command::new(BINARY).arg("run").arg(plan).env("PATH", path)).0.as_secs_f64());
        }
    }
    for ((name, ..), aim) in ways.iter().zip([0, 5, 10]) {
        let had = bench.output(Command::new(BINARY).args(["cat", &format!("{name}-0/item-0:manifest")]));
        let had: serde_json::Value = serde_json::from_str(&had).expect("a manifest");
        line(&format!("{name}: {} (aim: at most {aim} ms an item more than none)", had["sandbox"]));
    }
    let [none, inner, all] = times;
    for (name, with) in [("inner", inner), ("all", all)] {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let mut more: Vec<f64> = with.iter().zip(&none).map(|(with, none)| (with - none) * 1e3 / EACH as f64).collect();
        more.sort_unstable_by(f64::total_cmp);
        line(&format!("{name}: {:.2} ms an item more ({:.2} to {:.2})", more[2], more[0], more[4]));
    }
}

/// The cost of an entry at the beginning and at the end of a run.
fn appends() {
    let bench = Bench::new();
    let plan = fs::read(bench.plan("appends", ITEMS)).expect("the plan was written");
    let mut recording = Recording::submit(&bench.repository, Durability::Strict, &plan);
    let mut windows = Vec::new();
    for chunk in recording.items.clone().chunks(ITEMS / 10) {
        let started = Instant::now();
        for item in chunk {
            let (fired, done) = (recording.fired(item, 1), recording.done(item, 1, None));
            recording.open.record(&[fired]).expect("the dispatch is recorded");
            recording.open.record(&[done]).expect("the end is recorded");
        }
        windows.push(started.elapsed());
    }
    let per_entry = |window: Duration| window / u32::try_from(ITEMS / 10 * 2).expect("a small number");
    for (at, window) in windows.iter().enumerate() {
        line(&format!("items {:>4} and on: {:?} an entry", at * ITEMS / 10, per_entry(*window)));
    }
    ratio("last tenth / first tenth", windows[9], windows[0], 1.5);
}

/// The cost of a revision of a document as they gather, against a commit of the same file.
fn documents() {
    let bench = Bench::new();
    let plan = bench.plan("documents", 1);
    bench.time(Command::new(BINARY).arg("submit").arg(&plan));
    let text = bench.folder.path().join("text");
    let mut revision = 0;
    let mut put = || {
        revision += 1;
        fs::write(&text, format!("revision {revision}\n")).expect("the text is written");
        bench.time(Command::new(BINARY).args(["doc", "put", "documents", "text"]).arg(&text)).0
    };
    let mut few = None;
    for (more, upto) in [(20, 20), (130, 150), (450, 600)] {
        let times: Vec<Duration> = (0..more).map(|_| put()).collect();
        let last = times[more - 10..].iter().sum::<Duration>() / 10;
        line(&format!("doc put, the ten before revision {upto}: {last:?} each"));
        ratio("to those before revision 20", last, *few.get_or_insert(last), 1.5);
    }
    let script = "for i in $(seq 10); do echo $i >f && git add f && git commit -q -m x || exit 1; done";
    let (commits, _) = bench.time(Command::new("sh").arg("-c").arg(script));
    line(&format!("git add and git commit: {:?} each", commits / 10));
    ratio("doc put / git commit", few.unwrap_or_default(), commits / 10, 4.0);
}

/// A gibibyte from one item to the next against `sha256sum` and `git hash-object -w` on the same
/// bytes.
fn large() {
    let bench = Bench::new();
    bench.git(&["config", "handoff.maxProductSize", "2g"]);
    let file = bench.folder.path().join("gibibyte");
    let mut out = fs::File::create(&file).expect("the file is made");
    let mut noise = vec![0u8; 1 << 20];
    let mut seed = 1u64;
    for _ in 0..1024 {
        for byte in noise.chunks_mut(8) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            byte.copy_from_slice(&seed.to_le_bytes()[..byte.len()]);
        }
        out.write_all(&noise).expect("the file is written");
    }
    drop(out);
    let plan = format!(
        r#"{{"id":"large","items":[
            {{"id":"make","executor":"command","inputs":{{"command":"cp '{}' outputs/big"}}}},
            {{"id":"take","executor":"command","inputs":{{"command":"test -s inputs/big"}},
              "needs":{{"big":{{"from":"make","select":{{"kind":"output","path":"big"}}}}}}}}]}}"#,
        file.display()
    );
    let path = bench.folder.path().join("large.json");
    fs::write(&path, plan).expect("the plan is written");
    let (sum, _) = bench.time(Command::new("sha256sum").arg(&file));
    let (hash, _) = bench.time(Command::new("git").args(["hash-object", "-w"]).arg(&file));
    bench.git(&["prune"]);
    let (ours, peak) = bench.time(Command::new(BINARY).arg("run").arg(&path));
    report("sha256sum + git hash-object -w", sum + hash, None);
    report("git handoff run, 1 GiB handed over", ours, Some(peak));
    ratio("run / (sha256sum + hash-object)", ours, sum + hash, 3.0);
    let (verify, verify_peak) = bench.time(Command::new(BINARY).args(["verify", "large"]));
    report("verify, with 1 GiB of content", verify, Some(verify_peak));
}

/// A thousand items from a bare remote into a clone without blobs, against plain git and into one
/// with all of them.
fn share() {
    let bench = Bench::new();
    bench.git(&["config", "handoff.queue.default.concurrency", "2"]);
    let plan = bench.plan("runs", ITEMS);
    bench.time(Command::new(BINARY).arg("run").arg(&plan));
    bench.git(&["init", "-q", "--bare", "../hub"]);
    bench.git(&["-C", "../hub", "config", "uploadpack.allowFilter", "true"]);
    let (push, _) = bench.time(Command::new(BINARY).args(["push", "../hub", "--all"]));
    report("push", push, None);
    let url = format!("file://{}/hub", bench.folder.path().display());
    let clone = |name: String, lazy: bool| {
        let dir = format!("../{name}");
        bench.git(&["init", "-q", &dir]);
        bench.git(&["-C", &dir, "remote", "add", "origin", &url]);
        if lazy {
            bench.git(&["-C", &dir, "config", "remote.origin.promisor", "true"]);
            bench.git(&["-C", &dir, "config", "remote.origin.partialCloneFilter", "blob:none"]);
        }
        bench.folder.path().join(name).join(".git")
    };
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    let mut times: [Vec<Duration>; 6] = Default::default();
    for round in 0..5 {
        for (at, what, lazy) in [(0, "ours-lazy", true), (2, "plain-full", false), (4, "ours-full", false)] {
            let git_dir = clone(format!("{what}-{round}"), lazy);
            let mut fetch = Command::new(if at == 2 { "git" } else { BINARY });
            match at {
                2 => fetch.args(["fetch", "-q", "origin", spec]),
                _ => fetch.args(["fetch", "origin"]),
            };
            times[at].push(bench.time(fetch.env("GIT_DIR", &git_dir)).0);
            let mut verify = Command::new(BINARY);
            verify.args(["verify", "origin/runs"]).env("GIT_DIR", &git_dir);
            times[at + 1].push(bench.time(&mut verify).0);
        }
    }
    let median = |durations: &mut Vec<Duration>| {
        durations.sort_unstable();
        durations[durations.len() / 2]
    };
    let [lazy_fetch, lazy_verify, plain_fetch, plain_verify, full_fetch, full_verify] = times.each_mut().map(median);
    report("git handoff fetch without blobs", lazy_fetch, None);
    report("verify there", lazy_verify, None);
    report("plain git fetch", plain_fetch, None);
    report("verify there", plain_verify, None);
    report("git handoff fetch", full_fetch, None);
    report("verify there", full_verify, None);
    let plain = plain_fetch + plain_verify;
    ratio("without blobs / plain", lazy_fetch + lazy_verify, plain, 1.3);
    ratio("full / plain", full_fetch + full_verify, plain, 1.3);
    line(&format!("fetch and verify without blobs: {:.2} s (aim: under 2)", (lazy_fetch + lazy_verify).as_secs_f64()));
}

/// A throw-away repository with twenty files.
struct Bench {
    folder: tempfile::TempDir,
    repository: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = folder.path().join("repository");
        fs::create_dir_all(&repository).expect("the repository's folder");
        let bench = Self { folder, repository };
        bench.git(&["init", "-q", "-b", "main"]);
        bench.git(&["config", "user.name", "Bench"]);
        bench.git(&["config", "user.email", "bench@localhost"]);
        bench.git(&["config", "handoff.sandbox", "none"]);
        for n in 0..20 {
            let text = format!("one of many lines of file {n}\n").repeat(200);
            fs::write(bench.repository.join(format!("file{n}.txt")), text).expect("a file is written");
        }
        bench.git(&["add", "-A"]);
        bench.git(&["commit", "-q", "-m", "Twenty files"]);
        bench
    }

    fn git(&self, args: &[&str]) {
        let status = Command::new("git").args(args).current_dir(&self.repository).status().expect("git runs");
        assert!(status.success(), "git {args:?}");
    }

    fn output(&self, command: &mut Command) -> String {
        let output = command.current_dir(&self.repository).output().expect("the command starts");
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn plan(&self, id: &str, items: usize) -> PathBuf {
        let items: Vec<String> = (0..items)
            .map(|n| format!(r#"{{"id":"item-{n}","executor":"command","inputs":{{"command":["true"]}}}}"#))
            .collect();
        let path = self.folder.path().join(format!("{id}.json"));
        fs::write(&path, format!(r#"{{"id":"{id}","items":[{}]}}"#, items.join(","))).expect("the plan is written");
        path
    }

    /// Runs a command and returns its wall time and the largest memory it was seen to hold, in
    /// bytes.
    fn time(&self, command: &mut Command) -> (Duration, u64) {
        let started = Instant::now();
        let mut child = command
            .current_dir(&self.repository)
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        loop {
            // The high-water mark only grows, so the last look before the end is nearly all of it.
            peak = high_water(&status).unwrap_or(peak).max(peak);
            if let Some(ended) = child.try_wait().expect("the command is waited for") {
                assert!(ended.success(), "{command:?}: {ended}");
                return (started.elapsed(), peak);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn high_water(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn disk(folder: &Path) -> u64 {
    let out = Command::new("du").arg("-sk").arg(folder).output().expect("du runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.split_whitespace().next().and_then(|size| size.parse::<u64>().ok()).expect("du prints a size") * 1024
}

fn report(what: &str, time: Duration, peak: Option<u64>) {
    let peak = peak.map(|bytes| format!(", peak {:.0} MB", mega(bytes))).unwrap_or_default();
    line(&format!("{what}: {:.2} s{peak}", time.as_secs_f64()));
}

fn ratio(what: &str, ours: Duration, other: Duration, aim: f64) {
    line(&format!("{what}: {:.2} (aim: under {aim})", ours.as_secs_f64() / other.as_secs_f64()));
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").expect("the figures are printed");
}
