//! Map-reduce: one item for each output of another.

use serde_json::{Value, json};

use super::{cat, item, item_statuses, play, rule_outcomes, template};

const SPLIT: &str = "mkdir outputs/x; echo 1 >outputs/a; echo 2 >outputs/x/b; echo 3 >'outputs/we ird'";

fn splitter(id: &str, script: &str, map: &str, more: &Value) -> Value {
    let mut payload = json!({
        "map": template(map),
        "reduce": template("cd inputs; find . -type f | sort | while read -r f; do echo \"$f $(cat \"$f\")\"; done >../outputs/all"),
    });
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    item(id, script, &json!({ "mapReduce": payload }))
}

const TIMES: &str = "expr $(cat inputs/input) '*' 10 >outputs/result";
const NOT_TWO: &str = "test $(cat inputs/input) != 2 && cp inputs/input outputs/result";

#[test]
fn every_output_is_mapped_and_all_are_reduced() {
    let repo = play("map-reduce", &[splitter("split", SPLIT, TIMES, &json!({}))], 0);
    assert_eq!(item_statuses(&repo), ["map-a done", "map-we ird done", "map-x/b done", "reduce done", "split done"]);
    assert_eq!(cat(&repo, "reduce:outputs/all"), "./part-a 10\n./part-we ird 30\n./part-x/b 20\n");
    repo.is_intact("r");
}

#[test]
fn the_names_of_inputs_and_outputs_may_be_others() {
    let mut plan = splitter("split", SPLIT, "cp inputs/one outputs/other", &json!({}));
    let payload = &mut plan["inputs"]["mapReduce"];
    payload["map"]["needsKey"] = "one".into();
    payload["map"]["outputPath"] = "other".into();
    payload["reduce"]["keyPrefix"] = "p".into();
    let repo = play("map-reduce", &[plan], 0);
    assert_eq!(cat(&repo, "reduce:outputs/all"), "./p-a 1\n./p-we ird 3\n./p-x/b 2\n");
}

#[test]
fn empty_map_is_recorded() {
    let repo = play("map-reduce", &[splitter("split", "true", TIMES, &json!({}))], 4);
    assert_eq!(item_statuses(&repo), ["split done"]);
    assert_eq!(rule_outcomes(&repo), ["no-outputs"]);
    // A format without a word for it would show a run that is done.
    let output = repo.env.handoff(["export", "r", "--format", "bundle-json"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"error: the run's own outcome is "no-outputs", but this format has only outcomes of items"#);
}

#[test]
fn failed_map_blocks_its_reduce_until_retry() {
    let map = "test -e /dev/shm/$HANDOFF_RUN-never || test $(cat inputs/input) != 2 || test $HANDOFF_ATTEMPT -gt 1; cp inputs/input outputs/result";
    let map = format!("set -e; {map}");
    let repo = play("map-reduce", &[splitter("split", SPLIT, &map, &json!({}))], 4);
    assert_eq!(rule_outcomes(&repo), ["map-failed"]);
    assert!(!repo.items("r").contains_key("reduce"));
    repo.env.handoff(["retry", "r/map-x/b"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(cat(&repo, "reduce:outputs/all"), "./part-a 1\n./part-we ird 3\n./part-x/b 2\n");
    repo.is_intact("r");
}

#[test]
fn survivors_are_reduced_where_there_are_enough() {
    let survive = |least: u64| json!({ "onMapFailure": "reduce-survivors", "minSuccess": least });
    let repo = play("map-reduce", &[splitter("split", SPLIT, NOT_TWO, &survive(2))], 4);
    assert_eq!(cat(&repo, "reduce:outputs/all"), "./part-a 1\n./part-we ird 3\n");
    assert!(rule_outcomes(&repo).is_empty());
    let second_repo = play("map-reduce", &[splitter("split", SPLIT, NOT_TWO, &survive(3))], 4);
    assert_eq!(rule_outcomes(&second_repo), ["too-few-maps"]);
    assert!(!second_repo.items("r").contains_key("reduce"));
}

#[test]
fn several_splitters_each_have_their_maps() {
    let two = [splitter("one", "echo 1 >outputs/a", TIMES, &json!({})), splitter("two", SPLIT, TIMES, &json!({}))];
    let repo = play("map-reduce", &two, 0);
    assert_eq!(cat(&repo, "one-reduce:outputs/all"), "./part-a 10\n");
    assert_eq!(repo.items("r")["two-map-x/b"].status, "done");
    repo.is_intact("r");
}

#[test]
fn invalid_names_are_recorded() {
    // The name of the item would have more bytes than one may have.
    let long = format!("touch outputs/{}", "n".repeat(199));
    let repo = play("map-reduce", &[splitter("split", &long, TIMES, &json!({}))], 4);
    assert_eq!(rule_outcomes(&repo), ["name-clash"]);
}
