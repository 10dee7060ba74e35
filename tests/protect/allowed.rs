//! Changes to protected files that a driver's settings allow.

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_row;

/// A repository whose settings protect `tests` and allow changes.
fn allowing() -> TestRepo {
    let repo = TestRepo::new();
    repo.env.shell("repo", "mkdir tests; echo one >tests/x; git add -A; git commit -qm tests").success();
    repo.config("handoff.protect", "tests");
    repo.config("handoff.onProtectedChange", "allow");
    repo
}

#[test]
fn every_screen_names_the_setting_that_allows_a_change() {
    let repo = allowing();
    repo.drive("own", &[item("edit", "echo two >tests/x")]).ends(0);
    let text = |arguments: &[&str]| repo.env.handoff(arguments).success();
    let status = text(&["status", "own"]);
    let words = "protected files changed, allowed by human:ada's settings";
    assert!(status.lines().any(|line| line.ends_with(words)), "{status}");
    assert!(text(&["show", "own/edit"]).lines().any(|line| line == "allowed by human:ada's settings"));
    let verified = text(&["verify", "own"]);
    insta::assert_snapshot!(find_row(&verified, "protected"), @"─ protected  edit: tests/x modified, allowed by your settings");
    let applied = text(&["apply", "own"]);
    let line = "! protected files changed: edit: tests/x modified, allowed by human:ada's settings";
    assert!(applied.lines().any(|each| each == line), "{applied}");
    let junit = text(&["export", "own", "--format", "junit"]).replace("&apos;", "'");
    let second_line = "changes to protected files allowed by human:ada's settings";
    assert!(junit.lines().any(|each| each.ends_with(second_line)), "{junit}");
    let envelopes = text(&["export", "own", "--format", "in-toto"]);
    let allowed_by = envelopes.lines().map(|row| {
        let envelope: Value = serde_json::from_str(row).unwrap();
        let payload = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
        let statement: Value = serde_json::from_slice(&payload).unwrap();
        let byproducts = &statement["predicate"]["runDetails"]["byproducts"];
        byproducts[1]["annotations"]["allowedBy"].clone()
    });
    assert_eq!(allowed_by.collect::<Vec<_>>(), ["human:ada"]);
    repo.env.write("edit.proof.json", &text(&["prove", "own/edit"]));
    let proof = text(&["verify", "--proof", "../edit.proof.json"]);
    insta::assert_snapshot!(find_row(&proof, "protected"), @"─ protected  edit: tests/x modified, allowed by human:ada's settings");
}

#[test]
fn settings_do_not_allow_what_the_plan_protects() {
    let repo = allowing();
    let mut edit = item("edit", "echo two >tests/x");
    edit["protect"] = json!(["tests"]);
    repo.drive("promise", &[edit.clone()]).ends(4);
    let reason = &repo.item("promise", "edit").reason;
    assert_eq!(reason, "protected-changed: tests/x modified");
    let verified = repo.env.handoff(["verify", "promise", "--require", "protected"]).exit(4).stdout;
    assert_eq!(find_row(&verified, "protected"), "✗ protected  edit: tests/x modified");
    // Another file of the plan is no obstacle.
    edit["protect"] = json!(["other"]);
    repo.drive("other", &[edit.clone()]).ends(0);
    edit["protect"] = json!(["tests"]);
    edit["onProtectedChange"] = json!("fail");
    repo.drive("fails", &[edit]).ends(4);
    assert_eq!(repo.item("fails", "edit").status, "failed");
}
