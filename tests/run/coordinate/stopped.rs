//! Runs whose rules stopped before they were done: every view says so, while they are open and when
//! they are sealed.

use serde_json::{Value, json};

use super::runs::{source, submit, writes};
use crate::common::repo::{TestRepo, item};
use crate::common::report::verdict;

const REASON: &str = "it created 2 of at most 2";

/// A review that never finds the text good enough, and a polisher that may try twice.
fn review() -> Value {
    let bad = json!({ "document": "score", "pointer": "/score", "op": "<", "value": 8 });
    let good = json!({ "document": "score", "pointer": "/score", "op": ">=", "value": 8 });
    let polish = json!({ "if": [bad], "absent": ["url"], "atMost": 2 });
    json!({ "rules": [
        writes("polish", &polish, "echo '{\"score\": 1}' >outputs/out", "score"),
        writes("publish", &json!({ "if": [good], "absent": ["url"] }), "echo '{}' >outputs/out", "url"),
    ] })
}

fn stopped(rule: &str, reason: &str) -> Value {
    json!({ "rule": rule, "reason": reason })
}

/// Returns what a command answers in JSON, with its exit code.
fn answer(repo: &TestRepo, arguments: &[&str], code: i32) -> Value {
    let stdout = repo.env.handoff([&["--json"], arguments].concat()).exit(code).stdout;
    serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}"))
}

/// Every view of a run, with how it ends; `open` is how those end that ask for a seal.
fn views(repo: &TestRepo, run: &str, is_open: bool) -> Vec<Value> {
    let verified = if is_open { 3 } else { 4 };
    let list = answer(repo, &["runs"], 0)["runs"].as_array().unwrap().clone();
    let listed = list.into_iter().find(|one| one["run"] == run).unwrap();
    let mut views = vec![listed["stopped"].clone()];
    for (arguments, code) in [
        (&["status", run][..], 0),
        (&["show", run], 0),
        (&["watch", run], 4),
        (&["run", run], 4),
        (&["verify", run], verified),
    ] {
        views.push(answer(repo, arguments, code)["outcome"]["stopped"].clone());
    }
    views
}

#[test]
fn a_run_whose_rule_may_do_no_more_is_partial_while_it_is_open_and_when_it_is_sealed() {
    let repo = TestRepo::new();
    let start = [source("echo '{\"score\": 1}' >outputs/out")];
    submit(&repo, "r", &start, &review()).success();
    let stderr = repo.env.handoff(["run", "r"]).exit(4).stderr;
    let stopped_short = format!("the rule polish stopped short: {REASON}");
    assert!(stderr.lines().any(|line| line == stopped_short), "{stderr}");
    assert!(!repo.is_sealed("r"), "it can go on");
    assert!(views(&repo, "r", true).iter().all(|view| *view == stopped("polish", REASON)));
    let words = format!("r: 3 of 3 done, rule polish stopped: {REASON}, PARTIAL\n");
    assert!(repo.env.handoff(["status", "r"]).success().ends_with(&words));
    assert!(repo.env.handoff(["runs"]).success().ends_with("  3 done, rule polish stopped, PARTIAL\n"));
    let overview = repo.env.handoff::<[&str; 0], &str>([]).exit(0);
    insta::assert_snapshot!(overview.stderr, @"hint: git handoff coordinate --explain r   # or seal it as it is: git handoff close r");
    let closed = repo.env.handoff(["close", "r"]).success();
    assert_eq!(closed, format!("r: 2 entries, sealed, PARTIAL: rule polish stopped: {REASON}\n"));
    assert!(views(&repo, "r", false).iter().all(|view| *view == stopped("polish", REASON)));
    let seal = repo.env.git(["show", "--no-patch", "--format=%B", "refs/handoff/runs/r"]).success();
    assert!(seal.contains(&format!("\"stopped\": {{\n  \"polish\": \"{REASON}\"\n }}")), "{seal}");
    let second_words = format!("r: 3 of 3 done, rule polish stopped: {REASON}, sealed, PARTIAL\n");
    assert!(repo.env.handoff(["status", "r"]).success().ends_with(&second_words));
    let verified = repo.env.handoff(["verify", "r"]).exit(4).stdout;
    assert_eq!(verdict(&verified), "─ INTACT · tamper-detecting PARTIAL");
    assert!(verified.contains(&format!("✗ outcome    3 of 3 done, rule polish stopped: {REASON}\n")), "{verified}");
    repo.env.handoff(["verify", "--allow-partial", "r"]).ends(0);
    repo.env.handoff(["verify", "--all"]).ends(4);
    repo.env.handoff(["bundle", "r", "-o", "../r.bundle"]).success();
    let report = answer(&repo, &["verify", "--bundle", "../r.bundle"], 4);
    assert_eq!(report["outcome"]["stopped"], stopped("polish", REASON), "{report}");
}

#[test]
fn closing_while_driving_ends_as_the_run_does() {
    let repo = TestRepo::new();
    submit(&repo, "r", &[source("echo '{\"score\": 1}' >outputs/out")], &review()).success();
    let output = repo.env.handoff(["run", "--close", "r"]).exit(4);
    assert!(output.stdout.contains("sealed, PARTIAL\n"), "{output}");
    assert!(views(&repo, "r", false).iter().all(|view| *view == stopped("polish", REASON)));
    // One that came to its end is as good as ever.
    submit(&repo, "good", &[source("echo '{\"score\": 9}' >outputs/out")], &review()).success();
    repo.env.handoff(["run", "good"]).success();
    assert!(views(&repo, "r", false).iter().all(|view| *view == stopped("polish", REASON)));
    let good = repo.env.handoff(["status", "good"]).success();
    assert!(good.ends_with("good: 2 of 2 done, sealed\n"), "{good}");
    repo.env.handoff(["verify", "good"]).ends(0);
}

#[test]
fn a_document_that_cannot_be_compared_stops_a_run_as_well() {
    let repo = TestRepo::new();
    for (run, document, reason) in [
        ("word", "{\"score\": \"high\"}", "score/score < 8: it is \"high\", and no number"),
        ("nothing", "{\"score\": null}", "score/score < 8: it is null, and no number"),
        ("text", "fine", "score/score < 8: score is not plain JSON: \"fine\" is not JSON, on line 1"),
        (
            "nan",
            "{\"score\": NaN}",
            "score/score < 8: score is not plain JSON: \"NaN\" is not JSON, at /score, on line 1",
        ),
        ("elsewhere", "{\"grade\": 1}", "score/score < 8: there is nothing at \"/score\""),
    ] {
        submit(&repo, run, &[source(&format!("echo '{document}' >outputs/out"))], &review()).success();
        repo.env.handoff(["run", run]).ends(4);
        let status_answer = answer(&repo, &["status", run], 0);
        assert_eq!(status_answer["outcome"]["stopped"], stopped("polish", reason), "{run}: {status_answer}");
        let also = status_answer["outcome"]["alsoStopped"].as_array().unwrap();
        assert_eq!((also.len(), &also[0]["rule"]), (1, &json!("publish")), "{run}: {status_answer}");
        repo.env.handoff(["run", "--close", run]).ends(4);
        let report = answer(&repo, &["verify", run], 4);
        assert_eq!(report["outcome"]["stopped"], stopped("polish", reason), "{run}: {report}");
    }
}

#[test]
fn a_long_number_stops_no_rule() {
    let repo = TestRepo::new();
    for (run, document, made) in [
        (
            "beside",
            r#"{"score": 9, "author": 917204512345678901, "nanos": [1764129571123456789], "x": 1e400}"#,
            "publish",
        ),
        ("compared", r#"{"score": 917204512345678901}"#, "publish"),
        ("close", r#"{"score": 8.000000000000000000000001}"#, "publish"),
        ("below", r#"{"score": 7.999999999999999999999999}"#, "polish"),
    ] {
        let source = source(&format!("printf '%s' '{document}' >outputs/out"));
        let mut rules = review();
        rules["rules"][0]["create"]["inputs"]["command"] = "echo '{\"score\": 9}' >outputs/out".into();
        submit(&repo, run, &[source], &rules).success();
        repo.env.handoff(["run", run]).success();
        let created: Vec<String> = repo.items(run).into_keys().filter(|id| id.contains('-')).collect();
        let expected = if made == "polish" { 2 } else { 1 };
        assert_eq!(created.len(), expected, "{run}: {created:?}");
        assert!(created.iter().any(|id| id.starts_with(made)), "{run}: {created:?}");
        repo.is_intact(run);
    }
}

#[test]
fn doc_put_warns_about_an_incomparable_document() {
    let repo = TestRepo::new();
    let plan = json!({ "rules": review()["rules"], "openEnded": true });
    submit(&repo, "r", &[item("a", "true")], &plan).success();
    repo.env.handoff(["run", "r"]).success();
    for (document, reason) in [
        ("{\"score\": \"high\"}", "it is \"high\", and no number"),
        ("{\"score\": NaN}", "score is not plain JSON: \"NaN\" is not JSON, at /score, on line 1"),
    ] {
        repo.env.write("score", document);
        let put = repo.env.handoff(["doc", "put", "r", "score", "../score"]).exit(0);
        let warned: Vec<&str> = put.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        let warning = |rule: &str, op: &str| {
            format!("warning: the rule {rule} cannot compare this revision: score/score {op} 8: {reason}")
        };
        assert_eq!(warned, [warning("polish", "<"), warning("publish", ">=")], "{put}");
        let doc_put = answer(&repo, &["doc", "put", "r", "score", "../score"], 0);
        let reason = format!("score/score < 8: {reason}");
        assert_eq!(doc_put["uncompared"][0], stopped("polish", &reason), "{doc_put}");
    }
    for fine in ["{\"score\": 917204512345678901}", "{\"other\": 1}"] {
        repo.env.write("score", fine);
        let put = repo.env.handoff(["doc", "put", "r", "score", "../score"]).exit(0);
        assert_eq!(put.stderr, "", "{put}");
    }
    // A document that no rule looks into may be anything.
    repo.env.write("notes", "NaN");
    assert_eq!(repo.env.handoff(["doc", "put", "r", "notes", "../notes"]).exit(0).stderr, "");
}

#[test]
fn close_lists_unfinished_rules() {
    let repo = TestRepo::new();
    let plan = json!({ "rules": review()["rules"], "openEnded": true });
    submit(&repo, "r", &[item("a", "true")], &plan).success();
    repo.env.handoff(["run", "r"]).success();
    repo.env.write("score", "{\"score\": 1}\n");
    repo.env.handoff(["doc", "put", "r", "score", "../score"]).success();
    // The rule has something to do: nothing has stopped yet.
    assert!(repo.env.handoff(["status", "r"]).success().ends_with("r: 1 of 1 done\n"));
    repo.env.handoff(["close", "r"]).success();
    let report = answer(&repo, &["verify", "r"], 4);
    assert_eq!(report["outcome"]["stopped"]["rule"], "polish", "{report}");
    let reason = report["outcome"]["stopped"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the run was ended before it created polish-"), "{reason}");
    assert!(views(&repo, "r", false).iter().all(|view| view["reason"] == reason));
}

#[test]
fn pattern_outcome_names_its_rule() {
    let repo = TestRepo::new();
    let failing =
        json!({ "id": "gave-up", "when": { "items": [{ "items": ["a"], "are": "done" }] }, "outcome": "given-up" });
    submit(&repo, "r", &[item("a", "true")], &json!({ "rules": [failing] })).success();
    repo.env.handoff(["run", "r"]).ends(4);
    assert!(views(&repo, "r", false).iter().all(|view| *view == stopped("gave-up", "given-up")));
    let stdout = repo.env.handoff(["status", "r"]).success();
    assert!(stdout.ends_with("r: 1 of 1 done, given-up, sealed, PARTIAL\n"), "{stdout}");
}
