//! One run that several drivers drive through a remote: they race, die, stop, are refused and come
//! back, and the run ends sealed with nothing done twice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod base;
mod beats;
mod dates;
mod fairness;
mod faults;
mod forged;
mod forgetful;
mod killed;
mod later;
mod logs;
mod machines;
mod people;
mod schedules;
mod slow;
mod stuck;
mod transcripts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::common::program_path;
use crate::common::repo::{Driver, TestRepo, item, wait_for};

/// A repository `repo`, a remote `hub.git`, and further clones.
pub(crate) struct Hub {
    pub(crate) repo: TestRepo,
}

impl Hub {
    /// Submits a run in `repo` and makes the remote. Times are short.
    pub(crate) fn new(plan: &Value) -> Self {
        let repo = TestRepo::new();
        let times = [("handoff.heartbeat", "200ms"), ("handoff.lostAfter", "2s"), ("handoff.via.interval", "50ms")];
        for (key, value) in times {
            repo.env.git(["config", "--global", key, value]).success();
        }
        repo.env.git(["init", "--quiet", "--bare", "../hub.git"]).success();
        repo.env.git(["remote", "add", "origin", "../hub.git"]).success();
        repo.env.git(["push", "--quiet", "origin", "main"]).success();
        repo.env.write("plan.json", &plan.to_string());
        repo.env.handoff(["submit", "../plan.json"]).success();
        Self { repo }
    }

    /// Clones the remote.
    pub(crate) fn clone(&self, name: &str, options: &[&str]) {
        let url = format!("file://{}", self.repo.path("hub.git").display());
        let all = [&["clone", "--quiet"], options, &[url.as_str(), name]].concat();
        self.repo.env.git_in("", all).success();
    }

    /// Starts a driver of the run `r` in a clone.
    pub(crate) fn drive(&self, clone: &str) -> Driver {
        self.drive_with(clone, |_| {})
    }

    /// Starts a driver with a changed environment.
    pub(crate) fn drive_with(&self, clone: &str, change: impl FnOnce(&mut std::process::Command)) -> Driver {
        let dir = self.repo.path(clone);
        self.repo.start_with(&["run", "r", "--via", "origin"], |command| {
            command.current_dir(dir);
            // Real time passes between beats.
            command.env_remove("HANDOFF_CLOCK");
            change(command);
        })
    }

    /// Runs a command in a clone without a pinned clock.
    pub(crate) fn command(&self, clone: &str, words: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.repo.env.command(program_path(), clone);
        command.env_remove("HANDOFF_CLOCK").args(words);
        let ended = self.repo.env.ended(command);
        (ended.status, ended.stdout, ended.stderr)
    }

    /// Returns the entries that the remote has.
    pub(crate) fn entries(&self) -> Vec<Value> {
        let printed = self.repo.env.git_in("hub.git", ["log", "--reverse", "--format=%b", "refs/handoff/runs/r"]);
        serde_json::Deserializer::from_str(&printed.stdout).into_iter().map_while(Result::ok).collect()
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.entries().into_iter().filter(|entry| entry["kind"] == kind).collect()
    }

    /// Waits until the remote has an entry of a kind.
    pub(crate) fn wait_for_kind(&self, kind: &str) {
        wait_for(kind, || !self.of_kind(kind).is_empty());
    }

    /// Waits until the remote has an entry of a kind for an item.
    pub(crate) fn wait_for(&self, kind: &str, item: &str) -> Value {
        let mut found = None;
        wait_for(&format!("{kind} of {item}"), || {
            found = self.of_kind(kind).into_iter().find(|entry| entry["item"] == item);
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until the remote has the beats of so many drivers.
    pub(crate) fn wait_for_beats(&self, count: usize) {
        let listed = || self.repo.env.git_in("hub.git", ["for-each-ref", "refs/handoff/drivers/r"]).success();
        wait_for("beats", || listed().lines().count() == count);
    }

    /// Checks the end of a run: sealed, intact, sound, and each item done once.
    #[track_caller]
    pub(crate) fn ends_well(&self, items: usize) {
        assert_eq!(self.of_kind("run.sealed").len(), 1);
        let done: Vec<String> = self.done().into_keys().collect();
        assert_eq!(done.len(), items, "{done:?}");
        self.repo.env.git_in("hub.git", ["fsck", "--strict"]).success();
        self.clone("checked", &[]);
        self.repo.env.handoff_in("checked", ["fetch", "origin"]).success();
        let (code, out, err) = self.command("checked", &["verify", "r"]);
        assert_eq!(code, Some(0), "{out}{err}");
    }

    /// Returns the number of `done` entries of each item.
    pub(crate) fn done(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.of_kind("item.reconciled").iter().filter(|entry| entry["status"] == "done") {
            *counts.entry(entry["item"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        counts
    }

    /// Returns the lines that workers wrote.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.repo.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Returns a plan with these items.
pub(crate) fn plan(items: &[Value]) -> Value {
    json!({ "id": "r", "items": items })
}

/// Returns items that each write a line to the file `ran`, and take some time.
pub(crate) fn items(count: usize, seconds: &str) -> Vec<Value> {
    (0..count).map(|at| item(&format!("i{at}"), &works(seconds))).collect()
}

/// Returns a line of shell that records that it ran, takes some time, and has an output.
pub(crate) fn works(seconds: &str) -> String {
    format!("echo $HANDOFF_ITEM $HANDOFF_ATTEMPT >>\"$HOME/../ran\"; sleep {seconds}; echo x >outputs/x")
}

/// Waits for the end of a driver, which must be a success.
#[track_caller]
pub(crate) fn succeeds(driver: Driver) {
    let (status, output) = driver.wait();
    assert!(status.success(), "{output}");
}

/// Waits for the ends of drivers, which must be successes.
#[track_caller]
pub(crate) fn both_succeed(drivers: [Driver; 2]) {
    drivers.into_iter().for_each(succeeds);
}

#[test]
fn two_drivers_share_the_items_of_a_run() {
    let until = "until test -e \"$HOME/../go\"; do sleep 0.02; done";
    let items: Vec<Value> = (0..8).map(|at| item(&format!("i{at}"), &format!("{until}; {}", works("0")))).collect();
    let hub = Hub::new(&plan(&items));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for_kind("run.shared");
    let second = hub.drive("b");
    let drivers = |fired: &[Value]| -> BTreeSet<String> {
        fired.iter().map(|entry| entry["driver"].as_str().unwrap().to_owned()).collect()
    };
    wait_for("claims of both", || drivers(&hub.of_kind("item.fired")).len() == 2);
    hub.repo.env.write("go", "");
    both_succeed([first, second]);
    hub.ends_well(8);
    let fired = hub.of_kind("item.fired");
    let drivers = drivers(&fired);
    assert_eq!((fired.len(), drivers.len(), hub.lines("ran").len()), (8, 2, 8));
    assert!(drivers.iter().all(|driver| driver.len() == 32));
    assert!(fired.iter().all(|entry| entry["claims"]["host"].is_string()));
    let left = hub.repo.env.git_in("hub.git", ["for-each-ref", "refs/handoff/drivers"]);
    assert_eq!(left.success(), "", "ended drivers leave no beats");
    assert_eq!(hub.repo.env.git_in("b", ["for-each-ref", "refs/handoff/drivers"]).success(), "");
}

#[test]
fn identical_claims_of_one_key_and_one_clock_start_one_process() {
    let hub = Hub::new(&plan(&items(1, "0.2")));
    hub.clone("b", &[]);
    hub.repo.env.git(["config", "handoff.via.interval", "0ms"]).success();
    hub.repo.env.git(["push", "--quiet", "origin", "refs/handoff/runs/r", "refs/handoff/bases/r"]).success();
    let clock = |command: &mut std::process::Command| {
        command.env("HANDOFF_CLOCK", "2026-06-04T12:00:00.000Z");
    };
    let drivers = [hub.drive_with("repo", clock), hub.drive_with("b", clock)];
    both_succeed(drivers);
    assert_eq!(hub.lines("ran"), ["i0 1"]);
    assert_eq!(hub.of_kind("item.fired").len(), 1);
}

#[test]
fn takeover_of_a_killed_driver_is_recorded() {
    let hub = Hub::new(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    let fired = hub.wait_for("item.fired", "i0");
    let second = hub.drive("b");
    assert!(first.kill());
    succeeds(second);
    hub.ends_well(1);
    let lost = hub.wait_for("item.requeued", "i0");
    assert_eq!((lost["reason"].as_str(), lost["because"].as_str()), (Some("lost"), Some("silent")));
    assert_eq!(lost["driver"], fired["driver"]);
    assert_eq!(lost["taker"], hub.of_kind("item.fired")[1]["driver"]);
    let (_, report, _) = hub.command("b", &["verify", "r", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["takeovers"].as_array().map(Vec::len), Some(1), "{report}");
}

#[test]
fn a_driver_that_starts_again_in_its_clone_takes_over_by_its_lock() {
    let hub = Hub::new(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    assert!(first.kill());
    succeeds(hub.drive("repo"));
    hub.ends_well(1);
    assert_eq!(hub.wait_for("item.requeued", "i0")["because"], "lock");
}

#[test]
fn no_more_items_run_at_once_than_the_plan_allows() {
    let script = "mkdir \"$HOME/../running-$HANDOFF_ITEM\"; ls -d \"$HOME/..\"/running-* | wc -l >>\"$HOME/../counts\"; \
                  sleep 0.2; rmdir \"$HOME/../running-$HANDOFF_ITEM\"; echo x >outputs/x";
    let items: Vec<Value> = (0..6).map(|at| item(&format!("i{at}"), script)).collect();
    let hub = Hub::new(&json!({ "id": "r", "concurrency": 2, "items": items }));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for_kind("run.shared");
    let second = hub.drive("b");
    both_succeed([first, second]);
    hub.ends_well(6);
    let counts = hub.lines("counts");
    assert!(counts.iter().all(|count| count.trim().parse::<u32>().unwrap() <= 2), "{counts:?}");
}

#[test]
fn clones_without_blobs_and_history_drive() {
    let items = [
        item("i0", "echo one >outputs/x"),
        json!({ "id": "i1", "executor": "command", "inputs": { "command": "cat inputs/x a.txt >outputs/y" },
            "needs": { "x": { "from": "i0", "select": { "kind": "output", "path": "x" } } } }),
    ];
    let hub = Hub::new(&plan(&items));
    hub.repo.env.git_in("hub.git", ["config", "uploadpack.allowFilter", "true"]).success();
    hub.repo.env.git_in("hub.git", ["config", "uploadpack.allowAnySHA1InWant", "true"]).success();
    hub.clone("b", &["--filter=blob:none", "--depth=1"]);
    let first = hub.drive("repo");
    hub.wait_for_kind("run.shared");
    let second = hub.drive("b");
    both_succeed([first, second]);
    hub.ends_well(2);
}

#[test]
fn the_job_of_an_engine_stands_in_the_entry() {
    let hub = Hub::new(&plan(&items(1, "0")));
    let driver = hub.drive_with("repo", |command| {
        let array = [("SLURM_JOB_ID", "9"), ("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "2")];
        command.envs(array).env("SLURMD_NODENAME", "node7");
    });
    succeeds(driver);
    let fired = &hub.of_kind("item.fired")[0];
    assert_eq!((fired["claims"]["job"].as_str(), fired["claims"]["host"].as_str()), (Some("slurm 7/2"), Some("node7")));
}

/// Each rule creates its item once, although every driver applies all rules.
#[test]
fn eight_drivers_create_each_item_of_a_rule_once() {
    let makes = |at: usize, score: u32| {
        json!({ "executor": "command", "inputs": { "command": format!("echo {score} >outputs/score") },
            "produces": [{ "kind": "document", "name": format!("score{at}"), "path": "score" }] })
    };
    let first = |at: usize| {
        let mut item = makes(at, 5);
        item["id"] = json!(format!("i{at}"));
        item
    };
    let rule = |at: usize| {
        let low = json!({ "document": format!("score{at}"), "pointer": "", "op": "<", "value": 8 });
        json!({ "id": format!("again{at}"), "when": { "if": [low] }, "create": makes(at, 9) })
    };
    let (items, rules): (Vec<_>, Vec<_>) = (0..3).map(|at| (first(at), rule(at))).unzip();
    let hub = Hub::new(&json!({ "id": "r", "items": items, "rules": rules }));
    let clones: Vec<String> = (1..8).map(|at| format!("c{at}")).collect();
    clones.iter().for_each(|name| hub.clone(name, &[]));
    let second_first = hub.drive("repo");
    hub.wait_for_kind("run.shared");
    let others: Vec<Driver> = clones.iter().map(|name| hub.drive(name)).collect();
    succeeds(second_first);
    others.into_iter().for_each(succeeds);
    let created = hub.of_kind("run.extended");
    let added: usize = created.iter().map(|entry| entry["items"].as_object().map_or(0, serde_json::Map::len)).sum();
    assert_eq!(added, 3, "{created:?}");
    hub.ends_well(6);
}
