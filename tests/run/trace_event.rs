//! Traces of runs, for viewers that were made for programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, after, item, wait_for};
use crate::common::report::error_code;

/// Returns the events of a run's trace, after what must be true of every trace.
#[track_caller]
fn trace(repo: &TestRepo, run: &str) -> Vec<Value> {
    let printed = repo.env.handoff(["log", run, "--format", "trace-event"]).success();
    let trace: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&trace["displayTimeUnit"], &trace["otherData"]["run"]), (&json!("ms"), &json!(run)));
    let events = trace["traceEvents"].as_array().unwrap().clone();
    let row = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let thread_rows: BTreeSet<_> =
        find_events(&events, "M", "").iter().filter(|e| e["name"] == "thread_name").map(|e| row(e)).collect();
    let mut rows: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        assert!(thread_rows.contains(&row(event)) && event["ts"].as_i64().unwrap() >= 0, "{event}");
        if event["ph"] == "X" {
            let (from, length) = (event["ts"].as_i64().unwrap(), event["dur"].as_i64().unwrap());
            assert!(length >= 0, "{event}");
            rows.entry(row(event)).or_default().push((from, from + length));
        }
    }
    for (track, mut spans) in rows {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "the events of {track:?} overlap: {spans:?}");
    }
    let fired = repo.entries(run).iter().filter(|entry| entry["kind"] == "item.fired").count();
    assert_eq!(find_events(&events, "X", "attempt").len(), fired, "each attempt has one event");
    // Each flow leads from within one attempt to the beginning of another.
    let (starts, ends) = (find_events(&events, "s", "needs"), find_events(&events, "f", "needs"));
    assert_eq!(starts.len(), ends.len());
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!((&start["id"], &start["name"], &end["bp"]), (&end["id"], &end["name"], &json!("e")));
        assert!(start["ts"].as_i64() <= end["ts"].as_i64(), "{start} {end}");
    }
    events
}

/// Returns the events of a kind; a category of `""` is every one.
fn find_events<'e>(events: &'e [Value], ph: &str, category: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["ph"] == ph && (category.is_empty() || event["cat"] == category)).collect()
}

fn names<'e>(events: &[&'e Value]) -> Vec<&'e str> {
    events.iter().map(|event| event["name"].as_str().unwrap()).collect()
}

/// Drives a run by the real clock, so that attempts take time.
fn drive(repo: &TestRepo, run: &str) {
    let driver = repo.start_with(&["run", run], |command| {
        command.env_remove("HANDOFF_CLOCK");
    });
    let _ = driver.wait();
}

#[test]
fn attempts_waits_locks_and_needs_are_events() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "4");
    let locked = |mut item: Value| {
        item["resourceLocks"] = json!(["db"]);
        item
    };
    let mut taker = locked(item("taker", "sleep 0.2"));
    taker["needs"] = json!({ "in": { "from": "maker", "select": { "kind": "output", "path": "x" } } });
    let mut flaky = item("flaky", "exit 3");
    flaky["maxAttempts"] = json!(2);
    let approval = json!({ "id": "asked", "executor": "approval", "depends_on": ["taker"] });
    let other = locked(after("other", &["maker"], "sleep 0.2"));
    let never = after("never", &["flaky"], "true");
    repo.submit("r", &[item("maker", "echo x > outputs/x; sleep 0.2"), taker, other, flaky, approval, never]);
    drive(&repo, "r");
    repo.env.handoff(["approve", "r/asked"]).success();
    let events = trace(&repo, "r");

    let attempts = find_events(&events, "X", "attempt");
    let args_of = |name: &str, number: u64| {
        attempts.iter().find(|e| e["name"] == name && e["args"]["attempt"] == number).map(|e| &e["args"]).unwrap()
    };
    let maker = args_of("maker", 1);
    assert_eq!(
        (&maker["status"], &maker["exit"], &maker["red"]),
        (&json!("done"), &json!({ "code": 0 }), &json!(false))
    );
    assert!(maker["sandbox"].is_string() && maker["actor"] == "human:ada", "{maker}");
    assert_eq!(
        (&args_of("flaky", 1)["status"], &args_of("flaky", 1)["exit"]),
        (&json!("failed, retried"), &json!({ "code": 3 }))
    );
    assert_eq!(
        (&args_of("flaky", 2)["status"], &args_of("flaky", 2)["reason"]),
        (&json!("failed"), &json!("exited with 3"))
    );
    assert!(args_of("flaky", 2)["durationMs"].is_u64());
    let rows: BTreeSet<_> =
        attempts.iter().filter(|e| e["ts"] == attempts[0]["ts"]).map(|e| e["tid"].as_u64()).collect();
    assert!(attempts.len() == 5 && !rows.is_empty(), "{attempts:?}");

    // One of the two holds the lock while the other waits for it.
    let locks = find_events(&events, "X", "lock");
    assert_eq!(locks.len(), 2);
    assert!(locks.iter().all(|event| event["args"]["lock"] == "db"));
    let waits = find_events(&events, "X", "waiting");
    let (first, second) = (&locks[0]["name"], &locks[1]["name"]);
    let waited = waits.iter().find(|event| event["name"] == *second).unwrap();
    assert_eq!(waited["args"], json!({ "attempt": 1, "locks": { "db": first } }));
    assert_eq!(names(&find_events(&events, "X", "approval")), ["asked"]);

    let flows: BTreeSet<&str> = names(&find_events(&events, "s", "needs")).into_iter().collect();
    assert_eq!(flows, BTreeSet::from(["after", "in"]));
    assert_eq!(names(&find_events(&events, "i", "decision")), ["item.decided asked #0: done"]);
    assert_eq!(names(&find_events(&events, "i", "item")), ["item.skipped never #0: skipped"]);
    assert_eq!(names(&find_events(&events, "i", "run"))[0], "run.submitted r");
}

#[test]
fn concurrent_attempts_have_rows_of_their_own() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "3");
    let items: Vec<Value> = (1..=6).map(|at| item(&format!("i{at}"), "sleep 0.3")).collect();
    repo.submit("r", &items);
    drive(&repo, "r");
    let events = trace(&repo, "r");
    let attempts = find_events(&events, "X", "attempt");
    let rows: BTreeSet<_> = attempts.iter().map(|event| event["tid"].as_u64().unwrap()).collect();
    assert_eq!(rows, BTreeSet::from([1, 2, 3]), "{attempts:?}");
}

#[test]
fn an_open_run_has_a_trace_that_reaches_until_now() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "1");
    let script = "touch $HOME/../begun; while ! test -e $HOME/../go; do sleep 0.05; done";
    repo.submit("r", &[item("long", script), item("next", "true")]);
    // Nothing has begun.
    let events = trace(&repo, "r");
    assert_eq!(names(&find_events(&events, "X", "waiting")), ["long", "next"]);
    let driver = repo.start(&["run", "r"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    let second_events = trace(&repo, "r");
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
    let attempts = find_events(&second_events, "X", "attempt");
    assert_eq!((names(&attempts), &attempts[0]["args"]["status"]), (vec!["long"], &json!("running")));
    assert!(attempts[0]["args"]["exit"].is_null() && attempts[0]["dur"].as_i64().unwrap() > 0, "{attempts:?}");
    assert_eq!(names(&find_events(&second_events, "X", "waiting")), ["long", "next"]);
}

#[test]
fn trace_has_red_items_documents_and_crashes() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.red.command", "true");
    repo.config("handoff.executor.red.verify", "echo FAILED; exit 1");
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    let script = "touch $HOME/../begun; test -e $HOME/../go || sleep 60";
    repo.submit("r", &[json!({ "id": "red", "executor": "red" }), item("long", script)]);
    repo.env.write("notes.md", "# Notes\n");
    repo.env.handoff(["doc", "put", "r", "notes.md", "../notes.md"]).success();
    let driver = repo.start(&["run", "r"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    assert!(driver.kill());
    repo.env.write("go", "");
    repo.env.handoff(["run", "r"]).ends(4);
    let events = trace(&repo, "r");
    let attempts = find_events(&events, "X", "attempt");
    let statuses: Vec<_> =
        attempts.iter().map(|e| (e["name"].as_str().unwrap(), e["args"]["status"].as_str().unwrap())).collect();
    assert!(statuses.contains(&("long", "lost to a crash")) && statuses.contains(&("long", "done")), "{statuses:?}");
    assert!(attempts.iter().any(|e| e["name"] == "red" && e["args"]["red"] == true), "{attempts:?}");
    assert_eq!(names(&find_events(&events, "i", "document")), ["document.written notes.md #1"]);
}

#[test]
fn a_trace_is_one_object_and_cannot_be_followed() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a \"b\" <c>\u{202e}", "true")]);
    let output = repo.env.handoff(["log", "r", "--format", "trace-event", "--follow"]).exit(2);
    assert_eq!(output.stderr, "error: --follow cannot be used with --format trace-event\n");
    let log_output = repo.env.handoff(["log", "r", "--format", "trace-event", "--json"]).exit(2);
    assert_eq!(error_code(&log_output.stderr), "usage");
    let second_output = repo.env.handoff(["log", "s", "--format", "trace-event"]).exit(1);
    assert!(second_output.stderr.starts_with("error: there is no run \"s\" here\n"), "{second_output}");
    let printed = repo.env.handoff(["log", "r", "--format", "trace-event"]).success();
    assert!(printed.lines().count() == 1 && !printed.contains('\u{202e}'), "{printed}");
    assert_eq!(names(&find_events(&trace(&repo, "r"), "X", "waiting")), ["a \"b\" <c>\u{202e}"]);
    assert_eq!(repo.env.handoff(["log", "r", "--format", "text"]).stdout, repo.env.handoff(["log", "r"]).stdout);
}
