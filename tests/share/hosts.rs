//! Hosts that take less of a push than git's own server does, and what helps where one refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::server::{self, Request};
use super::{RUN, clone, refs, shared};
use crate::common::Environment;
use crate::common::report::find_line;

/// Makes the hub run a script before it moves refs.
fn hook(env: &Environment, name: &str, script: &str) {
    env.write(&format!("hub/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(env.path().join("hub/hooks").join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Refuses pushes of more than one ref.
const ONE_REF: &str = "n=$(wc -l); [ $n -le 1 ] || { echo 'a push may update one reference at most' >&2; exit 1; }";

/// An environment with three finished runs.
fn three() -> Environment {
    let env = shared();
    for id in ["second", "third"] {
        let item = r#"{"id":"a","executor":"command","inputs":{"command":"true"}}"#;
        env.write("repo/more.json", &format!(r#"{{"id":"{id}","items":[{item}]}}"#));
        env.handoff(["run", "more.json"]).success();
    }
    env
}

fn names(env: &Environment) -> Vec<String> {
    let refs = env.git_in("hub", ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/handoff"]).success();
    refs.lines().map(|name| name.split("SHA256").next().unwrap().to_owned()).collect()
}

const ALL: [&str; 4] = ["logs/", "runs/handoff-dag-1", "runs/second", "runs/third"];

#[test]
fn a_host_that_takes_one_ref_a_push_gets_the_log_and_then_each_run() {
    for atomic in ["true", "false"] {
        let env = three();
        env.git_in("hub", ["config", "receive.advertiseAtomic", atomic]).success();
        hook(&env, "pre-receive", ONE_REF);
        hook(&env, "post-receive", "while read o n r; do echo $r >>order; done");
        let pushed = env.handoff(["push", "--all"]).success();
        assert_eq!(pushed.matches("new  run").count(), 3, "{pushed}");
        assert_eq!(names(&env), ALL);
        let order = fs::read_to_string(env.path().join("hub/order")).unwrap();
        assert!(order.starts_with("refs/handoff/logs/"), "{order}");
        clone(&env, "clone");
        env.handoff_in("clone", ["fetch"]).success();
        env.handoff_in("clone", ["verify", "origin/second"]).success();
        assert!(env.handoff(["push", "--all"]).success().is_empty());
    }
}

#[test]
fn a_host_that_takes_two_refs_a_push_gets_everything() {
    let env = three();
    hook(&env, "pre-receive", &ONE_REF.replace("-le 1", "-le 2"));
    env.handoff(["push", "--all"]).success();
    assert_eq!(names(&env), ALL);
}

#[test]
fn one_run_that_is_refused_keeps_no_other_back_where_each_goes_alone() {
    let env = three();
    let refuses = "while read o n r; do case $r in */second) echo 'no second' >&2; exit 1;; esac; n=$((n+1)); done";
    hook(&env, "pre-receive", &format!("cat >in; {ONE_REF} <in; exec <in; {}", refuses.replace("; n=$((n+1))", "")));
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/handoff/runs/second [remote rejected] (pre-receive hook declined); it took refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd, refs/handoff/runs/handoff-dag-1, refs/handoff/runs/third
    caused by: no second
    hint: git handoff push origin --all --as-branch handoff   # if the host takes branches alone; else do what it says above
    ");
    assert_eq!(names(&env), ["logs/", "runs/handoff-dag-1", "runs/third"]);
}

#[test]
fn no_run_goes_without_its_log_where_the_host_does_not_take_all_or_none() {
    for (setting, value) in [("receive.advertiseAtomic", "false"), ("receive.advertiseAtomic", "true")] {
        let env = three();
        env.git_in("hub", ["config", setting, value]).success();
        hook(&env, "update", "case $1 in refs/handoff/logs/*) echo 'no logs' >&2; exit 1;; esac");
        let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
        let log = "refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (hook declined)";
        let run = |run| format!("refs/handoff/runs/{run} [remote rejected] (atomic push failure), ");
        let runs = if value == "true" { [RUN, "second", "third"].map(run).concat() } else { String::new() };
        assert_eq!(find_line(&stderr, "error: "), format!("error: the remote refused {runs}{log}"));
        assert!(stderr.lines().any(|line| line == "caused by: no logs"), "{stderr}");
        assert_eq!(refs(&env, "hub"), "", "{value}");
    }
}

#[test]
fn push_stops_after_the_first_refused_ref() {
    let env = three();
    hook(&env, "pre-receive", "echo x >>asked; echo 'branches and tags alone' >&2; exit 1");
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/handoff/runs/handoff-dag-1 [remote rejected] (pre-receive hook declined), refs/handoff/runs/second [remote rejected] (pre-receive hook declined), refs/handoff/runs/third [remote rejected] (pre-receive hook declined), refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (pre-receive hook declined)
    caused by: branches and tags alone
    hint: git handoff push origin --all --as-branch handoff   # or in a file: git handoff bundle --all --output runs.bundle
    ");
    assert_eq!(fs::read_to_string(env.path().join("hub/asked")).unwrap().lines().count(), 2);
}

#[test]
fn hook_messages_get_matching_hints() {
    let env = shared();
    let as_branch = "hint: git handoff push origin handoff-dag-1 --as-branch handoff   # ";
    let bundle = format!("{as_branch}or in a file: git handoff bundle --all --output runs.bundle");
    let rights = "hint: git remote set-url --push origin URL   # with an account, key or token that may write there";
    let less = "hint: git handoff push origin RUN   # one run a push, without --transcripts; or the host must raise its \
                limit";
    let protected = "hint: git handoff push origin handoff-dag-1 --as-branch PREFIX   # a prefix that the host does not \
                     protect; or have its owner allow it";
    for (words, hint) in [
        ("only branches may be pushed here", bundle.clone()),
        ("PermissionDenied: branch:refs/handoff/runs/one is illegal", bundle),
        (
            "ticket number is missing",
            format!("{as_branch}if the host takes branches alone; else do what it says above"),
        ),
        ("GitLab: You are not allowed to push code to this project.", rights.into()),
        ("ERROR: The key you are authenticating with has been marked as read only.", rights.into()),
        ("GitLab: You are not allowed to push code to protected branches on this project.", protected.into()),
        ("error: GH006: Protected branch update failed", protected.into()),
        ("error: GH013: Repository rule violations found", protected.into()),
        ("error: File x is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB", less.into()),
        (
            "fatal: write error: No space left on device",
            "hint: ask the owner of the host, which could not write there; then push again".into(),
        ),
    ] {
        hook(&env, "pre-receive", &format!("cat >/dev/null; echo \"{words}\" >&2; exit 1"));
        let stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
        assert_eq!(find_line(&stderr, "hint: "), hint, "{words}");
    }
    // Where branches are refused as well, another name is no way out.
    hook(&env, "pre-receive", "echo 'ticket number is missing' >&2; exit 1");
    let stderr = env.handoff(["push", "origin", RUN, "--as-branch", "handoff"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/heads/handoff/runs/handoff-dag-1 [remote rejected] (pre-receive hook declined), refs/heads/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (pre-receive hook declined)
    caused by: ticket number is missing
    hint: git handoff bundle --all --output runs.bundle
    ");
}

#[test]
fn object_checks_and_size_limits_get_own_hints() {
    let env = shared();
    env.git_in("hub", ["config", "receive.maxInputSize", "100"]).success();
    let stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff push origin RUN   # one run a push, without --transcripts; or the host must raise its limit");
    env.git_in("hub", ["config", "--unset", "receive.maxInputSize"]).success();
    env.git_in("hub", ["config", "uploadpack.hideRefs", "refs/handoff"]).success();
    let push_stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
    insta::assert_snapshot!(push_stderr, @"
    error: refs/handoff/runs/handoff-dag-1 was pushed as dac5fe1608cb204940f9260e9813a8705af13135, but the remote shows nothing
    hint: git handoff push origin handoff-dag-1 --as-branch handoff   # the host does not show other refs than branches
    ");
}

/// A status, the requests that get it, and the hint.
type Case = (&'static str, fn(&Request) -> bool, &'static str);

#[test]
fn a_status_of_http_is_answered_by_a_hint_that_fits() {
    let env = shared();
    let sends = |request: &Request| request.method == "POST" && request.path.ends_with("/git-receive-pack");
    let asks = |request: &Request| request.query == "service=git-receive-pack";
    let any = |_: &Request| true;
    let less = "hint: git handoff push origin RUN   # one run a push, without --transcripts; or the host must raise its \
                limit";
    let later = "hint: the same command again, a little later";
    let as_branch = "hint: git handoff push origin handoff-dag-1 --as-branch handoff   # if it takes branches alone; or \
                     you lack the right to push there";
    let cases: [Case; 8] = [
        ("413 Request Entity Too Large", sends, less),
        ("502 Bad Gateway", sends, later),
        ("503 Service Unavailable", any, later),
        ("504 Gateway Timeout", asks, later),
        ("429 Too Many Requests", any, later),
        ("404 Not Found", any, "hint: git remote --verbose"),
        (
            "401 Unauthorized",
            any,
            "hint: git ls-remote origin   # asks for the credentials; a helper of git's can keep them",
        ),
        ("403 Forbidden", asks, as_branch),
    ];
    for (status, when, hint) in cases {
        let url = format!("{}/hub", server::serve_with(env.path(), status, when));
        env.git(["remote", "set-url", "origin", &url]).success();
        let stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
        assert_eq!(find_line(&stderr, "hint: "), hint, "{status}");
        assert_eq!(refs(&env, "hub"), "");
    }
}

#[test]
fn remote_of_another_user_gets_a_hint() {
    let env = shared();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    env.shell("", "chown -R 12345 hub").success();
    for command in [&["push", "origin", RUN][..], &["fetch"]] {
        let stderr = env.handoff(command).exit(1).stderr;
        assert!(stderr.contains("/hub"), "{stderr}");
        assert_eq!(
            find_line(&stderr, "hint: "),
            "hint: git config --global --add safe.directory ../hub   # if you trust its owner with all that you may do"
        );
    }
}

#[test]
fn refs_of_archived_runs_go_one_by_one_where_the_host_wants_that() {
    let env = three();
    hook(&env, "pre-receive", ONE_REF);
    env.handoff(["push", "--all"]).success();
    env.handoff(["archive", "second", "third"]).success();
    let output = env.handoff(["push", "--all"]).exit(0);
    insta::assert_snapshot!(output, @"
    archived  run      second
    archived  run      third
    new       archive  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.1e5ed4849961
    ");
    assert_eq!(names(&env), ["archives/", "logs/", "runs/handoff-dag-1"]);
}

#[test]
fn names_that_are_too_long_are_no_shorter_as_branches() {
    let env = shared();
    hook(&env, "update", "[ ${#1} -le 60 ] || { echo \"ref name too long (${#1})\" >&2; exit 1; }");
    let stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/handoff/runs/handoff-dag-1 [remote rejected] (atomic push failure), refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (hook declined)
    caused by: ref name too long (85)
    caused by: error: hook declined to update refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd
    hint: git handoff bundle --all --output runs.bundle
    ");
}
