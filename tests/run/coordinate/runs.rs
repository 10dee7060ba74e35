//! Rules at work, through the built program.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rule;
use crate::common::repo::{Driver, TestRepo, after, item};
use crate::common::report::{find_line, find_row, verdict};

/// A rule that creates an item which runs a line of shell and writes a document.
pub(super) fn writes(id: &str, when: &Value, script: &str, document: &str) -> Value {
    json!({ "id": id, "when": when, "create": {
        "executor": "command", "inputs": { "command": script },
        "produces": [{ "kind": "document", "name": document, "path": "out" }] } })
}

pub(super) fn submit(repo: &TestRepo, run: &str, items: &[Value], more: &Value) -> crate::common::Output {
    let mut plan = json!({ "id": run, "items": items });
    for (key, value) in more.as_object().unwrap() {
        plan[key] = value.clone();
    }
    repo.env.write(&format!("{run}.json"), &plan.to_string());
    repo.env.handoff(["submit", &format!("../{run}.json")])
}

fn answer(repo: &TestRepo, arguments: &[&str]) -> Value {
    serde_json::from_str(&repo.env.handoff(arguments).success()).unwrap()
}

/// An item that writes a document.
pub(super) fn source(script: &str) -> Value {
    let mut source = item("source", script);
    source["produces"] = json!([{ "kind": "document", "name": "score", "path": "out" }]);
    source
}

fn counting() -> Value {
    // Each round the score gets better by one, until it is good enough.
    let low = json!({ "if": [{ "document": "score", "pointer": "", "op": "<", "value": 3 }], "atMost": 9 });
    let mut again = writes("again", &low, "echo $(($(cat inputs/old) + 1)) >outputs/out", "score");
    let need = json!({ "from": "@documents", "select": { "kind": "document", "name": "score" } });
    again["create"]["needs"] = json!({ "old": need });
    json!({ "rules": [again] })
}

#[test]
fn a_run_goes_round_until_no_rule_fires_and_then_seals_itself() {
    let repo = TestRepo::new();
    submit(&repo, "r", &[source("echo 0 >outputs/out")], &counting()).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(repo.items("r").len(), 4);
    assert_eq!(repo.env.git(["show", "refs/handoff/runs/r^{/#1: done}:documents/score"]).success(), "3\n");
    repo.is_intact("r");
    repo.is_clean();
    // A finished run is explained and refused.
    let coordinate_answer = answer(&repo, &["coordinate", "r", "--explain", "--json"]);
    assert_eq!(
        (&coordinate_answer["recorded"], coordinate_answer["rules"][0]["created"].as_array().unwrap().len()),
        (&json!(false), 3)
    );
    let refused = repo.env.handoff(["coordinate", "r"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "r" is sealed; nothing can follow
    hint: git handoff verify r
    "#);
}

#[test]
fn at_most_ends_what_would_go_on_for_ever() {
    let repo = TestRepo::new();
    let mut rules = counting();
    rules["rules"][0]["create"]["inputs"]["command"] = json!("echo 0 >outputs/out");
    rules["rules"][0]["when"]["atMost"] = json!(3);
    submit(&repo, "r", &[source("echo 0 >outputs/out")], &rules).success();
    let stderr = repo.env.handoff(["run", "r"]).exit(4).stderr;
    insta::assert_snapshot!(find_line(&stderr, "the rule again stopped short: "), @"the rule again stopped short: it created 3 of at most 3");
    assert_eq!(repo.items("r").len(), 4, "one revision after the other, each of the same bytes");
    assert!(!repo.is_sealed("r"), "it can go on");
    let answer: Value = serde_json::from_str(&repo.env.handoff(["--json", "run", "r"]).exit(4).stdout).unwrap();
    assert_eq!((&answer["settled"], answer["stoppedShort"]["again"].is_string()), (&json!(true), true), "{answer}");
    repo.env.handoff(["close", "r"]).success();
    repo.is_intact("r");
}

#[test]
fn missing_pointer_of_a_rule_stops_the_run() {
    let repo = TestRepo::new();
    let rules = |pointer: &str| {
        let condition = json!({ "document": "score", "pointer": pointer, "op": "<", "value": 5 });
        json!({ "rules": [rule("again", &json!({ "present": ["score"], "if": [condition] }))] })
    };
    let review = source("echo '{\"score\": 7}' >outputs/out");
    submit(&repo, "right", std::slice::from_ref(&review), &rules("/score")).success();
    repo.env.handoff(["run", "right"]).success();
    assert!(repo.is_sealed("right"), "a comparison that is false is a rule that does not apply");
    submit(&repo, "wrong", &[review], &rules("/grade")).success();
    let stderr = repo.env.handoff(["run", "wrong"]).exit(4).stderr;
    insta::assert_snapshot!(stderr, @r#"
    ▶ source  attempt 1
    ✓ source  done in 0ms, 2 products
    the rule again stopped short: score/grade < 5: there is nothing at "/grade"
    hint: git handoff coordinate --explain wrong   # or seal it as it is: git handoff close wrong
    "#);
    assert!(!repo.is_sealed("wrong"));
    repo.env.handoff(["run", "wrong", "--close"]).ends(4);
    repo.is_intact("wrong");
    // A missing document does not make a run wait.
    submit(&repo, "never", &[item("a", "true")], &rules("/score")).success();
    repo.env.handoff(["run", "never"]).success();
    assert!(repo.is_sealed("never"));
}

#[test]
fn coordinate_adds_and_does_not_run() {
    let repo = TestRepo::new();
    let rules = json!({ "rules": [rule("first", &json!({})), rule("never", &json!({ "present": ["x"] }))] });
    submit(&repo, "r", &[item("a", "true")], &rules).success();
    let before = repo.refs();
    let dry = repo.env.handoff(["coordinate", "r", "--dry-run"]).exit(0);
    insta::assert_snapshot!(dry.stdout, @"first-5425ac6331f1  by rule first");
    insta::assert_snapshot!(dry.stderr, @"nothing was recorded");
    assert_eq!(repo.refs(), before);
    let explained = repo.env.handoff(["coordinate", "r", "--explain"]).success();
    let lines: Vec<&str> = explained.lines().collect();
    assert!(lines[0].starts_with("first  creates first-"), "{explained}");
    assert_eq!(
        lines[1..],
        [
            "    ✓ it created 0 of at most 1",
            "never  creates nothing",
            "    ✗ x is absent, and must be present",
            "    ✓ it created 0 of at most 1"
        ]
    );
    let entries = repo.entries("r");
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["cause"], json!({ "rule": "first" }));
    let created = entries[1]["items"].as_object().unwrap().keys().next().unwrap();
    let show_answer = answer(&repo, &["show", "--json", &format!("r/{created}")]);
    assert_eq!(show_answer["added"], json!({ "entry": 1, "cause": { "rule": "first" } }));
    let logged = repo.env.handoff(["log", "r"]).success();
    assert!(logged.trim_end().ends_with(&format!("run.extended {created}  added by rule first")), "{logged}");
    let after = repo.refs();
    let again = repo.env.handoff(["coordinate", "r"]).exit(0);
    assert!(again.stdout.is_empty(), "{again}");
    insta::assert_snapshot!(again.stderr, @"no rule creates anything as the run stands");
    assert_eq!(repo.refs(), after);
    let none = repo.env.handoff(["coordinate", "s"]).exit(1);
    insta::assert_snapshot!(none.stderr, @r#"
    error: there is no run "s" here
    hint: git handoff runs
    "#);
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(repo.items("r").len(), 2);
    repo.is_intact("r");
}

#[test]
fn of_many_coordinators_at_once_each_item_is_created_by_one() {
    let repo = TestRepo::new();
    let rules: Vec<Value> = (0..5).map(|at| rule(&format!("rule{at}"), &json!({}))).collect();
    for round in 0..4 {
        let run = format!("r{round}");
        submit(&repo, &run, &[item("a", "true")], &json!({ "rules": rules })).success();
        let started: Vec<Driver> = (0..4).map(|_| repo.start(&["coordinate", &run, "--json"])).collect();
        for ended in started {
            let (status, output) = ended.wait();
            assert!(status.success(), "{output}");
        }
        let entries = repo.entries(&run);
        let created: Vec<&String> =
            entries.iter().filter_map(|entry| entry["items"].as_object()?.keys().next()).collect();
        assert_eq!(created.len(), 5, "{created:?}");
        assert_eq!(created.iter().collect::<BTreeSet<_>>().len(), 5, "{created:?}");
        repo.env.handoff(["run", &run]).success();
        repo.is_intact(&run);
    }
    repo.is_sound();
}

#[test]
fn the_rules_of_a_queue_hold_for_the_runs_that_are_placed_on_it() {
    let repo = TestRepo::new();
    repo.env.write("repo/rules.json", &json!([rule("more", &json!({}))]).to_string());
    repo.config("handoff.queue.ruled.rules", "rules.json");
    submit(&repo, "r", &[item("a", "true")], &json!({ "queue": "ruled" })).success();
    // Sealed rules apply: later changes of the file, and other queues, have no effect.
    repo.env.write("repo/rules.json", "nothing");
    submit(&repo, "plain", &[item("a", "true")], &json!({})).success();
    repo.env.handoff(["run", "r", "plain"]).success();
    assert_eq!((repo.items("r").len(), repo.items("plain").len()), (2, 1));
    ["r", "plain"].iter().for_each(|run| repo.is_intact(run));
    let before = repo.refs();
    let broken = submit(&repo, "s", &[item("a", "true")], &json!({ "queue": "ruled" })).exit(1);
    insta::assert_snapshot!(broken.stdout, @"bad-rule at queue.rules: the file of the queue's rules: not-json: not valid JSON: expected ident at line 1 column 2");
    std::fs::remove_file(repo.path("repo/rules.json")).unwrap();
    let gone = submit(&repo, "s", &[item("a", "true")], &json!({ "queue": "ruled" })).exit(1);
    insta::assert_snapshot!(gone.stdout, @r#"bad-rule: the file of rules of the queue "ruled" could not be read from rules.json: No such file or directory (os error 2)"#);
    assert_eq!(repo.refs(), before);
}

#[test]
fn a_run_does_not_grow_beyond_what_is_allowed() {
    let repo = TestRepo::new();
    submit(&repo, "r", &[item("a", "true")], &json!({ "rules": [rule("more", &json!({}))] })).success();
    repo.config("handoff.maxItems", "1");
    let before = repo.refs();
    let refused = repo.env.handoff(["coordinate", "r"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the rules of "r" would give it 2 items; at most 1 are allowed
    hint: git config handoff.maxItems 2
    "#);
    assert_eq!(repo.refs(), before);
}

#[test]
fn later_item_behind_a_lost_one_is_skipped() {
    let repo = TestRepo::new();
    let mut rules = json!({ "rules": [rule("more", &json!({ "present": ["score"] }))] });
    rules["rules"][0]["create"]["depends_on"] = json!(["lost"]);
    let items = [item("lost", "exit 1"), {
        let mut late = source("sleep 0.3; echo 1 >outputs/out");
        late["id"] = json!("late");
        late
    }];
    submit(&repo, "r", &items, &rules).success();
    repo.env.handoff(["run", "r"]).ends(4);
    let skipped = repo.items("r").into_iter().find(|(id, _)| id.starts_with("more-")).unwrap().1;
    assert_eq!(skipped.status, "skipped");
    repo.ends_intact("r");
}

#[test]
fn an_open_ended_run_takes_items_until_it_is_closed() {
    let repo = TestRepo::new();
    let extend = |items: &[Value]| {
        repo.env.write("more.json", &json!({ "id": "r", "items": items }).to_string());
        repo.env.handoff(["extend", "r", "../more.json"])
    };
    submit(&repo, "r", &[item("a", "echo a >outputs/a")], &json!({ "openEnded": true })).success();
    repo.env.handoff(["run", "r"]).success();
    assert!(!repo.is_sealed("r"), "it waits to be closed");
    let mut needs = item("c", "test -f inputs/a");
    needs["needs"] = json!({ "a": { "from": "a", "select": { "kind": "output", "path": "a" } } });
    assert_eq!(extend(&[needs.clone(), after("b", &["c"], "true")]).success(), "b\nc\n");
    let before = repo.refs();
    // The same again is nothing new; anything wrong leaves everything as it was.
    let again = extend(std::slice::from_ref(&needs)).exit(0);
    insta::assert_snapshot!(again.stderr, @"the run has all of these items already; nothing changed");
    let ghost = "unknown-dependency at items[1].depends_on[0]: there is no item \"ghost\" in this run";
    for (items, message) in [
        (vec![item("a", "false")], "duplicate-id at items[0].id: another item has the id \"a\""),
        (vec![item("d", "true"), after("e", &["ghost"], "true")], ghost),
        (
            vec![after("d", &["e"], "true"), after("e", &["d"], "true")],
            "cycle at items[0]: these items wait for one another: d -> e -> d",
        ),
        (vec![], "no-items at items: a plan has at least one item"),
    ] {
        let refused = extend(&items).exit(1);
        assert_eq!(refused.stdout, format!("{message}\n"));
    }
    repo.env.write("other.json", &json!({ "id": "other", "items": [item("z", "true")] }).to_string());
    let other = repo.env.handoff(["extend", "r", "../other.json"]).exit(1);
    insta::assert_snapshot!(other.stderr, @r#"
    error: the plan has the id "other", but the run is "r"
    hint: give the plan the id of the run
    "#);
    assert_eq!(repo.refs(), before);
    repo.env.handoff(["run", "r"]).success();
    repo.env.handoff(["close", "r"]).success();
    assert_eq!(repo.items("r").values().filter(|item| item.status == "done").count(), 3);
    repo.is_intact("r");
    let sealed = extend(&[item("d", "true")]).exit(1);
    insta::assert_snapshot!(sealed.stderr, @r#"
    error: the run "r" is sealed; nothing can follow
    hint: git handoff verify r
    "#);
    submit(&repo, "s", &[item("a", "true")], &json!({})).success();
    repo.env.write("more.json", &json!({ "id": "s", "items": [item("b", "true")] }).to_string());
    let closed = repo.env.handoff(["extend", "s", "../more.json"]).exit(1);
    insta::assert_snapshot!(closed.stderr, @r#"
    error: cannot add to the run "s": its plan is not open-ended
    hint: submit another plan, or one with "openEnded": true from the beginning
    "#);
}

#[test]
fn a_document_that_is_put_while_a_run_is_driven_makes_its_rules_fire() {
    let repo = TestRepo::new();
    let slow = item("slow", "touch \"$HOME/../up\"; while ! test -f \"$HOME/../go\"; do sleep 0.02; done");
    let approved = json!({ "if": [{ "document": "approval", "pointer": "/by", "op": "!=", "value": null }] });
    let mut release = rule("release", &approved);
    release["create"]["inputs"]["command"] = json!("touch \"$HOME/../go\"");
    submit(&repo, "r", &[slow], &json!({ "rules": [release] })).success();
    let driver = repo.start(&["run", "r"]);
    crate::common::repo::wait_for("the item", || repo.path("up").exists());
    for text in ["approved", r#"{"by":null}"#, r#"{"by":"Ada"}"#] {
        repo.env.write("approval", text);
        repo.env.handoff(["doc", "put", "r", "approval", "../approval"]).success();
    }
    let (status, output) = driver.wait();
    assert!(status.success(), "{output}");
    let items = repo.items("r");
    assert_eq!(items.len(), 2, "only the revision that says who fired the rule: {items:?}");
    repo.is_intact("r");
    // Nothing that a worker or an operator writes later changes what was.
    let refused = repo.env.handoff(["doc", "put", "r", "approval", "../approval"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    error: the run "r" is sealed; nothing can follow
    hint: git handoff verify r
    "#);
}

#[test]
fn documents_come_with_the_evidence_to_a_clone_without_blobs() {
    let repo = TestRepo::new();
    submit(&repo, "r", &[source("echo 0 >outputs/out")], &counting()).success();
    repo.env.handoff(["run", "r"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "--bare", "repo", "hub"]).success();
    repo.env.git_in("hub", ["config", "uploadpack.allowFilter", "true"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.handoff(["push", "origin", "r"]).success();
    let url = format!("file://{}", repo.path("hub").display());
    repo.env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "lazy"]).success();
    repo.env.git_in("lazy", ["config", "handoff.signingKey", ""]).success();
    let spec = "refs/handoff/*:refs/handoff/remotes/origin/*";
    repo.env.git_in("lazy", ["fetch", "--quiet", "origin", spec]).success();
    let without = repo.env.handoff_in("lazy", ["verify", "origin/r"]).exit(3);
    assert_eq!(verdict(&without.stdout), "✗ INCOMPLETE");
    repo.env.handoff_in("lazy", ["fetch"]).success();
    std::fs::rename(repo.path("hub"), repo.path("gone")).unwrap();
    let report = repo.env.handoff_in("lazy", ["verify", "origin/r"]).exit(0);
    insta::assert_snapshot!(find_row(&report.stdout, "plan"), @"✓ plan       4 of 4 items accounted for, every transition legal");
    let explained = repo.env.handoff_in("lazy", ["coordinate", "origin/r", "--explain"]).success();
    insta::assert_snapshot!(explained, @"
    again  creates nothing
        ✗ score < 3: it is 3
        ✓ it created 3 of at most 9
        created again-7fe528fa11ee
        created again-3ca73685e0a0
        created again-384287386b94
    ");
    let refused = repo.env.handoff_in("lazy", ["coordinate", "origin/r"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"error: the run "r" was fetched; it can only be changed where it is driven"#);
}

#[test]
fn driver_runs_items_added_meanwhile() {
    let repo = TestRepo::new();
    let slow = item("slow", "touch \"$HOME/../up\"; while ! test -f \"$HOME/../go\"; do sleep 0.02; done");
    submit(&repo, "r", &[slow], &json!({ "openEnded": true })).success();
    let driver = repo.start(&["run", "r"]);
    crate::common::repo::wait_for("the item", || repo.path("up").exists());
    repo.env.write("more.json", &json!({ "id": "r", "items": [item("added", "touch \"$HOME/../go\"")] }).to_string());
    repo.env.handoff(["extend", "r", "../more.json"]).success();
    let (status, output) = driver.wait();
    assert!(status.success(), "{output}");
    assert!(repo.items("r").values().all(|item| item.status == "done"));
    repo.ends_intact("r");
}
