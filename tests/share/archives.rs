//! Archives on their way: they take the place of the refs of their runs, on the remote and in other
//! clones, and nothing is lost by that.

use serde_json::Value;

use super::{RUN, RUN_REF, clone, json, pushed, refs, shared};
use crate::common::Environment;
use crate::common::report::{find_line, find_row};

const FETCHED: &str = "refs/handoff/remotes/origin/runs/handoff-dag-1";

/// An environment whose run was pushed, fetched into `clone`, and archived since.
fn archived() -> Environment {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff(["archive", RUN]).success();
    env
}

/// Returns the names of the refs of ours in a repository, those of archives without what is of the
/// key.
fn names(env: &Environment, dir: &str) -> Vec<String> {
    let listed = refs(env, dir);
    let names = listed.lines().filter_map(|line| line.split_once(' ')).map(|(_, name)| name.to_owned());
    names.map(|name| name.split("SHA256").next().unwrap_or_default().to_owned()).collect()
}

fn statuses(answer: &Value) -> Vec<String> {
    let of = |one: &Value| format!("{} {}", one["status"].as_str().unwrap(), one["kind"].as_str().unwrap());
    answer["refs"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn the_archive_takes_the_place_of_refs_there_and_in_other_clones() {
    let env = archived();
    let dry = json(&env.handoff(["push", "--all", "--dry-run", "--json"]).exit(0));
    assert_eq!(statuses(&dry), ["archived run", "up-to-date log", "new archive"]);
    assert_eq!(names(&env, "hub"), ["refs/handoff/logs/", RUN_REF]);
    let answer = json(&env.handoff(["push", "--all", "--json"]).exit(0));
    assert_eq!(statuses(&answer), statuses(&dry));
    assert_eq!(names(&env, "hub"), ["refs/handoff/archives/", "refs/handoff/logs/"]);
    env.git_in("hub", ["fsck", "--strict", "--no-dangling"]).success();
    let again = env.handoff(["push", "--all"]).exit(0);
    insta::assert_snapshot!(again.stderr, @"the remote has everything already");
    let fetched = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0));
    assert_eq!(fetched["archived"], serde_json::json!([RUN]));
    assert_eq!(fetched.get("vanished"), None);
    let there = ["refs/handoff/remotes/origin/archives/", "refs/handoff/remotes/origin/logs/"];
    assert_eq!(names(&env, "clone"), there);
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
    env.handoff_in("clone", ["verify", "--all"]).success();
    env.handoff_in("clone", ["doctor"]).success();
    insta::assert_snapshot!(env.handoff_in("clone", ["runs", "--all", "--archived"]).success(), @"origin/handoff-dag-1  default  archived  2026-06-04 02:00Z  human:ada  2 done");
    assert_eq!(json(&env.handoff_in("clone", ["fetch", "--json"]).exit(0)).get("archived"), None);
}

#[test]
fn a_run_is_found_by_name_where_only_an_archive_has_it() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    clone(&env, "late");
    let stderr = env.handoff_in("late", ["fetch", "origin", "nowhere"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"error: there is no run or thread "nowhere" on origin"#);
    env.handoff_in("late", ["fetch", "origin", RUN]).success();
    env.handoff_in("late", ["verify", RUN]).success();
}

#[test]
fn evidence_comes_along_in_a_partial_clone() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    let hub = format!("file://{}", env.path().join("hub").display());
    env.git_in(".", ["clone", "--quiet", "--filter=blob:none", &hub, "lazy"]).success();
    env.git_in("lazy", ["config", "handoff.signingKey", ""]).success();
    env.handoff_in("lazy", ["fetch"]).success();
    env.git_in("lazy", ["remote", "set-url", "origin", "/nowhere"]).success();
    let output = env.handoff_in("lazy", ["verify", RUN]);
    assert!(!output.stdout.contains('✗'), "{output}");
    insta::assert_snapshot!(find_row(&output.stdout, "content"), @"─ content    3 blobs of 3 products are not in this partial clone");
}

#[test]
fn fetch_of_an_archived_run_brings_no_other() {
    let env = archived();
    env.git_in(".", ["init", "--quiet", "--bare", "other"]).success();
    env.handoff(["push", "../other", RUN]).success();
    assert_eq!(names(&env, "other"), ["refs/handoff/logs/", RUN_REF], "an archive holds what nobody named");
    env.handoff(["push", "--all"]).success();
    let answer = json(&env.handoff(["push", "--json", "origin", RUN]).exit(0));
    assert_eq!(statuses(&answer), ["up-to-date run", "up-to-date log"], "the archive there has it");
    assert_eq!(names(&env, "hub"), ["refs/handoff/archives/", "refs/handoff/logs/"]);
}

#[test]
fn remote_that_forbids_deletion_is_reported() {
    let env = archived();
    let hook = env.path().join("hub/hooks/update");
    let script = "#!/bin/sh\ncase $3 in *[!0]*) exit 0 ;; esac\necho 'never' >&2\nexit 1\n";
    std::fs::write(&hook, script).unwrap();
    env.shell(".", "chmod +x hub/hooks/update").success();
    let output = env.handoff(["push", "--all"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"warning: refs/handoff/runs/handoff-dag-1 stays on origin, which has the run in an archive: [remote rejected] (hook declined)");
    assert_eq!(names(&env, "hub"), ["refs/handoff/archives/", "refs/handoff/logs/", RUN_REF]);
    let answer = json(&env.handoff(["push", "--all", "--json"]).exit(0));
    assert_eq!(answer["stays"][0]["ref"], RUN_REF);
    // A fetching clone loses nothing.
    env.handoff_in("clone", ["fetch"]).success();
    assert!(names(&env, "clone").contains(&FETCHED.to_owned()));
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
}

/// The `update` hook of docs/how-to/protect-shared-runs.md.
fn documented_hook() -> String {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/protect-shared-runs.md")).unwrap();
    let from = text.find("#!/bin/sh\n# Runs, threads and logs only grow here.").unwrap();
    let to = text[from..].find("```").unwrap();
    text[from..from + to].to_owned()
}

#[test]
fn the_documented_hook_lets_go_what_an_archive_holds_and_nothing_else() {
    let env = archived();
    std::fs::write(env.path().join("hub/hooks/update"), documented_hook()).unwrap();
    env.shell(".", "chmod +x hub/hooks/update").success();
    env.git(["push", "--quiet", "origin", &format!(":{RUN_REF}")]).ends(1);
    env.handoff(["push", "--all"]).success();
    assert_eq!(names(&env, "hub"), ["refs/handoff/archives/", "refs/handoff/logs/"]);
    let archive = refs(&env, "hub").lines().next().unwrap().split_once(' ').unwrap().1.to_owned();
    env.git(["push", "--quiet", "origin", &format!(":{archive}")]).ends(1);
}

#[test]
fn an_archive_that_names_a_run_otherwise_is_refused() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    // The clone's run of that name was another one.
    env.git_in("clone", ["update-ref", "-d", FETCHED]).success();
    env.write(
        "repo/other.json",
        r#"{"id": "handoff-dag-1", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.git_in(".", ["clone", "--quiet", "hub", "liar"]).success();
    env.handoff_in("liar", ["run", "../repo/other.json"]).success();
    let tip = env.git_in("liar", ["rev-parse", RUN_REF]).success();
    env.git_in("clone", ["fetch", "--quiet", "../liar", &format!("{RUN_REF}:{FETCHED}")]).success();
    let output = env.handoff_in("clone", ["fetch"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    warning: run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1
    warning: archive "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.dc6bc169303e" on origin is not sound: run "handoff-dag-1", which it holds, does not go on from what was fetched before, 85f2ada785e46701b517845c655bd7952dcd5fa7; it was not taken
    "#);
    assert!(refs(&env, "clone").contains(&format!("{} {FETCHED}", tip.trim())));
    assert!(!names(&env, "clone").iter().any(|name| name.contains("archives")));
    // Fetching the other archive with plain git gives two valid archives with different content.
    env.handoff(["doctor"]).success();
    env.handoff_in("liar", ["archive", RUN]).success();
    env.git(["fetch", "--quiet", "../liar", "refs/handoff/archives/*:refs/handoff/archives/*"]).success();
    let answer = json(&env.handoff(["doctor", "--json"]).exit(3));
    let differs: Vec<_> =
        answer["findings"].as_array().unwrap().iter().filter(|found| found["code"] == "archive-differs").collect();
    assert_eq!(differs.len(), 1, "{answer}");
    insta::assert_snapshot!(differs[0]["message"].as_str().unwrap(), @r#"refs/handoff/archives/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.dc6bc169303e holds dac5fe1608cb204940f9260e9813a8705af13135 of the run "handoff-dag-1", and refs/handoff/archives/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.59e50818fda8 is at 85f2ada785e46701b517845c655bd7952dcd5fa7"#);
}

#[test]
fn verify_reports_a_ref_that_differs_from_its_archive() {
    let env = archived();
    env.write(
        "other.json",
        r#"{"id": "other", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.handoff(["run", "../other.json"]).success();
    env.git(["update-ref", RUN_REF, "refs/handoff/runs/other"]).success();
    let found = env.handoff(["doctor"]).exit(3);
    assert!(found.stdout.contains(&format!("and {RUN_REF} is at ")), "{found}");
}

#[test]
fn entries_on_top_of_an_archive_are_not_fetched() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    let archive = refs(&env, "hub").lines().next().unwrap().split_once(' ').unwrap().1.to_owned();
    env.git_in("clone", ["fetch", "--quiet", "origin", &archive]).success();
    let garbage = "git -c user.name=M -c user.email=m@m commit-tree FETCH_HEAD^{tree} -p FETCH_HEAD -m x";
    let garbage = env.shell("clone", garbage).success();
    env.git_in("clone", ["push", "--quiet", "origin", &format!("{}:{archive}", garbage.trim())]).success();
    let output = env.handoff_in("clone", ["fetch"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    warning: run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1
    warning: archive "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.dc6bc169303e" on origin is not sound: commit 7b73ca0: the commit is not an entry: the message is not a subject and an entry; it was not taken
    "#);
    assert!(names(&env, "clone").contains(&FETCHED.to_owned()), "what was fetched before stays");
    // By plain git it comes in; it holds nothing then, hides nothing, and the doctor names it.
    let (to, spec) = ("refs/handoff/remotes/origin/", archive.trim_start_matches("refs/handoff/"));
    env.git_in("clone", ["fetch", "--quiet", "origin", &format!("{archive}:{to}{spec}")]).success();
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
    let found = env.handoff_in("clone", ["doctor"]).exit(3);
    insta::assert_snapshot!(find_line(&found.stdout, "problem: "), @"problem: the archive refs/handoff/remotes/origin/archives/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.dc6bc169303e is not sound: commit 7b73ca0: the commit is not an entry: the message is not a subject and an entry");
    // Ours goes nowhere in its place.
    let push_output = env.handoff(["push", "--all"]).exit(1);
    insta::assert_snapshot!(push_output.stderr, @r#"
    error: archive "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.dc6bc169303e" is at e89885888e992d6381bba10e660f476c84fc2682 here and at 7b73ca0f9a0d91e35ebe2e7fbecea730a7260aeb on the remote, which is not here; nothing was pushed
    hint: git handoff fetch origin
    "#);
}

#[test]
fn an_archive_that_was_refused_takes_the_place_of_nothing() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    let archive = refs(&env, "hub").lines().next().unwrap().to_owned();
    let (tip, name) = archive.split_once(' ').unwrap();
    // The same archive under the name of a key that did not sign it, and the run nowhere else.
    let other = name.replace("DEO2ec9dfhoj9ux7LrEW9Oh9Uw08", "AEO2ec9dfhoj9ux7LrEW9Oh9Uw08");
    assert_ne!(other, name);
    env.git_in("hub", ["update-ref", &other, tip]).success();
    env.git_in("hub", ["update-ref", "-d", name]).success();
    let output = env.handoff_in("clone", ["fetch"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    warning: run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1
    warning: archive "SHA256:AEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.dc6bc169303e" on origin is not sound: entry 0 belongs to "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg"; it was not taken
    "#);
    assert!(names(&env, "clone").contains(&FETCHED.to_owned()), "what was fetched before stays");
    env.git_in("clone", ["gc", "--quiet", "--prune=now"]).success();
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
    // Nor does it keep a run from being handed over again.
    env.git(["fetch", "--quiet", "origin", &other]).success();
    env.handoff(["unarchive", RUN]).success();
    let answer = json(&env.handoff(["push", "--json", "origin", RUN]).exit(0));
    assert_eq!(statuses(&answer), ["new run", "up-to-date log"]);
}

#[test]
fn a_run_that_goes_back_to_a_ref_goes_back_on_the_remote() {
    let env = archived();
    env.handoff(["push", "--all"]).success();
    env.handoff(["unarchive", RUN]).success();
    env.handoff(["push", "origin", RUN]).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
}

#[test]
fn one_key_in_two_clones_has_two_archives() {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    env.git_in(".", ["clone", "--quiet", "hub", "second"]).success();
    env.write(
        "other.json",
        r#"{"id": "other", "items": [{"id": "x", "executor": "command", "inputs": {"command": "true"}}]}"#,
    );
    env.handoff_in("second", ["run", "../other.json"]).success();
    env.handoff_in("second", ["archive", "other"]).success();
    env.handoff(["archive", RUN]).success();
    env.handoff(["push", "--all"]).success();
    env.handoff_in("second", ["push", "--all"]).success();
    let archives = names(&env, "hub").iter().filter(|name| name.contains("archives")).count();
    assert_eq!(archives, 2);
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch"]).success();
    for run in [RUN, "other"] {
        env.handoff_in("clone", ["verify", run]).success();
    }
}
