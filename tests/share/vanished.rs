//! Names that a remote showed earlier, and names in logs that it never showed.

use super::{RUN, RUN_REF, clone, json, pushed, refs, shared};
use crate::common::Environment;
use crate::common::report::{error_code, find_line, verdict, without_hashes};

const FETCHED: &str = "refs/handoff/remotes/origin/runs/handoff-dag-1";
const FORGET: &str = "hint: rm -r $TEST/clone/.git/handoff/remotes/origin   \
                      # forgets what that remote has shown; nothing that was fetched goes";
const THREAD: &str = "refs/handoff/threads/research";

/// An environment whose run and thread were pushed, and fetched into `clone`; the remote deleted
/// both since.
fn deleted() -> Environment {
    let env = shared();
    env.write("state", "draft");
    env.handoff(["checkpoint", "research", "--state", "../state"]).success();
    env.handoff(["push", "--all"]).success();
    clone(&env, "clone");
    env.handoff_in("clone", ["fetch"]).success();
    for reference in [RUN_REF, THREAD] {
        env.git_in("hub", ["update-ref", "-d", reference]).success();
    }
    env
}

/// Returns what an answer says vanished, each as `kind name seen kept`.
fn vanished(env: &Environment, more: &[&str]) -> Vec<String> {
    let answer = json(&env.handoff_in("clone", ["fetch", "--json"].iter().chain(more)).exit(0));
    let of = |one: &serde_json::Value| {
        let (kind, name) = (one["kind"].as_str().unwrap(), one["name"].as_str().unwrap());
        format!("{kind} {name} {} {}", one["seen"], one["ref"].as_str().unwrap_or("-"))
    };
    answer["vanished"].as_array().into_iter().flatten().map(of).collect()
}

/// Returns how much what vanished matters to the doctor.
fn vanished_findings(env: &Environment, code: i32) -> Vec<String> {
    let answer = json(&env.handoff_in("clone", ["doctor", "--json"]).exit(code));
    let findings = answer["findings"].as_array().unwrap().iter().filter(|one| one["code"] == "vanished");
    findings.map(|one| one["severity"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn fetch_reports_deleted_remote_refs_and_keeps_copies() {
    let env = deleted();
    let before = refs(&env, "clone");
    let stderr = env.handoff_in("clone", ["fetch"]).exit(0).stderr;
    insta::assert_snapshot!(stderr, @r#"
    warning: run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1
    warning: thread "research" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/threads/research
    everything is here already
    "#);
    let row = format!("run {RUN} true {FETCHED}");
    assert!(vanished(&env, &[]).contains(&row), "{:?}", vanished(&env, &[]));
    assert_eq!(refs(&env, "clone"), before, "fetch deletes nothing");
    let gone = format!("run \"{RUN}\" is gone from origin, where it was; it is kept here, at {FETCHED}");
    for name in ["origin/handoff-dag-1", RUN] {
        let verify_stderr = env.handoff_in("clone", ["verify", name]).exit(0).stderr;
        assert!(verify_stderr.lines().any(|line| line == gone), "{verify_stderr}");
    }
    assert_eq!(vanished_findings(&env, 0), ["note", "note"]);
    let restore = format!("git push origin {FETCHED}:{RUN_REF}");
    assert!(env.handoff_in("clone", ["doctor"]).success().contains(&restore));
    let fetch_stderr = env.handoff_in("clone", ["fetch", "origin", RUN]).exit(3).stderr;
    insta::assert_snapshot!(fetch_stderr, @r#"error: run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1"#);
    let all = env.handoff_in("clone", ["verify", "--all"]).exit(0);
    insta::assert_snapshot!(all.stderr, @r#"
    run "handoff-dag-1" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/runs/handoff-dag-1
    hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    "#);
    // A restored run is no longer missing.
    env.handoff(["push", "--all"]).success();
    assert_eq!(vanished(&env, &[]), Vec::<String>::new());
}

#[test]
fn fetched_copy_does_not_hide_a_deleted_run() {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    env.handoff(["fetch"]).success();
    env.git(["update-ref", "-d", RUN_REF]).success();
    let output = env.handoff(["verify", RUN]).exit(3);
    assert_eq!(verdict(&output.stdout), "✓ INTACT · tamper-detecting");
    let gone = format!("error: the ref {RUN_REF} is gone, but the log refs/handoff/logs/SHA256%3A….… holds the run\n");
    assert_eq!(without_hashes(&output.stderr), gone);
    // A query about the copy is answered about the copy.
    env.handoff(["verify", &format!("origin/{RUN}")]).success();
}

#[test]
fn verify_misses_runs_deleted_on_both_sides() {
    let env = deleted();
    for reference in [FETCHED, "refs/handoff/remotes/origin/threads/research"] {
        env.git_in("clone", ["update-ref", "-d", reference]).success();
    }
    assert_eq!(vanished(&env, &[]), [format!("run {RUN} true -"), "thread research true -".to_owned()]);
    let output = env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).exit(3);
    insta::assert_snapshot!(output.stderr, @r#"
    run "handoff-dag-1" is gone from origin, where it was, and is not here; the log refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd names it
    error: the ref refs/handoff/remotes/origin/runs/handoff-dag-1 is gone, but the log refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd holds the run
    "#);
    let verify_output = env.handoff_in("clone", ["verify", "--all"]).exit(3);
    insta::assert_snapshot!(verify_output.stderr, @r#"error: run "handoff-dag-1" is gone from origin, where it was, and is not here; the log refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd names it"#);
    let thread_verify_output = env.handoff_in("clone", ["thread", "verify", "--all"]).exit(3);
    insta::assert_snapshot!(thread_verify_output.stderr, @r#"error: thread "research" is gone from origin, where it was, and is not here; the log refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd names it"#);
    assert_eq!(vanished_findings(&env, 3), ["problem", "problem"]);
    let thread_output = env.handoff_in("clone", ["thread", "verify", "origin/research"]).exit(3);
    insta::assert_snapshot!(thread_output.stderr, @"error: the ref refs/handoff/remotes/origin/threads/research is gone, but the log refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd holds the thread");
    let json_output = env.handoff_in("clone", ["--json", "verify", "origin/handoff-dag-1"]).exit(3);
    assert_eq!(error_code(&json_output.stderr), "vanished");
    // A name that no log holds is only unknown.
    let unknown_run_output = env.handoff_in("clone", ["verify", "origin/handoff-dag-2"]).exit(1);
    insta::assert_snapshot!(unknown_run_output.stderr, @r#"
    error: there is no run "origin/handoff-dag-2" here
    hint: git handoff runs
    "#);
}

/// Returns the missing names that a later fetch of something else reports.
fn vanished_beside(env: &Environment, code: i32) -> Vec<String> {
    let answer = json(&env.handoff_in("clone", ["fetch", "--json"]).exit(code));
    let names = answer["vanished"].as_array().into_iter().flatten();
    names.map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["ref"].as_str().unwrap_or("-"))).collect()
}

/// Says that both are missed, to everybody who asks.
fn assert_missed(env: &Environment) {
    assert_eq!(vanished(env, &[]), [format!("run {RUN} true -"), "thread research true -".to_owned()]);
    for what in [&["verify", "--all"][..], &["thread", "verify", "--all"]] {
        env.handoff_in("clone", what).ends(3);
    }
    assert_eq!(vanished_findings(env, 3), ["problem", "problem"]);
}

/// Deletes what was fetched; returns the tip of the run.
fn pruned(env: &Environment) -> String {
    let tip = env.git_in("clone", ["rev-parse", FETCHED]).success();
    for reference in [FETCHED, "refs/handoff/remotes/origin/threads/research"] {
        let _ = env.git_in("clone", ["update-ref", "-d", reference]);
    }
    tip.trim().to_owned()
}

/// Makes another run and another thread of the same names in a clone.
fn another(env: &Environment, clone: &str) {
    let item = r#"{"id": "a", "executor": "command", "inputs": {"command": "true"}}"#;
    env.write(&format!("{clone}.json"), &format!(r#"{{"id": "{RUN}", "items": [{item}]}}"#));
    env.handoff_in(clone, ["run", &format!("../{clone}.json")]).success();
    env.write("state", "of another");
    env.handoff_in(clone, ["checkpoint", "research", "--state", "../state"]).success();
}

#[test]
fn another_of_its_name_does_not_keep_what_is_gone() {
    let env = deleted();
    let tip = pruned(&env);
    another(&env, "clone");
    assert_missed(&env);
    // Another remote's showing counts.
    let elsewhere = "refs/handoff/remotes/second/runs/handoff-dag-1";
    env.git_in("clone", ["update-ref", elsewhere, &tip]).success();
    assert!(vanished(&env, &[]).contains(&format!("run {RUN} true {elsewhere}")));
    assert_eq!(vanished_findings(&env, 3), ["note", "problem"]);
}

#[test]
fn rewound_ref_is_not_deleted() {
    let env = deleted();
    let tip = pruned(&env);
    env.git_in("clone", ["update-ref", FETCHED, &format!("{tip}~1")]).success();
    for _ in 0..2 {
        assert_missed(&env);
    }
    env.git_in("clone", ["update-ref", FETCHED, &tip]).success();
    assert_eq!(vanished(&env, &[])[0], format!("run {RUN} true {FETCHED}"));
}

#[test]
fn replaced_ref_counts_as_deleted() {
    let env = deleted();
    let tip = pruned(&env);
    assert_missed(&env);
    let main = env.git_in("hub", ["rev-parse", "main"]).success();
    let new = env.git_in("hub", ["-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "x", "main^{tree}"]);
    // One is in the clone as a commit of its own, the other is not taken in.
    for commit in [main, new.success()] {
        env.git_in("hub", ["update-ref", RUN_REF, commit.trim()]).success();
        assert_eq!(vanished_beside(&env, 1), [format!("{RUN} -"), "research -".to_owned()]);
        env.handoff_in("clone", ["verify", "--all"]).ends(3);
        assert_eq!(vanished_findings(&env, 3), ["problem", "problem"]);
        // Nor if its absence was never observed.
        env.git_in("hub", ["update-ref", RUN_REF, &tip]).success();
        assert_eq!(vanished_beside(&env, 0), ["research -"]);
        pruned(&env);
        env.git_in("hub", ["update-ref", RUN_REF, commit.trim()]).success();
        assert_eq!(vanished_beside(&env, 1), [format!("{RUN} -"), "research -".to_owned()]);
    }
}

#[test]
fn a_replaced_import_is_what_is_known() {
    let env = deleted();
    clone(&env, "other");
    another(&env, "other");
    env.handoff(["push", "--all"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.git_in("hub", ["update-ref", "-d", RUN_REF]).success();
    env.git_in("other", ["push", "origin", RUN_REF]).success();
    let stderr = env.handoff_in("clone", ["fetch"]).exit(1).stderr;
    let forget = format!("git update-ref -d {FETCHED}");
    assert!(stderr.contains(&forget), "{stderr}");
    env.git_in("clone", ["update-ref", "-d", FETCHED]).success();
    for _ in 0..2 {
        assert_eq!(vanished(&env, &[]), Vec::<String>::new());
    }
    env.git_in("hub", ["update-ref", "-d", RUN_REF]).success();
    assert_eq!(vanished(&env, &[]), [format!("run {RUN} true {FETCHED}")]);
}

#[test]
fn never_advertised_refs_are_reported_without_failure() {
    let env = shared();
    env.write("state", "draft");
    env.handoff(["checkpoint", "research", "--state", "../state"]).success();
    env.handoff(["push", "origin", RUN]).success();
    // Plain git pushes the log with all entries.
    env.git(["push", "--quiet", "origin", "refs/handoff/logs/*"]).success();
    clone(&env, "clone");
    let stderr = env.handoff_in("clone", ["fetch"]).exit(0).stderr;
    insta::assert_snapshot!(stderr, @"
    a log from origin names 1 run or thread that is not there and not here: it was deleted, or never pushed
    hint: git handoff verify origin/handoff-dag-1
    ");
    assert_eq!(vanished(&env, &[]), ["thread research false -"]);
    env.handoff_in("clone", ["verify", "--all"]).success();
    // A fetch of named runs reports no others as missing.
    env.handoff(["push", "--all"]).success();
    clone(&env, "other");
    let answer = json(&env.handoff_in("other", ["fetch", "origin", "research", "--json"]).exit(0));
    assert!(answer.get("vanished").is_none(), "{answer}");
    env.handoff_in("other", ["thread", "verify", "origin/research"]).success();
    // Nor does the writer miss what it did not push.
    env.git_in("hub", ["update-ref", "-d", THREAD]).success();
    let fetch_answer = json(&env.handoff(["fetch", "--json"]).exit(0));
    assert!(fetch_answer.get("vanished").is_none(), "{fetch_answer}");
}

#[test]
fn runs_on_remote_branches_have_not_vanished() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    let tip = env.git(["rev-parse", RUN_REF]).success();
    env.git_in("hub", ["update-ref", "-d", RUN_REF]).success();
    env.git_in("hub", ["update-ref", "refs/heads/team/runs/handoff-dag-1", tip.trim()]).success();
    assert_eq!(vanished(&env, &[]), Vec::<String>::new());
}

#[test]
fn a_branch_stands_for_what_is_gone_only_where_it_holds_just_that() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    env.git_in("clone", ["update-ref", "-d", FETCHED]).success();
    let main = env.git_in("hub", ["rev-parse", "main"]).success();
    env.git_in("hub", ["update-ref", "-d", RUN_REF]).success();
    env.git_in("hub", ["update-ref", "refs/heads/zz/runs/handoff-dag-1", main.trim()]).success();
    assert_eq!(vanished(&env, &[]), [format!("run {RUN} true -")]);
    env.handoff_in("clone", ["verify", "--all"]).ends(3);
}

#[test]
fn a_branch_of_the_users_is_no_thread_that_goes() {
    let env = pushed();
    let main = env.git_in("hub", ["rev-parse", "main"]).success();
    let branch = "refs/heads/perf/threads/pool";
    env.git_in("hub", ["update-ref", branch, main.trim()]).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.git_in("hub", ["update-ref", "-d", branch]).success();
    assert_eq!(vanished(&env, &[]), Vec::<String>::new());
    let output = env.handoff_in("clone", ["thread", "verify", "--all"]);
    insta::assert_snapshot!(output, @"
    ------- stderr -------
    error: there are no threads here
    hint: git handoff thread list
    [exit status: 3]
    ");
}

#[test]
fn dangling_names_do_not_count_as_advertised() {
    let env = pushed();
    let main = env.git_in("hub", ["rev-parse", "main"]).success();
    for name in ["refs/handoff/runs/nothing", "refs/heads/a/runs/nothing"] {
        env.git_in("hub", ["update-ref", name, main.trim()]).success();
    }
    env.handoff_in("clone", ["fetch"]).ends(1);
    let written = std::fs::read(env.path().join("clone/.git/handoff/remotes/origin")).unwrap();
    let mut written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    // Only the reason of the refusal is stored, which proves nothing about the remote.
    let refused = written.as_object_mut().unwrap().remove("refused").unwrap();
    assert_eq!(refused.as_object().unwrap().keys().collect::<Vec<_>>(), ["runs/nothing"]);
    let written = written.to_string();
    assert!(written.contains(RUN) && !written.contains("nothing"), "{written}");
}

#[test]
fn all_threads_that_a_log_of_ours_names_are_verified() {
    let env = deleted();
    env.handoff(["thread", "verify", "--all"]).success();
    env.git(["update-ref", "-d", THREAD]).success();
    let output = env.handoff(["thread", "verify", "--all"]).exit(3);
    insta::assert_snapshot!(output.stderr, @"error: the ref refs/handoff/threads/research is gone, but the log refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg holds the thread");
}

#[test]
fn foreign_record_gets_a_hint() {
    let env = deleted();
    env.handoff_in("clone", ["fetch"]).success();
    let record = "clone/.git/handoff/remotes/origin";
    let whole = std::fs::read_to_string(env.path().join(record)).unwrap();
    let another = |remote: &str| whole.replace("\"origin\"", &format!("{remote:?}"));
    for (made, why) in [
        ("printf what >F", "does not say what a remote has shown"),
        (": >F", "does not say what a remote has shown"),
        ("cp another F", "does not say what a remote has shown"),
        ("mkfifo F", ", which says what a remote has shown, could not be read"),
        ("mkdir F", ", which says what a remote has shown, could not be read"),
    ] {
        env.write("another", &another("other"));
        env.shell(".", &format!("rm -rf F; {made}").replace('F', record)).success();
        for call in [&["fetch"][..], &["verify", "--all"], &["thread", "verify", "--all"]] {
            let stderr = env.handoff_in("clone", call).exit(1).stderr;
            let blank = if why.starts_with(',') { "" } else { " " };
            assert_eq!(find_line(&stderr, "error: "), format!("error: $TEST/{record}{blank}{why}"), "{made} {call:?}");
            assert_eq!(find_line(&stderr, "hint: "), FORGET);
        }
        // The doctor goes on, and reads the others.
        env.write("clone/.git/handoff/remotes/zz", &another("zz"));
        let answer = json(&env.handoff_in("clone", ["doctor", "--json"]).exit(3));
        let findings = answer["findings"].as_array().unwrap();
        let of = |code: &str| findings.iter().filter(|one| one["code"] == code).count();
        assert_eq!((of("remote-record"), of("vanished")), (1, 2), "{made}: {answer}");
        std::fs::remove_file(env.path().join("clone/.git/handoff/remotes/zz")).unwrap();
    }
}

/// The arguments of a call of git.
type Call = &'static [&'static str];

/// The refspec that the documents show for plain git.
const REFSPEC: &str = "refs/handoff/*:refs/handoff/remotes/origin/*";

#[test]
fn a_prune_deletes_what_was_fetched_by_a_refspec_of_its_own_alone() {
    const CONFIGURED: Call = &["config", "--add", "remote.origin.fetch", REFSPEC];
    const PRUNE: Call = &["config", "fetch.prune", "true"];
    const NOT_FROM_THERE: Call = &["config", "remote.origin.prune", "false"];
    let cases: [(&[Call], Call, bool); 11] = [
        (&[], &["fetch", "--prune"], true),
        (&[PRUNE], &["fetch"], true),
        (&[], &["remote", "prune", "origin"], true),
        (&[], &["fetch", "origin", REFSPEC], true),
        (&[], &["fetch", "--prune", "origin", REFSPEC], false),
        (&[PRUNE], &["fetch", "origin", REFSPEC], false),
        (&[CONFIGURED], &["fetch"], true),
        (&[CONFIGURED, PRUNE], &["pull"], false),
        (&[CONFIGURED], &["remote", "prune", "origin"], false),
        (&[CONFIGURED], &["fetch", "--prune", "origin", "main"], true),
        (&[CONFIGURED, PRUNE, NOT_FROM_THERE], &["fetch"], true),
    ];
    let env = deleted();
    let tip = env.git_in("clone", ["rev-parse", FETCHED]).success();
    for (settings, command, stays) in cases {
        let config = env.git_in("clone", ["config", "--local", "--list"]).success();
        for setting in settings {
            env.git_in("clone", setting.iter().copied()).success();
        }
        // Ours does not prune, whatever is configured.
        env.handoff_in("clone", ["fetch"]).ends(0);
        assert!(refs(&env, "clone").contains(FETCHED), "{settings:?}");
        env.git_in("clone", command.iter().copied()).success();
        assert_eq!(refs(&env, "clone").contains(FETCHED), stays, "{settings:?} {command:?}");
        env.git_in("clone", ["update-ref", FETCHED, tip.trim()]).success();
        for key in ["fetch.prune", "remote.origin.prune"] {
            let _ = env.git_in("clone", ["config", "--unset", key]);
        }
        let _ = env.git_in("clone", ["config", "--unset", "remote.origin.fetch", "^refs/handoff"]);
        assert_eq!(env.git_in("clone", ["config", "--local", "--list"]).success(), config);
    }
}

#[test]
fn a_prune_onto_our_own_refs_deletes_runs_that_are_nowhere_else() {
    let env = shared();
    env.git(["fetch", "--quiet", "--prune", "origin", "+refs/handoff/*:refs/handoff/*"]).success();
    assert_eq!(refs(&env, "repo"), "");
}

#[test]
fn pruned_refs_are_restored_from_objects() {
    let env = deleted();
    let before = refs(&env, "clone");
    env.git_in("clone", ["fetch", "--quiet", "--prune", "origin", REFSPEC]).success();
    assert!(!refs(&env, "clone").contains(FETCHED));
    env.handoff_in("clone", ["fetch"]).ends(0);
    assert_eq!(vanished_findings(&env, 3), ["problem", "problem"]);
    let lost = env.git_in("clone", ["fsck", "--no-reflogs", "--lost-found"]).exit(0).stdout;
    for commit in lost.lines().filter_map(|line| line.strip_prefix("dangling commit ")) {
        let subject = env.git_in("clone", ["log", "-1", "--format=%s", commit]).success();
        let name = if subject.contains("research") { "threads/research" } else { "runs/handoff-dag-1" };
        env.git_in("clone", ["update-ref", &format!("refs/handoff/remotes/origin/{name}"), commit]).success();
    }
    assert_eq!(refs(&env, "clone"), before);
    env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
}
