//! Views of a run that several drivers drive, read from the bundle that other implementations read.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use serde_json::{Value, json};

use crate::common::repo::TestRepo;
use crate::common::report::find_line;
use crate::common::{Environment, assert_output};

const RUN: &str = "handoff-dag-1";

/// A repository with the shared run of the vectors, as far as `entries` of its 25 go.
fn with_run(entries: usize) -> Environment {
    let TestRepo { env } = TestRepo::new();
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/vectors/clean-shared.bundle");
    env.git(["fetch", "--quiet", bundle, "refs/handoff/*:refs/handoff/*"]).success();
    let all = env.git(["rev-list", "--first-parent", "--reverse", &reference()]).success();
    let at = all.lines().nth(entries - 1).unwrap();
    env.git(["update-ref", &reference(), at]).success();
    env
}

fn reference() -> String {
    format!("refs/handoff/runs/{RUN}")
}

fn answer(env: &Environment, words: &[&str]) -> Value {
    serde_json::from_str(&env.handoff(words).stdout).unwrap()
}

#[test]
fn verify_lists_who_took_which_attempt_from_whom() {
    let env = with_run(25);
    assert_output!("shared_verify", env.handoff(["verify", RUN]).stdout);
    let report = answer(&env, &["verify", RUN, "--json"]);
    let (one, two) = ("d1".repeat(16), "d2".repeat(16));
    let bob = report["takeovers"][0]["key"].clone();
    assert_eq!(
        report["takeovers"][0],
        json!({
            "entry": 4, "item": "edit-a", "attempt": 1, "driver": one, "host": "node7", "taker": two,
            "because": "silent", "key": bob,
        })
    );
    assert!(bob.as_str().unwrap().starts_with("SHA256:"));
    let second = &report["takeovers"][1];
    assert_eq!((&second["because"], &second["taker"], &second["driver"]), (&json!("told"), &Value::Null, &json!(two)));
    let because: Vec<_> = report["takeovers"].as_array().unwrap().iter().map(|it| &it["because"]).collect();
    assert_eq!(because, ["silent", "told", "dismissed"]);
}

#[test]
fn log_and_show_name_the_driver_of_each_attempt() {
    let env = with_run(25);
    assert_output!("shared_log", env.handoff(["log", RUN]).success());
    assert_output!("shared_show", env.handoff(["show", &format!("{RUN}/edit-a")]).success());
    let details = answer(&env, &["show", &format!("{RUN}/edit-a"), "--json"]);
    let (one, two) = ("d1".repeat(16), "d2".repeat(16));
    let (fired, lost) = (&details["entries"][0], &details["entries"][1]);
    assert_eq!((&fired["driver"], &fired["host"], &fired["job"]), (&json!(one), &json!("node7"), &json!("4711")));
    assert_eq!((&lost["driver"], &lost["taker"], &lost["because"]), (&json!(one), &json!(two), &json!("silent")));
    let lines = env.handoff(["log", RUN, "--json"]).success();
    let second_lost: Value = serde_json::from_str(lines.lines().nth(4).unwrap()).unwrap();
    assert_eq!(
        (&second_lost["reason"], &second_lost["driver"], &second_lost["taker"]),
        (&json!("lost"), &json!(one), &json!(two))
    );
    let run = answer(&env, &["show", RUN, "--json"]);
    let attempt = &run["attempts"][0];
    assert_eq!((&attempt["driver"], &attempt["host"]), (&json!(one), &json!("node7")), "{run}");
    let trace = env.handoff(["log", RUN, "--format", "trace-event"]).success();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let takeovers =
        trace["traceEvents"].as_array().unwrap().iter().filter(|it| it["args"]["status"] == "taken from its driver");
    assert_eq!(takeovers.count(), 3, "{trace}");
}

#[test]
fn status_names_the_driver_of_a_running_item() {
    let env = with_run(4);
    let text = env.handoff(["status", RUN]).success();
    assert_eq!(
        find_line(&text, "▶ edit-a"),
        "▶ edit-a  running  1 attempt   2026-06-04 02:00Z  6.0s  driver d1d1d1d1 on node7, job 4711"
    );
    let status = answer(&env, &["status", RUN, "--json"]);
    let items = status["items"].as_array().unwrap();
    assert_eq!(items[0]["driver"], json!("d1".repeat(16)));
    assert_eq!((&items[0]["host"], &items[0]["job"]), (&json!("node7"), &json!("4711")));
    assert!(items[1]["driver"].is_null(), "it waits");
    // An attempt that was taken away has no driver.
    let second_status = answer(&with_run(5), &["status", RUN, "--json"]);
    assert!(second_status["items"][0]["driver"].is_null(), "{second_status}");
}
