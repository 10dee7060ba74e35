//! `verify --reproduce`: a commit is the base plus exactly the products, or its files that are not.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::error_code;

#[track_caller]
fn reproduce(repo: &TestRepo, what: &str, revision: &str, code: i32) -> Value {
    let output = repo.env.handoff(["verify", what, "--reproduce", revision, "--json"]).exit(code);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    report["reproduce"].clone()
}

#[test]
fn a_commit_is_compared_with_the_products() {
    let repo = TestRepo::new();
    let mut next = item("next", "git apply inputs/patch; echo three >>a.txt");
    next["needs"] = json!({ "patch": { "from": "first", "select": { "kind": "patch" } } });
    let items = [item("first", "echo zero >a.txt"), next, item("other", "git rm -q dir/b.txt")];
    repo.drive("r", &items).ends(0);
    let refs = repo.refs();
    repo.env.handoff(["apply", "r", "--branch", "all"]).success();
    let commit = repo.env.git(["rev-parse", "all"]).success().trim().to_owned();
    let same = json!({ "result": "same", "commit": commit, "differences": [] });
    assert_eq!(reproduce(&repo, "r", "all", 0), same);
    let text = repo.env.handoff(["verify", "r", "--reproduce", "all"]).exit(0).stdout;
    assert!(
        text.ends_with(&format!("✓ reproduce  same: {commit} is the base plus exactly these products\n")),
        "{text}"
    );

    repo.env.git(["checkout", "--quiet", "all"]).success();
    repo.env.write("repo/a.txt", "changed\n");
    repo.env.write("repo/new.txt", "new\n");
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "More"]).success();
    let differences = |answer: &Value| answer["differences"].clone();
    let change = |change: &str, path: &str| json!({ "change": change, "path": path });
    let answer = reproduce(&repo, "r", "HEAD", 3);
    assert_eq!(answer["result"], "different");
    assert_eq!(differences(&answer), json!([change("M", "a.txt"), change("A", "new.txt")]));
    assert_eq!(
        differences(&reproduce(&repo, "r/other", &commit, 3)),
        json!([change("M", "a.txt")]),
        "an item alone is the base plus its own product"
    );
    assert_eq!(differences(&reproduce(&repo, "r", "main", 3)), json!([change("M", "a.txt"), change("A", "dir/b.txt")]));
    let verify_text = repo.env.handoff(["verify", "r", "--reproduce", "main"]).exit(3).stdout;
    assert!(
        verify_text.ends_with("✗ reproduce  different: e01ebe446bc002032f8fcc226ae6d5c11f2ec4a5 differs in 2 files\n    M a.txt\n    A dir/b.txt\n"),
        "{verify_text}"
    );
    repo.env.git(["checkout", "--quiet", "main"]).success();
    repo.env.git(["branch", "-D", "all"]).success();
    assert_eq!(repo.refs(), refs, "something was recorded");
    repo.is_clean();
}

#[test]
fn a_comparison_that_cannot_be_made_is_an_error() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo A >a.txt"), item("b", "echo B >a.txt")]).ends(0);
    for (args, code, name) in
        [(["r", "HEAD"], 1, "conflict"), (["r/a", "nothing"], 1, "bad-commit"), (["r/c", "HEAD"], 1, "unknown-item")]
    {
        let output = repo.env.handoff(["--json", "verify", args[0], "--reproduce", args[1]]).exit(code);
        assert_eq!(error_code(&output.stderr), name, "{output}");
    }
    assert_eq!(reproduce(&repo, "r/a", "HEAD", 3)["differences"], json!([{ "change": "M", "path": "a.txt" }]));
    repo.env.handoff(["verify", "--all", "--reproduce", "HEAD"]).ends(2);
}
