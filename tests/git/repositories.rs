//! The kinds of repositories that there are, and what git does to them in the meantime.

use std::fs::File;
use std::time::{Duration, SystemTime};

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use serde_json::{Value, json};

use crate::common::finished;
use crate::common::{Environment, assert_output};

#[test]
fn a_bare_repository_can_be_worked_in() {
    let env = Environment::example("handoff-dag");
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "bare"]).success();
    env.git_in("bare", ["config", "handoff.subagent.code-edit.command", "sh .handoff/code-edit.sh"]).success();
    env.git_in("bare", ["config", "handoff.subagent.apply-patch.setup", "git apply --index inputs/patch"]).success();
    env.git_in("bare", ["config", "handoff.subagent.apply-patch.command", "sh .handoff/apply-patch.sh"]).success();
    assert_output!(env.handoff_in("bare", ["submit", "../repo/plan.json"]), @"handoff-dag-1");
    env.handoff_in("bare", ["run", "handoff-dag-1"]).success();
    assert_output!(env.handoff_in("bare", ["status", "handoff-dag-1"]), @r"
    ✓ edit-a       done  1 attempt  2026-06-04 02:00Z  0ms  patch
    ✓ apply-patch  done  1 attempt  2026-06-04 02:00Z  0ms  patch, outputs/applied.txt
    submitted 2026-06-04 02:00Z by human:ada
    handoff-dag-1: 2 of 2 done, sealed
    ");
    assert_output!("bare_verify", env.handoff_in("bare", ["verify", "handoff-dag-1"]));
}

#[test]
fn a_sha256_repository_is_like_any_other() {
    let env = Environment::example_with("handoff-dag", &["--object-format=sha256"]);
    assert_output!(env.handoff(["run", "plan.json"]), @"
    ✓ edit-a       done  1 attempt  patch
    ✓ apply-patch  done  1 attempt  patch, outputs/applied.txt
    handoff-dag-1: 2 of 2 done, sealed
    check: nothing protected (apply-patch)
    check in the worker's worktree (apply-patch)
    ✓ check passed: grep -q reviewed src/main.ts (0 ms)
    ─ no check for 1 item
    2 files changed, +6 −0: src/main.test.ts, src/main.ts; 1 output
    agents: apply-patch, code-edit
    proof ✓ intact, 6 entries, your key: git handoff verify handoff-dag-1
    ------- stderr -------
    ▶ edit-a  attempt 1
    ✓ edit-a  done in 0ms, 1 product
    ▶ apply-patch  attempt 1
    ✓ apply-patch  done in 0ms, 2 products: applied the patch and wrote a test
    hint: git handoff apply handoff-dag-1   # as a commit: --commit
    ");
    assert_output!(env.handoff(["log", "handoff-dag-1"]), @"
    0  c51dae48  2026-06-04T02:00:04.000Z  human:ada  run.submitted handoff-dag-1
    1  718678bf  2026-06-04T02:00:04.000Z  human:ada  item.fired edit-a #1: running
    2  09e5477c  2026-06-04T02:00:04.000Z  human:ada  item.reconciled edit-a #1: done
    3  8b6b0a67  2026-06-04T02:00:04.000Z  human:ada  item.fired apply-patch #1: running
    4  8c5ef39c  2026-06-04T02:00:04.000Z  human:ada  item.reconciled apply-patch #1: done: applied the patch and wrote a test
    5  cb19e43b  2026-06-04T02:00:04.000Z  human:ada  run.sealed handoff-dag-1
    ");
    assert_output!("sha256_verify", env.handoff(["verify", "handoff-dag-1"]));
    env.git(["fsck", "--strict", "--no-dangling"]).success();
}

#[test]
fn a_subdirectory_and_a_linked_worktree_see_the_same_runs() {
    let env = finished();
    env.git(["worktree", "add", "--quiet", "../linked"]).success();
    let verified = env.handoff(["verify", "handoff-dag-1"]).success();
    assert_eq!(env.handoff_in("repo/src", ["verify", "handoff-dag-1"]).success(), verified);
    assert_eq!(env.handoff_in("linked", ["verify", "handoff-dag-1"]).success(), verified);
    env.write(
        "linked/second.json",
        r#"{"id": "second", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.handoff_in("linked", ["run", "second.json"]).success();
    assert_output!(env.handoff(["runs"]), @r"
    second         default  sealed  2026-06-04 02:00Z  human:ada  1 done, 1 with nothing handed over
    handoff-dag-1  default  sealed  2026-06-04 02:00Z  human:ada  2 done
    ");
    env.handoff(["verify", "--all"]).success();
}

#[test]
fn git_finds_it_as_a_subcommand_anywhere() {
    let env = finished();
    let verified = env.handoff(["verify", "handoff-dag-1"]).success();
    assert_eq!(env.git_in(".", ["-C", "repo", "handoff", "verify", "handoff-dag-1"]).success(), verified);
    assert_eq!(env.git_in(".", ["--git-dir=repo/.git", "handoff", "verify", "handoff-dag-1"]).success(), verified);
}

#[test]
fn packed_refs_and_a_gc_change_nothing() {
    let env = finished();
    let before = env.handoff(["verify", "handoff-dag-1"]).success();
    env.git(["pack-refs", "--all"]).success();
    assert_eq!(env.handoff(["verify", "handoff-dag-1"]).success(), before);
    env.git(["gc", "--quiet", "--prune=now"]).success();
    assert_eq!(env.handoff(["verify", "handoff-dag-1"]).success(), before);
    assert_output!(env.handoff(["cat", "handoff-dag-1/edit-a:transcript"]), @"edited src/main.ts");
    // From here on refs and objects are packed.
    env.write(
        "repo/second.json",
        r#"{"id": "second", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.handoff(["run", "second.json"]).success();
    env.handoff(["verify", "--all"]).success();
}

/// A clock may be set back while a process has the repository open.
#[test]
fn packed_refs_with_an_earlier_date_are_read_again() {
    let env = Environment::example("handoff-dag");
    let store = Store::discover(&env.repo()).unwrap();
    let name = "refs/handoff/runs/r";
    for (text, hours) in [("one", 0), ("two", 1), ("six", 2)] {
        let new = store.write_blob(text.as_bytes()).unwrap();
        env.git(["update-ref", name, &new.to_string()]).success();
        env.git(["pack-refs", "--all"]).success();
        let packed = File::open(env.repo().join(".git/packed-refs")).unwrap();
        packed.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
        assert_eq!(refs::read(&store, name).unwrap(), Some(new), "{text}");
    }
}

#[test]
fn the_base_outlives_its_branch() {
    let env = finished();
    env.git(["checkout", "--quiet", "--orphan", "other"]).success();
    env.git(["commit", "--quiet", "--message", "Another start"]).success();
    env.git(["branch", "--quiet", "-D", "main"]).success();
    env.git(["reflog", "expire", "--expire=now", "--all"]).success();
    env.git(["gc", "--quiet", "--prune=now"]).success();
    env.handoff(["verify", "handoff-dag-1"]).success();
    env.git(["cat-file", "-e", "refs/handoff/bases/handoff-dag-1"]).success();
}

/// Makes a folder in the work tree that git takes for a bare repository, whose settings run a
/// program.
fn planted(env: &Environment) {
    let script = "mkdir -p in/x/objects in/x/refs in/x/sub && echo 'ref: refs/heads/main' >in/x/HEAD &&
        printf '[core]\n repositoryformatversion = 0\n bare = false\n worktree = ..\n fsmonitor = touch %s; false\n' \
        \"$PWD/../ran\" >in/x/config && touch in/x/objects/y in/x/refs/y in/x/sub/y && git add in";
    env.shell("repo", script).success();
}

#[test]
fn folder_of_a_work_tree_is_no_bare_repository() {
    let env = finished();
    planted(&env);
    let folder = "$TEST/repo/in/x";
    for dir in ["repo/in/x", "repo/in/x/sub", "repo/in/x/objects"] {
        for arguments in [
            &["runs"][..],
            &["checkpoint", "t", "--state", "/dev/null", "--worktree"],
            &["record", "--here", "--", "true"],
            &["doctor"],
        ] {
            let output = env.handoff_in(dir, [&["--json"], arguments].concat()).exit(1);
            let failure: Value = serde_json::from_str(&output.stderr).expect("it is JSON");
            let message = format!(
                "cannot open {folder}: it lies in the work tree $TEST/repo, and programs named in its settings would run as you"
            );
            assert_eq!(
                (&failure["code"], &failure["message"]),
                (&json!("bare-in-work-tree"), &json!(message)),
                "{dir}"
            );
            let hint = format!("cd ..   # or, if you made this repository yourself: export GIT_DIR={folder}");
            assert_eq!(failure["hint"], hint);
        }
    }
    assert!(!env.path().join("ran").exists());
    // It is no obstacle beside it, and git itself would have run the program.
    env.handoff_in("repo/in", ["runs"]).success();
    env.handoff_in("repo/in", ["checkpoint", "t", "--state", "/dev/null", "--worktree"]).success();
    assert!(!env.path().join("ran").exists());
    let _ = env.git_in("repo/in/x", ["status"]);
    assert!(env.path().join("ran").exists());
}

#[test]
fn bare_repository_opens_by_name_or_outside_work_trees() {
    let env = finished();
    let run_in = |dir: &str, git_dir: &str| {
        let mut command = env.command("git-handoff", dir);
        command.arg("runs").env("GIT_DIR", git_dir);
        env.ended(command)
    };
    // In a work tree, named by the variable, by git's option and by a file.
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "repo/in.git"]).success();
    assert_eq!(env.handoff_in("repo/in.git", ["runs"]).status, Some(1));
    let in_git = env.path().join("repo/in.git");
    run_in("repo/in.git", ".").success();
    run_in("repo", in_git.to_str().expect("a path of a test")).success();
    env.git_in("repo", ["--git-dir=in.git", "handoff", "runs"]).success();
    env.write("repo/led/.git", "gitdir: ../in.git\n");
    env.handoff_in("repo/led", ["runs"]).success();
    // Outside of any work tree.
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "bare"]).success();
    env.handoff_in("bare", ["runs"]).success();
    env.handoff_in("bare/objects", ["runs"]).success();
    // Git directories below `.git`: those of a linked worktree and of a submodule.
    env.git(["worktree", "add", "--quiet", "linked"]).success();
    env.handoff_in("repo/linked", ["runs"]).success();
    env.shell("repo", "git -c protocol.file.allow=always submodule --quiet add ../bare sub").success();
    env.handoff_in("repo/sub", ["runs"]).success();
    env.handoff_in("repo/.git/modules/sub", ["runs"]).success();
    env.handoff_in("repo/.git", ["runs"]).success();
}
