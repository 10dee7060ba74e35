//! A repository with runs in it, and what must be true of both after whatever happened.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Environment, Output, program_path};

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A repository with a few files, below an environment of its own.
pub(crate) struct TestRepo {
    pub(crate) env: Environment,
}

/// An item as the tests look at it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: String,
    pub(crate) attempts: u64,
    pub(crate) reason: String,
    pub(crate) outputs: BTreeSet<String>,
}

/// A driver in the background; killed when dropped.
pub(crate) struct Driver {
    child: Child,
    stderr_file: PathBuf,
    printed: PathBuf,
}

impl TestRepo {
    pub(crate) fn new() -> Self {
        Self::in_environment(Environment::empty())
    }

    /// Makes one in a new environment.
    pub(crate) fn in_environment(env: Environment) -> Self {
        Self::with_options(env, &[])
    }

    /// Makes one with options of `git init`.
    pub(crate) fn with_options(env: Environment, options: &[&str]) -> Self {
        fs::create_dir(env.repo()).unwrap();
        let repo = Self { env };
        repo.make(options);
        repo
    }

    /// Makes the repository in the folder `repo`, which may be a mount.
    pub(crate) fn make(&self, options: &[&str]) {
        self.env.git([&["init", "--quiet"], options].concat()).success();
        self.env.write("repo/a.txt", "one\ntwo\n");
        self.env.write("repo/dir/b.txt", "b\n");
        self.env.git(["add", "--all"]).success();
        self.env.git(["commit", "--quiet", "--message", "Start"]).success();
    }

    pub(crate) fn config(&self, key: &str, value: &str) {
        self.env.git(["config", key, value]).success();
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.env.path().join(below)
    }

    /// Writes a plan file; items are objects, or a name and a command.
    pub(crate) fn plan(&self, run: &str, items: &[Value]) -> String {
        let file = format!("{}.plan.json", run.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        self.env.write(&file, &json!({ "id": run, "items": items }).to_string());
        format!("../{file}")
    }

    /// Submits a plan.
    pub(crate) fn submit(&self, run: &str, items: &[Value]) {
        let file = self.plan(run, items);
        self.env.handoff(["submit", &file]).success();
    }

    /// Submits a plan and drives it to its end.
    pub(crate) fn drive(&self, run: &str, items: &[Value]) -> Output {
        self.submit(run, items);
        self.env.handoff(["run", run])
    }

    pub(crate) fn status(&self, run: &str) -> Value {
        let printed = self.env.handoff(["status", "--json", run]).success();
        serde_json::from_str(&printed).unwrap()
    }

    pub(crate) fn item(&self, run: &str, id: &str) -> Seen {
        self.items(run).remove(id).expect("the run has the item")
    }

    pub(crate) fn items(&self, run: &str) -> BTreeMap<String, Seen> {
        items_in(&self.status(run))
    }

    pub(crate) fn entries(&self, run: &str) -> Vec<Value> {
        let printed = self.env.handoff(["log", "--json", run]).success();
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn is_sealed(&self, run: &str) -> bool {
        self.status(run)["sealed"].as_bool().unwrap()
    }

    /// Starts the program and does not wait for it.
    pub(crate) fn start(&self, args: &[&str]) -> Driver {
        self.start_with(args, |_| {})
    }

    pub(crate) fn start_with(&self, args: &[&str], change: impl FnOnce(&mut std::process::Command)) -> Driver {
        let mut command = self.env.command(program_path(), "repo");
        let number = command.get_envs().find(|(k, _)| *k == "HANDOFF_CLOCK").unwrap().1.unwrap().to_owned();
        let number = number.to_str().unwrap().replace(':', "-");
        let (stderr_file, printed) = (self.path(&format!("{number}.err")), self.path(&format!("{number}.out")));
        command.args(args).stdin(Stdio::null());
        command.stdout(File::create(&printed).unwrap()).stderr(File::create(&stderr_file).unwrap());
        change(&mut command);
        Driver { child: command.spawn().unwrap(), stderr_file, printed }
    }

    /// Holds what must be true whenever a driver has ended: the repository is sound, and nothing is
    /// left on the machine.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        self.is_quiet();
        assert_eq!(self.worktrees(), Vec::<PathBuf>::new(), "worktrees were left");
    }

    /// Holds the same of one that could not record what it came to: the worktrees of that wait for
    /// the next driver.
    #[track_caller]
    pub(crate) fn is_quiet(&self) {
        self.is_sound();
        self.no_process_is_left();
        assert!(!self.path("canary").exists(), "the canary was triggered");
    }

    /// Fails unless git finds nothing wrong.
    #[track_caller]
    pub(crate) fn passes_fsck(&self) {
        // Dangling objects of attempts that came to nothing are no fault.
        let output = self.env.git(["fsck", "--strict", "--no-dangling", "--no-progress"]);
        assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (Some(0), "", ""));
    }

    /// Fails unless git finds nothing wrong and there is no lock file.
    #[track_caller]
    pub(crate) fn is_sound(&self) {
        self.passes_fsck();
        let locks = below(&self.env.repo().join(".git/refs"), &|path| path.extension().is_some_and(|e| e == "lock"));
        assert_eq!(locks, Vec::<PathBuf>::new(), "lock files were left");
    }

    /// Closes a run that is not sealed and fails unless it verifies.
    #[track_caller]
    pub(crate) fn ends_intact(&self, run: &str) {
        if !self.is_sealed(run) {
            self.env.handoff(["close", run]).success();
        }
        self.is_intact(run);
    }

    #[track_caller]
    pub(crate) fn is_intact(&self, run: &str) {
        let output = self.env.handoff(["verify", "--json", "--allow-partial", run]).exit(0);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&report["intact"], &report["sealed"]), (&json!(true), &json!(true)), "{report}");
    }

    /// Returns the attempts' folders.
    pub(crate) fn worktrees(&self) -> Vec<PathBuf> {
        below(&self.path("worktrees"), &|path| path.join("tree").exists() || path.ends_with("task.json"))
    }

    /// Waits until no process has anything to do with this environment: killed ones take a moment
    /// to be gone.
    #[track_caller]
    pub(crate) fn no_process_is_left(&self) {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "processes were left: {left:?}");
            pause();
        }
    }

    /// Returns the command lines of processes that name this environment, were started in it, or
    /// stand in it.
    pub(crate) fn processes(&self) -> Vec<String> {
        self.process_ids().into_values().collect()
    }

    /// Returns the same by their ids.
    pub(crate) fn process_ids(&self) -> BTreeMap<u32, String> {
        let mark = self.env.path().to_str().unwrap().as_bytes();
        let names = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let found = pids.filter(|pid| *pid != std::process::id()).filter_map(|pid| {
            let proc = Path::new("/proc").join(pid.to_string());
            let line = fs::read(proc.join("cmdline")).ok().filter(|line| !line.is_empty())?;
            let environ = fs::read(proc.join("environ")).unwrap_or_default();
            let inside = fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.env.path()));
            let line_text = String::from_utf8_lossy(&line).replace('\0', " ");
            (names(&line) || names(&environ) || inside).then_some((pid, line_text))
        });
        found.collect()
    }

    /// The lines of a file that executors append to.
    pub(crate) fn lines(&self, below: &str) -> Vec<String> {
        fs::read_to_string(self.path(below)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn refs(&self) -> String {
        self.env.git(["for-each-ref"]).success()
    }

    pub(crate) fn tip(&self, run: &str) -> Option<String> {
        let name = format!("refs/handoff/runs/{run}");
        let output = self.env.git(["rev-parse", "--verify", "--quiet", &name]);
        (output.status == Some(0)).then(|| output.stdout.trim().to_owned())
    }
}

impl Driver {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Returns its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr_file).unwrap()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it with SIGKILL; returns true if it was still running.
    pub(crate) fn kill(mut self) -> bool {
        let over = self.is_over();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        !over
    }

    /// Waits for its end; returns its exit status and its output.
    #[track_caller]
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        wait_for("the end of a driver", || self.is_over());
        let output = self.stderr() + &fs::read_to_string(&self.printed).unwrap();
        (self.child.wait().unwrap(), output)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It is over already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the items in what `status --json` printed.
pub(crate) fn items_in(status: &Value) -> BTreeMap<String, Seen> {
    let items = status["items"].as_array().unwrap().iter().map(|item| {
        let view = Seen {
            status: item["status"].as_str().unwrap().to_owned(),
            attempts: item["attempts"].as_u64().unwrap(),
            reason: item["reason"].as_str().unwrap_or_default().to_owned(),
            outputs: item["outputRefs"].as_object().unwrap().keys().cloned().collect(),
        };
        (item["id"].as_str().unwrap().to_owned(), view)
    });
    items.collect()
}

/// Returns an item that runs a line of shell.
pub(crate) fn item(id: &str, script: &str) -> Value {
    json!({ "id": id, "executor": "command", "inputs": { "command": script }, "maxAttempts": 1 })
}

/// Returns an item that runs a line of shell after others.
pub(crate) fn after(id: &str, on: &[&str], script: &str) -> Value {
    let mut item = item(id, script);
    item["depends_on"] = json!(on);
    item
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        pause();
    }
}

pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Returns the matching paths below a folder; links are not followed.
fn below(folder: &Path, is_match: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(directory) = folders.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_match(&path) {
                found.push(path.clone());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    found
}
