//! Growth by a pattern that cannot have happened, written with true links, a true seal and good
//! signatures.

use git_handoff::model::entry::{Cause, Event, RunConcluded, RunEnded};
use git_handoff::model::plan::Item;
use serde_json::{Value, json};

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_intact, assert_says};
use crate::common::report::find_row;

/// A plan with the rules of a gate as they are sealed: a red `look` has `make` fixed.
fn plan() -> String {
    let item = |id: &str| json!({ "id": id, "executor": "command", "inputs": { "command": ["true"] } });
    let mut look = item("look");
    look["depends_on"] = json!(["make"]);
    let mut fix = item("fix-{{n}}");
    fix["continues"] = "make".into();
    let red = json!({ "items": ["look"], "are": ["red", "failed"] });
    json!({ "id": "handoff-dag-1", "items": [item("make"), look], "rules": [
        { "id": "gate", "gate": { "item": "look", "blocks": true } },
        { "id": "fix", "when": { "items": [red] }, "create": [{ "item": fix }, { "again": "look" }] },
        { "id": "over", "when": { "items": [red, { "createdBy": "fix", "count": "rounds", "op": ">=", "value": 1 }] },
          "outcome": "attempts-used-up" },
    ] })
    .to_string()
}

fn by(rule: &str) -> Cause {
    Cause::Rule(rule.parse().unwrap())
}

fn item(json: &Value) -> Item {
    git_handoff::plan::parse_item(json.to_string().as_bytes()).unwrap().normalised()
}

/// The rule's items if `look` failed.
fn round() -> Vec<Item> {
    let command = json!({ "command": ["true"] });
    vec![
        item(&json!({ "id": "fix-1", "executor": "command", "inputs": command, "continues": "make" })),
        item(
            &json!({ "id": "look~2", "executor": "command", "inputs": command, "depends_on": ["fix-1"], "replaces": "look" }),
        ),
    ]
}

/// Tells a story in which `look` failed, or is done, up to what follows.
fn tell(fails: bool, then: impl FnOnce(&mut ChainBuilder<'_>)) -> git_handoff::verify::Report {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, &plan());
    run.fire("make");
    run.done("make", &[]);
    run.fire("look");
    if fails {
        run.fail("look");
    } else {
        run.done("look", &[]);
    }
    then(&mut run);
    run.add(Event::RunClosed(RunEnded::new("enough")));
    run.seal();
    forge.finish(run);
    forge.verify()
}

fn second_round(run: &mut ChainBuilder<'_>) {
    run.fire("fix-1");
    run.done("fix-1", &[]);
    run.fire("look~2");
    run.done("look~2", &[]);
}

#[test]
fn verify_accounts_for_created_items() {
    assert_intact(&tell(true, |run| {
        run.extend(by("fix"), &round());
        second_round(run);
    }));
}

#[test]
fn no_foreign_item_passes_as_the_patterns() {
    // Where there was nothing to fix.
    assert_says(
        &tell(false, |run| {
            run.extend(by("fix"), &round());
            second_round(run);
        }),
        "plan",
        "entry 5: the rule fix creates nothing here",
    );
    // Another command under the rule's name.
    let mut bent = round();
    bent[0].inputs.insert("command".to_owned(), json!(["rm"]));
    assert_says(
        &tell(true, |run| {
            run.extend(by("fix"), &bent);
            second_round(run);
        }),
        "plan",
        "entry 5: the rule fix creates something else here, fix-1 and 1 more",
    );
    // The gate's copy judges what the fix is not.
    let mut second_bent = round();
    second_bent[1].depends_on = vec!["make".parse().unwrap()];
    assert_says(
        &tell(true, |run| {
            run.extend(by("fix"), &second_bent);
            second_round(run);
        }),
        "plan",
        "entry 5: the rule fix creates something else here, fix-1 and 1 more",
    );
    // One of the two alone.
    assert_says(
        &tell(true, |run| {
            run.extend(by("fix"), &round()[..1]);
            run.fire("fix-1");
            run.done("fix-1", &[]);
        }),
        "plan",
        "entry 5: the rule fix creates something else here, fix-1 and 1 more",
    );
}

#[test]
fn recorded_outcome_must_follow_from_the_rules() {
    let conclude = |outcome: &str| {
        let concluded = RunConcluded::new("over".parse().unwrap(), outcome);
        Event::RunConcluded(concluded)
    };
    assert_says(
        &tell(true, |run| run.add(conclude("attempts-used-up"))),
        "plan",
        "entry 5: the rule over does not conclude the run like this here",
    );
    assert_says(
        &tell(true, |run| {
            run.extend(by("fix"), &round());
            run.fire("fix-1");
            run.done("fix-1", &[]);
            run.fire("look~2");
            run.fail("look~2");
            run.add(conclude("fine"));
        }),
        "plan",
        "entry 10: the rule over does not conclude the run like this here",
    );
}

#[test]
fn nothing_takes_the_place_of_what_is_not_over() {
    let forge = Forge::new();
    let rules = json!([{ "id": "early", "when": { "items": [{ "items": ["make"], "are": "done" }] }, "create": [
        { "item": { "id": "other", "executor": "command", "inputs": { "command": ["true"] }, "replaces": "look" } }] }]);
    let mut plan: Value = serde_json::from_str(&plan()).unwrap();
    plan["rules"] = rules;
    let mut run = ChainBuilder::submit(&forge, &plan.to_string());
    run.fire("make");
    run.done("make", &[]);
    let other =
        item(&json!({ "id": "other", "executor": "command", "inputs": { "command": ["true"] }, "replaces": "look" }));
    run.extend(by("early"), &[other]);
    run.fire("look");
    run.fail("look");
    run.add(Event::RunClosed(RunEnded::new("enough")));
    run.seal();
    forge.finish(run);
    assert_says(&forge.verify(), "plan", "entry 3: the rule early creates nothing here");
}

#[test]
fn a_verdict_that_was_left_out_counts_all_the_same() {
    let forge = Forge::new();
    let reviewer = json!({ "id": "look", "executor": "command", "inputs": { "command": ["true"] } });
    let plan = json!({ "id": "handoff-dag-1", "items": [reviewer], "rules": [
        { "id": "vote", "gate": { "item": "look", "votes": true } },
        { "id": "rejected", "when": { "items": [{ "items": ["look"], "are": "green", "op": "<", "value": 1 }] }, "outcome": "rejected" },
    ] });
    let mut run = ChainBuilder::submit(&forge, &plan.to_string());
    run.fire("look");
    run.red("look");
    run.add(Event::RunClosed(RunEnded::new("enough")));
    run.seal();
    forge.finish(run);
    let report = forge.verify();
    assert!(report.intact, "{}", report.to_text(false));
    insta::assert_snapshot!(find_row(&report.to_text(false), "outcome"), @"✗ outcome    1 of 1 done, rejected");
}

#[test]
fn no_verdict_is_a_vote_because_of_a_name() {
    let forge = Forge::new();
    let plan = json!({ "id": "handoff-dag-1", "openEnded": true,
        "items": [{ "id": "make", "executor": "command", "inputs": { "command": ["true"] } }],
        "rules": [{ "id": "vote", "gate": { "item": "look", "votes": true } }] });
    let look = item(&json!({ "id": "look", "executor": "command", "inputs": { "command": ["true"] } }));
    let mut run = ChainBuilder::submit(&forge, &plan.to_string());
    run.extend(Cause::Actor, &[look]);
    for id in ["make", "look"] {
        run.fire(id);
    }
    run.done("make", &[]);
    run.red("look");
    run.add(Event::RunClosed(RunEnded::new("enough")));
    run.seal();
    forge.finish(run);
    let report = forge.verify();
    assert!(report.intact, "{}", report.to_text(false));
    insta::assert_snapshot!(find_row(&report.to_text(false), "outcome"), @"✗ outcome    1 of 2 done, 1 red, 2 with nothing handed over");
}
