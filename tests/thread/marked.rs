//! Files that the index marks skip-worktree or assume-unchanged: what is on the disk counts,
//! whatever the marks say.

use std::fs;

use super::{json, repository, save, traces};
use crate::common::Environment;

/// A sender that changed `kept` and deleted `gone`, and a clone of its commit in `other`; the
/// thread is `t`.
fn offered() -> Environment {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo").success();
    let start = "mkdir sub && for f in kept gone left sub/deep; do printf '%s\\n' \"$f\" >$f; done && printf '*.env\\n' >.gitignore \
        && git add --all && git commit --quiet --message Start";
    env.shell("repo", start).success();
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.shell("repo", "printf sender >kept && printf sender >sub/deep && rm gone").success();
    save(&env, "t", b"state", &["--worktree"]);
    let descriptor = env.handoff(["offer", "t"]).success();
    env.write("descriptor.json", &descriptor);
    env
}

const ADOPT: [&str; 5] = ["adopt", "../descriptor.json", "--as", "u", "--checkout"];

/// Everything of the user's in a repository: files, index with its marks, stashes, status and refs.
fn everything(env: &Environment, dir: &str) -> String {
    let list = "find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort; git ls-files -v --stage; git stash list; git status --short";
    env.shell(dir, list).success() + &traces(env, dir)
}

fn read(env: &Environment, path: &str) -> String {
    fs::read_to_string(env.path().join(path)).expect("it is there")
}

#[test]
fn a_changed_file_that_is_marked_refuses_a_checkout() {
    for (change, paths, unmark) in [
        (
            "git update-index --skip-worktree kept && printf mine >kept",
            "kept",
            "git update-index --no-skip-worktree -- kept && ",
        ),
        (
            "git update-index --assume-unchanged kept && printf mine >kept",
            "kept",
            "git update-index --no-assume-unchanged -- kept && ",
        ),
        // Same length and second, with a newer index: no time reveals the change.
        (
            "git update-index --assume-unchanged kept && printf 'mine\\n' >kept && touch -r left kept && git update-index --assume-unchanged left",
            "kept",
            "git update-index --no-assume-unchanged -- kept && ",
        ),
        (
            "git update-index --skip-worktree sub/deep && printf mine >sub/deep",
            "sub/deep",
            "git update-index --no-skip-worktree -- sub/deep && ",
        ),
        (
            "git update-index --assume-unchanged gone && printf mine >gone",
            "gone",
            "git update-index --no-assume-unchanged -- gone && ",
        ),
        ("git update-index --skip-worktree kept && rm kept", "kept", "git update-index --no-skip-worktree -- kept && "),
        (
            "git update-index --skip-worktree kept && git update-index --assume-unchanged gone && printf mine >kept && printf mine >gone",
            "gone, kept",
            "git update-index --no-skip-worktree -- kept && git update-index --no-assume-unchanged -- gone && ",
        ),
        // Git sets the mark itself for every file that it writes.
        (
            "git config core.ignoreStat true && git rm --quiet --cached kept && git add kept && git update-index --assume-unchanged kept && printf mine >kept",
            "kept",
            "git update-index --no-assume-unchanged -- kept && ",
        ),
        ("printf mine >kept", "kept", ""),
    ] {
        let env = offered();
        env.shell("other", change).success();
        let before = everything(&env, "other");
        let output = env.handoff_in("other", ["--json"].iter().chain(&ADOPT)).exit(1);
        let failure = json(&output.stderr);
        assert_eq!(failure["code"], "local-changes", "{change}: {output}");
        assert_eq!(failure["message"], format!("changed here, and in the way: {paths}"), "{change}");
        assert_eq!(failure["hint"], format!("{unmark}git stash --include-untracked"), "{change}");
        assert_eq!(everything(&env, "other"), before, "{change}");
        // The hint is the way out, unless the file hides from git itself.
        if change.contains("touch") {
            continue;
        }
        env.shell("other", &format!("{unmark}git stash --quiet --include-untracked")).success();
        env.handoff_in("other", ADOPT).success();
        assert_eq!(read(&env, "other/kept"), "sender");
    }
}

#[test]
fn a_marked_file_that_is_unchanged_or_not_concerned_stops_nothing() {
    let env = offered();
    let marks = "git update-index --skip-worktree kept left && git update-index --assume-unchanged gone .gitignore && printf mine >left && printf '*.o\\n' >.gitignore";
    env.shell("other", marks).success();
    env.handoff_in("other", ADOPT).success();
    assert_eq!(read(&env, "other/kept"), "sender");
    assert_eq!((read(&env, "other/left"), read(&env, "other/.gitignore")), ("mine".into(), "*.o\n".into()));
    assert!(!env.path().join("other/gone").exists());
}

#[test]
fn resume_on_the_saved_commit_preserves_later_work() {
    let env = offered();
    env.git(["update-index", "--skip-worktree", "kept"]).success();
    // As it was saved, nothing is in the way.
    assert_eq!(env.handoff(["resume", "t", "--checkout"]).exit(0).raw, b"state");
    env.write("repo/kept", "later");
    let before = everything(&env, "repo");
    let refused = env.handoff(["--json", "resume", "t", "--checkout"]).exit(1);
    assert_eq!(json(&refused.stderr)["code"], "local-changes", "{refused}");
    assert_eq!(everything(&env, "repo"), before);
    assert_eq!(read(&env, "repo/kept"), "later");
}

#[test]
fn a_checkpoint_saves_marked_files_as_they_are_on_the_disk() {
    let env = repository();
    let change = "for f in skipped assumed both deleted; do printf 'old\\n' >$f; done && git add --all && git commit --quiet --message More
        git update-index --skip-worktree skipped deleted && git update-index --assume-unchanged assumed both && git update-index --skip-worktree both
        printf 'new\\n' >skipped && printf 'new\\n' >assumed && printf 'new\\n' >both && rm deleted";
    env.shell("repo", change).success();
    let index = env.git(["ls-files", "-v", "--stage"]).success();
    save(&env, "t", b"state", &["--worktree"]);
    let saved = |path: &str| env.git(["show", &format!("refs/handoff/threads/t:worktree/{path}")]).success();
    assert_eq!([saved("skipped"), saved("assumed"), saved("both")], ["new\n", "new\n", "new\n"]);
    let listed = env.git(["ls-tree", "-r", "--name-only", "refs/handoff/threads/t"]).success();
    assert!(!listed.contains("deleted"), "{listed}");
    assert_eq!(env.git(["ls-files", "-v", "--stage"]).success(), index);
}

#[test]
fn sparse_checkout_deletes_no_excluded_file() {
    for cone in ["--cone", "--no-cone"] {
        let env = Environment::empty();
        env.shell("", "git init --quiet repo").success();
        let start = format!(
            "mkdir in out far && for f in in/a in/b out/a far/a; do printf 'old\\n' >$f; done && git add --all && git commit --quiet --message Start \
             && git sparse-checkout set {cone} in && mkdir -p out && printf 'new\\n' >out/a && rm in/b"
        );
        env.shell("repo", &start).success();
        // A deleted file inside of the patterns is deleted, mark or not.
        env.git(["update-index", "--skip-worktree", "in/b"]).success();
        save(&env, "t", b"state", &["--worktree"]);
        let listed = env.git(["ls-tree", "-r", "--name-only", "refs/handoff/threads/t:worktree"]).success();
        assert_eq!(listed, "far/a\nin/a\nout/a\n", "{cone}");
        let saved = |path: &str| env.git(["show", &format!("refs/handoff/threads/t:worktree/{path}")]).success();
        assert_eq!([saved("out/a"), saved("far/a")], ["new\n", "old\n"], "{cone}");
        // Elsewhere the same part of it is checked out, and the file outside of it comes along.
        env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
        env.shell("other", &format!("git sparse-checkout set {cone} in")).success();
        let descriptor = env.handoff(["offer", "t"]).success();
        env.write("descriptor.json", &descriptor);
        env.handoff_in("other", ADOPT).success();
        assert_eq!(read(&env, "other/out/a"), "new\n", "{cone}");
        assert!(!env.path().join("other/in/b").exists() && !env.path().join("other/far").exists(), "{cone}");
    }
}

#[test]
fn a_file_that_is_to_be_added_stays() {
    let env = offered();
    env.shell("other", "printf new >new && git add --intent-to-add new").success();
    env.handoff_in("other", ADOPT).success();
    assert_eq!(read(&env, "other/new"), "new");
}

#[test]
fn a_split_index_is_read_whole_and_left_as_it_is() {
    let env = offered();
    env.shell("other", "git config core.splitIndex true && git update-index --split-index && git update-index --assume-unchanged kept && printf mine >kept").success();
    let before = (everything(&env, "other"), env.shell("other", "ls .git").success());
    let output = env.handoff_in("other", ["--json"].iter().chain(&ADOPT)).exit(1);
    assert_eq!(json(&output.stderr)["code"], "local-changes");
    assert_eq!((everything(&env, "other"), env.shell("other", "ls .git").success()), before);
}
