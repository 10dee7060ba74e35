//! Refusals by a push and by a remote.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::server::{self, Request};
use super::{RUN, RUN_REF, clone, pushed, refs, shared};
use crate::common::report::find_line;
use crate::common::{Environment, assert_output};

/// Makes the hub run a script before it moves a ref.
fn hook(env: &Environment, name: &str, script: &str) {
    env.write(&format!("hub/hooks/{name}"), script);
    fs::set_permissions(env.path().join("hub/hooks").join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

const ONLY_BRANCHES: &str =
    "#!/bin/sh\ncase $1 in refs/heads/*) ;; *) echo \"only branches may be pushed here\" >&2; exit 1;; esac\n";

#[test]
fn push_rejects_a_diverged_run_with_both_heads() {
    let env = pushed();
    // The remote's run was replaced by one with the same beginning.
    let ours = env.git(["rev-parse", RUN_REF]).success();
    env.git_in("hub", ["update-ref", RUN_REF, &format!("{}^", ours.trim())]).success();
    // One that is merely behind is brought forward.
    insta::assert_snapshot!(env.handoff(["push", "--all"]).exit(0).stdout, @"updated  run  handoff-dag-1");
    let other =
        env.git(["commit-tree", &format!("{RUN_REF}^{{tree}}"), "-p", &format!("{RUN_REF}^"), "-m", "x"]).success();
    env.git(["push", "--quiet", "--force", "origin", &format!("{}:{RUN_REF}", other.trim())]).success();
    let before = refs(&env, "hub");
    assert_output!("push_diverged", env.handoff(["push", "--all"]).exit(1));
    assert_output!("push_diverged_json", env.handoff(["push", "--all", "--json"]).exit(1));
    assert_eq!(refs(&env, "hub"), before);
}

#[test]
fn a_head_that_is_not_here_is_refused_as_well() {
    let env = pushed();
    let other = env.git_in("hub", ["rev-parse", "main^{tree}"]).success();
    let other = env.git_in("hub", ["commit-tree", other.trim(), "-p", RUN_REF, "-m", "x"]).success();
    env.git_in("hub", ["update-ref", RUN_REF, other.trim()]).success();
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: run "handoff-dag-1" is at dac5fe1608cb204940f9260e9813a8705af13135 here and at 7f52fa23974c86ddabf533831b3cf975eefc794f on the remote, which is not here; nothing was pushed
    hint: git handoff fetch origin handoff-dag-1 && git handoff verify origin/handoff-dag-1   # if it is another person's: git handoff adopt-run handoff-dag-1 --id ID, and git handoff delete handoff-dag-1
    "#);
    // Once it was looked at, it is known to be none of ours; it stays, and keeps nothing else back.
    env.handoff(["fetch"]).ends(1);
    insta::assert_snapshot!(env.handoff(["push", "--all"]).exit(1).stderr, @r#"warning: run "handoff-dag-1" on origin is not sound: commit 7f52fa2: the commit is not an entry: the message is not a subject and an entry; ours was left out"#);
    assert!(refs(&env, "hub").contains(other.trim()));
}

#[test]
fn branch_only_host_gets_a_workaround() {
    let env = shared();
    hook(&env, "update", ONLY_BRANCHES);
    assert_output!("push_declined", env.handoff(["push", "--all"]).exit(1));
    assert_eq!(refs(&env, "hub"), "");
    // The user's own push is not concerned.
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Mine"]).success();
    env.git(["push", "--quiet"]).success();
    assert_output!(env.handoff(["push", "origin", "--all", "--as-branch", "team/handoff"]), @"
    new  run  handoff-dag-1
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.e54ff5b564bd
    ");
    assert_output!(env.git_in("hub", ["for-each-ref", "--format=%(refname)", "refs/heads/team"]), @"
    refs/heads/team/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd
    refs/heads/team/handoff/runs/handoff-dag-1
    ");
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch", "--as-branch", "team/handoff"]).success();
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
}

/// Whether this sends refs outside branches, as a proxy before a host looks at it: their names
/// stand at the head of a push.
fn sends_other_refs(request: &Request) -> bool {
    let sends = request.method == "POST" && request.path.ends_with("/git-receive-pack");
    sends && request.body.windows(13).any(|bytes| bytes == b" refs/handoff")
}

#[test]
fn a_proxy_that_forbids_other_refs_than_branches_is_worked_around() {
    let env = shared();
    let url = format!("{}/hub", server::serve_but(env.path(), sends_other_refs));
    env.git(["remote", "set-url", "origin", &url]).success();
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr.replace(&url, "URL");
    assert_output!(stderr, @"
    error: origin forbids the push (HTTP 403)
    caused by: `git push` failed with exit code 1: error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403
      send-pack: unexpected disconnect while reading sideband packet
      fatal: the remote end hung up unexpectedly
    hint: git handoff push origin --all --as-branch handoff   # if it takes branches alone; or you lack the right to push there
    ");
    assert_eq!(refs(&env, "hub"), "");
    let answer: Value = serde_json::from_str(&env.handoff(["push", "origin", RUN, "--json"]).exit(1).stderr).unwrap();
    assert_eq!(answer["code"], "forbidden", "{answer}");
    assert!(answer["hint"].as_str().unwrap().starts_with("git handoff push origin handoff-dag-1 --as-branch handoff"));
    env.handoff(["push", "origin", RUN, "--as-branch", "handoff"]).success();
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch", "--as-branch", "handoff"]).success();
}

#[test]
fn forbidden_push_and_forbidden_read_differ() {
    let env = shared();
    let origin = |forbids| {
        let url = format!("{}/hub", server::serve_but(env.path(), forbids));
        env.git(["remote", "set-url", "origin", &url]).success();
    };
    origin(|request: &Request| request.query == "service=git-receive-pack");
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff push origin --all --as-branch handoff   # if it takes branches alone; or you lack the right to push there");
    let push_stderr = env.handoff(["push", "--all", "--as-branch", "handoff"]).exit(1).stderr;
    insta::assert_snapshot!(find_line(&push_stderr, "error: "), @"error: origin forbids the push (HTTP 403)");
    insta::assert_snapshot!(find_line(&push_stderr, "hint: "), @"hint: git handoff bundle --all --output runs.bundle");
    env.handoff(["fetch"]).success();
    // Without read access, branches do not help.
    origin(|_| true);
    for verb in [&["push", "--all"][..], &["fetch"]] {
        let read_stderr = env.handoff(verb).exit(1).stderr;
        assert!(read_stderr.contains("error: 403"), "{read_stderr}");
        insta::allow_duplicates! { insta::assert_snapshot!(find_line(&read_stderr, "error: "), @"error: origin could not be read or written") }
        assert!(!read_stderr.lines().any(|line| line.starts_with("hint: ")), "{read_stderr}");
    }
}

#[test]
fn remote_that_hides_refs_is_reported() {
    let env = shared();
    env.git_in("hub", ["config", "receive.hideRefs", "refs/handoff"]).success();
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/handoff/runs/handoff-dag-1 [remote rejected] (deny updating a hidden ref), refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (deny updating a hidden ref)
    hint: git handoff push origin --all --as-branch handoff   # or in a file: git handoff bundle --all --output runs.bundle
    ");
}

#[test]
fn a_stale_lock_at_the_remote_is_no_reason_to_push_elsewhere() {
    let env = shared();
    let lock = env.path().join("hub/refs/handoff/runs/handoff-dag-1.lock");
    env.write("hub/refs/handoff/runs/handoff-dag-1.lock", "");
    let stderr = env.handoff(["push", "--all"]).exit(5).stderr;
    assert!(stderr.contains("cannot lock ref") && stderr.contains("handoff-dag-1.lock"), "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff push origin --all   # again; if that stays: git handoff doctor --fix, in the remote's repository");
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(61 * 60);
    fs::File::open(&lock).unwrap().set_modified(then).unwrap();
    env.handoff_in("hub", ["doctor", "--fix"]).success();
    assert!(!lock.exists());
    env.handoff(["push", "--all"]).success();
}

#[test]
fn a_remote_without_atomic_pushes_is_pushed_to_all_the_same() {
    let env = shared();
    env.git_in("hub", ["config", "receive.advertiseAtomic", "false"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(refs(&env, "hub").lines().count(), 2);
}

#[test]
fn a_remote_that_lies_about_what_it_took_is_found_out() {
    let env = shared();
    hook(&env, "post-receive", "#!/bin/sh\ngit update-ref -d refs/handoff/runs/handoff-dag-1\n");
    let stderr = env.handoff(["push", "--all"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: refs/handoff/runs/handoff-dag-1 was pushed as dac5fe1608cb204940f9260e9813a8705af13135, but the remote shows nothing
    hint: git handoff push origin --all --as-branch handoff   # the host does not show other refs than branches
    ");
}

#[test]
fn hooks_of_ours_do_not_run() {
    let env = shared();
    env.write("repo/.git/hooks/pre-push", "#!/bin/sh\nexit 1\n");
    fs::set_permissions(env.repo().join(".git/hooks/pre-push"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(env.git(["push", "origin", "main:other"]).status, Some(1));
    env.handoff(["push", "--all"]).success();
}

#[test]
fn unknown_remote_and_unknown_run_differ() {
    let env = shared();
    assert_output!(env.handoff(["push", "handoff-dag-1"]).exit(1), @r#"
    ------- stderr -------
    error: "handoff-dag-1" is neither a remote of this repository nor a URL nor the path of a repository
    hint: git handoff push origin handoff-dag-1
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["push", "origin", "other"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run or thread "other" here
    hint: git handoff runs && git handoff thread list
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["fetch", "origin", "other"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run or thread "other" on origin
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["push", "--all", "--as-branch", "a..b"]).exit(2), @r#"
    ------- stderr -------
    error: "a..b" cannot begin the name of a branch
    [exit status: 2]
    "#);
    env.git(["remote", "remove", "origin"]).success();
    assert_output!(env.handoff(["push", "--all"]).exit(1), @r#"
    ------- stderr -------
    error: "origin" is neither a remote of this repository nor a URL nor the path of a repository
    hint: git remote add origin URL
    [exit status: 1]
    "#);
}

#[test]
fn push_sends_only_listed_runs() {
    let env = shared();
    assert_output!(env.handoff(["push"]).exit(2), @r"
    ------- stderr -------
    error: say what to push, by name or with --all; what is here: 1 run
    hint: git handoff push origin --all
    [exit status: 2]
    ");
    let failure = env.handoff(["push", "--json"]).exit(2);
    let failure: Value = serde_json::from_str(&failure.stderr).unwrap();
    assert_eq!((&failure["code"], &failure["hint"]), (&"usage".into(), &"git handoff push origin --all".into()));
    env.write("state", "gathered");
    env.handoff(["checkpoint", "research", "--state", "../state"]).success();
    for (arguments, remote) in [
        (&["push", "origin"][..], "origin"),
        (&["push", "--dry-run"], "origin"),
        (&["push", "--transcripts"], "origin"),
        (&["push", "../hub", "--as-branch", "team"], "../hub"),
    ] {
        let usage_stderr = env.handoff(arguments).exit(2).stderr;
        assert_eq!(
            find_line(&usage_stderr, "error: "),
            "error: say what to push, by name or with --all; what is here: 1 run and 1 thread"
        );
        assert!(usage_stderr.ends_with(&format!("hint: git handoff push {remote} --all\n")), "{usage_stderr}");
        assert_eq!(refs(&env, "hub") + &env.git_in("hub", ["branch", "--list", "team/*"]).success(), "");
    }
    env.handoff(["push", "origin", "research"]).success();
    assert!(!refs(&env, "hub").contains("runs/"), "what is named goes alone");
    env.handoff(["push", "--all"]).success();
    assert!(refs(&env, "hub").contains(RUN_REF));
    for name in [RUN_REF, "refs/handoff/threads/research"] {
        env.git(["update-ref", "-d", name]).success();
    }
    insta::assert_snapshot!(env.handoff(["push"]).exit(2).stderr, @"
    error: say what to push, by name or with --all; what is here: no runs and no threads
    hint: git handoff push origin --all
    ");
}

#[test]
fn hint_repeats_the_arguments() {
    let env = shared();
    hook(&env, "update", ONLY_BRANCHES);
    let stderr = env.handoff(["push", "origin", RUN]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the remote refused refs/handoff/runs/handoff-dag-1 [remote rejected] (hook declined), refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd [remote rejected] (atomic push failure)
    caused by: only branches may be pushed here
    caused by: error: hook declined to update refs/handoff/runs/handoff-dag-1
    hint: git handoff push origin handoff-dag-1 --as-branch handoff   # or in a file: git handoff bundle --all --output runs.bundle
    ");
}

#[test]
fn urls_run_no_transport_helper() {
    let env = shared();
    for arguments in [&["push", "--all"][..], &["fetch"]] {
        let url = format!("ext::sh -c \"touch {}/pwned\"", env.path().display());
        let stderr = env.handoff(arguments.iter().copied().chain(["--", url.as_str()])).exit(1).stderr;
        assert!(stderr.contains("transport 'ext' not allowed"), "{stderr}");
        let option = arguments.iter().copied().chain(["--", "--upload-pack=touch pwned"]);
        assert_eq!(
            env.handoff(option).exit(1).stderr,
            "error: \"--upload-pack=touch pwned\" is neither a remote of this repository nor a URL nor the path of a repository\nhint: git remote --verbose\n"
        );
    }
    // The user's own restrictions on transports stay in force.
    let output = env
        .command(crate::common::program_path(), "repo")
        .env("GIT_ALLOW_PROTOCOL", "https")
        .args(["push", "--all"])
        .output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(stderr.contains("transport 'file' not allowed"), "{stderr}");
    assert!(!env.path().join("pwned").exists() && !env.repo().join("pwned").exists());
}

#[test]
fn push_reports_git_settings_that_break_it() {
    let env = shared();
    let hint = |output: &crate::common::Output| -> Value {
        serde_json::from_str::<Value>(&output.stderr).unwrap()["hint"].clone()
    };
    env.git(["config", "push.pushOption", "ci.skip"]).success();
    let refused = env.handoff(["--json", "push", "--all"]).exit(1);
    assert_eq!(
        hint(&refused),
        "git -c push.pushOption= handoff push   # for this once; or for good: git config --unset-all push.pushOption"
    );
    env.git(["config", "remote.origin.mirror", "true"]).success();
    env.git_in("hub", ["config", "receive.advertisePushOptions", "true"]).success();
    let push_refused = env.handoff(["--json", "push", "--all"]).exit(1);
    assert_eq!(hint(&push_refused), "git config --unset remote.origin.mirror");
    assert_eq!(refs(&env, "hub"), "");
    // Both hints are ways out.
    env.git(["config", "--unset", "remote.origin.mirror"]).success();
    env.git_in("hub", ["config", "receive.advertisePushOptions", "false"]).success();
    env.git(["-c", "push.pushOption=", "handoff", "push", "--all"]).success();
    assert!(refs(&env, "hub").contains(RUN_REF));
}
