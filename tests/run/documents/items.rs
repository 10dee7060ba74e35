//! Items that hand over documents, and items that need them.

use serde_json::{Value, json};

use super::{get, put, repo, value};
use crate::common::repo::{TestRepo, item};

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

fn reason(repo: &TestRepo, id: &str) -> String {
    repo.item("r", id).reason
}

const GOOD: &str = r#"printf '{"score":7}' > outputs/out/score.json"#;

#[test]
fn an_output_becomes_the_next_revision_and_is_consumed() {
    let repo = repo();
    repo.submit("r", &[producer(GOOD, Some("score@1")), reader("use", "make", "score@1")]);
    put(&repo, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(repo.env.handoff(["cat", "r/use:outputs/seen"]).success(), r#"{"score":7}"#);
    let log = value(&repo.env.handoff(["doc", "log", "r", "score", "--json"]));
    let latest = &log["revisions"][0];
    assert_eq!((&latest["revision"], &latest["author"]), (&json!(2), &json!({"item": "make"})));
    assert_eq!(latest["schema"], "score@1");
    assert_eq!(latest["previous"], log["revisions"][1]["sha256"]);
    // The file is an output as well, and the same bytes.
    let status = repo.status("r");
    assert_eq!(status["items"][0]["outputRefs"]["out/score.json"], latest["sha256"]);
    assert_eq!(status["items"][0]["documentRefs"]["score"], latest["sha256"]);
    assert_eq!(repo.env.handoff(["cat", "r/make:documents/score"]).success(), r#"{"score":7}"#);
    assert_eq!(repo.env.handoff(["cat", "r:documents/score"]).success(), r#"{"score":7}"#);
    let answer = value(&repo.env.handoff(["show", "--json", "r"]));
    assert_eq!(answer["documents"][0], *latest);
    repo.is_intact("r");
    let lines = repo.env.handoff(["export", "r", "--format", "in-toto"]).success();
    assert_eq!(lines.lines().count(), 3, "the output, the document, what was seen");
    let refused = repo.env.handoff(["export", "r", "--format", "bundle-json"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"error: human:ada put the document "score" on the run, but this format has only products of items"#);
    let proof = repo.env.handoff(["prove", "r/make:documents/score"]).success();
    repo.env.write("proof.json", &proof);
    repo.env.handoff(["verify", "--proof", "../proof.json"]).success();
}

#[test]
fn missing_or_invalid_document_fails_the_item() {
    for (script, schema, reason_start) in [
        ("true", Some("score@1"), "the document \"score\" is missing: there is no output \"out/score.json\""),
        (
            r#"printf '{"score":"high"}' > outputs/out/score.json"#,
            Some("score@1"),
            "the document \"score\" is not as declared: it is not score@1: at /score: value is not of type \"number\"",
        ),
        (
            "printf 'score' > outputs/out/score.json",
            Some("score@1"),
            "the document \"score\" is not as declared: it is not score@1: not-json: not valid JSON: expected value \
             at line 1 column 1",
        ),
    ] {
        let repo = repo();
        repo.drive("r", &[producer(script, schema), reader("use", "@documents", "score@1")]).ends(4);
        assert_eq!(reason(&repo, "make"), reason_start);
        assert_eq!(value(&repo.env.handoff(["doc", "list", "r", "--json"]))["documents"], json!([]));
        repo.ends_intact("r");
        repo.is_clean();
    }
}

#[test]
fn a_document_without_a_schema_is_any_bytes() {
    let repo = repo();
    repo.drive("r", &[producer(r"printf 'a\0b' > outputs/out/score.json", None)]).success();
    assert_eq!(get(&repo, "score", &[]).raw, b"a\0b");
    repo.is_intact("r");
}

#[test]
fn drift_fails_an_item_before_it_is_dispatched() {
    let repo = repo();
    repo.submit("r", &[reader("use", "@documents", "score@1")]);
    put(&repo, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    put(&repo, "score", "[1]", &["--schema", "score@2", "--actor", "agent:b"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    insta::assert_snapshot!(reason(&repo, "use"), @r#"the need "score" cannot be met: the document "score" is score@2 in revision 2, and score@1 is wanted; produced by agent:b; agent:b changed that with revision 2, entry 2; it was score@1 before"#);
    assert_eq!(repo.item("r", "use").attempts, 0);
    // Put right, it may be tried again.
    put(&repo, "score", r#"{"score":2}"#, &["--schema", "score@1"]).success();
    repo.env.handoff(["retry", "r/use"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_eq!(repo.env.handoff(["cat", "r/use:outputs/seen"]).success(), r#"{"score":2}"#);
    repo.is_intact("r");
}

#[test]
fn a_document_that_is_not_there_yet_fails_an_item_that_needs_it() {
    let repo = repo();
    repo.drive("r", &[reader("use", "@documents", "score@1")]).ends(4);
    insta::assert_snapshot!(reason(&repo, "use"), @r#"the need "score" cannot be met: the run holds no document "score" yet"#);
}

#[test]
fn an_unregistered_schema_is_a_problem_of_the_plan() {
    let repo = repo();
    let plan = repo.plan("r", &[producer(GOOD, Some("score@7"))]);
    let output = repo.env.handoff(["validate", "--json", &plan]).exit(1);
    let problem = &value(&output)["problems"][0];
    assert_eq!(problem["code"], "unknown-shape");
    assert_eq!(problem["path"], "items[0].produces[0].schema");
    // Where the plan is driven it may be registered no more.
    repo.submit("r", &[producer(GOOD, Some("score@1"))]);
    repo.env.git(["config", "--unset", "handoff.schema.score@1.path"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    insta::assert_snapshot!(reason(&repo, "make"), @r#"the document "score" is not as declared: the schema score@1 is not registered here"#);
}
