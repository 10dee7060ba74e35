//! Products that others need: the item that is to make them fails without them.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

fn needs(id: &str, from: &str, select: &Value) -> Value {
    let mut consumer = item(id, "true");
    consumer["needs"] = json!({ "it": { "from": from, "select": select } });
    consumer["produces"] = json!([]);
    consumer
}

fn again(id: &str, script: &str) -> Value {
    let mut item = item(id, script);
    item["maxAttempts"] = json!(2);
    item
}

fn output(path: &str) -> Value {
    json!({ "kind": "output", "path": path })
}

/// Returns where an item stands: its status, its attempts and the reason.
fn item_state(repo: &TestRepo, id: &str) -> (String, u64, String) {
    let item = repo.item("r", id);
    (item.status, item.attempts, item.reason)
}

fn stands(status: &str, attempts: u64, reason: &str) -> (String, u64, String) {
    (status.to_owned(), attempts, reason.to_owned())
}

#[test]
fn an_item_without_the_product_that_another_needs_is_tried_again_and_fails() {
    let repo = TestRepo::new();
    let items = [
        item("idle", "true"),
        needs("patched", "idle", &json!({ "kind": "patch" })),
        item("wrong", "echo x >outputs/Notes.md; echo y >>a.txt"),
        needs("reader", "wrong", &output("notes.md")),
        again("late", "test $HANDOFF_ATTEMPT = 1 || echo x >outputs/x"),
        needs("patient", "late", &output("x")),
    ];
    repo.drive("r", &items).ends(4);
    let reason = "the product patch is missing, which the item \"patched\" needs";
    assert_eq!(item_state(&repo, "idle"), stands("failed", 1, reason));
    let lost = "it depends on \"idle\", which did not get done";
    assert_eq!(item_state(&repo, "patched"), stands("skipped", 0, lost));
    let second_reason = "the product outputs/notes.md is missing, which the item \"reader\" needs";
    assert_eq!(item_state(&repo, "wrong"), stands("failed", 1, second_reason));
    assert_eq!(item_state(&repo, "reader").0, "skipped");
    assert_eq!((item_state(&repo, "late").1, item_state(&repo, "patient").0), (2, "done".to_owned()));
    repo.is_clean();
    repo.ends_intact("r");
}

#[test]
fn retry_gets_the_product_made_and_what_waits_for_it() {
    let repo = TestRepo::new();
    let maker = item("maker", "test ! -e $HOME/../ready || echo x >>a.txt");
    let run = repo.drive("r", &[maker, needs("next", "maker", &json!({ "kind": "patch" }))]).exit(4);
    insta::assert_snapshot!(run.stderr, @r#"
    ▶ maker  attempt 1
    ✗ maker  failed: the product patch is missing, which the item "next" needs
    ─ next  skipped: it depends on "maker", which did not get done
    hint: git handoff retry r/maker   # or seal it as it is: git handoff close r
    "#);
    repo.env.write("ready", "");
    repo.env.handoff(["retry", "r/maker"]).success();
    repo.env.handoff(["run", "r"]).ends(0);
    repo.ends_intact("r");
}

#[test]
fn cancelled_item_needs_no_product() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("maker", "true"), needs("next", "maker", &output("x"))]);
    repo.env.handoff(["cancel", "r/next"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    assert_eq!(
        (item_state(&repo, "maker").0, item_state(&repo, "next").0),
        ("done".to_owned(), "cancelled".to_owned())
    );
}

#[test]
fn a_rule_that_only_waits_for_an_item_to_be_done_counts_and_no_other_does() {
    let repo = TestRepo::new();
    let create = |from: &str, path: &str| {
        let needs = json!({ "it": { "from": from, "select": output(path) } });
        json!([{ "item": { "id": format!("after-{from}"), "executor": "command", "inputs": { "command": "true" }, "needs": needs } }])
    };
    let plan = json!({
        "id": "r",
        "items": [item("certain", "true"), item("perhaps", "true"), item("optional", "true")],
        "rules": [
            { "id": "one", "when": { "items": [{ "items": ["certain"], "are": "done" }] }, "create": create("certain", "x") },
            { "id": "two", "when": { "items": [{ "items": ["perhaps"], "are": "red" }] }, "create": create("perhaps", "x") },
            { "id": "three", "when": { "items": [{ "items": ["optional"], "are": "done" }] },
              "create": [{ "item": create("optional", "x")[0]["item"], "optional": ["it"] }] },
        ],
    });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["run", "../plan.json"]).ends(4);
    assert_eq!(
        item_state(&repo, "certain"),
        stands("failed", 1, "the product outputs/x is missing, which the rule \"one\" needs")
    );
    assert_eq!(
        (item_state(&repo, "perhaps").0, item_state(&repo, "optional").0),
        ("done".to_owned(), "done".to_owned())
    );
    assert_eq!(item_state(&repo, "after-optional").0, "done");
    repo.ends_intact("r");
}

#[test]
fn a_map_that_leaves_no_result_fails_and_not_the_reduce() {
    let repo = TestRepo::new();
    let map = |script: &str, on_failure: &str| {
        let mut splitter = item("split", "echo 1 >outputs/a; echo 2 >outputs/b");
        splitter["inputs"]["mapReduce"] = json!({
            "map": { "executor": "command", "inputs": { "command": script } },
            "reduce": { "executor": "command", "inputs": { "command": "ls inputs >outputs/all" } },
            "onMapFailure": on_failure,
        });
        splitter
    };
    let script = "grep -q 1 inputs/input || cp inputs/input outputs/result";
    let plan = |on_failure: &str| {
        json!({ "id": on_failure, "pattern": "map-reduce", "items": [map(script, on_failure)] }).to_string()
    };
    repo.env.write("plan.json", &plan("fail"));
    repo.env.handoff(["run", "../plan.json"]).ends(4);
    let lost = repo.item("fail", "map-a");
    assert_eq!(lost.reason, "the product outputs/result is missing, which the rule \"split.reduce\" needs");
    assert_eq!((lost.status.as_str(), repo.item("fail", "map-b").status.as_str()), ("failed", "done"));
    // Only survivors with the file count.
    repo.env.write("plan.json", &plan("reduce-survivors"));
    repo.env.handoff(["run", "../plan.json"]).ends(0);
    assert_eq!(repo.env.handoff(["cat", "reduce-survivors/reduce:outputs/all"]).success(), "part-b\n");
}

#[test]
fn later_item_fails_alone_without_its_product() {
    let repo = TestRepo::new();
    let plan = json!({ "id": "r", "openEnded": true, "items": [item("done", "true")] });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["run", "../plan.json"]).ends(0);
    let mut later = needs("later", "done", &output("x"));
    let more = |later_item: &Value| {
        json!({ "id": "r", "items": [later_item, needs("last", "later", &output("y"))] }).to_string()
    };
    repo.env.write("more.json", &more(&later));
    let refused = repo.env.handoff(["extend", "r", "../more.json"]).exit(1);
    let message = "undeclared-product at items[1].needs.it.select: the item \"later\" does not declare outputs/y among its products";
    assert!(refused.stdout.starts_with(message), "an empty `produces` declares all that there is: {refused}");
    later.as_object_mut().unwrap().remove("produces");
    repo.env.write("more.json", &more(&later));
    repo.env.handoff(["extend", "r", "../more.json"]).success();
    let run = repo.env.handoff(["run", "r"]).exit(4);
    let reason = "the need \"it\" cannot be met: \"done\" is done without the product outputs/x";
    assert_eq!(item_state(&repo, "later"), stands("failed", 0, reason));
    insta::assert_snapshot!(run.stderr, @r#"
    ✗ later  failed: the need "it" cannot be met: "done" is done without the product outputs/x
    ─ last  skipped: it depends on "later", which did not get done
    hint: git handoff close r   # done is done without that product; for another try: submit the plan with another id
    "#);
    assert_eq!(item_state(&repo, "last").0, "skipped");
    let retry = repo.env.handoff(["--json", "retry", "r/later"]).exit(1);
    let second_refused: Value = serde_json::from_str(&retry.stderr).expect("a refusal is JSON");
    assert_eq!(second_refused["code"], "not-retriable", "{second_refused}");
    assert_eq!(second_refused["message"], "\"later\" needs outputs/x of \"done\", which is done without it");
    repo.ends_intact("r");
}
