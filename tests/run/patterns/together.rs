//! Payloads of several patterns in one plan, and templates that leave the subagent to what is
//! registered.

use serde_json::{Value, json};

use super::{RED, cat, item, item_statuses, play, rule_outcomes, submit, template};
use crate::common::repo::TestRepo;

const SPLIT: &str = "for n in 1 2 10; do echo $n >outputs/$n; done";

fn splitter() -> Value {
    let payload = json!({
        "map": template("cp inputs/input outputs/result"),
        "reduce": template("cat inputs/part-1 inputs/part-2 inputs/part-10 >outputs/all"),
    });
    item("split", SPLIT, &json!({ "mapReduce": payload }))
}

fn gate(on_red: &str, script: &str) -> Value {
    let mut gate = json!({ "onRed": on_red, "subject": "build" });
    if on_red == "spawn-fix" {
        gate["fixTemplate"] = template("echo fixed >a.txt");
    }
    item("review", script, &json!({ "gate": gate }))
}

fn build() -> Value {
    item("build", "echo built >a.txt", &json!({}))
}

#[test]
fn a_gate_and_a_map_reduce_stand_in_one_plan_of_either_pattern() {
    for pattern in ["pipeline", "map-reduce"] {
        let repo = play(pattern, &[build(), gate("block", "true"), splitter()], 0);
        let ended = ["build", "map-1", "map-10", "map-2", "reduce", "review", "split"].map(|id| format!("{id} done"));
        assert_eq!(item_statuses(&repo), ended, "{pattern}");
        assert_eq!(cat(&repo, "reduce:outputs/all"), "1\n2\n10\n");
        repo.is_intact("r");
    }
}

#[test]
fn a_red_gate_sends_the_work_back_and_the_map_reduce_behind_it_goes_on() {
    let red_once = format!("test $HANDOFF_ITEM != review || {RED}");
    let repo = play("pipeline", &[build(), gate("spawn-fix", &red_once), splitter()], 0);
    assert!(rule_outcomes(&repo).is_empty());
    let items = repo.items("r");
    for id in ["review-fix-1", "review~2", "split~2", "map-1", "map-2", "map-10", "reduce"] {
        assert_eq!(items[id].status, "done", "{id}");
    }
    repo.is_intact("r");
}

#[test]
fn status_lists_created_items_in_natural_order() {
    let repo = play("map-reduce", &[splitter(), build()], 0);
    let status = repo.status("r");
    let listed: Vec<_> = status["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(listed, ["split", "map-1", "map-2", "map-10", "reduce", "build"]);
    let stdout = repo.env.handoff(["status", "r"]).success();
    let names: Vec<_> = stdout.lines().take(6).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(names, listed);
}

#[test]
fn an_item_of_dispatch_without_inputs_runs_the_only_subagent() {
    let repo = TestRepo::new();
    let empty = json!({ "executor": "dispatch", "inputs": {} });
    let payload = json!({ "map": empty, "reduce": empty });
    let items = [
        json!({ "id": "split", "executor": "dispatch", "inputs": { "mapReduce": payload } }),
        json!({ "id": "plain", "executor": "dispatch", "inputs": {} }),
    ];
    let none = submit(&repo, "map-reduce", &items).exit(1);
    insta::assert_snapshot!(none.stdout, @r#"
    missing-field at items[0].inputs.subagent (item "split", line 1): `subagent` is missing, and no subagent is registered here that could be meant
        git config handoff.subagent.NAME.command 'COMMAND'
    missing-field at items[1].inputs.subagent (item "plain", line 1): `subagent` is missing, and no subagent is registered here that could be meant
        git config handoff.subagent.NAME.command 'COMMAND'
    missing-field at items[0].inputs.mapReduce.map.inputs.subagent (item "split", line 1): `subagent` is missing, and no subagent is registered here that could be meant
        git config handoff.subagent.NAME.command 'COMMAND'
    missing-field at items[0].inputs.mapReduce.reduce.inputs.subagent (item "split", line 1): `subagent` is missing, and no subagent is registered here that could be meant
        git config handoff.subagent.NAME.command 'COMMAND'
    "#);
    repo.config(
        "handoff.subagent.only.command",
        "case $HANDOFF_ITEM in split) echo 1 >outputs/1;; map-*) cp inputs/input outputs/result;; *) ls inputs >outputs/seen;; esac",
    );
    submit(&repo, "map-reduce", &items).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(cat(&repo, "reduce:outputs/seen"), "part-1\n");
    let answer: Value = serde_json::from_str(&repo.env.handoff(["show", "r/plain", "--json"]).success()).unwrap();
    assert_eq!(answer["manifest"]["subagent"], "only");
    repo.is_intact("r");
}

#[test]
fn of_several_subagents_the_one_called_default_is_meant() {
    let repo = TestRepo::new();
    let items = [json!({ "id": "a", "executor": "dispatch", "inputs": {} })];
    repo.config("handoff.subagent.one.command", "echo one >outputs/said");
    repo.config("handoff.subagent.two.command", "echo two >outputs/said");
    let refused = submit(&repo, "dag", &items).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"
    missing-field at items[0].inputs.subagent (item "a", line 1): `subagent` is missing, and several are registered here: one, two
        did you mean `one`?
    "#);
    repo.config("handoff.subagent.default.command", "echo default >outputs/said");
    submit(&repo, "dag", &items).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(cat(&repo, "a:outputs/said"), "default\n");
    repo.is_intact("r");
}
