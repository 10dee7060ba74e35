//! Hints fit what they are about: a merge under way, a shallow clone, a remote of another hash, a
//! sandbox that is installed, and items that never ran.

use serde_json::json;

use crate::common::Output;
use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

const STATUS: &str =
    "hint: git status   # a merge, rebase or pick is not finished: it says how to go on, or to give it up";

fn hint(output: &Output) -> &str {
    output.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default()
}

/// Makes a run with a patch, and two branches that conflict.
fn with_conflict() -> TestRepo {
    let repo = TestRepo::new();
    repo.env.handoff(["record", "--as", "r", "--", "sh", "-c", "echo x >x.txt"]).success();
    repo.env.shell("repo", "git checkout -q -b side && echo s >a.txt && git commit -qam s").success();
    repo.env.shell("repo", "git checkout -q main && echo m >a.txt && git commit -qam m").success();
    repo
}

#[test]
fn no_stash_is_hinted_while_git_is_in_the_middle_of_something() {
    for begin in ["git merge side", "git cherry-pick side", "git rebase side", "git merge --no-commit -s ours side"] {
        let repo = with_conflict();
        let _ = repo.env.shell("repo", begin);
        let _ = repo.env.shell("repo", "echo more >>dir/b.txt");
        // A merge without conflicts does not stand in the way of a commit onto other files.
        if !begin.contains("ours") {
            assert_eq!(hint(&repo.env.handoff(["apply", "r", "--commit"]).exit(1)), STATUS, "{begin}");
        }
        assert_eq!(hint(&repo.env.handoff(["record", "--here", "--", "true"]).exit(1)), STATUS, "{begin}");
    }
    let repo = with_conflict();
    let _ = repo.env.shell("repo", "echo more >x.txt && git add x.txt");
    let refused = repo.env.handoff(["apply", "r", "--commit"]).exit(1);
    assert_eq!(hint(&refused), "hint: git stash --include-untracked   # or apply onto a branch: --branch NAME");
}

#[test]
fn shallow_clone_gets_a_fetch_hint() {
    let repo = with_conflict();
    let from = format!("file://{}", repo.env.repo().display());
    repo.env.git_in("", ["clone", "-q", "--depth", "1", &from, "shallow"]).success();
    let calls: [&[&str]; 3] = [
        &["whence", "deadbeef"],
        &["submit", "--base", "HEAD~1", "../plan.json"],
        &["verify", "--commits", "HEAD~1..HEAD"],
    ];
    repo.env.write("plan.json", &json!({"id": "s", "items": [item("a", "true")]}).to_string());
    for call in calls {
        assert_eq!(hint(&repo.env.handoff_in("shallow", call).exit(1)), "hint: git fetch --unshallow", "{call:?}");
    }
    let whole = repo.env.handoff(["whence", "deadbeef"]).exit(1);
    assert_eq!(hint(&whole), "hint: git log --oneline --all");
}

#[test]
fn a_remote_of_another_hash_is_not_to_be_tried_again() {
    let repo = with_conflict();
    repo.env.git_in("", ["init", "-q", "--bare", "--object-format=sha256", "hub"]).success();
    repo.env.git(["remote", "add", "hub", "../hub"]).success();
    let expected = "hint: git init --bare --object-format=\"$(git rev-parse --show-object-format)\" FOLDER   # a remote of \
                    the same hash: git carries nothing between two";
    assert_eq!(hint(&repo.env.handoff(["push", "hub", "r"]).exit(1)), expected);
    // One that does not answer may do so later.
    repo.env.git(["remote", "add", "down", "http://127.0.0.1:1/x"]).success();
    let down = repo.env.handoff(["push", "down", "r"]).exit(1);
    assert_eq!(hint(&down), "hint: the same command again, a little later");
}

#[test]
fn a_sandbox_that_is_installed_and_fails_is_not_to_be_installed() {
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "strict");
    repo.env.write("programs/bwrap", "#!/bin/sh\necho 'bwrap: no way' >&2\nexit 1\n");
    repo.env.shell("", "chmod +x programs/bwrap").success();
    let refused = repo.env.handoff(["record", "--", "true"]).exit(1);
    assert_eq!(hint(&refused), "hint: git config handoff.sandbox auto   # what this machine can enforce");
    assert!(refused.stderr.contains("bubblewrap does not work here: bwrap: no way"), "{refused}");
}

#[test]
fn no_transcript_is_hinted_of_an_item_that_never_ran() {
    let repo = TestRepo::new();
    let need = |from: &str| json!({"from": from, "select": {"kind": "patch"}, "apply": true});
    let mut last = item("c", "true");
    last["needs"] = json!({"x": need("a"), "y": need("b")});
    let output = repo.drive("r", &[item("a", "echo A >a.txt"), item("b", "echo B >a.txt"), last]).exit(4);
    assert!(repo.item("r", "c").reason.starts_with("patch-conflict"), "{output}");
    assert!(!output.stderr.contains("r/c:transcript"), "{output}");
    let none = repo.env.handoff(["cat", "r/c:transcript"]).exit(1);
    assert_eq!(none.stderr.lines().next(), Some("error: no attempt of \"c\" has ended yet"));
    // An item that failed while it ran has one.
    let second_output = repo.drive("s", &[item("a", "echo said; exit 3")]).exit(4);
    assert_eq!(find_line(&second_output.stderr, "hint: git handoff cat"), "hint: git handoff cat s/a:transcript");
    // So has a recording, and one whose command printed nothing has not.
    let record_output = repo.env.handoff(["record", "--as", "t", "--", "sh", "-c", "echo said; exit 3"]).exit(4);
    assert_eq!(hint(&record_output), "hint: git handoff cat t/record:transcript");
    let quiet = repo.env.handoff(["record", "--as", "u", "--", "false"]).exit(4);
    assert_eq!(hint(&quiet), "hint: git handoff show u/record");
}

#[test]
fn a_recording_gets_another_id_without_a_plan() {
    let repo = TestRepo::new();
    repo.env.git_in("", ["init", "-q", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "hub", "../hub"]).success();
    repo.env.git(["push", "-q", "hub", "main"]).success();
    repo.env.git_in("", ["clone", "-q", "hub", "other"]).success();
    repo.env.git_in("other", ["config", "handoff.signingKey", "../other_key"]).success();
    repo.env.shell("", "ssh-keygen -q -t ed25519 -N '' -f other_key").success();
    repo.env.handoff(["record", "--as", "r", "--", "sh", "-c", "echo x >x.txt"]).success();
    repo.env.handoff(["push", "hub", "r"]).success();
    repo.env.handoff_in("other", ["record", "--as", "r", "--", "sh", "-c", "echo y >y.txt"]).success();
    let refused = repo.env.handoff_in("other", ["push", "origin", "r"]);
    assert_ne!(refused.status, Some(0), "{refused}");
    let hint_line = hint(&refused);
    let command = hint_line.strip_prefix("hint: ").and_then(|hint| hint.split_once("   #")).map(|(command, _)| command);
    assert!(hint_line.contains("git handoff adopt-run r --id ID"), "{refused}");
    assert!(command.is_some() && !hint_line.contains("PLAN"), "{refused}");
    // The hinted command works.
    repo.env.handoff_in("other", ["adopt-run", "r", "--id", "mine"]).success();
    repo.env.handoff_in("other", ["run", "mine"]).success();
    repo.env.handoff_in("other", ["push", "origin", "mine"]).success();
}
