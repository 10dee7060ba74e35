//! Pipelines: items one after the other, gates, and what a red one leads to.

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};

use super::{RED, cat, item, item_statuses, play, rule_outcomes, template, work};
use crate::common::repo::TestRepo;
use crate::common::report::{find_line, find_row, verdict};

/// Work that is good once `fixed` stands so often in it, a gate that says so, and one that takes
/// what is good.
fn plan(good: u32, gate: &Value) -> Vec<Value> {
    let mut payload = json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": template(FIX) });
    for (key, value) in gate.as_object().unwrap() {
        payload[key] = value.clone();
    }
    let review = format!(
        "git apply inputs/work; n=$(grep -c fixed code); echo seen $n >outputs/findings; test $n -ge {good} || {RED}"
    );
    vec![
        item("build", "echo bad >code", &json!({})),
        item("review", &review, &json!({ "gate": payload, "needs": work("build") })),
        item("ship", "git apply inputs/work; cp code outputs/shipped", &json!({ "needs": work("build") })),
    ]
}

const FIX: &str = "git apply inputs/work; echo fixed >>code; cat inputs/findings >outputs/told";

#[test]
fn items_without_dependencies_follow_one_another() {
    let each = |id: &str| item(id, "true", &json!({}));
    let repo = play("pipeline", &[each("c"), each("a"), each("b")], 0);
    let fired: Vec<_> = repo.entries("r").into_iter().filter(|entry| entry["kind"] == "item.fired").collect();
    let fired: Vec<&str> = fired.iter().map(|entry| entry["item"].as_str().unwrap()).collect();
    assert_eq!(fired, ["c", "a", "b"]);
    repo.is_intact("r");
}

#[test]
fn a_green_gate_changes_nothing() {
    let repo = play("pipeline", &plan(0, &json!({})), 0);
    assert_eq!(item_statuses(&repo), ["build done", "review done", "ship done"]);
    assert_eq!(cat(&repo, "ship:outputs/shipped"), "bad\n");
    repo.is_intact("r");
}

#[test]
fn fix_gets_findings_and_ship_uses_the_newest() {
    let repo = play("pipeline", &plan(1, &json!({})), 0);
    let all = ["build done", "review done", "review-fix-1 done", "review~2 done", "ship skipped", "ship~2 done"];
    assert_eq!(item_statuses(&repo), all);
    assert_eq!(cat(&repo, "review-fix-1:outputs/told"), "seen 0\n");
    assert_eq!(cat(&repo, "ship~2:outputs/shipped"), "bad\nfixed\n");
    assert!(rule_outcomes(&repo).is_empty());
    repo.is_intact("r");
    // A reader of the statement alone learns that the item was replaced.
    let statement = repo.env.handoff(["export", "r/review", "--format", "in-toto"]).success();
    let envelope: Value = serde_json::from_str(statement.lines().next().unwrap()).unwrap();
    let payload = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
    let second_statement: Value = serde_json::from_slice(&payload).unwrap();
    let noted = &second_statement["predicate"]["runDetails"]["byproducts"][1]["annotations"];
    assert_eq!((&noted["red"], &noted["supersededBy"]), (&json!(true), &json!("review~2")));
}

#[test]
fn every_further_round_judges_the_newest_fix() {
    let repo = play("pipeline", &plan(3, &json!({ "maxFixAttempts": 3 })), 0);
    assert_eq!(cat(&repo, "review~2:outputs/findings"), "seen 1\n");
    assert_eq!(cat(&repo, "review~4:outputs/findings"), "seen 3\n");
    assert_eq!(cat(&repo, "review-fix-3:outputs/told"), "seen 2\n");
    assert_eq!(cat(&repo, "ship~4:outputs/shipped"), "bad\nfixed\nfixed\nfixed\n");
    assert_eq!(repo.items("r")["ship~3"].status, "skipped");
    repo.is_intact("r");
}

#[test]
fn exhausted_attempts_are_recorded_and_nothing_ships() {
    let repo = play("pipeline", &plan(9, &json!({ "maxFixAttempts": 2 })), 4);
    assert_eq!(rule_outcomes(&repo), ["attempts-used-up"]);
    let items = repo.items("r");
    assert_eq!((items["review~3"].status.as_str(), items["ship~3"].status.as_str()), ("done", "skipped"));
    assert!(!items.contains_key("review-fix-3"));
}

#[test]
fn a_gate_without_attempts_only_blocks() {
    let repo = play("pipeline", &plan(1, &json!({ "maxFixAttempts": 0 })), 4);
    assert_eq!(item_statuses(&repo), ["build done", "review done", "ship skipped"]);
    assert_eq!(rule_outcomes(&repo), ["attempts-used-up"]);
}

#[test]
fn a_gate_that_fails_gives_its_reason_to_the_fix() {
    let mut items =
        plan(1, &json!({ "fixTemplate": template("git apply inputs/work; echo fixed >>code; cat $HANDOFF_TASK") }));
    items[1]["inputs"]["command"] = "git apply inputs/work; grep -q fixed code".into();
    let repo = play("pipeline", &items, 0);
    assert_eq!(repo.items("r")["review"].status, "failed");
    let task = cat(&repo, "review-fix-1:transcript");
    assert!(task.contains(r#""gateReason": "exited with 1""#), "{task}");
    assert!(!task.contains("findings"), "{task}");
    repo.is_intact("r");
}

#[test]
fn a_gate_that_advances_stops_no_item() {
    let mut items = plan(1, &json!({ "onRed": "advance" }));
    items[1]["inputs"]["gate"].as_object_mut().unwrap().remove("fixTemplate");
    let repo = play("pipeline", &items, 4);
    assert_eq!(item_statuses(&repo), ["build done", "review done", "ship done"]);
}

#[test]
fn an_item_that_needs_the_output_of_a_red_gate_runs() {
    let mut items = plan(1, &json!({ "onRed": "block" }));
    items[1]["inputs"]["gate"].as_object_mut().unwrap().remove("fixTemplate");
    let findings = json!({ "why": { "from": "review", "select": { "kind": "output", "path": "findings" } } });
    // With a dependency of its own, it does not come after what was skipped.
    let more = json!({ "needs": findings, "depends_on": ["review"] });
    items.push(item("tell", "cp inputs/why outputs/why", &more));
    let repo = play("pipeline", &items, 4);
    let statuses = item_statuses(&repo);
    assert!(statuses.contains(&"ship skipped".to_owned()), "{statuses:?}");
    assert!(statuses.contains(&"tell done".to_owned()), "{statuses:?}");
}

#[test]
fn two_gates_in_a_row_each_have_their_rounds() {
    let mut items = plan(1, &json!({}));
    let second = format!("git apply inputs/work; n=$(grep -c fixed code); test $n -ge 2 || {RED}");
    let gate = json!({ "onRed": "spawn-fix", "subject": "build", "fixTemplate": template(FIX.split(';').take(2).collect::<Vec<_>>().join(";").as_str()) });
    items.insert(2, item("audit", &second, &json!({ "gate": gate, "needs": work("build") })));
    let repo = play("pipeline", &items, 0);
    assert_eq!(cat(&repo, "ship~3:outputs/shipped"), "bad\nfixed\nfixed\n");
    assert_eq!(repo.items("r")["audit-fix-1"].status, "done");
    repo.is_intact("r");
}

#[test]
fn killed_driver_changes_no_growth_of_a_run() {
    let whole = play("pipeline", &plan(2, &json!({ "maxFixAttempts": 2 })), 0);
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.maxAttempts", "100");
    repo.config("handoff.maxCrashes", "1000");
    super::submit(&repo, "pipeline", &plan(2, &json!({ "maxFixAttempts": 2 }))).success();
    let (mut round, mut killed) = (0_u64, 0);
    while !repo.is_sealed("r") && round < 40 {
        let driver = repo.start(&["run", "r"]);
        std::thread::sleep(std::time::Duration::from_millis(20 + round * 17 % 90));
        killed += usize::from(driver.kill());
        round += 1;
    }
    repo.env.handoff(["run", "r"]).success();
    assert!(killed > 2, "hardly anything was alive when it was killed");
    assert_eq!(item_statuses(&repo), item_statuses(&whole));
    assert_eq!(cat(&repo, "ship~3:outputs/shipped"), cat(&whole, "ship~3:outputs/shipped"));
    repo.is_intact("r");
}

#[test]
fn every_screen_counts_what_counts() {
    let repo = play("pipeline", &plan(1, &json!({})), 0);
    let applied = repo.env.handoff(["apply", "r", "--branch", "feature"]).exit(0);
    assert_eq!(applied.stderr, "");
    assert_eq!(repo.env.git(["show", "feature:code"]).success(), "bad\nfixed\n");
    assert_eq!(repo.env.git(["rev-list", "--count", "main..feature"]).success(), "1\n");
    let packet = repo.env.handoff(["packet", "auto", "--run", "r"]).success();
    let read: Value = serde_json::from_str(&packet).expect("it is JSON");
    assert_eq!((&read["unresolved"], &read["risks"]), (&json!(["none"]), &json!(["none"])), "{packet}");
    insta::assert_snapshot!(find_line(&packet, "  \"objective\": "), @r#"  "objective": "Bring the run \"r\" to its end with all 4 of its items done","#);
    let pipeline_repo = play("pipeline", &plan(9, &json!({})), 4);
    for (screen, end) in [
        (&["runs"][..], "2 done, 1 red, 1 skipped, 2 superseded, attempts-used-up, PARTIAL\n"),
        (&["status", "r"], "\nr: 2 of 4 done, 1 red, 1 skipped, 2 superseded, attempts-used-up, PARTIAL\n"),
        (&["log", "r"], "  run.concluded review.used-up: attempts-used-up\n"),
    ] {
        let stdout = pipeline_repo.env.handoff(screen.iter().copied()).success();
        assert!(stdout.ends_with(end), "{stdout}");
    }
    pipeline_repo.config("color.ui", "always");
    let stdout = pipeline_repo.env.handoff(["status", "r"]).success();
    assert!(stdout.contains("\u{1b}[2m!\u{1b}[0m review "), "it blocks nothing any more: {stdout}");
    assert!(stdout.contains("\u{1b}[31m!\u{1b}[0m review~2 "), "{stdout}");
    for screen in [&["runs"][..], &["status", "r"], &["log", "r"]] {
        let coloured_stdout = pipeline_repo.env.handoff(screen.iter().copied()).success();
        assert!(coloured_stdout.contains("\u{1b}[31mattempts-used-up\u{1b}[0m"), "{coloured_stdout}");
    }
    pipeline_repo.config("color.ui", "auto");
    let verified = pipeline_repo.env.handoff(["verify", "r"]).exit(3);
    insta::assert_snapshot!(find_row(&verified.stdout, "outcome"), @"✗ outcome    2 of 4 done, 1 red, 1 skipped, 2 superseded, attempts-used-up");
    let refused = pipeline_repo.env.handoff(["retry", "r/ship"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"error: "ship" was superseded by "ship~2""#);
    pipeline_repo.env.handoff(["close", "r"]).success();
    let report = pipeline_repo.env.handoff(["verify", "r"]).exit(4);
    assert_eq!(verdict(&report.stdout), "─ INTACT · tamper-detecting PARTIAL");
}
