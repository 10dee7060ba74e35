//! Runs of an old key that are pushed and archived after a rotation: their logs need that key.

use serde_json::{Value, json};

use super::{RUN, shared};
use crate::common::Environment;

/// The key of the tests, which made the run.
const OLD: &str = "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg";

/// Configures another key; the old one lies in `~/.ssh`.
fn rotate(env: &Environment) {
    let keys = "mkdir ../home/.ssh && cp ../home/signing_key ../home/.ssh/old && ssh-keygen -y -f ../home/.ssh/old >../home/.ssh/old.pub &&
        ssh-keygen -q -t ed25519 -N '' -f ../home/.ssh/new && git config handoff.signingKey \"$(realpath ../home/.ssh/new)\"";
    env.shell("repo", keys).success();
}

fn warning(remote: &str) -> String {
    format!(
        "warning: no log names {RUN}: only the key {OLD} can write one\nhint: git -c handoff.signingKey=$TEST/home/.ssh/old handoff push {remote} {RUN}\n"
    )
}

/// Runs the hinted command, with a remote.
#[track_caller]
fn follow(env: &Environment) {
    let setting = format!("handoff.signingKey={}/home/.ssh/old", env.path().display());
    env.shell("repo", &format!("git -c {setting} handoff push origin {RUN}")).success();
}

#[test]
fn a_push_names_the_runs_whose_log_needs_the_old_key() {
    let env = shared();
    rotate(&env);
    env.shell("repo", "echo x | git handoff checkpoint mine --state -").success();
    for names in [&["--dry-run", "origin", RUN][..], &["origin", RUN], &["origin", "--all"]] {
        let pushed = env.handoff([&["push"], names].concat()).exit(0);
        assert_eq!(pushed.stderr.replace("nothing was pushed: --dry-run\n", ""), warning("origin"), "{names:?}");
    }
    let answer: Value = serde_json::from_str(&env.handoff(["push", "origin", RUN, "--json"]).exit(0).stdout).unwrap();
    assert_eq!(answer["unwritten"], json!([{"kind": "run", "name": RUN, "key": OLD}]));
    follow(&env);
    let pushed = env.handoff(["push", "origin", "--all"]).exit(0);
    assert_eq!(pushed.stderr, "the remote has everything already\n");
}

#[test]
fn a_run_that_was_pushed_before_needs_no_key() {
    let env = shared();
    env.handoff(["push", "origin", RUN]).success();
    rotate(&env);
    let pushed = env.handoff(["push", "origin", "--all"]).exit(0);
    assert_eq!(pushed.stderr, "the remote has everything already\n");
    // At another place, no log names it.
    env.git_in(".", ["init", "--quiet", "--bare", "second"]).success();
    env.shell("repo", "rm -r ../home/.ssh/old*").success();
    env.git([
        "update-ref",
        "-d",
        env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs/*.*"]).success().trim(),
    ])
    .success();
    let pushed_elsewhere = env.handoff(["push", "../second", RUN]).exit(0);
    let expected = warning("$TEST/second").replace("$TEST/home/.ssh/old", "KEY-FILE");
    assert_eq!(pushed_elsewhere.stderr, expected);
    // At the first, another clone's log does, which is not here.
    let pushed_again = env.handoff(["push", "origin", RUN]).exit(0);
    assert_eq!(pushed_again.stderr, "the remote has everything already\n");
}

#[test]
fn an_archive_names_them_too() {
    let env = shared();
    rotate(&env);
    let archived = env.handoff(["archive", RUN]).exit(0);
    assert!(archived.stderr.ends_with(&warning("REMOTE")), "{archived}");
    let pushed = env.handoff(["push", "origin", "--all"]).exit(0);
    assert_eq!(pushed.stderr, warning("origin"));
    follow(&env);
    let second_pushed = env.handoff(["push", "origin", "--all"]).exit(0);
    assert_eq!(second_pushed.stderr, "the remote has everything already\n");
    env.handoff(["verify", RUN]).success();
}
