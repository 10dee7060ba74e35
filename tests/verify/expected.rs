//! Unmet expectations, unknown keys, and nothing to verify: neither tampering nor a pass.

use serde_json::Value;

use crate::common::repo::{TestRepo, item};
use crate::common::report::{error_code, verdict};

fn sealed() -> (TestRepo, String) {
    let repo = TestRepo::new();
    let items = [item("a", "mkdir outputs; echo out >outputs/x")];
    repo.drive("r", &items).ends(0);
    let file = repo.plan("r", &items);
    (repo, file)
}

fn answer(repo: &TestRepo, args: &[&str], code: i32) -> Value {
    let report = repo.env.handoff([&["--json", "verify"], args].concat()).exit(code).stdout;
    serde_json::from_str(&report).unwrap()
}

#[test]
fn the_same_plan_in_another_form_is_the_same_plan() {
    let (repo, file) = sealed();
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(repo.env.repo().join(&file)).unwrap()).unwrap();
    repo.env.write("other.json", &serde_json::to_string_pretty(&plan).unwrap());
    repo.env.handoff(["submit", "../other.json"]).success();
    repo.env.handoff(["run", "../other.json"]).success();
    repo.env.handoff(["verify", "r", "--plan", "../other.json"]).success();
    let mut plan = plan;
    plan["items"][0]["timeout"] = 7.into();
    repo.env.write("other.json", &plan.to_string());
    insta::assert_snapshot!(repo.env.handoff(["submit", "../other.json"]).exit(1).stderr, @r#"
    error: the run "r" exists already with another plan or another writer
    hint: git handoff show r   # or give the plan another id
    "#);
    let mismatch = answer(&repo, &["r", "--plan", "../other.json"], 3);
    assert_eq!((&mismatch["failure"], &mismatch["intact"]), (&"mismatch".into(), &false.into()), "{mismatch}");
    let text = repo.env.handoff(["verify", "r", "--plan", "../other.json"]).exit(3).stdout;
    assert_eq!(verdict(&text), "✗ MISMATCH");
}

#[test]
fn an_expectation_that_does_not_hold_is_a_mismatch() {
    let (repo, _) = sealed();
    repo.env.git(["commit", "--quiet", "--allow-empty", "--message", "Next"]).success();
    let line = repo.env.handoff(["key"]).success();
    repo.env.write("home/signers", &line);
    let other = ["r", "--signers", "../home/signers", "--signer", "nobody@example.org"];
    for (args, failure) in [
        (&["r", "--base", "HEAD"][..], "mismatch"),
        (&other, "mismatch"),
        (&["r", "--require", "tamper-evident"], "required"),
        (&["r", "--require-sandbox"], "required"),
    ] {
        assert_eq!(answer(&repo, args, 3)["failure"], failure, "{args:?}");
        let text = repo.env.handoff([&["verify"], args].concat()).exit(3).stdout;
        assert_eq!(verdict(&text), "✗ MISMATCH");
    }
    // An impossible value is worse than a different one.
    repo.env.write("home/none", "");
    assert_eq!(answer(&repo, &["r", "--signers", "../home/none"], 3)["failure"], "signature");
    // And what contradicts the run comes before what was expected of it.
    let tip = repo.tip("r").unwrap();
    repo.env.git(["update-ref", "refs/handoff/runs/r", &format!("{tip}~1")]).success();
    let text = repo.env.handoff(["verify", "r", "--base", "HEAD"]).exit(3).stdout;
    assert_eq!(verdict(&text), "✗ TAMPERED");
}

#[test]
fn nothing_verified_is_no_pass() {
    let repo = TestRepo::new();
    for command in [&["verify", "--all"][..], &["thread", "verify", "--all"]] {
        let output = repo.env.handoff([&["--json"], command].concat()).exit(3);
        assert_eq!((output.stdout.as_str(), error_code(&output.stderr).as_str()), ("", "nothing-verified"));
    }
}

#[test]
fn a_key_without_an_opinion_is_not_green_and_no_failure() {
    let (repo, _) = sealed();
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "origin", "main"]).success();
    repo.env.handoff(["push", "origin", "r"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    repo.env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    repo.env.handoff_in("clone", ["fetch"]).success();
    let report = repo.env.handoff_in("clone", ["verify", "--all"]).exit(0).stdout;
    assert!(report.starts_with("git handoff verify · origin/r "), "{report}");
    assert_eq!(verdict(&report), "─ INTACT · unknown key");
    let verify_answer = repo.env.handoff_in("clone", ["--json", "verify", "--all"]).exit(0).stdout;
    let answer: Value = serde_json::from_str(verify_answer.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&answer["trusted"], &answer["intact"], &answer["remote"]),
        (&false.into(), &true.into(), &"origin".into())
    );
    repo.env.handoff_in("clone", ["verify", "--all", "--require-trusted"]).ends(3);
}
