//! The snippets of docs/how-to/gate-ci-on-a-run.md, run as they stand there.

use std::fs;
use std::path::Path;

use super::{RUN, pushed};
use crate::common::Environment;

/// Returns the shell blocks of the document: the gate, what it may insist on, the snapshot, the
/// gate of commits.
fn snippets() -> [String; 4] {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/gate-ci-on-a-run.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect::<Vec<_>>().try_into().unwrap()
}

fn gate(env: &Environment, signers: &str, base: &str) -> Option<i32> {
    gate_of(env, RUN, signers, base)
}

fn gate_of(env: &Environment, run: &str, signers: &str, base: &str) -> Option<i32> {
    let mut command = env.command("sh", "clone");
    command.env("HANDOFF_SIGNERS", signers).env("RUN", run).env("BASE", base).env("RUNNER_TEMP", env.path());
    command.args(["-e", "-c", &snippets()[..2].concat()]).output().unwrap().status.code()
}

#[test]
fn the_gate_opens_for_an_intact_run_by_a_trusted_key_only() {
    let env = pushed();
    let signers = env.handoff(["key"]).success();
    let base = env.git(["rev-parse", "main"]).success();
    assert_eq!(gate(&env, signers.trim_end(), base.trim()), Some(0));
    assert!(fs::read_to_string(env.path().join("verify.json")).unwrap().contains("git-handoff.verify/1"));
    let stranger = env.handoff_in("clone", ["key"]).success();
    assert_eq!(gate(&env, stranger.trim_end(), base.trim()), Some(3));
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Later"]).success();
    let later = env.git(["rev-parse", "main"]).success();
    env.git(["push", "--quiet"]).success();
    env.git_in("clone", ["fetch", "--quiet"]).success();
    assert_eq!(gate(&env, signers.trim_end(), later.trim()), Some(3));
    env.git_in("hub", ["update-ref", super::RUN_REF, &format!("{}^", super::RUN_REF)]).success();
    assert_eq!(gate(&env, signers.trim_end(), base.trim()), Some(1));
}

#[test]
fn the_gate_stays_shut_for_a_run_that_is_red_or_not_all_done() {
    let env = pushed();
    let (signers, base) = (env.handoff(["key"]).success(), env.git(["rev-parse", "main"]).success());
    env.git(["config", "handoff.executor.red.command", "echo x >new.txt"]).success();
    env.git(["config", "handoff.executor.red.verify", "false"]).success();
    env.git(["config", "handoff.executor.red.onVerifyFail", "keep"]).success();
    for (run, executor) in [("red", "red"), ("failed", "command")] {
        let item = serde_json::json!({ "id": "a", "executor": executor, "inputs": { "command": "false" } });
        env.write("p.json", &serde_json::json!({ "id": run, "items": [item] }).to_string());
        env.handoff(["run", "--close", "../p.json"]).ends(4);
        env.handoff(["push", "--all"]).success();
        assert_eq!(gate_of(&env, run, signers.trim_end(), base.trim()), Some(4), "{run}");
        let answer = fs::read_to_string(env.path().join("verify.json")).unwrap();
        assert!(answer.contains(r#""intact":true"#) && answer.contains(&format!(r#""{run}":1"#)), "{answer}");
    }
}

/// Returns the lines of a list in the YAML of docs/how-to/use-gitlab.md, as a script.
fn gitlab(list: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/use-gitlab.md")).unwrap();
    let lines = text.lines().skip_while(|line| line.trim() != format!("{list}:")).skip(1);
    let script: String = lines.map_while(|line| Some(format!("{}\n", line.strip_prefix("    - ")?))).collect();
    assert!(script.starts_with("git handoff "), "{text}");
    script
}

#[test]
fn the_job_of_gitlab_fails_for_commits_that_no_run_handed_over() {
    let env = pushed();
    env.write("signers", &env.handoff(["key"]).success());
    let base = env.git(["rev-parse", "main"]).success();
    env.handoff(["apply", RUN, "--branch", "feature"]).ends(0);
    let job = || {
        env.git(["push", "--quiet", "--force", "origin", "feature"]).success();
        env.git_in("clone", ["fetch", "--quiet"]).success();
        env.git_in("clone", ["checkout", "--quiet", "origin/feature"]).success();
        let mut command = env.command("sh", "clone");
        command.env("HANDOFF_SIGNERS", env.path().join("signers")).env("RUN", RUN);
        command.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.trim());
        let script = format!("{}{}", gitlab("script"), gitlab("after_script"));
        command.args(["-e", "-c", &script]).output().unwrap().status.code()
    };
    assert_eq!(job(), Some(0));
    assert!(fs::read_to_string(env.path().join("clone/handoff.xml")).unwrap().contains("<testcase "));
    env.git(["checkout", "--quiet", "feature"]).success();
    env.write("repo/more.txt", "more\n");
    env.git(["add", "more.txt"]).success();
    env.git(["commit", "--quiet", "--amend", "--no-edit"]).success();
    assert_eq!(job(), Some(3));
}

#[test]
fn the_snapshot_differs_where_a_plan_comes_to_something_else() {
    let env = pushed();
    env.write("signers", &env.handoff(["key"]).success());
    env.handoff_in("clone", ["fetch"]).success();
    let run = format!("origin/{RUN}");
    let snapshot =
        env.handoff_in("clone", ["verify", "--format", "snapshot", "--signers", "../signers", &run]).success();
    let differs = |content: &str| {
        env.write("clone/verify.snapshot", content);
        let mut command = env.command("sh", "clone");
        command.env("RUN", RUN).env("RUNNER_TEMP", env.path()).args(["-e", "-c", &snippets()[2]]);
        command.output().unwrap().status.code()
    };
    assert_eq!(differs(&snapshot), Some(0));
    assert_eq!(differs(&snapshot.replace("done", "red")), Some(1));
}

#[test]
fn the_gate_of_commits_opens_for_what_items_handed_over() {
    let env = pushed();
    let signers = env.handoff(["key"]).success();
    env.handoff(["apply", RUN, "--branch", "feature"]).ends(0);
    let gate = || {
        env.git(["push", "--quiet", "--force", "origin", "feature"]).success();
        env.git_in("clone", ["fetch", "--quiet"]).success();
        let mut command = env.command("sh", "clone");
        command.env("HEAD", "origin/feature").env("RUNNER_TEMP", env.path());
        command.args(["-e", "-c", &snippets()[3]]).output().unwrap().status.code()
    };
    env.write("signers", &signers);
    assert_eq!(gate(), Some(0));
    assert!(fs::read_to_string(env.path().join("commits.json")).unwrap().contains("git-handoff.verify-commits/1"));
    env.git(["checkout", "--quiet", "feature"]).success();
    env.write("repo/more.txt", "more\n");
    env.git(["add", "more.txt"]).success();
    env.git(["commit", "--quiet", "--amend", "--no-edit"]).success();
    assert_eq!(gate(), Some(3));
}
