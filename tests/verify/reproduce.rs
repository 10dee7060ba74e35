//! `verify --reproduce`: a commit is the base plus exactly the products, or its files that are not.

use serde_json::{Value, json};

use crate::common::ground::{Ground, item};
use crate::common::report::error_code;

#[track_caller]
fn reproduce(ground: &Ground, what: &str, revision: &str, code: i32) -> Value {
    let output = ground.env.handoff(["verify", what, "--reproduce", revision, "--json"]).exit(code);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    report["reproduce"].clone()
}

#[test]
fn a_commit_is_compared_with_the_products() {
    let ground = Ground::new();
    let mut next = item("next", "git apply inputs/patch; echo three >>a.txt");
    next["needs"] = json!({ "patch": { "from": "first", "select": { "kind": "patch" } } });
    let items = [item("first", "echo zero >a.txt"), next, item("other", "git rm -q dir/b.txt")];
    ground.drive("r", &items).ends(0);
    let refs = ground.refs();
    ground.env.handoff(["apply", "r", "--branch", "all"]).success();
    let commit = ground.env.git(["rev-parse", "all"]).success().trim().to_owned();
    let same = json!({ "result": "same", "commit": commit, "differences": [] });
    assert_eq!(reproduce(&ground, "r", "all", 0), same);
    let text = ground.env.handoff(["verify", "r", "--reproduce", "all"]).exit(0).stdout;
    assert!(
        text.ends_with(&format!("✓ reproduce  same: {commit} is the base plus exactly these products\n")),
        "{text}"
    );

    ground.env.git(["checkout", "--quiet", "all"]).success();
    ground.env.write("repo/a.txt", "changed\n");
    ground.env.write("repo/new.txt", "new\n");
    ground.env.git(["add", "-A"]).success();
    ground.env.git(["commit", "-qm", "More"]).success();
    let differences = |answer: &Value| answer["differences"].clone();
    let change = |change: &str, path: &str| json!({ "change": change, "path": path });
    let answer = reproduce(&ground, "r", "HEAD", 3);
    assert_eq!(answer["result"], "different");
    assert_eq!(differences(&answer), json!([change("M", "a.txt"), change("A", "new.txt")]));
    assert_eq!(
        differences(&reproduce(&ground, "r/other", &commit, 3)),
        json!([change("M", "a.txt")]),
        "an item alone is the base plus its own product"
    );
    assert_eq!(
        differences(&reproduce(&ground, "r", "main", 3)),
        json!([change("M", "a.txt"), change("A", "dir/b.txt")])
    );
    let text = ground.env.handoff(["verify", "r", "--reproduce", "main"]).exit(3).stdout;
    assert!(text.contains("differs in 2 files\n    M a.txt\n    A dir/b.txt\n"), "{text}");
    ground.env.git(["checkout", "--quiet", "main"]).success();
    ground.env.git(["branch", "-D", "all"]).success();
    assert_eq!(ground.refs(), refs, "something was recorded");
    ground.is_clean();
}

#[test]
fn a_comparison_that_cannot_be_made_is_an_error() {
    let ground = Ground::new();
    ground.drive("r", &[item("a", "echo A >a.txt"), item("b", "echo B >a.txt")]).ends(0);
    for (args, code, name) in
        [(["r", "HEAD"], 1, "conflict"), (["r/a", "nothing"], 1, "bad-commit"), (["r/c", "HEAD"], 1, "unknown-item")]
    {
        let output = ground.env.handoff(["--json", "verify", args[0], "--reproduce", args[1]]).exit(code);
        assert_eq!(error_code(&output.stderr), name, "{output}");
    }
    assert_eq!(reproduce(&ground, "r/a", "HEAD", 3)["differences"], json!([{ "change": "M", "path": "a.txt" }]));
    ground.env.handoff(["verify", "--all", "--reproduce", "HEAD"]).ends(2);
}
