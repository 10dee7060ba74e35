//! Invalid objects on a remote under our names, and what is pushed all the same.

use std::fmt::Write as _;

use git_handoff::model::digest::Digest;

use super::{json, refs};
use crate::common::report::{find_row, verdict};
use crate::common::{Environment, assert_output};
use crate::tamper::fetched::{By, Remote};

const SEALED: &str = "refs/handoff/runs/handoff-dag-1";

/// Submits and runs a plan of one item.
fn run(env: &Environment, name: &str) {
    let plan = format!(
        r#"{{"id": "{name}", "items": [{{"id": "a", "executor": "command", "inputs": {{"command": "true"}}}}]}}"#
    );
    env.write(&format!("repo/{name}.json"), &plan);
    env.handoff(["run", &format!("{name}.json")]).success();
}

/// A new clone finds the run anchored there.
fn anchored(env: &Environment, name: &str) {
    env.shell(".", "rm -rf fresh && git init --quiet fresh && git -C fresh remote add origin ../hub").success();
    env.git_in("fresh", ["config", "handoff.signingKey", ""]).success();
    env.handoff_in("fresh", ["fetch"]).ends(1);
    env.handoff_in("fresh", ["verify", &format!("origin/{name}")]).success();
}

#[test]
fn log_continues_next_to_foreign_entries() {
    let remote = Remote::new();
    let env = &remote.env;
    remote.garbage(&remote.log);
    run(env, "second");
    assert_output!("push_rival", env.handoff(["push", "--all"]));
    anchored(env, "second");
    // The new name is the log's own from now on, and can be taken from it in the same way.
    let logs = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let further = logs.lines().find(|name| name.contains('.')).expect("a log travels");
    assert_ne!(further, remote.log);
    remote.on_top(further, By::Stranger, |_| {});
    env.handoff(["fetch"]).ends(1);
    run(env, "third");
    let pushed = json(&env.handoff(["push", "--all", "--json"]).exit(0));
    assert!(pushed["unsound"][0]["instead"].is_string(), "{pushed}");
    anchored(env, "third");
    env.handoff(["push", "--all"]).success();
    env.handoff(["doctor"]).ends(0);
    env.handoff(["verify", "handoff-dag-1", "second", "third"]).success();
}

#[test]
fn a_crash_between_the_names_of_a_log_loses_nothing() {
    let remote = Remote::new();
    let env = &remote.env;
    remote.garbage(&remote.log);
    run(env, "second");
    env.handoff(["push", "--all"]).success();
    let travelling = || {
        let logs = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
        logs.lines().filter(|name| name.contains('.')).map(str::to_owned).collect::<Vec<_>>()
    };
    let further = travelling();
    assert_eq!(further.len(), 1);
    assert_ne!(further[0], remote.log);
    env.git(["update-ref", &remote.log, &further[0]]).success();
    run(env, "third");
    env.handoff(["push", "--all"]).success();
    anchored(env, "third");
    assert!(travelling().contains(&further[0]), "{:?}", travelling());
    env.handoff(["verify", "handoff-dag-1", "second", "third"]).success();
}

#[test]
fn nothing_of_it_is_needed_where_git_refuses_it() {
    let remote = Remote::new();
    let env = &remote.env;
    crate::tamper::fetched::unsound(&remote, &remote.log);
    run(env, "second");
    let output = env.handoff(["push", "origin", "second"]).exit(0);
    insta::assert_snapshot!(output.stderr, @r#"warning: log "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.af31cbdef700" on origin is not sound: git finds what it holds unsound: object e3919683bddac5cc1831f5ed86948b18f880587d: missingEmail: invalid author/committer line - missing email; ours goes on beside it, as "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.3f9c024a80e8""#);
    anchored(env, "second");
}

#[test]
fn an_anchor_gets_the_log_under_another_name() {
    let remote = Remote::new();
    let env = &remote.env;
    env.git_in(".", ["init", "--quiet", "--bare", "vault"]).success();
    env.handoff(["anchor", "add", "vault", "git", &format!("{}/vault", env.path().display())]).success();
    env.handoff(["anchor", "push"]).success();
    let log = env.git_in("vault", ["for-each-ref", "--format=%(refname)"]).success();
    let log = log.trim();
    let tree = env.git_in("vault", ["rev-parse", &format!("{log}^{{tree}}")]).success();
    let garbage = env.git_in("vault", ["commit-tree", tree.trim(), "-p", log, "-m", "x"]).success();
    env.git_in("vault", ["update-ref", log, garbage.trim()]).success();
    run(env, "second");
    env.handoff(["anchor", "push"]).success();
    assert_eq!(refs(env, "vault").lines().count(), 2);
}

#[test]
fn a_damaged_run_does_not_keep_the_others_back() {
    let remote = Remote::new();
    let env = &remote.env;
    remote.garbage(SEALED);
    env.handoff(["fetch"]).ends(1);
    run(env, "second");
    let output = env.handoff(["push", "--all"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"warning: run "handoff-dag-1" on origin is not sound: commit 519848d: the commit is not an entry: the message is not a subject and an entry; ours was left out"#);
    assert!(refs(env, "hub").contains("refs/handoff/runs/second"));
}

#[test]
fn no_foreign_log_takes_a_name_from_us() {
    let remote = Remote::new();
    let env = &remote.env;
    // A stranger's log names the run, and so does one built on ours.
    env.shell(".", "cp -R repo strangers && rm -r strangers/.git/refs/handoff strangers/.git/handoff").success();
    env.git_in("strangers", ["config", "handoff.signingKey", ""]).success();
    env.handoff_in("strangers", ["submit", "plan.json"]).success();
    env.git_in("strangers", ["push", "--quiet", "origin", "refs/handoff/logs/*"]).success();
    remote.garbage(&remote.log);
    env.git_in(".", ["clone", "--quiet", "hub", "third"]).success();
    let spec = "refs/handoff/logs/*:refs/handoff/remotes/origin/logs/*";
    env.git_in("third", ["fetch", "--quiet", "origin", spec]).success();
    env.shell(".", "cp -R repo/plan.json repo/.handoff third/").success();
    env.git_in("third", ["config", "include.path", "../.handoff/config"]).success();
    env.git_in("third", ["commit", "--quiet", "--allow-empty", "-m", "Start"]).success();
    env.git_in("third", ["config", "handoff.signingKey", ""]).success();
    env.handoff_in("third", ["submit", "plan.json"]).success();
    // Our key's log does, also under foreign entries.
    env.git_in("third", ["update-ref", "-d", SEALED]).success();
    env.git_in("third", ["config", "--unset", "handoff.signingKey"]).success();
    let output = env.handoff_in("third", ["submit", "plan.json"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    error: the id "handoff-dag-1" was used before: a log of your key names it, and its ref is gone
    hint: give the plan another id than "handoff-dag-1"
    "#);
}

/// Makes a ref of time stamps on the remote, of tokens that are named after what they hold, and
/// others.
fn stamp(env: &Environment, files: &[(&str, Option<&str>)]) {
    let mut lines = String::new();
    for (text, name) in files {
        env.write("token", text);
        let blob = env.git_in("hub", ["hash-object", "-w", "../token"]).success();
        let own = format!("{}.tst", Digest::compute(text.as_bytes()).hex());
        writeln!(lines, "100644 blob {}\t{}", blob.trim(), name.unwrap_or(&own)).unwrap();
    }
    env.write("tree", &lines);
    let tree = env.shell("hub", "git mktree < ../tree").success();
    env.git_in("hub", ["update-ref", "refs/handoff/stamps/handoff-dag-1", tree.trim()]).success();
}

fn stamps(env: &Environment, dir: &str, name: &str) -> Vec<String> {
    let listed = env.git_in(dir, ["ls-tree", "--name-only", name]).success();
    let of = |token: &str| format!("{}.tst", Digest::compute(token.as_bytes()).hex());
    let known = |label: &str| ["one", "two", "three"].into_iter().find(|token| of(token) == label).map(str::to_owned);
    let mut names: Vec<String> =
        listed.lines().map(|listed_name| known(listed_name).unwrap_or_else(|| listed_name.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn time_stamps_only_get_more() {
    const FETCHED: &str = "refs/handoff/remotes/origin/stamps/handoff-dag-1";
    let remote = Remote::new();
    let env = &remote.env;
    let file_name = format!("{}.tst", Digest::compute(b"three").hex());
    stamp(env, &[("one", None), ("false", Some(&file_name)), ("odd", Some("odd.tst"))]);
    env.handoff_in("clone", ["fetch"]).success();
    assert_eq!(stamps(env, "clone", FETCHED), ["one"]);
    stamp(env, &[]);
    env.handoff_in("clone", ["fetch"]).success();
    assert_eq!(stamps(env, "clone", FETCHED), ["one"]);
    stamp(env, &[("two", None), ("three", None)]);
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    assert!(fetched["refs"].as_array().unwrap().iter().any(|r| r["status"] == "updated"), "{fetched}");
    assert_eq!(stamps(env, "clone", FETCHED), ["one", "three", "two"]);
    // A push adds to what is there, and is not kept back by what is no tree.
    env.handoff(["fetch"]).success();
    env.git(["update-ref", "refs/handoff/stamps/handoff-dag-1", FETCHED]).success();
    stamp(env, &[("one", None), ("odd", Some("odd.tst"))]);
    env.handoff(["fetch"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(stamps(env, "hub", "refs/handoff/stamps/handoff-dag-1"), ["odd.tst", "one", "three", "two"]);
    remote.point("refs/handoff/stamps/handoff-dag-1", SEALED);
    env.handoff(["push", "--all"]).success();
    assert_eq!(stamps(env, "hub", "refs/handoff/stamps/handoff-dag-1"), ["three", "two"]);
}

#[test]
fn fetch_rejects_a_ref_advertised_twice() {
    let remote = Remote::new();
    let env = &remote.env;
    env.git_in("hub", ["pack-refs", "--all"]).success();
    let older = env.git_in("hub", ["rev-parse", &format!("{SEALED}^")]).success();
    let packed = std::fs::read_to_string(env.path().join("hub/packed-refs")).unwrap();
    let line = packed.lines().find(|line| line.ends_with(SEALED)).unwrap();
    let twice = packed.replace(line, &format!("{} {SEALED}\n{line}", older.trim()));
    env.write("hub/packed-refs", &twice);
    let listed = env.git_in("hub", ["ls-remote", "."]).success();
    assert_eq!(listed.lines().filter(|row| row.ends_with(SEALED)).count(), 2, "git shows both");
    env.shell(".", "git init --quiet fresh && git -C fresh remote add origin ../hub").success();
    let fetched = json(&env.handoff_in("fresh", ["fetch", "--json"]).exit(1));
    insta::assert_snapshot!(fetched.to_string(), @r#"{"blobs":0,"refs":[{"kind":"run","name":"handoff-dag-1","new":"b20ae1aaefc5cd02f611a6514fa58518cd3597de","old":null,"reason":"it is shown more than once, with different objects","ref":"refs/handoff/remotes/origin/runs/handoff-dag-1","status":"unsound"},{"kind":"run","name":"open","new":"2b46dc392169d6e8d10c18175d74fc4aae2323c7","old":null,"ref":"refs/handoff/remotes/origin/runs/open","status":"new"},{"kind":"thread","name":"research","new":"4bdf28621ccc71dd3028472ef5041b3bdccad607","old":null,"ref":"refs/handoff/remotes/origin/threads/research","status":"new"},{"kind":"log","name":"SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.af31cbdef700","new":"70c574ed52c31326f1c69e79415b9223689e00f4","old":null,"ref":"refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.af31cbdef700","status":"new"}],"remote":"origin","schema":"git-handoff.fetch/1","skipped":[],"vanished":[{"kind":"run","log":"refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.af31cbdef700","name":"handoff-dag-1","seen":false}]}"#);
    assert!(!refs(env, "fresh").contains("handoff-dag-1"));
}

#[test]
fn a_shallow_clone_takes_in_whole_chains() {
    let remote = Remote::new();
    let env = &remote.env;
    env.git(["push", "--quiet", "origin", "main"]).success();
    let url = format!("file://{}/hub", env.path().display());
    env.git_in(".", ["clone", "--quiet", "--depth=1", &url, "shallow"]).success();
    env.handoff_in("shallow", ["fetch"]).success();
    run(env, "second");
    env.handoff(["run", "open"]).success();
    env.handoff(["push", "--all"]).success();
    env.handoff_in("shallow", ["fetch"]).success();
    env.handoff_in("shallow", ["verify", "origin/handoff-dag-1", "origin/second", "origin/open"]).success();
}

/// Submits an open-ended plan, which stays open until it is closed.
fn open(env: &Environment, name: &str) {
    let plan = format!(
        r#"{{"id": "{name}", "openEnded": true, "items": [{{"id": "a", "executor": "command", "inputs": {{"command": "true"}}}}]}}"#
    );
    env.write(&format!("repo/{name}.json"), &plan);
    env.handoff(["run", &format!("{name}.json")]).success();
}

#[test]
fn fetch_by_name_brings_nothing_else() {
    let remote = Remote::new();
    let env = &remote.env;
    open(env, "going");
    env.handoff(["push", "--all"]).success();
    let reader = |args: &[&str]| env.handoff_in("reader", args);
    env.shell(".", "git init --quiet reader && git -C reader remote add origin ../hub").success();
    env.git_in("reader", ["config", "handoff.signingKey", ""]).success();
    reader(&["fetch"]).success();
    env.handoff(["close", "going", "--offline"]).success();
    run(env, "second");
    env.handoff(["push", "origin", "second"]).success();
    reader(&["fetch"]).success();
    reader(&["verify", "origin/second"]).success();
    let report = reader(&["verify", "origin/going"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ NOT SEALED");
    // Earlier fetched chains are updated with a named one.
    open(env, "later");
    env.handoff(["push", "--all"]).success();
    reader(&["fetch"]).success();
    env.handoff(["close", "later", "--offline"]).success();
    run(env, "third");
    env.handoff(["push", "--all"]).success();
    reader(&["fetch", "origin", "third"]).success();
    reader(&["verify", "origin/later", "origin/third"]).success();
}

#[test]
fn a_remote_that_lags_has_an_older_copy_and_no_forgery() {
    let remote = Remote::new();
    let env = &remote.env;
    open(env, "going");
    env.handoff(["push", "--all"]).success();
    env.shell(".", "git clone --quiet --mirror hub ahead").success();
    env.git(["remote", "add", "ahead", "../ahead"]).success();
    env.shell(
        ".",
        "git init --quiet reader && git -C reader remote add origin ../hub && git -C reader remote add ahead ../ahead",
    )
    .success();
    env.git_in("reader", ["config", "handoff.signingKey", ""]).success();
    env.handoff(["close", "going", "--offline"]).success();
    env.handoff(["push", "ahead", "--all"]).success();
    env.handoff_in("reader", ["fetch", "origin"]).success();
    env.handoff_in("reader", ["fetch", "ahead"]).success();
    env.handoff_in("reader", ["verify", "ahead/going"]).success();
    let older = env.handoff_in("reader", ["verify", "origin/going"]).exit(3);
    assert_eq!(verdict(&older.stdout), "✗ NOT SEALED");
    insta::assert_snapshot!(find_row(&older.stdout, "anchor"), @"─ anchor     not sealed, submission logged; refs/handoff/remotes/ahead/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.af31cbdef700 says that the run was sealed after 4 entries: this is an older copy");
    env.handoff_in("reader", ["show", "origin/going"]).success();
}
