//! Commits that a command makes and that its work does not contain.

use super::record;
use crate::common::repo::TestRepo;

const COMMIT: &str = "git -c user.name=a -c user.email=a@localhost commit -q";

/// Returns what a recording says about commits.
fn notes(repo: &TestRepo, options: &[&str], script: &str) -> Vec<String> {
    notes_of(repo, "r", options, script)
}

fn notes_of(repo: &TestRepo, run: &str, options: &[&str], script: &str) -> Vec<String> {
    let output = record(repo, &[&["--as", run], options].concat(), script).exit(0);
    let notes = output.stderr.lines().filter_map(|line| line.strip_prefix("record: "));
    notes.map(str::to_owned).collect()
}

const SAVED: &str = "these commits are saved in refs/handoff/salvage/r:70/record/1.commits";

#[test]
fn record_saves_commits_on_abandoned_branches() {
    let repo = TestRepo::new();
    let script = format!(
        "git checkout -q -b feature; echo hour >work.txt; git add -A; {COMMIT} -m one; {COMMIT} --allow-empty -m two; \
         git checkout -q main"
    );
    assert_eq!(notes(&repo, &[], &script), ["2 commits on feature are not taken", SAVED]);
    let status = repo.status("r");
    assert_eq!(status["saved"][0]["commits"], "refs/handoff/salvage/r:70/record/1.commits");
    // The command that the screen names takes them.
    let take = "git cat-file blob refs/handoff/salvage/r:70/record/1.commits >../saved.bundle && \
                git fetch -q ../saved.bundle 'refs/*:refs/remotes/saved/*' && git log --format=%s saved/heads/feature -2";
    assert_eq!(repo.env.shell("repo", take).success(), "two\none\n");
    assert_eq!(repo.env.git(["show", "saved/heads/feature:work.txt"]).success(), "hour\n");
    repo.env.git(["fsck", "--strict"]).success();
    repo.ends_intact("r");
}

#[test]
fn record_reports_stashes_and_worktrees() {
    let repo = TestRepo::new();
    let script = "echo hour >>a.txt; git -c user.name=a -c user.email=a@localhost stash -q";
    assert_eq!(notes(&repo, &[], script), ["the stash is not taken", SAVED]);
    let second_repo = TestRepo::new();
    let second_script = format!(
        "git worktree add -q --detach \"$TMPDIR/other\" && cd \"$TMPDIR/other\" && echo hour >work.txt && git add -A && \
         {COMMIT} -m work"
    );
    let expected =
        ["1 commit on the detached HEAD of the worktree other is not taken", "the worktree other is not taken", SAVED];
    assert_eq!(notes(&second_repo, &[], &second_script), expected);
}

#[test]
fn record_omits_commits_that_the_work_contains() {
    let repo = TestRepo::new();
    let scripts = [
        format!("echo three >>a.txt; {COMMIT} -am three"),
        format!("git checkout -q -b mine; echo three >>a.txt; {COMMIT} -am three"),
        "git checkout -q -b empty; git branch another; git tag t".to_owned(),
        "rm -rf .git".to_owned(),
    ];
    for (number, script) in scripts.iter().enumerate() {
        assert_eq!(notes_of(&repo, &format!("r{number}"), &[], script), Vec::<String>::new(), "{script}");
    }
}

#[test]
fn a_command_in_the_users_work_tree_tells_what_moved() {
    let repo = TestRepo::new();
    let script = format!("git checkout -q -b feature; echo three >>a.txt; {COMMIT} -am three; git checkout -q main");
    let notes = notes(&repo, &["--here"], &script);
    let tip = repo.env.git(["rev-parse", "--short=7", "feature"]).success();
    assert_eq!(notes, [format!("feature is new, at {}", tip.trim())]);
}
