//! Documents are read as they were written: here, in a bare repository, and as fetched.

use serde_json::{Value, json};

use super::{get, open, put, value};
use crate::common::repo::TestRepo;
use crate::common::report::{find_line, masked};

/// A run with a document of three revisions, two schemas and two authors.
fn written() -> TestRepo {
    let repo = open();
    put(&repo, "score", r#"{"score":1}"#, &["--schema", "score@1"]).success();
    put(&repo, "score", "[1]\n", &["--schema", "score@2", "--actor", "agent:b"]).success();
    put(&repo, "score", "[2]\n", &["--schema", "score@2"]).success();
    put(&repo, "notes.md", "hello\n", &[]).success();
    repo
}

#[test]
fn every_revision_can_be_had() {
    let repo = written();
    assert_eq!(get(&repo, "score", &[]).success(), "[2]\n");
    assert_eq!(get(&repo, "score", &["--revision", "1"]).success(), r#"{"score":1}"#);
    assert_eq!(get(&repo, "score", &["--revision", "1", "--expect", "score@1"]).success(), r#"{"score":1}"#);
    assert_eq!(get(&repo, "score", &["--expect", "score"]).success(), "[2]\n");
    for first in ["score@^1", "score@1.0", "score@1.0.0", "score@^1.0.0"] {
        let stdout = get(&repo, "score", &["--revision", "1", "--expect", first]).success();
        assert_eq!(stdout, r#"{"score":1}"#, "{first}");
    }
    assert_eq!(get(&repo, "score", &["--expect", "score@2"]).success(), "[2]\n");
    let list = value(&repo.env.handoff(["doc", "list", "r", "--json"]));
    assert_eq!(list["schema"], "git-handoff.documents/1");
    let names: Vec<_> = list["documents"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["notes.md", "score"]);
    assert_eq!(list["documents"][1]["schema"], "score@2");
    assert_eq!(list["documents"][0]["schema"], json!(null));
    let text = repo.env.handoff(["doc", "log", "r", "score"]).success();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((lines[1][0], lines[1][2], *lines[1].last().unwrap()), ("2", "score@2", "agent:b"));
}

#[test]
fn doc_diff_prints_a_patch() {
    let repo = written();
    let diff = |more: &[&str]| repo.env.handoff([&["doc", "diff", "--patch", "r", "score"], more].concat()).success();
    let changes = |patch: String| {
        let lines = patch
            .lines()
            .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(changes(diff(&[])), ["-[1]", "+[2]"]);
    assert_eq!(changes(diff(&["1"])), [r#"-{"score":1}"#, "+[2]"]);
    assert_eq!(changes(diff(&["1", "2"])), [r#"-{"score":1}"#, "+[1]"]);
    assert_eq!(diff(&["3"]), "");
    let first = repo.env.handoff(["doc", "diff", "r", "notes.md"]).success();
    assert!(first.contains("new file mode 100644"), "{first}");
}

#[test]
fn a_fetched_run_and_a_bare_repository_are_read_and_not_written() {
    let repo = written();
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.handoff(["push", "origin", "--all"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    repo.env.handoff_in("clone", ["fetch"]).success();
    for run in ["r", "origin/r"] {
        assert_eq!(repo.env.handoff_in("clone", ["doc", "get", run, "score"]).success(), "[2]\n");
    }
    assert_eq!(repo.env.handoff_in("hub", ["doc", "get", "r", "score", "--revision", "2"]).success(), "[1]\n");
    assert_eq!(repo.env.handoff_in("hub", ["doc", "list", "r"]).success().lines().count(), 2);
    let before = repo.env.git_in("clone", ["for-each-ref"]).success();
    // A key with the role writes in its log, and nothing else.
    repo.env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    let output = repo.env.handoff_in("clone", ["doc", "put", "r", "score", "../text"]).exit(1);
    insta::assert_snapshot!(masked(find_line(&output.stderr, "error: ")), @r#"error: the key SHA256:… does not have the role `document` in the run "r""#);
    assert_eq!(repo.env.git_in("clone", ["for-each-ref"]).success(), before);
}

#[test]
fn partial_clone_names_missing_documents_with_a_command() {
    let repo = written();
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git_in("hub", ["config", "uploadpack.allowFilter", "true"]).success();
    repo.env.git_in("hub", ["config", "uploadpack.allowAnySHA1InWant", "true"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.handoff(["push", "origin", "--all"]).success();
    repo.env.shell(".", "git clone --quiet --no-checkout --filter=blob:none \"file://$PWD/hub\" part").success();
    repo.env.handoff_in("part", ["fetch"]).success();
    let output = repo.env.handoff_in("part", ["doc", "get", "r", "notes.md"]).exit(1);
    assert_eq!(output.stdout, "", "{output}");
    let hint = output.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    repo.env.shell("part", hint).success();
    assert_eq!(repo.env.handoff_in("part", ["doc", "get", "r", "notes.md"]).success(), "hello\n");
}

#[test]
fn a_packet_may_be_a_document() {
    let repo = open();
    let packet = json!({
        "objective": "Score the report", "completed": ["fetched report.md"], "next_action": "Run the scorer on report.md",
        "blocker": "none", "unresolved": [], "owner": "ada", "resume_token": "score-report-0001",
        "updated_at": "2026-06-04T02:00:00Z",
    });
    put(&repo, "packets/score", &packet.to_string(), &[]).success();
    put(&repo, "large", &"x".repeat(2 << 20), &[]).success();
    let check = |what: &str| repo.env.handoff(["--json", "check", what]);
    let answer = value(&check("r:documents/packets/score"));
    assert_eq!(answer["checks"]["freshness"]["ok"], true, "{answer}");
    assert_eq!(answer["checks"]["untrusted_content"]["ok"], true, "{answer}");
    for absent in ["r:documents/none", "r:documents/../x", "r:documents/large"] {
        let output = check(absent);
        assert_eq!((output.status, value(&output)["classification"].as_str()), (Some(4), Some("critical")), "{output}");
    }
    assert!(check("s:documents/none").status == Some(4));
}

#[test]
fn packet_check_compares_documents() {
    let repo = written();
    let check = |documents: serde_json::Value| {
        let packet = json!({
            "objective": "Score the report", "completed": [], "next_action": "Run the scorer on report.md",
            "run": "r", "documents": documents,
        });
        repo.env.write("packet.json", &packet.to_string());
        let answer = value(&repo.env.handoff(["--json", "check", "../packet.json"]));
        (answer["checks"]["facts"]["ok"].clone(), answer["checks"]["facts"]["detail"].to_string())
    };
    let score = value(&repo.env.handoff(["doc", "log", "r", "score", "--json"]));
    let digest = |at: usize| score["revisions"][at]["sha256"].as_str().unwrap().to_owned();
    assert_eq!(check(json!(["score", "notes.md"])).0, true);
    assert_eq!(check(json!({ "score": digest(0) })).0, true);
    let (ok, message) = check(json!({ "score": digest(1) }));
    assert!(ok == false, "{message}");
    insta::assert_snapshot!(message, @r#""document \"score\" is sha256:844e4038ed5999677dba42a4e2ecdf77861755ad3e266836906963960bfe1b75, not \"sha256:acc07b62f23f458923737c4cd4a66bd05d1e71eb4f384003baaf2dcc760d6349\"""#);
    let (plan_ok, plan_message) = check(json!(["plan"]));
    assert!(plan_ok == false, "{plan_message}");
    insta::assert_snapshot!(plan_message, @r#""the run has no document \"plan\"""#);
}

#[test]
fn revisions_are_compared_by_fields_where_both_are_json() {
    let repo = open();
    let put = |text: &str| drop(put(&repo, "note", text, &[]).success());
    ["{\"score\": 5, \"by\": \"a\"}\n", "{\"score\": 7, \"by\": \"a\"}\n", "seven\n"].into_iter().for_each(put);
    let diff = |more: &[&str]| repo.env.handoff([&["doc", "diff", "r", "note"], more].concat()).success();
    let json = |more: &[&str]| -> Value {
        let stdout = repo.env.handoff([&["--json", "doc", "diff", "r", "note"], more].concat()).success();
        serde_json::from_str(&stdout).expect("it is one JSON object")
    };
    assert_eq!(diff(&["1", "2"]), "~ /score  5 -> 7\n");
    let patch = diff(&["1", "2", "--patch"]);
    assert!(patch.starts_with("diff --git a/documents/note") && patch.contains("\n-{\"score\": 5"), "{patch}");
    let answer = json(&["1", "2"]);
    let changes = json!([{"pointer": "/score", "kind": "changed", "before": 5, "after": 7}]);
    assert_eq!((&answer["changes"], &answer["patch"], &answer["truncated"]), (&changes, &patch.into(), &false.into()));
    assert!(diff(&[]).contains("\n+seven\n"));
    assert_eq!(json(&[])["changes"], Value::Null);
}
