//! Results of items: time-outs, retries, skipped items, checks.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, after, item};

fn reconciled(repo: &TestRepo, run: &str, id: &str) -> Value {
    let mut entries = repo.entries(run);
    entries.retain(|entry| entry["kind"] == "item.reconciled" && entry["item"] == id);
    entries.pop().expect("the item was reconciled")
}

#[test]
fn a_failed_item_is_tried_as_often_as_item_executor_or_queue_say_in_this_order() {
    let repo = TestRepo::new();
    let fails = "handoff.executor.fails";
    repo.config(&format!("{fails}.command"), "exit 1");
    repo.config("handoff.executor.stubborn.command", "exit 1");
    repo.config("handoff.executor.stubborn.maxAttempts", "3");
    repo.config("handoff.queue.often.maxAttempts", "4");
    let items = [
        json!({ "id": "by-item", "executor": "stubborn", "maxAttempts": 1 }),
        json!({ "id": "by-executor", "executor": "stubborn" }),
        json!({ "id": "by-queue", "executor": "fails" }),
    ];
    let plan = repo.plan("often", &items);
    repo.env.handoff(["submit", "--queue", "often", &plan]).success();
    repo.env.handoff(["run", "often"]).ends(4);
    let second_plan = repo.plan("default", &items);
    repo.env.handoff(["submit", "--run", &second_plan]).ends(4);
    let attempts = |run: &str| repo.items(run).into_iter().map(|(id, item)| (id, item.attempts)).collect::<Vec<_>>();
    let expected = |by_queue| vec![("by-executor".into(), 3), ("by-item".into(), 1), ("by-queue".into(), by_queue)];
    assert_eq!(attempts("often"), expected(4));
    assert_eq!(attempts("default"), expected(2));
    // Each failure but the last says when the next attempt may be; a pinned clock waits for none of
    // them.
    let waits: Vec<Value> = repo.entries("often").into_iter().filter(|entry| entry["kind"] == "item.retried").collect();
    assert_eq!(waits.len(), 2 + 3);
    assert!(waits.iter().all(|entry| entry["notBefore"].as_str() > entry["at"].as_str()), "{waits:?}");
    repo.is_clean();
    repo.ends_intact("often");
    repo.ends_intact("default");
}

#[test]
fn a_later_attempt_may_do_what_the_first_could_not() {
    let repo = TestRepo::new();
    let mut flaky = item("flaky", "echo tried >>\"$HOME/../tried\"; test $HANDOFF_ATTEMPT = 3 && echo x >outputs/x");
    flaky["maxAttempts"] = json!(3);
    let need = json!({ "x": { "from": "flaky", "select": { "kind": "output", "path": "x" } } });
    let mut next = item("next", "grep -q x inputs/x");
    next["needs"] = need;
    repo.drive("r", &[flaky, next]).success();
    assert_eq!(repo.lines("tried").len(), 3);
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn everything_that_waits_for_a_failure_is_skipped_at_once() {
    let repo = TestRepo::new();
    let items = [
        item("top", "exit 1"),
        after("left", &["top"], "true"),
        after("right", &["top"], "true"),
        after("both", &["left", "right"], "true"),
        after("bottom", &["both", "free"], "true"),
        item("free", "true"),
        after("after-free", &["free"], "true"),
    ];
    repo.drive("r", &items).ends(4);
    let entries = repo.entries("r");
    let failed = entries.iter().position(|e| e["kind"] == "item.reconciled" && e["item"] == "top").unwrap();
    let skipped: Vec<&str> = entries[failed + 1..failed + 5].iter().map(|e| e["item"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["left", "right", "both", "bottom"]);
    assert!(entries[failed + 1..failed + 5].iter().all(|e| e["kind"] == "item.skipped"));
    let current_items = repo.items("r");
    assert_eq!((current_items["free"].status.as_str(), current_items["after-free"].status.as_str()), ("done", "done"));
    insta::assert_snapshot!(current_items["bottom"].reason, @r#"it depends on "top", which did not get done"#);
    repo.is_clean();
    repo.ends_intact("r");
}

#[test]
fn failed_check_keeps_finished_work_and_names_its_source() {
    let repo = TestRepo::new();
    for (name, verify) in [("red", "exit 1"), ("green", "true")] {
        repo.config(
            &format!("handoff.executor.{name}.command"),
            "printf '{\"verify\":{\"passed\":true}}' >\"$HANDOFF_RESULT\"",
        );
        repo.config(&format!("handoff.executor.{name}.verify"), verify);
    }
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    repo.config("handoff.executor.broken.command", "echo ran >\"$HOME/../ran\"");
    repo.config("handoff.executor.broken.setup", "exit 7");
    let claims = |claim: &str| format!("printf '%s' '{claim}' >\"$HANDOFF_RESULT\"");
    let once = |id: &str, script: &str| {
        let mut item = item(id, script);
        item["maxAttempts"] = json!(1);
        item
    };
    let items = [
        json!({ "id": "red", "executor": "red" }),
        json!({ "id": "green", "executor": "green" }),
        item("self-yes", &claims("{\"summary\":\"s\",\"verify\":{\"passed\":true}}")),
        item("self-no", &claims("{\"verify\":{\"passed\":false}}")),
        item("silent", &claims("{\"summary\":\"s\"}")),
        once("garbage", &claims("no json")),
        once("link", "ln -s /etc/passwd \"$HANDOFF_RESULT\""),
        json!({ "id": "broken", "executor": "broken", "maxAttempts": 1 }),
    ];
    repo.drive("r", &items).ends(4);
    let verify = |id: &str| reconciled(&repo, "r", id)["verify"].clone();
    assert_eq!(verify("red"), json!({ "passed": false, "by": "command" }));
    assert_eq!(verify("green"), json!({ "passed": true, "by": "command" }));
    assert_eq!(verify("self-yes"), json!({ "passed": true, "by": "self" }));
    assert_eq!(verify("self-no"), json!({ "passed": false, "by": "self" }));
    assert_eq!(verify("silent"), Value::Null);
    let mut current_items = repo.items("r");
    for id in ["garbage", "link"] {
        assert_eq!(verify(id), Value::Null, "{id}");
        let refused = current_items.remove(id).unwrap();
        assert!(refused.status == "failed" && refused.reason.starts_with("bad-result: "), "{refused:?}");
    }
    let broken = current_items.remove("broken").unwrap();
    assert_eq!((broken.status.as_str(), broken.reason.as_str()), ("failed", "setup exited with 7"));
    assert!(current_items.values().all(|item| item.status == "done"), "{current_items:?}");
    assert!(!repo.path("ran").exists(), "what setup refuses does not run");
    repo.is_clean();
    repo.ends_intact("r");
}

#[test]
fn odd_names_are_only_odd() {
    let repo = TestRepo::new();
    let run = "nightly@2026-06-04T02:00:00Z";
    let ids = ["we ird/../id", "-rf", "naïve", ".git", "a.lock", "x:y", "100%", "~^?*[", "$(touch canary)", "'\";`"];
    let mut items: Vec<Value> = ids.iter().map(|id| item(id, "echo \"$HANDOFF_ITEM\" >outputs/id; exit 0")).collect();
    items.push(after("last", &ids, "false"));
    repo.drive(run, &items).ends(4);
    for id in ids {
        assert_eq!(repo.item(run, id).status, "done", "{id}");
        let printed = repo.env.handoff(["cat", "--", &format!("{run}/{id}:outputs/id")]).success();
        assert_eq!(printed.trim_end(), id);
    }
    repo.env.handoff(["retry", &format!("{run}/last")]).success();
    repo.env.handoff(["cancel", &format!("{run}/last")]).success();
    repo.is_clean();
    repo.ends_intact(run);
}

#[test]
fn neither_a_name_nor_an_address_is_needed() {
    let repo = TestRepo::new();
    for key in ["user.name", "user.email"] {
        repo.env.git(["config", "--global", "--unset", key]).success();
    }
    let commit = "echo x >>a.txt; git -c user.name=w -c user.email=w@example.com commit -qam x";
    let mut command = repo.env.command(crate::common::program_path(), "repo");
    let plan = repo.plan("r", &[item("a", commit)]);
    let output = command.env_remove("HANDOFF_ACTOR").args(["submit", "--run", &plan]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    repo.is_clean();
    repo.is_intact("r");
    assert_eq!(repo.entries("r")[0]["actor"], "human:unknown");
}

#[test]
fn item_fails_when_a_declared_product_is_missing() {
    let repo = TestRepo::new();
    let declares = |id: &str, script: &str, products: &Value| {
        let mut item = item(id, script);
        item["produces"] = products.clone();
        item
    };
    let (patch, report) = (json!([{ "kind": "patch" }]), json!([{ "kind": "output", "path": "report.md" }]));
    let items = [
        declares("no-patch", "echo x >outputs/x", &patch),
        declares("no-output", "echo x >outputs/Report.md; echo more >>a.txt", &report),
        declares("both", "echo x >outputs/report.md; echo more >>a.txt", &json!([patch[0], report[0]])),
        after("next", &["no-output"], "true"),
    ];
    repo.drive("r", &items).ends(4);
    let second_items = repo.items("r");
    let outcome = |id: &str| (second_items[id].status.as_str(), second_items[id].reason.as_str());
    assert_eq!(outcome("no-patch"), ("failed", "the product patch is missing, which the item declares"));
    assert_eq!(outcome("no-output"), ("failed", "the product outputs/report.md is missing, which the item declares"));
    assert_eq!((outcome("both").0, outcome("next").0), ("done", "skipped"));
    assert_eq!(reconciled(&repo, "r", "no-output")["products"], json!({}));
    repo.is_clean();
    repo.ends_intact("r");
}

#[test]
fn an_item_may_make_what_it_declares_at_a_later_attempt() {
    let repo = TestRepo::new();
    let mut late = item("late", "test $HANDOFF_ATTEMPT = 1 || echo x >outputs/x");
    late["maxAttempts"] = json!(2);
    late["produces"] = json!([{ "kind": "output", "path": "x" }]);
    repo.drive("r", &[late]).success();
    assert_eq!(repo.item("r", "late").attempts, 2);
    repo.is_intact("r");
    // An operator can retry any number of times, and each time the plan's limit starts again.
    let never = item("never", "exit 1");
    repo.drive("s", &[never]).ends(4);
    for attempts in 2..4 {
        repo.env.handoff(["retry", "s/never"]).success();
        repo.env.handoff(["run", "s"]).ends(4);
        assert_eq!(repo.item("s", "never").attempts, attempts);
    }
    repo.ends_intact("s");
}
