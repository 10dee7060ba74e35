//! Work that cannot be taken or saved: it stays on disk, and a recording is finished afterwards.

use std::fs;
use std::path::PathBuf;

use super::{code, json, record};
use crate::common::repo::{TestRepo, item};

/// A private key that no gate lets through.
const KEY: &str = "printf -- '-----BEGIN OPENSSH PRIVATE %s-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACD\\n-----END OPENSSH PRIVATE %s-----\\n' KEY KEY";

/// Returns the worktree that the last attempt of a run left for a person.
fn left(repo: &TestRepo, run: &str) -> Option<PathBuf> {
    let found = repo.env.shell(".", &format!("find . -type d -path '*/{run}/*-unsaved'")).success();
    found.lines().next().map(|path| repo.path(path).join("tree"))
}

/// Returns the files that are saved of an attempt, besides those of the base.
fn saved(repo: &TestRepo, run: &str) -> Vec<String> {
    let place = format!("refs/handoff/salvage/{run}:70/record/1");
    let listed = repo.env.git(["ls-tree", "-r", "--name-only", &place]);
    let base = ["a.txt", "dir/b.txt"];
    listed.stdout.lines().filter(|path| !base.contains(path)).map(str::to_owned).collect()
}

#[test]
fn a_recording_is_finished_after_the_limit_was_raised() {
    let repo = TestRepo::new();
    repo.config("handoff.maxProductSize", "1k");
    let script =
        "mkdir -p outputs; echo small >outputs/small; head -c 5000 /dev/zero >outputs/model; echo three >>a.txt";
    let failed = record(&repo, &["--as", "big", "--check", "grep -q three a.txt"], script).exit(4);
    let notes: Vec<&str> = failed.stderr.lines().filter(|line| line.starts_with("record: ")).collect();
    assert_eq!(
        notes[0],
        "record: left out of the saved work of attempt 1: \"outputs/model\", larger than handoff.maxProductSize"
    );
    assert!(!repo.is_sealed("big"));
    assert_eq!(fs::metadata(left(&repo, "big").unwrap().join("outputs/model")).unwrap().len(), 5000);
    assert_eq!(saved(&repo, "big"), ["outputs/small"]);
    // While the limit holds, nothing is lost by another try.
    repo.env.handoff(["record", "--as", "big"]).ends(4);
    repo.config("handoff.maxProductSize", "10k");
    let answer = json(&repo.env.handoff(["record", "--json", "--as", "big"]).success());
    assert_eq!((&answer["items"][0]["status"], &answer["check"]["code"]), (&"done".into(), &0.into()));
    assert_eq!(repo.item("big", "record").outputs, ["model".to_owned(), "small".to_owned()].into());
    // The command ran once.
    let patch = repo.env.handoff(["cat", "big/record:patch"]).success();
    assert_eq!(patch.matches("+three").count(), 1, "{patch}");
    let requeued: Vec<_> = repo.entries("big").into_iter().filter(|entry| entry["kind"] == "item.requeued").collect();
    assert_eq!(requeued[0]["detail"], "the work that attempt 1 left in its worktree is to be taken");
    assert!(repo.is_sealed("big") && left(&repo, "big").is_none());
    repo.ends_intact("big");
    assert_eq!(code(&repo, &["record", "--as", "big"], 1), "run-exists");
}

/// The name, the exit code, the command, a file that must stay, and the saved files.
type Case<'c> = (&'c str, i32, &'c str, Option<&'c str>, &'c [&'c str]);

#[test]
fn work_that_is_not_saved_stays_in_its_worktree() {
    let repo = TestRepo::new();
    let secret = format!("mkdir -p outputs; echo good >outputs/good; ({KEY}; echo notes) >outputs/notes");
    let cases: [Case; 7] = [
        ("secret", 4, &secret, Some("outputs/notes"), &["outputs/good"]),
        ("failed", 4, "head -c 5000 /dev/zero >t.bin; exit 3", Some("t.bin"), &[]),
        ("nested", 0, "git init -q n; echo w >n/w.txt", Some("n/w.txt"), &[]),
        ("nested-output", 4, "mkdir -p outputs; git init -q outputs/n; echo w >outputs/n/w", Some("outputs/n/w"), &[]),
        ("dot-git", 4, "mkdir sub; echo x >sub/.git; echo y >sub/y", Some("sub/y"), &[]),
        ("small", 4, "echo x >x.txt; exit 3", None, &["x.txt"]),
        ("ignored", 4, "echo build >.gitignore; mkdir build; echo x >build/x; exit 1", None, &[".gitignore"]),
    ];
    repo.config("handoff.maxProductSize", "1k");
    for (run, exit, script, stays, expected) in cases {
        record(&repo, &["--as", run], script).ends(exit);
        let tree = left(&repo, run);
        assert_eq!(stays.is_some(), tree.is_some(), "{run}");
        if let Some((tree, file)) = tree.zip(stays) {
            assert!(tree.join(file).exists(), "{run}");
        }
        assert_eq!(saved(&repo, run), expected, "{run}");
    }
    // Only a person gives it up.
    repo.env.handoff(["clean", "--force"]).success();
    assert!(left(&repo, "failed").is_some());
    repo.env.handoff(["clean", "--force", "--discard"]).success();
    assert!(left(&repo, "failed").is_none());
}

#[test]
fn every_command_lists_saved_work() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo three >>a.txt; exit 1")]).ends(4);
    let place = "refs/handoff/salvage/r:ca/a/1";
    let line = format!("saved      a #1: {place}");
    for command in [["status", "r"], ["show", "r"]] {
        assert!(repo.env.handoff(command).success().lines().any(|printed| printed == line), "{command:?}");
    }
    let stdout = repo.env.handoff(["show", "r/a"]).success();
    assert!(stdout.lines().any(|printed| printed == format!("saved      #1: {place}")), "{stdout}");
    let log = repo.env.handoff(["log", "r"]).success();
    assert_eq!(log.lines().filter(|row| row.ends_with("; its work is saved")).count(), 1, "{log}");
    let status = repo.status("r");
    assert_eq!(status["saved"][0]["work"], place);
    let base = status["saved"][0]["base"].as_str().unwrap();
    repo.env.shell("repo", &format!("git diff --binary {base} {place} | git apply --3way")).success();
    assert_eq!(fs::read_to_string(repo.path("repo/a.txt")).unwrap(), "one\ntwo\nthree\n");
    // A run without saved work does not mention any.
    repo.drive("green", &[item("a", "true")]).ends(0);
    assert!(repo.status("green").get("saved").is_none());
}

#[test]
fn an_attempts_own_repository_refuses_what_would_vanish() {
    let repo = TestRepo::new();
    let program = crate::common::program_path();
    repo.env.write("repo/p.json", "{\"id\": \"p\", \"items\": [{\"id\": \"a\", \"executor\": \"command\", \"inputs\": {\"command\": [\"true\"]}}]}");
    repo.env.shell("repo", "git add p.json; git commit -qm Plan").success();
    let inside = |command: &str| {
        let run = command.split(' ').next().unwrap();
        let script = format!("echo s | {program} {command} 2>&1 | head -1; true");
        record(&repo, &["--as", run], &script).success();
        repo.env.handoff(["cat", &format!("{run}/record:transcript")]).success()
    };
    let refused =
        "error: nothing can be recorded in the repository of an attempt: it is removed when the attempt ends\n";
    for command in ["checkpoint t --state -", "record -- true", "submit p.json"] {
        assert_eq!(inside(command), refused, "{command}");
    }
    // Another repository inside the item works, and so do commands that read.
    let script = format!(
        "git init -q own && cd own && git -c user.name=a -c user.email=a@localhost commit -q --allow-empty -m m && \
         echo s | {program} checkpoint t --state - >/dev/null && {program} thread verify t >/dev/null && echo kept; \
         cd .. && {program} runs >/dev/null 2>&1 && echo read"
    );
    record(&repo, &["--as", "own"], &script).success();
    assert_eq!(repo.env.handoff(["cat", "own/record:transcript"]).success(), "kept\nread\n");
}
