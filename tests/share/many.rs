//! The cost of sharing thousands of runs, in operations rather than time.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::{RUN, refs, shared};
use crate::common::Environment;

/// More than went in one call when every ref was named on the command line.
const MANY: usize = 1_200;

/// Adds refs for the example's run; a push does not inspect new refs.
fn multiply(env: &Environment) {
    let head = env.git(["rev-parse", super::RUN_REF]).success();
    let mut lines = String::new();
    (0..MANY).for_each(|at| writeln!(lines, "create refs/handoff/runs/copy-{at} {}", head.trim()).unwrap());
    env.write("lines", &lines);
    env.shell("repo", "git update-ref --stdin < ../lines && git pack-refs --all").success();
}

/// Runs the program and returns the command lines of every git that was started, ours and the other
/// side's.
fn started(env: &Environment, args: &[&str]) -> Vec<Vec<String>> {
    let trace = env.path().join("trace");
    let mut command = env.command(crate::common::program_path(), "repo");
    let ended = command.args(args).env("GIT_TRACE2_EVENT", &trace).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let lines = fs::read_to_string(&trace).unwrap();
    fs::remove_file(trace).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let argv = |event: Value| serde_json::from_value(event["argv"].clone()).unwrap();
    events.filter(|event| event["event"] == "start").map(argv).collect()
}

fn count(started: &[Vec<String>], command: &str) -> usize {
    started.iter().filter(|argv| argv.iter().any(|word| word == command)).count()
}

#[test]
fn a_thousand_runs_are_pushed_by_one_pattern_and_nothing_new_by_none() {
    let env = shared();
    multiply(&env);
    let first = started(&env, &["push", "--all"]);
    assert_eq!((count(&first, "push"), count(&first, "ls-remote")), (1, 2), "{first:?}");
    let longest = first.iter().map(Vec::len).max().unwrap();
    assert!(longest < 40, "a call of git has {longest} words: refs are named one by one");
    let travels = |line: &&str| line.contains("/runs/") || line.contains("/logs/") && line.contains('.');
    let ours = refs(&env, "repo");
    let theirs = refs(&env, "hub");
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours.lines().filter(travels).collect::<Vec<_>>());
    let again = started(&env, &["push", "--all"]);
    assert_eq!((count(&again, "push"), count(&again, "ls-remote")), (0, 1), "{again:?}");
    // The pattern was replaced.
    assert_eq!(env.git(["for-each-ref", "refs/worktree"]).success(), "");
}

#[test]
fn push_from_a_linked_worktree_sends_only_requested_refs() {
    let env = shared();
    multiply(&env);
    env.git(["worktree", "add", "--quiet", "--detach", "../linked"]).success();
    env.git(["update-ref", "refs/worktree/private", "HEAD"]).success();
    env.git_in("linked", ["update-ref", "refs/bisect/bad", "HEAD"]).success();
    env.handoff_in("linked", ["push", "origin", RUN]).success();
    let names = refs(&env, "hub");
    let names: Vec<&str> = names.lines().filter_map(|line| line.split_once("refs/handoff/")).map(|(_, n)| n).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("logs/") && names[1] == format!("runs/{RUN}"), "{names:?}");
    let all = env.git_in("hub", ["for-each-ref", "--format=%(refname)"]).success();
    assert_eq!(all.lines().count(), 3, "{all}");
    assert_eq!(env.git_in("linked", ["for-each-ref", "refs/worktree"]).success(), "");
}
