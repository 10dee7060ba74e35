//! Two hands at once: one wins, the other is told or takes its turn, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bad_days::ground::{Conductor, Ground, after, item, pause};

/// Runs commands at the same time; returns how each ended and what it said, in their order.
fn at_once(ground: &Ground, commands: &[&[&str]]) -> Vec<(i32, String)> {
    let started: Vec<Conductor> = commands.iter().map(|arguments| ground.start(arguments)).collect();
    let ended = started.into_iter().map(Conductor::wait);
    ended.map(|(status, said)| (status.code().expect("none is killed"), said)).collect()
}

fn logged(ground: &Ground, kind: &str) -> Vec<String> {
    let name = ground.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let printed = ground.env.git(["log", "--format=%b", name.trim()]).success();
    let entries = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["kind"] == kind).map(|entry| entry["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_same_plan_submitted_by_many_at_once_is_one_run() {
    let ground = Ground::new();
    for round in 0..4 {
        let run = format!("r{round}");
        let plan = ground.plan(&run, &[item("a", "true")]);
        let command = ["submit", plan.as_str()];
        for (code, said) in at_once(&ground, &[&command[..]; 4]) {
            assert_eq!(code, 0, "{said}");
        }
        assert_eq!(ground.entries(&run).len(), 1);
    }
    ground.is_sound();
    assert_eq!(logged(&ground, "log.submitted").len(), 4);
    ground.env.handoff(["run"]).success();
    (0..4).for_each(|round| ground.is_intact(&format!("r{round}")));
}

#[test]
fn of_different_plans_under_one_id_exactly_one_is_the_run() {
    let ground = Ground::new();
    for round in 0..4 {
        let run = format!("r{round}");
        let plans: Vec<String> = (0..3)
            .map(|which| {
                let plan = ground.plan(&run, &[item(&format!("by-{which}"), "true")]);
                let own = format!("{which}.json");
                std::fs::rename(ground.env.repo().join(&plan), ground.path(&own)).unwrap();
                format!("../{own}")
            })
            .collect();
        let commands: Vec<[&str; 2]> = plans.iter().map(|plan| ["submit", plan.as_str()]).collect();
        let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
        let ended = at_once(&ground, &commands);
        let codes: Vec<i32> = ended.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{ended:?}");
        assert_eq!(codes.iter().filter(|code| **code == 1).count(), 2, "{ended:?}");
        let winner = codes.iter().position(|code| *code == 0).unwrap();
        assert_eq!(ground.items(&run).into_keys().collect::<Vec<_>>(), [format!("by-{winner}")]);
        for (_, said) in ended.iter().filter(|(code, _)| *code == 1) {
            assert!(said.contains("exists already with another plan"), "{said}");
        }
    }
    ground.is_sound();
}

#[test]
fn of_two_conductors_one_drives() {
    let ground = Ground::new();
    for round in 0..5 {
        let run = format!("r{round}");
        ground.submit(&run, &[item("a", "echo x >>\"$HOME/../$HANDOFF_RUN\"; sleep 0.1"), item("b", "true")]);
        let command = ["run", run.as_str()];
        let ended = at_once(&ground, &[&command[..]; 3]);
        assert!(ended.iter().any(|(code, _)| *code == 0), "{ended:?}");
        // One that came when the first had finished finds nothing left to do.
        for (code, said) in &ended {
            assert!(*code == 0 || (*code == 5 && said.contains("is being driven by process")), "{code}: {said}");
        }
        assert_eq!(ground.lines(&run).len(), 1, "{ended:?}");
        ground.is_clean();
        ground.is_intact(&run);
    }
}

#[test]
fn two_runs_at_once_lose_nothing_of_their_common_log() {
    let ground = Ground::new();
    let runs: Vec<String> = (0..6).map(|at| format!("r{at}")).collect();
    let plans: Vec<String> = runs.iter().map(|run| ground.plan(run, &[item("a", "true"), item("b", "true")])).collect();
    let commands: Vec<[&str; 3]> = plans.iter().map(|plan| ["submit", "--run", plan.as_str()]).collect();
    let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
    for (code, said) in at_once(&ground, &commands) {
        assert_eq!(code, 0, "{said}");
    }
    let all: BTreeSet<String> = runs.iter().cloned().collect();
    for kind in ["log.submitted", "log.sealed"] {
        let named = logged(&ground, kind);
        assert_eq!((named.len(), named.into_iter().collect()), (6, all.clone()), "{kind}");
    }
    ground.is_clean();
    runs.iter().for_each(|run| ground.is_intact(run));
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
fn steering_races_a_conductor_and_the_run_stays_whole() {
    let ground = Ground::new();
    ground.config("handoff.queue.default.concurrency", "2");
    for round in 0..20_usize {
        let run = format!("r{round}");
        let fails = "test $HANDOFF_ATTEMPT -gt 1";
        let items = [item("a", fails), after("b", &["a"], "true"), item("c", fails), after("d", &["b", "c"], "true")];
        ground.submit(&run, &items);
        let before = ground.tip(&run);
        let conductor = ground.start(&["run", &run]);
        // From here on the two run against each other; later rounds give the conductor more of a start.
        let mut conductor = Some(conductor);
        while ground.tip(&run) == before && !conductor.as_mut().unwrap().is_over() {
            pause();
        }
        std::thread::sleep(std::time::Duration::from_millis(4 * round as u64));
        let mut steered = Vec::new();
        for offset in 0..2 {
            let (command, late) = STEERING[(round + offset * 2) % STEERING.len()];
            let arguments: Vec<String> = command.iter().map(|word| word.replace("RUN", &run)).collect();
            let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            arguments.insert(0, "--json");
            steered.push((ground.start(&arguments), command, late));
        }
        for (steering, command, late) in steered {
            let (status, said) = steering.wait();
            let code = status.code().unwrap();
            if code != 0 {
                let error: Value = serde_json::from_str(said.trim()).expect("an error is one JSON object");
                let word = error["code"].as_str().unwrap();
                assert!(code == 5 || (code == 1 && late.contains(word)), "round {round}, {command:?}: {said}");
            }
        }
        let (status, said) = conductor.take().unwrap().wait();
        let code = status.code().unwrap();
        assert!(code == 0 || code == 4, "round {round}: {said}");
        ground.is_clean();
        if !ground.is_sealed(&run) {
            // Whatever came in between, the run can be driven to its end.
            let output = ground.env.handoff(["run", "--close", &run]);
            assert!(matches!(output.status, Some(0 | 4)), "round {round}: {output}");
        }
        ground.is_clean();
        ground.is_intact(&run);
        let settled = json!(["done", "failed", "skipped", "cancelled"]);
        let items = ground.items(&run);
        let is_settled = |status: &str| settled.as_array().unwrap().iter().any(|word| word == status);
        assert!(items.values().all(|item| is_settled(&item.status)), "round {round}: {items:?}");
    }
}
