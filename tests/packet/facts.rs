//! Verifiable facts in packets.

use serde_json::{Value, json};

use super::with;
use crate::common::{Environment, Output};

fn ran() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    env
}

fn ask(env: &Environment, dir: &str, fields: &Value) -> (Output, Value) {
    let mut packet = with(fields);
    packet["updated_at"] = "2026-06-04T02:00:00Z".into();
    env.write("packet.json", &packet.to_string());
    let path = env.path().join("packet.json");
    let output = env.handoff_in(dir, ["--json", "check", path.to_str().expect("temporary folders have plain names")]);
    let value: Value = serde_json::from_str(&output.stdout).expect("the answer is JSON");
    (output, value["checks"]["facts"].clone())
}

#[test]
fn true_facts_pass_and_say_how_far_head_has_moved() {
    let env = ran();
    let base = env.git(["rev-parse", "HEAD"]).success();
    let base = base.trim();
    let fields = json!({ "commits": [base], "run": "handoff-dag-1", "items": ["edit-a", "apply-patch"] });
    let (output, facts) = ask(&env, "repo", &fields);
    assert_eq!(output.status, Some(0), "{output}");
    let short = &base[..7];
    assert_eq!(
        facts["detail"],
        format!("1 commit exists; HEAD is still at {short}; run \"handoff-dag-1\" exists; 2 items are done")
    );
    env.git(["commit", "--quiet", "--allow-empty", "--message", "More"]).success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Yet more"]).success();
    let (_, short_facts) = ask(&env, "repo", &json!({ "commits": [&base[..10]] }));
    assert_eq!(short_facts["detail"], format!("1 commit exists; HEAD has moved 2 commits since {short}"));
    let run = env.git(["rev-parse", "refs/handoff/runs/handoff-dag-1"]).success();
    let (second_output, run_facts) = ask(&env, "repo", &json!({ "commits": [run.trim()] }));
    assert_eq!(second_output.status, Some(0));
    assert_eq!(run_facts["detail"], format!("1 commit exists; {} is not in the history of HEAD", &run[..7]));
    let (run_output, _) = ask(&env, "repo", &json!({ "run": "handoff-dag-1", "items": { "edit-a": "done" } }));
    assert_eq!(run_output.status, Some(0));
}

#[test]
fn false_facts_do_not_pass() {
    let env = ran();
    env.git(["branch", "deadbeef"]).success();
    env.git(["branch", "nice-name"]).success();
    let gone = "0123456789012345678901234567890123456789";
    for (fields, why) in [
        (json!({ "commits": [gone] }), "commit 0123456789012345678901234567890123456789 is not in this repository"),
        (json!({ "commits": ["deadbeef"] }), "commit deadbeef is not in this repository"),
        (json!({ "commits": ["nice-name"] }), "\"nice-name\" is no commit id"),
        (json!({ "commits": ["HEAD~1"] }), "\"HEAD~1\" is no commit id"),
        (json!({ "commits": ["--output=/tmp/x"] }), "\"--output=/tmp/x\" is no commit id"),
        (json!({ "run": "handoff-dag-2" }), "there is no run \"handoff-dag-2\" here"),
        (json!({ "run": "../x" }), "there is no run \"../x\" here"),
        (json!({ "run": "handoff-dag-1", "items": ["edit-b"] }), "the run has no item \"edit-b\""),
        (json!({ "run": "handoff-dag-1", "items": { "edit-a": "failed" } }), "item \"edit-a\" is done, not \"failed\""),
        (json!({ "run": "handoff-dag-1", "documents": ["report"] }), "the run has no document \"report\""),
        (json!({ "items": ["edit-a"] }), "items are named, and no run"),
        (json!({ "documents": ["report"] }), "documents are named, and no run"),
    ] {
        let (output, facts) = ask(&env, "repo", &fields);
        assert_eq!(output.status, Some(3), "{fields}: {output}");
        assert_eq!((&facts["detail"], &facts["ok"]), (&json!(why), &json!(false)), "{fields}");
    }
}

#[test]
fn only_a_run_that_verifies_is_a_source_of_facts() {
    const OWN: &str = "refs/handoff/runs/handoff-dag-1";
    let env = ran();
    let fields = json!({ "run": "handoff-dag-1", "items": ["edit-a", "apply-patch"] });
    let head = env.git(["rev-parse", OWN]).success().trim().to_owned();
    let forge =
        format!("git cat-file commit {head} | sed s/human:ada/human:eve/ | git hash-object -t commit -w --stdin");
    let forged = env.shell("repo", &forge).success().trim().to_owned();
    let fetched = |remote: &str, to: &str| {
        let name = format!("refs/handoff/remotes/{remote}/runs/handoff-dag-1");
        env.git(["update-ref", &name, to]).success();
    };
    // Ours stands before whatever a remote calls by its name.
    fetched("evil", &forged);
    assert_eq!(ask(&env, "repo", &fields).1["ok"], true);
    env.shell(
        "repo",
        "for log in $(git for-each-ref --format='%(refname)' refs/handoff/logs); do git update-ref -d $log; done",
    )
    .success();
    env.git(["update-ref", "-d", OWN]).success();
    let (output, facts) = ask(&env, "repo", &fields);
    assert_eq!(output.status, Some(3), "{output}");
    insta::assert_snapshot!(facts["detail"].as_str().unwrap(), @r#"the run "handoff-dag-1" does not verify, so nothing is taken from it: signature: entry 5: the signature does not match"#);
    // Contradicting runs are not facts.
    fetched("good", &head);
    let (_, contradicting_facts) = ask(&env, "repo", &fields);
    assert_eq!(contradicting_facts["ok"], false);
    assert_eq!(contradicting_facts["detail"], "there are different runs \"handoff-dag-1\" from evil and good");
    // One remote may have less of the same run than another.
    fetched("evil", &format!("{head}~1"));
    assert_eq!(ask(&env, "repo", &fields).1["ok"], true);
    // Nor is one whose products are not what it says, or whose key is not trusted.
    env.write("nobody", "# nobody\n");
    env.git(["config", "handoff.signers", "../nobody"]).success();
    let (_, untrusted_facts) = ask(&env, "repo", &fields);
    assert!(untrusted_facts["ok"] == false, "{untrusted_facts}");
    insta::assert_snapshot!(untrusted_facts["detail"].as_str().unwrap(), @r#"the run "handoff-dag-1" is not trusted, so nothing is taken from it: signature: entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is not known to the signers (and 5 more)"#);
    env.git(["config", "--unset", "handoff.signers"]).success();
    crate::common::loosen(&env.repo());
    env.shell(
        "repo",
        "o=$(git rev-parse refs/handoff/remotes/good/runs/handoff-dag-1'^{/item.reconciled edit-a }:patch'); \
        rm .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-)",
    )
    .success();
    let (_, incomplete_facts) = ask(&env, "repo", &fields);
    assert!(incomplete_facts["ok"] == false, "{incomplete_facts}");
    insta::assert_snapshot!(incomplete_facts["detail"].as_str().unwrap(), @r#"the run "handoff-dag-1" does not verify, so nothing is taken from it: content: patch of edit-a: object 35ffdbd30665aaefdacebe3802566a651ec4b40c is not in the repository"#);
}

#[test]
fn packet_check_reports_an_unfinished_item() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let (output, facts) = ask(&env, "repo", &json!({ "run": "handoff-dag-1", "items": ["edit-a"] }));
    assert_eq!(output.status, Some(3));
    assert_eq!(facts["detail"], "item \"edit-a\" is ready, not \"done\"");
}

#[test]
fn without_a_repository_only_facts_cannot_be_checked() {
    let env = Environment::empty();
    let (output, facts) = ask(&env, "home", &json!({}));
    assert_eq!(output.status, Some(0), "{output}");
    assert_eq!(facts["ok"], "n/a");
    let (second_output, second_facts) = ask(&env, "home", &json!({ "commits": ["deadbeef"] }));
    assert_eq!(second_output.status, Some(3), "{second_output}");
    assert_eq!(second_facts["detail"], "could not be checked: this is not in a git repository");
}
