//! Outputs that are declared with a type, by an item or its shape.

use serde_json::{Value, json};

use super::repo;
use crate::common::repo::{TestRepo, item};

/// A shape of items that hand over a score.
fn shaped() -> TestRepo {
    let repo = repo();
    let produces = json!([{ "kind": "output", "path": "score.json", "type": "score", "schema": "score@1" }]);
    repo.env.write("repo/shapes/judge.json", &json!({ "produces": produces }).to_string());
    repo.env.write("repo/shapes/reader.json", &json!({ "consumes": { "it": "text" } }).to_string());
    repo.config("handoff.shape.judge.path", "shapes/judge.json");
    repo.config("handoff.shape.reader.path", "shapes/reader.json");
    repo.config("handoff.queue.default.maxAttempts", "1");
    repo
}

fn judge(script: &str) -> Value {
    let mut judge = item("judge", script);
    judge["subagentShape"] = "judge".into();
    judge
}

fn reason(repo: &TestRepo, run: &str) -> String {
    let status = repo.status(run);
    status["items"][0]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn declared_documents_of_a_shape_are_validated() {
    let repo = shaped();
    let cases = [
        ("missing", "true", "the product outputs/score.json is missing, which the item declares"),
        (
            "other",
            "echo '{}' >outputs/score.json",
            "the product outputs/score.json is not as declared: it is not score@1: \"score\" is a required property",
        ),
        (
            "none",
            "echo x >outputs/score.json",
            "the product outputs/score.json is not as declared: it is not score@1: not-json: not valid JSON: \
             expected value at line 1 column 1",
        ),
    ];
    for (run, script, words) in &cases {
        repo.drive(run, &[judge(script)]).ends(4);
        assert_eq!(reason(&repo, run), *words);
    }
    repo.drive("good", &[judge(r#"echo '{"score":1}' >outputs/score.json"#)]).success();
    repo.is_intact("good");
    // Without its shape, an item waits for it.
    repo.submit("gone", &[judge("true")]);
    let shape = repo.path("repo/shapes/judge.json");
    let original = std::fs::read(&shape).unwrap();
    std::fs::remove_file(&shape).unwrap();
    let left = repo.env.handoff(["run", "gone"]);
    assert_eq!(left.status, Some(4), "{}", left.stderr);
    insta::assert_snapshot!(left.stderr.lines().find(|line| line.contains("cannot be run here")).unwrap_or_default(), @r#"judge: cannot be run here: the shape "judge" could not be read from shapes/judge.json: No such file or directory (os error 2); handoff.shape.judge.path in $TEST/repo/.git/config names that file; no attempt is spent"#);
    std::fs::write(&shape, original).unwrap();
    repo.env.handoff(["run", "gone"]).ends(4);
    assert_eq!(reason(&repo, "gone"), cases[0].2);
}

#[test]
fn an_item_may_declare_the_same_without_a_shape() {
    let repo = shaped();
    let produces = json!([{ "kind": "output", "path": "score.json", "schema": "score@1" }]);
    let mut own = item("own", "echo '[1]' >outputs/score.json");
    own["produces"] = produces;
    repo.drive("r", &[own.clone()]).ends(4);
    insta::assert_snapshot!(reason(&repo, "r"), @r#"the product outputs/score.json is not as declared: it is not score@1: value is not of type "object""#);
    own["produces"][0]["schema"] = "nothing@1".into();
    let refused = repo.env.handoff(["validate", &repo.plan("s", &[own])]).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"
    unknown-shape at items[0].produces[0].schema (item "own", line 1): the schema nothing@1 is not registered here
        git config handoff.schema.nothing@1.path <file>
    "#);
}

#[test]
fn edge_of_two_types_is_reported() {
    let repo = shaped();
    let mut reader = item("reader", "true");
    reader["subagentShape"] = "reader".into();
    reader["needs"] = json!({ "it": { "from": "judge", "select": { "kind": "output", "path": "score.json" } } });
    let refused = repo.env.handoff(["validate", &repo.plan("r", &[judge("true"), reader])]).exit(1);
    insta::assert_snapshot!(refused.stdout, @r#"type-mismatch at items[1].needs.it (item "reader", line 1): judge -> reader (it): outputs/score.json is score, and text is wanted"#);
}
