//! Concurrent operations: one wins, the other fails or waits, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod threads;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::repo::{Driver, TestRepo, after, item, pause};
use crate::common::report::find_line;

/// Runs commands at the same time; returns exit codes and outputs, in their order.
fn at_once(repo: &TestRepo, commands: &[&[&str]]) -> Vec<(i32, String)> {
    let started: Vec<Driver> = commands.iter().map(|arguments| repo.start(arguments)).collect();
    let ended = started.into_iter().map(Driver::wait);
    ended.map(|(status, output)| (status.code().expect("none is killed"), output)).collect()
}

/// Returns the runs that the log names: their seals, or their beginnings.
fn logged(repo: &TestRepo, sealed: bool) -> Vec<String> {
    let name = repo.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let printed = repo.env.git(["log", "--format=%b", name.trim()]).success();
    let entries = serde_json::Deserializer::from_str(&printed).into_iter::<Value>().map(Result::unwrap);
    let is_wanted = |entry: &Value| entry["kind"] == "log.recorded" && entry["root"].is_string() == sealed;
    entries.filter(is_wanted).map(|entry| entry["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_same_plan_submitted_by_many_at_once_is_one_run() {
    let repo = TestRepo::new();
    for round in 0..4 {
        let run = format!("r{round}");
        let plan = repo.plan(&run, &[item("a", "true")]);
        let command = ["submit", plan.as_str()];
        for (code, output) in at_once(&repo, &[&command[..]; 4]) {
            assert_eq!(code, 0, "{output}");
        }
        assert_eq!(repo.entries(&run).len(), 1);
    }
    repo.is_sound();
    assert_eq!(logged(&repo, false).len(), 4);
    repo.env.handoff(["run"]).success();
    (0..4).for_each(|round| repo.is_intact(&format!("r{round}")));
}

#[test]
fn of_different_plans_under_one_id_exactly_one_is_the_run() {
    let repo = TestRepo::new();
    for round in 0..4 {
        let run = format!("r{round}");
        let plans: Vec<String> = (0..3)
            .map(|which| {
                let plan = repo.plan(&run, &[item(&format!("by-{which}"), "true")]);
                let own = format!("{which}.json");
                std::fs::rename(repo.env.repo().join(&plan), repo.path(&own)).unwrap();
                format!("../{own}")
            })
            .collect();
        let commands: Vec<[&str; 2]> = plans.iter().map(|plan| ["submit", plan.as_str()]).collect();
        let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
        let ended = at_once(&repo, &commands);
        let codes: Vec<i32> = ended.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{ended:?}");
        assert_eq!(codes.iter().filter(|code| **code == 1).count(), 2, "{ended:?}");
        let winner = codes.iter().position(|code| *code == 0).unwrap();
        assert_eq!(repo.items(&run).into_keys().collect::<Vec<_>>(), [format!("by-{winner}")]);
        for (_, output) in ended.iter().filter(|(code, _)| *code == 1) {
            let why = format!("error: the run \"{run}\" exists already with another plan or another writer");
            assert_eq!(find_line(output, "error: "), why);
        }
    }
    repo.is_sound();
}

#[test]
fn of_two_drivers_one_drives() {
    let repo = TestRepo::new();
    for round in 0..5 {
        let run = format!("r{round}");
        repo.submit(&run, &[item("a", "echo x >>\"$HOME/../$HANDOFF_RUN\"; sleep 0.1"), item("b", "true")]);
        let command = ["run", run.as_str()];
        let ended = at_once(&repo, &[&command[..]; 3]);
        assert!(ended.iter().any(|(code, _)| *code == 0), "{ended:?}");
        // One that came when the first had finished finds nothing left to do.
        for (code, output) in &ended {
            if *code == 0 {
                continue;
            }
            assert_eq!(*code, 5, "{output}");
            let (message, process) = find_line(output, "error: ").rsplit_once(' ').unwrap();
            assert_eq!(message, format!("error: the run \"{run}\" is being driven by process"));
            assert!(process.parse::<u32>().is_ok(), "{output}");
        }
        assert_eq!(repo.lines(&run).len(), 1, "{ended:?}");
        repo.is_clean();
        repo.is_intact(&run);
    }
}

#[test]
fn two_runs_at_once_lose_nothing_of_their_common_log() {
    let repo = TestRepo::new();
    let runs: Vec<String> = (0..6).map(|at| format!("r{at}")).collect();
    let plans: Vec<String> = runs.iter().map(|run| repo.plan(run, &[item("a", "true"), item("b", "true")])).collect();
    let commands: Vec<[&str; 3]> = plans.iter().map(|plan| ["submit", "--run", plan.as_str()]).collect();
    let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
    for (code, output) in at_once(&repo, &commands) {
        assert_eq!(code, 0, "{output}");
    }
    let all: BTreeSet<String> = runs.iter().cloned().collect();
    for sealed in [false, true] {
        let logged_runs = logged(&repo, sealed);
        assert_eq!((logged_runs.len(), logged_runs.into_iter().collect()), (6, all.clone()), "{sealed}");
    }
    repo.is_clean();
    runs.iter().for_each(|run| repo.is_intact(run));
}

#[test]
fn documents_of_one_run_are_all_put() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "true")]);
    let names: Vec<String> = (0..20).map(|at| format!("doc-{}", at % 4)).collect();
    (0..20).for_each(|at| repo.env.write(&format!("text-{at}"), &format!("text {at}")));
    let files: Vec<String> = (0..20).map(|at| format!("../text-{at}")).collect();
    let commands: Vec<[&str; 5]> =
        names.iter().zip(&files).map(|(name, file)| ["doc", "put", "r", name, file]).collect();
    let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
    for (code, output) in at_once(&repo, &commands) {
        assert_eq!(code, 0, "{output}");
    }
    let written: Vec<Value> = repo.entries("r").into_iter().filter(|e| e["kind"] == "document.written").collect();
    let digests: BTreeSet<&str> = written.iter().map(|entry| entry["sha256"].as_str().unwrap()).collect();
    assert_eq!((written.len(), digests.len()), (20, 20));
    for name in 0..4 {
        let of = written.iter().filter(|entry| entry["name"] == format!("doc-{name}"));
        let numbers: Vec<u64> = of.map(|entry| entry["revision"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
    repo.is_sound();
    repo.env.handoff(["run", "r"]).success();
    repo.is_intact("r");
}

#[test]
fn concurrent_cancel_and_retry_are_consistent() {
    let repo = TestRepo::new();
    let ids: Vec<String> = (0..8).map(|at| format!("i{at}")).collect();
    repo.submit("r", &ids.iter().map(|id| item(id, "true")).collect::<Vec<_>>());
    let targets: Vec<String> = ids.iter().map(|id| format!("r/{id}")).collect();
    for verb in ["cancel", "retry", "cancel"] {
        let commands: Vec<[&str; 2]> = targets.iter().map(|target| [verb, target.as_str()]).collect();
        for (code, output) in at_once(&repo, &commands.iter().map(|command| &command[..]).collect::<Vec<_>>()) {
            assert_eq!(code, 0, "{verb}: {output}");
        }
    }
    assert_eq!(repo.entries("r").len(), 25);
    repo.is_sound();
    repo.ends_intact("r");
}

#[test]
fn fetches_of_one_remote_at_once_all_end_well() {
    let repo = TestRepo::new();
    (0..6).for_each(|at| repo.submit(&format!("r{at}"), &[item("a", "true")]));
    repo.env.git_in("", ["init", "--quiet", "other"]).success();
    repo.env.git_in("other", ["remote", "add", "origin", "../repo"]).success();
    for round in 0..3 {
        let fetch = |_| {
            repo.start_with(&["fetch", "origin"], |command| {
                let _ = command.current_dir(repo.path("other"));
            })
        };
        let started: Vec<Driver> = (0..6).map(fetch).collect();
        for (status, output) in started.into_iter().map(Driver::wait) {
            assert_eq!(status.code(), Some(0), "round {round}: {output}");
        }
        // The next operation continues the present state.
        let verb = ["cancel", "retry", "cancel"][round];
        (0..6).for_each(|at| drop(repo.env.handoff([verb, &format!("r{at}/a")]).success()));
    }
    repo.env.handoff_in("other", ["fetch", "origin"]).success();
    let ours = repo.env.git(["for-each-ref", "--format=%(objectname)", "refs/handoff/runs"]).success();
    let theirs =
        repo.env.git_in("other", ["for-each-ref", "--format=%(objectname)", "refs/handoff/remotes/origin/runs"]);
    assert_eq!((ours.lines().count(), &ours), (6, &theirs.success()));
}

/// A command that steers a run, with what it may say where it comes too late.
const STEERING: [(&[&str], &str); 5] = [
    (&["cancel", "RUN/b"], "not-cancellable sealed"),
    (&["cancel", "RUN"], "sealed"),
    (&["retry", "RUN/a"], "not-retriable sealed"),
    (&["close", "RUN"], "not-settled sealed"),
    (&["cancel", "RUN/a"], "not-cancellable sealed"),
];

#[test]
fn steering_races_a_driver_and_the_run_stays_whole() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "2");
    for round in 0..20_usize {
        let run = format!("r{round}");
        let fails = "test $HANDOFF_ATTEMPT -gt 1";
        let items = [item("a", fails), after("b", &["a"], "true"), item("c", fails), after("d", &["b", "c"], "true")];
        repo.submit(&run, &items);
        let before = repo.tip(&run);
        let driver = repo.start(&["run", &run]);
        // From here on the two run against each other; later rounds give the driver more of a
        // start.
        let mut driver = Some(driver);
        while repo.tip(&run) == before && !driver.as_mut().unwrap().is_over() {
            pause();
        }
        std::thread::sleep(std::time::Duration::from_millis(4 * round as u64));
        let mut steered = Vec::new();
        for offset in 0..2 {
            let (command, late) = STEERING[(round + offset * 2) % STEERING.len()];
            let arguments: Vec<String> = command.iter().map(|word| word.replace("RUN", &run)).collect();
            let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            arguments.insert(0, "--json");
            steered.push((repo.start(&arguments), command, late));
        }
        for (steering, command, late) in steered {
            let (status, steering_output) = steering.wait();
            let code = status.code().unwrap();
            if code != 0 {
                let error: Value = serde_json::from_str(steering_output.trim()).expect("an error is one JSON object");
                let word = error["code"].as_str().unwrap();
                assert!(
                    code == 5 || (code == 1 && late.contains(word)),
                    "round {round}, {command:?}: {steering_output}"
                );
            }
        }
        let (status, driver_output) = driver.take().unwrap().wait();
        let code = status.code().unwrap();
        assert!(code == 0 || code == 4, "round {round}: {driver_output}");
        repo.is_clean();
        if !repo.is_sealed(&run) {
            // Whatever came in between, the run can be driven to its end.
            let output = repo.env.handoff(["run", "--close", &run]);
            assert!(matches!(output.status, Some(0 | 4)), "round {round}: {output}");
        }
        repo.is_clean();
        repo.is_intact(&run);
        let settled = json!(["done", "failed", "skipped", "cancelled"]);
        let second_items = repo.items(&run);
        let is_settled = |name: &str| settled.as_array().unwrap().iter().any(|word| word == name);
        assert!(second_items.values().all(|item| is_settled(&item.status)), "round {round}: {second_items:?}");
    }
}
