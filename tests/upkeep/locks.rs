//! Lock files of git that were left: named with their age, by what fails of them and by `doctor`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::Environment;
use crate::common::report::find_line;

/// Returns a path as the output of a command is compared.
fn display_path(lock: &Path) -> String {
    let (_, name) = lock.to_str().unwrap().split_once("/repo/.git/").unwrap();
    format!("$TEST/repo/.git/{name}")
}

fn done() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["run", "plan.json"]).success();
    env
}

/// Leaves a lock file that is two hours old.
fn leave(env: &Environment, name: &str) -> std::path::PathBuf {
    let lock = env.repo().join(".git").join(name);
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    File::create(&lock).unwrap().set_modified(SystemTime::now() - Duration::from_secs(2 * 3600 + 5)).unwrap();
    lock
}

#[test]
fn a_command_that_fails_of_a_lock_names_it_with_its_age() {
    let env = done();
    let cases: [(&str, &[&str]); 5] = [
        ("index.lock", &["apply", "handoff-dag-1"]),
        ("index.lock", &["apply", "handoff-dag-1", "--commit"]),
        ("HEAD.lock", &["apply", "handoff-dag-1", "--commit"]),
        ("refs/heads/main.lock", &["apply", "handoff-dag-1", "--commit"]),
        ("config.lock", &["anchor", "add", "v", "git", "../vault.git"]),
    ];
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    for (name, command) in cases {
        let lock = leave(&env, name);
        let output = env.handoff(command).exit(1);
        let (error, rest) = output.stderr.split_once('\n').unwrap();
        let why = "a git command goes on there, or one that was killed left it";
        assert_eq!(error, format!("error: {} is in the way, 2 h old: {why}", display_path(&lock)), "{name}");
        let hint = "if no git command runs here, nor an editor that one opened; then the same command again";
        assert_eq!(find_line(rest, "hint: "), format!("hint: rm {}   # {hint}", display_path(&lock)), "{name}");
        let json = env.handoff(command.iter().chain(&["--json"])).exit(1);
        assert!(json.stderr.contains(r#""code":"locked""#), "{json}");
        fs::remove_file(&lock).unwrap();
    }
    env.handoff(["apply", "handoff-dag-1"]).success();
}

#[test]
fn waiting_for_a_ref_lock_reports_its_age() {
    let env = done();
    env.git(["pack-refs", "--all"]).success();
    let lock = leave(&env, "packed-refs.lock");
    let output = env.handoff(["archive", "handoff-dag-1"]).exit(5);
    assert_eq!(display_path(&lock), "$TEST/repo/.git/packed-refs.lock");
    insta::assert_snapshot!(output.stderr, @"
    error: refs/handoff/runs/handoff-dag-1 is locked: $TEST/repo/.git/packed-refs.lock exists
    caused by: $TEST/repo/.git/packed-refs.lock is in the way, 2 h old
    hint: git handoff doctor --fix   # or, if git is at work here, the same command again
    ");
}

#[test]
fn doctor_names_locks_of_git_with_their_age_and_removes_none() {
    let env = done();
    env.git(["worktree", "add", "--quiet", "../linked"]).success();
    let names = [
        "index.lock",
        "HEAD.lock",
        "config.lock",
        "shallow.lock",
        "worktrees/linked/index.lock",
        "objects/info/commit-graph.lock",
    ];
    for name in names {
        let lock = leave(&env, name);
        let output = env.handoff(["doctor", "--fix"]).exit(3);
        let lock_name = display_path(&lock);
        let problem = format!(
            "problem: {lock_name}, 2 h old, locks what it is named after: a git command that was killed left it\n  \
             rm {lock_name}   # if no git command runs here, nor an editor that one opened; then the same command again\n"
        );
        assert_eq!(output.stdout, problem);
        assert!(lock.exists(), "{output}");
        fs::remove_file(&lock).unwrap();
    }
    env.handoff(["doctor"]).success();
    // One that is young may be of a command that goes on.
    let lock = leave(&env, "index.lock");
    File::open(&lock).unwrap().set_modified(SystemTime::now() - Duration::from_secs(600)).unwrap();
    let output = env.handoff(["doctor"]).exit(0);
    insta::assert_snapshot!(find_line(&output.stdout, "note: "), @"note: $TEST/repo/.git/index.lock, 10 min old, locks what it is named after: a git command that was killed left it");
    // One of refs goes when it is old.
    let second_lock = leave(&env, "refs/heads/main.lock");
    let doctor_output = env.handoff(["doctor", "--fix"]).exit(0);
    assert!(!second_lock.exists(), "{doctor_output}");
    insta::assert_snapshot!(doctor_output.stdout, @"
    mended: $TEST/repo/.git/refs/heads/main.lock, 2 h old, was left by a process that died, and locks what it is named after
    note: $TEST/repo/.git/index.lock, 10 min old, locks what it is named after: a git command that was killed left it
      rm $TEST/repo/.git/index.lock   # if no git command runs here, nor an editor that one opened; then the same command again
    ");
}
