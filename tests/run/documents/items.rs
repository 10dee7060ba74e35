//! Items that hand over documents, and items that need them.

use serde_json::{Value, json};

use super::{get, ground, put, value};
use crate::common::ground::{Ground, item};

/// An item that writes a file and hands it over as the document `score`.
fn producer(script: &str, schema: Option<&str>) -> Value {
    let mut produced = json!({"kind": "document", "name": "score", "path": "out/score.json"});
    if let Some(schema) = schema {
        produced["schema"] = schema.into();
    }
    let mut item = item("make", &format!("mkdir -p outputs/out; {script}"));
    item["produces"] = json!([produced]);
    item
}

fn reader(id: &str, from: &str, schema: &str) -> Value {
    let mut item = item(id, "cat inputs/score > outputs/seen");
    let select = json!({"kind": "document", "name": "score", "schema": schema});
    item["needs"] = json!({"score": {"from": from, "select": select}});
    item
}

fn reason(ground: &Ground, id: &str) -> String {
    ground.item("r", id).reason
}

const GOOD: &str = r#"printf '{"score":7}' > outputs/out/score.json"#;

#[test]
fn an_output_becomes_the_next_revision_and_is_consumed() {
    let ground = ground();
    ground.submit("r", &[producer(GOOD, Some("score@1")), reader("use", "make", "score@^1")]);
    put(&ground, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    ground.env.handoff(["run", "r"]).success();
    assert_eq!(ground.env.handoff(["cat", "r/use:outputs/seen"]).success(), r#"{"score":7}"#);
    let log = value(&ground.env.handoff(["doc", "log", "r", "score", "--json"]));
    let latest = &log["revisions"][0];
    assert_eq!((&latest["revision"], &latest["author"]), (&json!(2), &json!({"item": "make"})));
    assert_eq!(latest["schema"], "score@1.0.0");
    assert_eq!(latest["previous"], log["revisions"][1]["sha256"]);
    // The file is an output as well, and the same bytes.
    let status = ground.status("r");
    assert_eq!(status["items"][0]["outputRefs"]["out/score.json"], latest["sha256"]);
    assert_eq!(status["items"][0]["documentRefs"]["score"], latest["sha256"]);
    assert_eq!(ground.env.handoff(["cat", "r/make:documents/score"]).success(), r#"{"score":7}"#);
    assert_eq!(ground.env.handoff(["cat", "r:documents/score"]).success(), r#"{"score":7}"#);
    let shown = value(&ground.env.handoff(["show", "--json", "r"]));
    assert_eq!(shown["documents"][0], *latest);
    ground.is_intact("r");
    let lines = ground.env.handoff(["export", "r", "--format", "in-toto"]).success();
    assert_eq!(lines.lines().count(), 3, "the output, the document, what was seen");
    let refused = ground.env.handoff(["export", "r", "--format", "bundle-json"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"error: human:ada put the document "score" on the run, but this format has only products of items"#);
    let proof = ground.env.handoff(["prove", "r/make:documents/score"]).success();
    ground.env.write("proof.json", &proof);
    ground.env.handoff(["verify", "--proof", "../proof.json"]).success();
}

#[test]
fn what_is_missing_or_not_as_declared_fails_the_item() {
    for (script, schema, said) in [
        ("true", Some("score@1"), "the document \"score\" is missing: there is no output \"out/score.json\""),
        (
            r#"printf '{"score":"high"}' > outputs/out/score.json"#,
            Some("score@1"),
            "the document \"score\" is not as declared: it is not score@1.0.0: at /score: ",
        ),
        ("printf 'score' > outputs/out/score.json", Some("score@1"), "it is not score@1.0.0: not-json"),
    ] {
        let ground = ground();
        ground.drive("r", &[producer(script, schema), reader("use", "@documents", "score@^1")]).ends(4);
        assert!(reason(&ground, "make").contains(said), "{}", reason(&ground, "make"));
        assert_eq!(value(&ground.env.handoff(["doc", "list", "r", "--json"]))["documents"], json!([]));
        ground.ends_intact("r");
        ground.is_clean();
    }
}

#[test]
fn a_document_without_a_schema_is_any_bytes() {
    let ground = ground();
    ground.drive("r", &[producer(r"printf 'a\0b' > outputs/out/score.json", None)]).success();
    assert_eq!(get(&ground, "score", &[]).raw, b"a\0b");
    ground.is_intact("r");
}

#[test]
fn drift_fails_an_item_before_it_is_dispatched() {
    let ground = ground();
    ground.submit("r", &[reader("use", "@documents", "score@^1")]);
    put(&ground, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    put(&ground, "score", "[1]", &["--schema", "score@2", "--actor", "agent:b"]).success();
    ground.env.handoff(["run", "r"]).ends(4);
    let said = reason(&ground, "use");
    for part in [
        "the need \"score\" cannot be met: the document \"score\" is score@2.0.0 in revision 2, and score@^1 is wanted",
        "produced by agent:b",
        "agent:b changed that with revision 2, entry 2; it was score@1.0.0 before",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(ground.item("r", "use").attempts, 0);
    // Put right, it may be tried again.
    put(&ground, "score", r#"{"score":2}"#, &["--schema", "score@1"]).success();
    ground.env.handoff(["retry", "r/use"]).success();
    ground.env.handoff(["run", "r"]).success();
    assert_eq!(ground.env.handoff(["cat", "r/use:outputs/seen"]).success(), r#"{"score":2}"#);
    ground.is_intact("r");
}

#[test]
fn a_document_that_is_not_there_yet_fails_an_item_that_needs_it() {
    let ground = ground();
    ground.drive("r", &[reader("use", "@documents", "score@^1")]).ends(4);
    insta::assert_snapshot!(reason(&ground, "use"), @r#"the need "score" cannot be met: the run holds no document "score" yet"#);
}

#[test]
fn an_unregistered_schema_is_a_problem_of_the_plan() {
    let ground = ground();
    let plan = ground.plan("r", &[producer(GOOD, Some("score@7"))]);
    let output = ground.env.handoff(["validate", "--json", &plan]).exit(1);
    let problem = &value(&output)["problems"][0];
    assert_eq!(problem["code"], "unknown-shape");
    assert_eq!(problem["path"], "items[0].produces[0].schema");
    // Where the plan is driven it may be registered no more.
    ground.submit("r", &[producer(GOOD, Some("score@1"))]);
    ground.env.git(["config", "--unset", "handoff.schema.score@1.path"]).success();
    ground.env.handoff(["run", "r"]).ends(4);
    insta::assert_snapshot!(reason(&ground, "make"), @r#"the document "score" is not as declared: the schema score@1.0.0 is not registered here"#);
}
