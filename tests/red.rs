//! Checks that do not pass, and runs of which not everything is done and green: every screen, every
//! answer, every exit code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod evidence;

use serde_json::{Value, json};

use crate::common::assert_output;
use crate::common::repo::TestRepo;
use crate::common::report::{find_entry, find_line, find_row, verdict};

/// A worker that changes a file and makes an output.
const EDIT: &str = "sed -i s/two/TWO/ a.txt";

/// A check that says why it does not pass.
const CHECK: &str = "echo 'running 3 tests'; echo 'test greets ... FAILED'; exit 1";

fn item(id: &str, executor: &str) -> Value {
    json!({ "id": id, "executor": executor })
}

fn command(id: &str, line: &str) -> Value {
    json!({ "id": id, "executor": "command", "inputs": { "command": line } })
}

/// A repository in which the executor `red` leaves red items, `fails` fails for its check, and
/// `green` passes.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    for (name, check) in [("red", CHECK), ("fails", CHECK), ("green", "true")] {
        repo.config(&format!("handoff.executor.{name}.command"), EDIT);
        repo.config(&format!("handoff.executor.{name}.verify"), check);
    }
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    // One after the other, so that the same run gives the same entries.
    repo.config("handoff.queue.default.concurrency", "1");
    repo.config("handoff.executor.fails.maxAttempts", "1");
    repo
}

/// A run with a red item, one that needs its patch, and one that is green.
fn red() -> TestRepo {
    let repo = repo();
    let mut builds = command("builds", "git apply --index inputs/patch && echo more >>a.txt");
    builds["needs"] = json!({ "patch": { "from": "a", "select": { "kind": "patch" } } });
    repo.drive("r", &[item("a", "red"), builds, command("free", "echo free >new.txt")]).ends(4);
    repo
}

fn answer(repo: &TestRepo, args: &[&str], code: i32) -> Value {
    let output = repo.env.handoff([&["--json"][..], args].concat()).exit(code);
    serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap()
}

fn outcome(report: &Value) -> Value {
    report["outcome"].clone()
}

#[test]
fn a_check_that_fails_fails_the_attempt_which_is_tried_again() {
    let repo = repo();
    // Red the first time, green the second.
    repo.config("handoff.executor.flaky.command", EDIT);
    repo.config("handoff.executor.flaky.verify", "echo attempt $HANDOFF_ATTEMPT; test $HANDOFF_ATTEMPT = 2");
    let output = repo.drive("r", &[item("a", "flaky")]).exit(0);
    assert_output!("red_flaky", output);
    let entries = repo.entries("r");
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[1..5], ["item.fired", "item.retried", "item.fired", "item.reconciled"]);
    assert_eq!(entries[2]["detail"], "verify-failed: exited with 1: attempt 1");
    assert_eq!(entries[4]["verify"], json!({ "passed": true, "by": "command" }));
    assert_eq!(repo.item("r", "a").attempts, 2);
    assert_output!("red_flaky_log", repo.env.handoff(["log", "r"]));
    repo.env.handoff(["verify", "r"]).ends(0);

    // A failure's message comes last even if both streams have data.
    repo.config("handoff.executor.says.command", EDIT);
    repo.config("handoff.executor.says.verify", "seq 9; echo why >&2; exit 1");
    let items: Vec<_> =
        (0..8).map(|at| json!({ "id": at.to_string(), "executor": "says", "inputs": {}, "maxAttempts": 1 })).collect();
    repo.drive("s", &items).ends(4);
    for at in 0..8 {
        assert_eq!(repo.item("s", &at.to_string()).reason, "verify-failed: exited with 1: 6 | 7 | 8 | 9 | why");
    }

    repo.drive("f", &[item("a", "fails")]).ends(4);
    let failed = repo.item("f", "a");
    let reason = "verify-failed: exited with 1: running 3 tests | test greets ... FAILED";
    assert_eq!((failed.status.as_str(), failed.reason.as_str()), ("failed", reason));
    let end = repo.entries("f").into_iter().find(|entry| entry["kind"] == "item.reconciled").unwrap();
    assert_eq!((&end["verify"], &end["products"]), (&json!({ "passed": false, "by": "command" }), &json!({})));
    assert_eq!((&end["exit"], end.get("red")), (&json!({ "code": 1 }), None));
    repo.is_clean();
    repo.ends_intact("f");
}

#[test]
fn every_screen_shows_a_red_item_as_red() {
    let repo = repo();
    let mut after = command("b", "true");
    after["depends_on"] = json!(["a"]);
    let output = repo.drive("r", &[item("a", "red"), after]).exit(4);
    assert_output!("red_run", output);
    assert!(repo.is_sealed("r"), "it is done: nothing is left to do");
    assert_output!("red_status", repo.env.handoff(["status", "r"]));
    assert_output!("red_runs", repo.env.handoff(["runs"]));
    assert_output!("red_log", repo.env.handoff(["log", "r"]));
    assert_output!("red_show", repo.env.handoff(["show", "r/a"]));
    assert_output!("red_verify", repo.env.handoff(["verify", "r"]));
    let packet = repo.env.handoff(["packet", "auto", "--run", "r"]).success();
    let mut packet: Value = serde_json::from_str(&packet).unwrap();
    packet["items"] = json!(["a"]);
    repo.env.write("red.json", &packet.to_string());
    let row = repo.env.handoff(["check", "../red.json"]).stdout;
    insta::assert_snapshot!(find_line(&row, "✅ Facts: "), @r#"✅ Facts: 1 commit exists; HEAD is still at e01ebe4; run "r" exists; 1 item is done, 1 of them red"#);
    assert_output!("red_packet", repo.env.handoff(["packet", "auto", "--run", "r"]));
    repo.is_clean();
}

#[test]
fn every_answer_marks_exactly_the_red_items() {
    let repo = red();
    let counted = json!({ "total": 3, "done": 2, "red": 1, "failed": 0, "skipped": 0, "cancelled": 0, "pending": 0, "running": 0 });
    let status = answer(&repo, &["status", "r"], 0);
    assert_eq!(outcome(&status), counted);
    let red: Vec<Option<bool>> = status["items"].as_array().unwrap().iter().map(|it| it["red"].as_bool()).collect();
    assert_eq!(red, [Some(true), None, None], "{status}");
    assert!(status["items"].as_array().unwrap().iter().all(|item| item["status"] == "done"), "{status}");
    assert_eq!(outcome(&answer(&repo, &["show", "r"], 0)), counted);
    let show_answer = answer(&repo, &["show", "r/a"], 0);
    assert_eq!((&show_answer["red"], &show_answer["entries"][1]["red"]), (&json!(true), &json!(true)), "{show_answer}");
    assert_eq!(answer(&repo, &["runs"], 0)["runs"][0]["counts"], json!({ "done": 2, "red": 1 }));
    let run = answer(&repo, &["run", "r"], 4);
    assert_eq!((&run["counts"], outcome(&run)), (&json!({ "done": 2, "red": 1 }), counted.clone()));
    let red_entries: Vec<Value> = repo.entries("r").into_iter().filter(|entry| entry["red"] == true).collect();
    assert_eq!((red_entries.len(), &red_entries[0]["item"]), (1, &json!("a")));
    let report = answer(&repo, &["verify", "r"], 4);
    assert_eq!((&report["intact"], &report["failure"], outcome(&report)), (&json!(true), &Value::Null, counted));
    assert_eq!(answer(&repo, &["verify", "--allow-partial", "r"], 0)["intact"], true);
}

#[test]
fn apply_needs_an_option_for_red_items() {
    let repo = red();
    let tip = || repo.env.git(["for-each-ref", "refs/heads"]).success();
    let before = tip();
    for target in ["r", "r/a", "r/builds"] {
        let refused = repo.env.handoff(["--json", "apply", target, "--branch", "result"]).exit(1);
        let why: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!((&why["code"], tip()), (&json!("red"), before.clone()), "{target}");
    }
    assert_output!("red_apply_refused", repo.env.handoff(["apply", "r"]));
    let applied = answer(&repo, &["apply", "r/free", "--branch", "free"], 0);
    assert_eq!(applied["items"][0].get("red"), None, "what does not build on it is not concerned");
    let allowed = answer(&repo, &["apply", "r", "--branch", "result", "--allow-red"], 0);
    assert_eq!(allowed["items"][0]["red"], true, "{allowed}");
    assert!(repo.env.git(["show", "result:a.txt"]).success().contains("TWO\nmore"));
}

#[test]
fn nor_is_what_builds_on_it_over_others() {
    let repo = repo();
    let builds = |id: &str, on: &str| {
        let mut builds = command(id, &format!("git apply --index inputs/patch && echo {id} >>a.txt"));
        builds["needs"] = json!({ "patch": { "from": on, "select": { "kind": "patch" } } });
        builds
    };
    repo.drive("r", &[item("a", "red"), builds("b", "a"), builds("c", "b"), builds("d", "c")]).ends(4);
    for target in ["r/c", "r/d"] {
        let refused = repo.env.handoff(["--json", "apply", target, "--branch", "result"]).exit(1);
        let why: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!(why["code"], "red", "{target}: {why}");
        assert_eq!(why["message"].as_str().unwrap(), r#""a" is red: the check failed; nothing was changed"#);
    }
    // No more is it taken into another run, which says nothing of red items here.
    let mut other = command("e", "git apply --index inputs/patch");
    other["needs"] = json!({ "patch": { "run": "r", "from": "d", "select": { "kind": "patch" } } });
    let plan = repo.plan("s", &[other]);
    let refused = repo.env.handoff(["validate", &plan]).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"bad-source at items[0].needs.patch.from (item "e", line 1): d of run r builds on the patch of a, which is red: its check did not pass"#);
    let applied = answer(&repo, &["apply", "r/d", "--branch", "result", "--allow-red"], 0);
    assert_eq!(applied["items"][0]["item"], "d", "{applied}");
}

#[test]
fn a_workers_own_word_makes_it_red_and_never_fails_it() {
    let repo = repo();
    let denies = "printf '{\"verify\":{\"passed\":false}}' >\"$HANDOFF_RESULT\"";
    for (name, check) in [("denied", "true"), ("both", "false")] {
        repo.config(&format!("handoff.executor.{name}.command"), denies);
        repo.config(&format!("handoff.executor.{name}.verify"), check);
        repo.config(&format!("handoff.executor.{name}.onVerifyFail"), "keep");
    }
    repo.drive("r", &[command("own", denies), item("denied", "denied"), item("both", "both")]).ends(4);
    let items = repo.items("r");
    assert!(items.values().all(|item| item.status == "done" && item.attempts == 1), "{items:?}");
    let reasons = ["own", "denied", "both"].map(|id| items[id].reason.clone());
    let own = "verify-failed: by the worker's own word";
    assert_eq!(reasons, [own, own, "verify-failed: exited with 1"]);
    assert_eq!(outcome(&repo.status("r"))["red"], 3);
    repo.ends_intact("r");
}

#[test]
fn a_result_file_that_cannot_be_understood_fails_the_attempt() {
    let repo = repo();
    let write_result = |word: &str| format!("printf '%s' '{word}' >\"$HANDOFF_RESULT\"");
    let words = [
        r#"{"verify":{"passed":"false"}}"#,
        r#"{"verify":{"passed":null}}"#,
        r#"{"verify":{"passed":0}}"#,
        r#"{"verify":{}}"#,
        r#"{"verify":false}"#,
        r#"{"verify":{"passed":false,"passed":true}}"#,
    ];
    let mut items: Vec<Value> =
        words.iter().enumerate().map(|(at, word)| command(&format!("odd-{at}"), &write_result(word))).collect();
    let unread = ["", "no json", "[]", "3", r#"{"summary":3}"#, r#"{"verify":{"passed":true}} more"#].map(write_result);
    let unread = unread
        .into_iter()
        .chain(["mkfifo $HANDOFF_RESULT".to_owned(), "head -c 2000000 /dev/zero >$HANDOFF_RESULT".to_owned()]);
    items.extend(unread.enumerate().map(|(at, script)| command(&format!("unread-{at}"), &script)));
    items.push(command("good", &write_result(r#"{"summary":"s","verify":null,"other":[]}"#)));
    repo.config("handoff.executor.command.maxAttempts", "1");
    repo.env.write("r.json", &json!({ "id": "r", "items": items }).to_string());
    repo.env.handoff(["submit", "../r.json"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    for (id, item) in &repo.items("r") {
        if id == "good" {
            assert_eq!((item.status.as_str(), item.reason.as_str()), ("done", ""));
            continue;
        }
        assert_eq!(item.status, "failed", "{id}");
        assert!(item.reason.starts_with("bad-result: the result file cannot be read: "), "{id}: {}", item.reason);
    }
    repo.ends_intact("r");
}

#[test]
fn summary_of_a_worker_is_recorded_and_printed() {
    let repo = repo();
    let token = format!("printf '{{\"summary\":\"it is ghp_%s\"}}' {} >\"$HANDOFF_RESULT\"", "a1B2".repeat(9));
    let write_summary = |summary: &str| format!("printf '%s' '{}' >\"$HANDOFF_RESULT\"", json!({ "summary": summary }));
    repo.config(
        "handoff.executor.tells.command",
        "printf '{\"summary\":\"with %s in it\"}' \"$TOLD\" >\"$HANDOFF_RESULT\"",
    );
    repo.config("handoff.executor.tells.secretEnv", "TOLD=!echo a-secret-value");
    let long = "ä".repeat(5_000);
    let items = [
        command("two", &write_summary("Fixed the parser.\n\n- and its tests\u{1b}[31m")),
        command("token", &token),
        command("long", &write_summary(&long)),
        command("blank", &write_summary("  \n")),
        item("tells", "tells"),
    ];
    let output = repo.drive("r", &items).exit(0);
    insta::assert_snapshot!(find_row(&output.stderr, "two"), @"✓ two  done in 0ms, nothing handed over: Fixed the parser.");
    let summary = |id: &str| answer(&repo, &["show", &format!("r/{id}")], 0)["entries"][1]["summary"].clone();
    assert_eq!(summary("two"), "Fixed the parser.\n\n- and its tests\u{1b}[31m");
    insta::assert_snapshot!(summary("token").as_str().unwrap(), @"it is [redacted:github-token]");
    assert_eq!(summary("long").as_str().unwrap().chars().count(), 4_001);
    assert_eq!(summary("blank"), Value::Null);
    let status = answer(&repo, &["status", "r"], 0);
    assert_eq!(status["items"][0]["summary"], "Fixed the parser.\n\n- and its tests\u{1b}[31m");
    assert_eq!(status["items"][3].get("summary"), None, "{status}");
    let log = repo.env.handoff(["log", "r"]).success();
    insta::assert_snapshot!(find_entry(&log, "item.reconciled two"), @"item.reconciled two #1: done, nothing handed over: Fixed the parser.");
    assert!(!summary("tells").as_str().unwrap().contains("a-secret-value"), "{}", summary("tells"));
    let stdout = repo.env.handoff(["show", "r/two"]).exit(0).stdout;
    assert!(stdout.contains("summary    Fixed the parser.\n           \n           - and its tests"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
    repo.ends_intact("r");
}

#[test]
fn check_output_is_stored_redacted_and_bounded() {
    let repo = repo();
    repo.config("handoff.executor.leaks.command", EDIT);
    let check = "head -c 100000 /dev/zero | tr '\\0' x; echo; echo token=$TOKEN; printf 'red \\033[31mfail\\n'; exit 2";
    repo.config("handoff.executor.leaks.verify", check);
    repo.config("handoff.executor.leaks.maxAttempts", "1");
    repo.config("handoff.executor.leaks.secretEnv", "TOKEN=!echo hunter2hunter2");
    repo.drive("r", &[item("a", "leaks")]).ends(4);
    let reason = repo.item("r", "a").reason;
    assert!(reason.starts_with("verify-failed: exited with 2: …x"), "{reason}");
    assert!(!reason.contains('\x1b'), "{reason}");
    insta::assert_snapshot!(reason, @"verify-failed: exited with 2: …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | token=[redacted:secret] | red fail");
    assert!(reason.chars().count() < 450, "{reason}");
}

#[test]
fn exit_code_three_wins_and_partial_needs_an_intact_run() {
    let repo = repo();
    repo.drive("done", &[command("a", "true")]).ends(0);
    let failing = command("b", "exit 1");
    let mut waits = command("c", "true");
    waits["depends_on"] = json!(["b"]);
    repo.drive("part", &[item("a", "red"), failing, waits, command("d", "true")]).ends(4);
    let open = repo.env.handoff(["verify", "part"]).exit(3).stdout;
    assert_eq!(verdict(&open), "✗ NOT SEALED");
    insta::assert_snapshot!(find_row(&open, "outcome"), @"✗ outcome    1 of 4 done, 1 red, 1 failed, 1 skipped, 1 with nothing handed over");
    repo.env.handoff(["verify", "done", "part"]).ends(3);
    repo.env.handoff(["close", "part"]).success();
    assert_output!("red_verify_partial", repo.env.handoff(["verify", "part"]));
    for (args, code) in [
        (&["verify", "done"][..], 0),
        (&["verify", "part"], 4),
        (&["verify", "part", "--allow-partial"], 0),
        (&["verify", "done", "part"], 4),
        (&["verify", "--all"], 4),
        (&["verify", "--all", "--allow-partial"], 0),
        (&["verify", "part", "--require", "tamper-evident"], 3),
        (&["verify", "part", "--require-sandbox", "--allow-partial"], 3),
        (&["run", "part"], 4),
    ] {
        if args.contains(&"--require-sandbox") && !repo.env.handoff(["show", "part/a"]).success().contains("none") {
            continue;
        }
        repo.env.handoff(args).ends(code);
    }
    repo.env.git(["update-ref", "refs/handoff/runs/done", "refs/handoff/runs/done^"]).success();
    for order in [["done", "part"], ["part", "done"]] {
        repo.env.handoff([&["verify"][..], &order].concat()).ends(3);
    }
    repo.env.handoff(["verify", "--all", "--allow-partial"]).ends(3);
}

#[test]
fn a_run_that_is_open_ended_and_red_ends_with_four_and_can_go_on() {
    let repo = repo();
    repo.env.write("r.json", &json!({ "id": "r", "openEnded": true, "items": [item("a", "red")] }).to_string());
    repo.env.handoff(["submit", "../r.json"]).success();
    let output = repo.env.handoff(["run", "r"]).exit(4);
    insta::assert_snapshot!(output.stderr, @"
    ▶ a  attempt 1
    ! a  done in 0ms, 1 product, red: verify-failed: exited with 1: running 3 tests | test greets ... FAILED
    hint: git handoff extend r PLAN   # or seal it as it is: git handoff close r
    hint: git handoff cat r/a:transcript
    ");
    let refused = repo.env.handoff(["retry", "r/a"]).exit(1).stderr;
    insta::assert_snapshot!(refused, @r#"
    error: "a" is done, although red: only items that failed, were skipped or were cancelled can be retried
    hint: git handoff show r/a   # for another try: submit the plan with another id; `onVerifyFail = fail` tries again by itself
    "#);
    repo.ends_intact("r");
    repo.env.handoff(["verify", "r"]).ends(4);
}
