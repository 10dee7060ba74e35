//! Refusals: message, and no changes.

use std::fs;

use super::{get, open, put, refused, repo, value};
use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

#[test]
fn another_version_than_is_expected_is_refused_before_a_byte_is_given() {
    let repo = open();
    put(&repo, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    put(&repo, "score", "[1]", &["--schema", "score@2", "--actor", "agent:b"]).success();
    put(&repo, "score", "[2]", &["--schema", "score@2"]).success();
    put(&repo, "notes", "x", &[]).success();
    refused(&repo, 1, "error: the document \"score\" is score@2 in revision 3, and score@1 is wanted", || {
        get(&repo, "score", &["--expect", "score@1"])
    });
    let stderr = get(&repo, "score", &["--expect", "score@1"]).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: the document "score" is score@2 in revision 3, and score@1 is wanted
    caused by: revision 3 was produced by human:ada
    caused by: agent:b changed that with revision 2, entry 2; it was score@1 before; at 2026-06-04T02:00:07.000Z, in commit 899fcfbf18e923c49b067a1ad94f9e418f37de04
    hint: git handoff doc log r score
    "#);
    let commit = repo.entries("r")[2]["commit"].as_str().unwrap().to_owned();
    assert!(find_line(&stderr, "caused by: agent:b ").ends_with(&format!(", in commit {commit}")), "{stderr}");
    let ever = "caused by: it has been so from the beginning: human:ada wrote revision 1, entry 1; at \
                2026-06-04T02:00:06.000Z, in commit …";
    refused(&repo, 1, ever, || get(&repo, "score", &["--expect", "other@2"]));
    refused(&repo, 1, "error: the document \"notes\" is without a schema in revision 1, and notes is wanted", || {
        get(&repo, "notes", &["--expect", "notes"])
    });
    for (schema, form) in [
        ("score@one", "score@N"),
        ("score@", "score@N"),
        ("score@0", "score@N"),
        ("score@01", "score@1"),
        ("score@+1", "score@1"),
        ("score@1.2.0", "score@1"),
        ("score@^1.2", "score@1"),
        ("score@1.0.0.0", "score@1"),
        ("score@>=1", "score@1"),
        ("score@>=1, <3", "score@1"),
    ] {
        let why = format!(
            "error: {schema:?} is no schema: write {form}; versions are whole numbers from 1 and are wanted by equality"
        );
        refused(&repo, 2, &why, || get(&repo, "score", &["--expect", schema]));
    }
    let json = get(&repo, "score", &["--expect", "score@1", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!((error["code"].as_str(), json.stdout.as_str()), (Some("drift"), ""));
}

#[test]
fn doc_put_rejects_an_invalid_document() {
    let repo = open();
    let schema = |schema: &'static str, text: &'static str| put(&repo, "score", text, &["--schema", schema]);
    let text = "caused by: it is not score@1: at /score: value is not of type \"number\"";
    refused(&repo, 1, text, || schema("score@1", r#"{"score":"high"}"#));
    refused(&repo, 1, "caused by: it is not score@1: \"score\" is a required property", || schema("score@1", "{}"));
    let no_json = "caused by: it is not score@1: not-json: not valid JSON: expected ident at line 1 column 2";
    refused(&repo, 1, no_json, || schema("score@1.0", "nothing"));
    let twice = "caused by: it is not score@1: duplicate-key at score: the key \"score\" stands here twice";
    refused(&repo, 1, twice, || schema("score@1", r#"{"score":1,"score":2}"#));
    refused(&repo, 1, "caused by: the schema score@3 is not registered here", || schema("score@3", "{}"));
    let stderr = schema("score@3", "{}").stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: cannot put the document "score"
    caused by: the schema score@3 is not registered here
    hint: git config handoff.schema.score@3.path FILE
    "#);
    let form = "error: \"score\" is no schema: write score@N; versions are whole numbers from 1 and are wanted by \
                equality";
    refused(&repo, 2, form, || schema("score", "{}"));
    let version = "error: \"score@1.2.0\" is no schema: write score@1; versions are whole numbers from 1 and are \
                   wanted by equality";
    refused(&repo, 2, version, || schema("score@1.2.0", "{}"));
    repo.env.write("repo/schemas/score-1.json", r#"{"type":"nothing"}"#);
    let invalid = "caused by: the schema score@1 is not valid: value is not valid under any of the schemas listed \
                   in the 'anyOf' keyword";
    refused(&repo, 1, invalid, || schema("score@1", "{}"));
    repo.env.write("repo/schemas/score-1.json", "{");
    let cut = "caused by: the schema score@1 in schemas/score-1.json is not JSON: EOF while parsing an object at \
               line 1 column 1; handoff.schema.score@1.path in $TEST/repo/.git/config names that file";
    refused(&repo, 1, cut, || schema("score@1", "{}"));
    fs::remove_file(repo.env.repo().join("schemas/score-1.json")).unwrap();
    let gone = "caused by: the schema score@1 could not be read from schemas/score-1.json: No such file or \
                directory (os error 2); handoff.schema.score@1.path in $TEST/repo/.git/config names that file";
    refused(&repo, 1, gone, || schema("score@1", "{}"));
    let second_stderr = schema("score@1", "{}").stderr;
    insta::assert_snapshot!(second_stderr, @r#"
    error: cannot put the document "score"
    caused by: the schema score@1 could not be read from schemas/score-1.json: No such file or directory (os error 2); handoff.schema.score@1.path in $TEST/repo/.git/config names that file
    hint: git config handoff.schema.score@1.path FILE
    "#);
}

#[test]
fn formats_count_in_every_draft_and_long_integers_are_compared_exactly() {
    let repo = open();
    for draft in ["draft-07/schema#", "draft/2020-12/schema"] {
        let schema = serde_json::json!({
            "$schema": format!("{}://json-schema.org/{draft}", if draft.starts_with("draft-") { "http" } else { "https" }),
            "properties": {"at": {"type": "string", "format": "date-time"}, "own": {"format": "ours"},
                           "id": {"type": "integer", "maximum": 917_204_512_345_678_901_u64}},
        });
        repo.env.write("repo/schemas/score-1.json", &schema.to_string());
        let put = |text: &str| put(&repo, "score", text, &["--schema", "score@1"]);
        for fine in [r#"{"at":"2026-06-04T02:00:00Z","own":"x"}"#, r#"{"id":917204512345678901}"#] {
            put(fine).success();
        }
        let beyond = "not-json at id: the integer 100000000000000000000 is beyond ±(2^53−1), so readers would \
                      disagree about it";
        for (wrong, why) in [
            (r#"{"at":"yesterday"}"#, "at /at: value is not a \"date-time\""),
            (r#"{"at":"2026-06-04"}"#, "at /at: value is not a \"date-time\""),
            (r#"{"id":917204512345678902}"#, "at /id: value is greater than the maximum of 917204512345678901"),
            (r#"{"id":1e20}"#, beyond),
        ] {
            let why = format!("caused by: it is not score@1: {why}").replace("917204512345678901", "…");
            refused(&repo, 1, &why.replace("100000000000000000000", "…"), || put(wrong));
        }
    }
}

#[test]
fn an_unused_schema_stops_nothing() {
    let repo = open();
    repo.config("handoff.schema.gone@1.path", "schemas/gone.json");
    repo.config("handoff.schema.misnamed.path", "schemas/gone.json");
    repo.env.write("repo/schemas/bad.json", "{");
    repo.config("handoff.schema.bad@2.path", "schemas/bad.json");
    repo.config("handoff.shape.gone.path", "shapes/gone.json");
    repo.env.write("repo/schemas/no-schema.json", r#"{"type":"nothing"}"#);
    repo.config("handoff.schema.none@1.path", "schemas/no-schema.json");
    put(&repo, "n", "x", &[]).success();
    let fine = put(&repo, "score", r#"{"score":1}"#, &["--schema", "score@1"]);
    insta::assert_snapshot!(fine.stderr, @r#"warning: `handoff.schema.misnamed.path` in $TEST/repo/.git/config is ignored: "misnamed" is no schema: write misnamed@N; versions are whole numbers from 1 and are wanted by equality"#);
    fine.success();
    // Neither plans nor drivers need what they do not name.
    let mut item = item("a", "echo '{\"score\":1}' >outputs/s");
    item["produces"] = serde_json::json!([{"kind": "document", "name": "s", "path": "s", "schema": "score@1"}]);
    repo.drive("other", &[item.clone()]).success();
    item["produces"][0]["schema"] = "gone@1".into();
    let message = refused_plan(&repo, "needy", &item);
    insta::assert_snapshot!(message, @r#"
    inputs-schema at items[0].produces[0].schema (item "a", line 1): the schema gone@1 could not be read from schemas/gone.json: No such file or directory (os error 2); handoff.schema.gone@1.path in $TEST/repo/.git/config names that file
    warning: `handoff.schema.misnamed.path` in $TEST/repo/.git/config is ignored: "misnamed" is no schema: write misnamed@N; versions are whole numbers from 1 and are wanted by equality
    1 problem
    "#);
    // One that goes after the plan was submitted costs no attempt.
    repo.env.write("repo/schemas/gone.json", "{}");
    repo.submit("late", &[item.clone()]);
    fs::remove_file(repo.env.repo().join("schemas/gone.json")).unwrap();
    let stderr = repo.env.handoff(["run", "late"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    warning: `handoff.schema.misnamed.path` in $TEST/repo/.git/config is ignored: "misnamed" is no schema: write misnamed@N; versions are whole numbers from 1 and are wanted by equality
    error: the schema gone@1 could not be read from schemas/gone.json: No such file or directory (os error 2); handoff.schema.gone@1.path in $TEST/repo/.git/config names that file
    hint: git config handoff.schema.gone@1.path FILE
    "#);
    assert_eq!(repo.entries("late").len(), 1);
    item["produces"] = serde_json::json!([]);
    item["subagentShape"] = "gone".into();
    let second_message = refused_plan(&repo, "shaped", &item);
    insta::assert_snapshot!(second_message, @r#"
    unknown-shape at items[0].subagentShape (item "a", line 1): the shape "gone" could not be read from shapes/gone.json: No such file or directory (os error 2); handoff.shape.gone.path in $TEST/repo/.git/config names that file
    warning: `handoff.schema.misnamed.path` in $TEST/repo/.git/config is ignored: "misnamed" is no schema: write misnamed@N; versions are whole numbers from 1 and are wanted by equality
    1 problem
    "#);
    // One look finds all of them, and says how each is mended.
    let doctor = repo.env.handoff(["doctor"]).exit(3).stdout;
    for (what, key) in [
        ("the schema gone@1 could not be read from schemas/gone.json", "handoff.schema.gone@1.path"),
        ("the schema bad@2 in schemas/bad.json is not JSON", "handoff.schema.bad@2.path"),
        ("the schema none@1 is not valid", "handoff.schema.none@1.path"),
        ("the shape \"gone\" could not be read from shapes/gone.json", "handoff.shape.gone.path"),
    ] {
        let finding = doctor.lines().position(|line| line.starts_with(&format!("problem: {what}")));
        let hint = finding.and_then(|at| doctor.lines().nth(at + 1));
        assert_eq!(hint, Some(&*format!("  git config {key} FILE")), "{what}: {doctor}");
    }
}

/// Submits a plan of one item that must be refused; returns why.
fn refused_plan(repo: &TestRepo, run: &str, item: &serde_json::Value) -> String {
    let plan = repo.plan(run, std::slice::from_ref(item));
    let output = repo.env.handoff(["submit", &plan]);
    assert_eq!(output.status, Some(1), "{output}");
    output.stdout + &output.stderr
}

#[test]
fn names_that_cannot_be_are_refused() {
    let repo = repo();
    let mut producer = item("a", "true");
    producer["produces"] = serde_json::json!([{"kind": "document", "name": "Report", "path": "r"}]);
    repo.submit("r", &[producer]);
    put(&repo, "a/b", "x", &[]).success();
    let segment = |name: &str| {
        format!("a path must not have the segment {name:?}: none may be empty, `.`, `..` or a spelling of `.git`")
    };
    for (name, why) in [
        ("../x", segment("..")),
        ("a//b", segment("")),
        (".git/config", segment(".git")),
        ("x\\y", "a path is written with `/` and must not hold `\\`".to_owned()),
        ("", "a name must not be empty".to_owned()),
        ("a\nb", "a name must not hold control characters".to_owned()),
        (&"x".repeat(129), "a name has at most 128 bytes".to_owned()),
    ] {
        let why = format!("error: {name:?} cannot be a document's name: {why}");
        refused(&repo, 2, &why, || put(&repo, name, "x", &[]));
    }
    for (name, other) in [("A/b", "a/b"), ("a", "a/b"), ("a/b/c", "a/b"), ("report", "Report"), ("Report/x", "Report")]
    {
        let why = format!("caused by: the documents {name:?} and {other:?} cannot stand side by side");
        refused(&repo, 1, &why, || put(&repo, name, "x", &[]));
    }
    put(&repo, "Report", "x", &[]).success();
}

#[test]
fn doc_get_rejects_a_missing_document() {
    let repo = open();
    put(&repo, "n", "x", &[]).success();
    refused(&repo, 1, "error: the run \"r\" has no document \"m\"", || get(&repo, "m", &[]));
    refused(&repo, 1, "error: the document \"n\" has no revision 2; the highest is 1", || {
        get(&repo, "n", &["--revision", "2"])
    });
    let zero = "error: invalid value '0' for '--revision <NUMBER>': 0 is not in 1..…";
    refused(&repo, 2, zero, || get(&repo, "n", &["--revision", "0"]));
    refused(&repo, 1, "error: there is no run \"s\" here", || repo.env.handoff(["doc", "list", "s"]));
    refused(&repo, 1, "error: missing could not be read", || repo.env.handoff(["doc", "put", "r", "n", "missing"]));
    repo.config("handoff.maxProductSize", "2");
    refused(&repo, 1, "error: ../text: it has more than 2 bytes, the limit", || put(&repo, "n", "three", &[]));
}

#[test]
fn only_a_writer_of_an_open_run_that_verifies_puts_anything() {
    let repo = open();
    repo.config("handoff.signingKey", "");
    let role = "error: the key SHA256:…, which does not have the role document, cannot do this in the run \"r\"";
    refused(&repo, 1, role, || put(&repo, "n", "x", &[]));
    repo.env.git(["config", "--unset", "handoff.signingKey"]).success();
    put(&repo, "n", "x", &[]).success();
    repo.env.handoff(["run", "r"]).success();
    refused(&repo, 1, "error: the run \"r\" is sealed; nothing can follow", || put(&repo, "n", "x", &[]));
    repo.drive("s", &[item("a", "false")]).ends(4);
    repo.env.handoff(["doc", "put", "s", "n", "a.txt"]).success();
    repo.env.handoff(["close", "s"]).success();
    refused(&repo, 1, "error: the run \"s\" is sealed; nothing can follow", || {
        repo.env.handoff(["doc", "put", "s", "n", "a.txt"])
    });
}

#[test]
fn a_chain_that_was_tampered_with_is_not_continued_and_its_bytes_are_not_given() {
    let repo = open();
    put(&repo, "n", "one\n", &[]).success();
    let log = value(&repo.env.handoff(["doc", "log", "r", "n", "--json"]));
    let oid = log["revisions"][0]["oid"].as_str().unwrap().to_owned();
    // The same name, other bytes: as if the object database had been written to.
    crate::common::loosen(&repo.env.repo());
    let file = repo.env.repo().join(".git/objects").join(&oid[..2]).join(&oid[2..]);
    repo.env.write("evil", "evil\n");
    let evil = repo.env.git(["hash-object", "-w", "../evil"]).success();
    let evil = repo.env.repo().join(".git/objects").join(&evil.trim()[..2]).join(&evil.trim()[2..]);
    fs::remove_file(&file).unwrap();
    fs::copy(evil, &file).unwrap();
    let output = get(&repo, "n", &[]);
    assert!(output.status == Some(3) && output.stdout.is_empty(), "{output}");
    insta::assert_snapshot!(output.stderr, @r#"
    error: revision 1 of the document "n" was altered after it was recorded
    caused by: object 5626abf0f72e58d7a153368ba57db4c673c0e171 is damaged: its bytes do not hash to its id
    hint: git handoff verify r
    "#);
    let report = value(&repo.env.handoff(["verify", "--json", "r"]));
    assert_eq!(report["checks"]["content"]["ok"], false, "{report}");
    let tree = repo.env.git(["rev-parse", "HEAD^{tree}"]).success();
    let forged = repo.env.git(["commit-tree", "-p", "refs/handoff/runs/r", "-m", "x", tree.trim()]).success();
    repo.env.git(["update-ref", "refs/handoff/runs/r", forged.trim()]).success();
    let no_entry = "caused by: the commit is not an entry: the message is not a subject and an entry";
    refused(&repo, 1, no_entry, || put(&repo, "n", "two\n", &[]));
}
