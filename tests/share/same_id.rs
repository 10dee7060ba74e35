//! Two people with runs of the same id: nothing was altered, and no message claims it.

use serde_json::Value;

use super::{RUN, clone, json, pushed, refs};
use crate::common::Environment;
use crate::common::report::{find_line, find_row, masked, verdict};

const ANOTHER_ID: &str =
    "hint: git handoff run PLAN --id ID   # if one of the two is yours and has a plan file: gives it an id of its own";

/// Returns the row that names another run of the same id, by a key that may have a principal.
fn same_id(principal: &str) -> String {
    let key = format!("SHA256:…{principal}");
    format!(
        "─ same id    another run has this id: that of the key {key}, which began with sha256:…; named by a log from origin"
    )
}

/// Runs a plan of one item in a repository.
fn run(env: &Environment, dir: &str, name: &str) {
    let item = r#"{"id": "a", "executor": "command", "inputs": {"command": "true"}}"#;
    env.write(&format!("{dir}/{name}.json"), &format!(r#"{{"id": "{name}", "items": [{item}]}}"#));
    env.handoff_in(dir, ["run", &format!("{name}.json")]).success();
}

/// Returns the fingerprint of a repository's key.
fn key(env: &Environment, dir: &str) -> String {
    let answer = json(&env.handoff_in(dir, ["key", "--json"]).exit(0));
    answer["fingerprint"].as_str().expect("a key has one").to_owned()
}

/// An environment in which `repo` pushed a run, and `clone` has one of its own with that id, and
/// fetched.
fn met() -> Environment {
    let env = pushed();
    run(&env, "clone", RUN);
    env.handoff_in("clone", ["fetch"]).success();
    env
}

/// Lets some repositories know the keys of `repo` and `clone`.
fn introduce(env: &Environment, dirs: &[&str]) {
    let line = |dir: &str| env.handoff_in(dir, ["key", "--principal", &format!("{dir}@example.com")]).success();
    env.write("signers", &(line("repo") + &line("clone")));
    let file = env.path().join("signers");
    for dir in dirs {
        env.git_in(dir, ["config", "handoff.signers", file.to_str().expect("the path is text")]).success();
    }
}

/// Puts the log of `clone` on the remote by plain git, and returns a third clone that fetched
/// everything.
fn third(env: &Environment) -> &'static str {
    env.git_in("clone", ["push", "--quiet", "origin", "refs/handoff/logs/*"]).success();
    clone(env, "third");
    for dir in ["clone", "third"] {
        env.handoff_in(dir, ["fetch"]).success();
    }
    "third"
}

#[test]
fn each_has_a_run_of_its_own() {
    let env = met();
    for known in [false, true] {
        if known {
            introduce(&env, &["repo", "clone"]);
        }
        let own = env.handoff_in("clone", ["verify", RUN]).exit(0).stdout;
        assert!(own.contains(&key(&env, "repo")), "{own}");
        assert_eq!(verdict(&own), "✓ INTACT · tamper-detecting");
        assert_eq!(masked(find_row(&own, "same id")), same_id(if known { " (repo@example.com)" } else { "" }));
        let fetched = env.handoff_in("clone", ["verify", &format!("origin/{RUN}")]).exit(0).stdout;
        assert_eq!(verdict(&fetched), if known { "✓ INTACT · tamper-detecting" } else { "─ INTACT · unknown key" });
        assert!(fetched.contains(&key(&env, "clone")), "{fetched}");
        let all = env.handoff_in("clone", ["verify", "--all"]).exit(0);
        let verdicts: Vec<&str> = all.stdout.split("\n\n").map(verdict).collect();
        let theirs = if known { "✓ INTACT · tamper-detecting" } else { "─ INTACT · unknown key" };
        assert_eq!(verdicts, ["✓ INTACT · tamper-detecting", theirs]);
    }
    let answer = json(&env.handoff_in("clone", ["verify", "--json", RUN]).exit(0));
    let same = &answer["sameId"];
    assert_eq!(same["key"], Value::from(key(&env, "clone")), "{answer}");
    assert_eq!(
        (&same["others"][0]["key"], &same["others"][0]["conflicts"]),
        (&key(&env, "repo").into(), &false.into())
    );
    assert_ne!(same["others"][0]["first"], same["first"], "{answer}");
    // The first push succeeds silently, and the second is refused.
    env.handoff_in("clone", ["push", "origin", RUN]).ends(1);
    env.handoff(["fetch"]).success();
    let report = env.handoff(["verify", RUN]).exit(0).stdout;
    assert_eq!(verdict(&report), "✓ INTACT · tamper-detecting");
    assert!(!report.lines().any(|line| line.starts_with("─ ")), "{report}");
}

#[test]
fn two_runs_of_one_id_conflict_until_a_signer_is_given() {
    let env = met();
    let third = third(&env);
    let name = format!("origin/{RUN}");
    for known in [false, true] {
        if known {
            introduce(&env, &["repo", "clone", third]);
        }
        for dir in ["clone", third] {
            let output = env.handoff_in(dir, ["verify", &name]).exit(3);
            assert_eq!(verdict(&output.stdout), "✗ CONFLICT");
            let row = find_row(&output.stdout, "anchor");
            let clone = if known { " (clone@example.com)" } else { "" };
            let why = format!(
                "✗ anchor     a log from origin holds another run by this name: that of SHA256:…{clone} began with \
                 sha256:…; that of SHA256:… began with sha256:…"
            );
            assert_eq!(masked(row), why);
            assert!(row.contains(&key(&env, "repo")) && row.contains(&key(&env, "clone")), "{row}");
            assert_eq!(find_line(&output.stderr, "hint: git handoff run "), ANOTHER_ID);
            let answer = json(&env.handoff_in(dir, ["verify", "--json", &name]).exit(3));
            assert_eq!((&answer["failure"], &answer["intact"]), (&"conflict".into(), &false.into()), "{answer}");
            assert_eq!(answer["sameId"]["others"][0]["conflicts"], true, "{answer}");
        }
        let own = env.handoff_in("clone", ["verify", RUN]).exit(0).stdout;
        assert_eq!(masked(find_row(&own, "same id")), same_id(if known { " (repo@example.com)" } else { "" }));
        assert_eq!(verdict(&own), "✓ INTACT · tamper-detecting");
    }
    for signer in ["repo@example.com".to_owned(), key(&env, "repo")] {
        let report = env.handoff_in(third, ["verify", &name, "--signer", &signer]).exit(0).stdout;
        assert_eq!(masked(find_row(&report, "same id")), same_id(" (clone@example.com)"));
        assert_eq!(verdict(&report), "✓ INTACT · tamper-detecting");
    }
    let report = env.handoff_in(third, ["verify", &name, "--signer", &key(&env, "clone")]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ MISMATCH");
    env.handoff_in(third, ["verify", &name, "--base", "main"]).success();
    // Nothing is taken from it unawares.
    let refused = env.handoff_in(third, ["apply", &name]).exit(3).stderr;
    insta::assert_snapshot!(masked(find_line(&refused, "error: ")), @r#"error: another run has the id of the run "handoff-dag-1", so nothing is taken from it: a log from origin holds another run by this name: that of SHA256:… (clone@example.com) began with sha256:…; that of SHA256:… began with sha256:…"#);
    insta::assert_snapshot!(find_line(&refused, "hint: "), @"hint: git handoff verify origin/handoff-dag-1 --signer KEY   # to take it all the same: --accept-untrusted");
}

#[test]
fn a_rotated_key_leaves_ones_own_run_intact() {
    let env = met();
    third(&env);
    introduce(&env, &["repo", "clone"]);
    env.handoff(["fetch"]).success();
    // A key of the repository's own: another one than before.
    env.git(["config", "handoff.signingKey", ""]).success();
    for name in [RUN.to_owned(), format!("origin/{RUN}")] {
        let report = env.handoff(["verify", &name]).exit(0).stdout;
        assert_eq!(masked(find_row(&report, "same id")), same_id(" (clone@example.com)"), "{name}");
        assert_eq!(verdict(&report), "✓ INTACT · tamper-detecting");
        let answer = json(&env.handoff(["verify", "--json", &name]).exit(0));
        assert_eq!(answer["sameId"]["others"][0]["conflicts"], false, "{name}: {answer}");
    }
    // Another person's run of that id is in conflict all the same.
    env.handoff_in("clone", ["push", "origin", RUN]).ends(1);
    let report = env.handoff_in("clone", ["verify", &format!("origin/{RUN}")]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ CONFLICT");
}

#[test]
fn signer_option_accepts_a_key_without_signers() {
    let env = met();
    let third = third(&env);
    let name = format!("origin/{RUN}");
    let report = env.handoff_in(third, ["verify", &name, "--signer", &key(&env, "repo")]).exit(0).stdout;
    assert_eq!(verdict(&report), "─ INTACT · unknown key");
    let verify_answer = env.handoff_in(third, ["verify", &name, "--signer", &key(&env, "clone")]).exit(3).stdout;
    assert_eq!(verdict(&verify_answer), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&verify_answer, "signature"), @"✗ signature  entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is not the one that was asked for (and 5 more)");
    let stderr = env.handoff_in(third, ["verify", &name, "--signer", "repo@example.com"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: no allowed-signers file names the signer's keys
    hint: git handoff verify --signers FILE --signer PRINCIPAL RUN
    ");
}

#[test]
fn archived_runs_of_one_id_conflict_too() {
    let env = met();
    env.handoff_in("clone", ["archive", RUN]).success();
    let own = env.handoff_in("clone", ["verify", RUN]).exit(0).stdout;
    assert_eq!(verdict(&own), "✓ INTACT · tamper-detecting");
    insta::assert_snapshot!(find_row(&own, "same id"), @"─ same id    another run has this id: that of the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg, which began with sha256:68db758a648399e09943d0254f2cfd2545869dec8c948a01cabba1ffe923df01; named by a log from origin");
    env.handoff(["archive", RUN]).success();
    env.handoff(["push", "--all"]).success();
    let third = third(&env);
    let report = env.handoff_in(third, ["verify", &format!("origin/{RUN}")]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ CONFLICT");
}

#[test]
fn a_run_rewritten_by_its_own_key_is_tampered_with() {
    let env = pushed();
    env.handoff(["fetch"]).success();
    for reference in refs(&env, "repo").lines().filter_map(|line| line.split(' ').nth(1)) {
        if !reference.starts_with("refs/handoff/remotes/") {
            env.git(["update-ref", "-d", reference]).success();
        }
    }
    env.git(["config", "handoff.signingKey", ""]).success();
    run(&env, "repo", RUN);
    let report = env.handoff(["verify", RUN]).exit(0).stdout;
    // Another key's run.
    assert_eq!(masked(find_row(&report, "same id")), same_id(""));
    // The same key, in the place of the run that it pushed.
    env.git(["config", "--unset", "handoff.signingKey"]).success();
    env.shell("clone", "git config --unset handoff.signingKey").success();
    run(&env, "clone", RUN);
    env.handoff_in("clone", ["fetch"]).success();
    let verify_answer = env.handoff_in("clone", ["verify", RUN]).exit(3).stdout;
    assert_eq!(verdict(&verify_answer), "✗ TAMPERED");
    insta::assert_snapshot!(find_row(&verify_answer, "anchor"), @"✗ anchor     refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd holds another run by this name: that of the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg began with sha256:68db758a648399e09943d0254f2cfd2545869dec8c948a01cabba1ffe923df01; that of SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg with sha256:3050e2608c0bf128cd1acd06af2791ef0bb165a200135bbc97aba75ddca090c3");
}

#[test]
fn submit_warns_of_a_run_that_was_fetched() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    let plan = format!(
        r#"{{"id": "{RUN}", "items": [{{"id": "a", "executor": "command", "inputs": {{"command": "true"}}}}]}}"#
    );
    env.write("clone/plan.json", &plan);
    let uncommitted = "warning: not committed, so that no item sees it: the change to plan.json\n";
    let output = env.handoff_in("clone", ["submit", "plan.json"]).exit(0);
    assert_eq!(
        output.stderr,
        format!(
            "{uncommitted}warning: another run has the id \"{RUN}\": origin/{RUN}; --id gives this one an id of its own\n"
        )
    );
    let stderr = env.handoff_in("clone", ["submit", "plan.json", "--id", "mine"]).exit(0).stderr;
    assert_eq!(stderr, uncommitted);
}

#[test]
fn used_id_blocks_no_other_push() {
    let env = met();
    introduce(&env, &["repo", "clone"]);
    run(&env, "clone", "other");
    let output = env.handoff_in("clone", ["push", "--all"]).exit(1);
    let why = "the run \"handoff-dag-1\" on the remote is another one: it begins with another entry than the run here";
    assert!(output.stderr.contains(&format!("warning: {why}; ours was left out")), "{output}");
    insta::assert_snapshot!(output.stderr, @r#"
    warning: the run "handoff-dag-1" on the remote is another one: it begins with another entry than the run here; ours was left out
    hint: git handoff adopt-run handoff-dag-1 --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete handoff-dag-1
    "#);
    insta::assert_snapshot!(find_line(&output.stdout, "new  run  "), @"new  run  other");
    let answer = json(&env.handoff_in("clone", ["push", "--all", "--json"]).exit(1));
    assert_eq!(answer["leftOut"][0]["name"], RUN, "{answer}");
    // No log there names the unpushed run, so no reader sees a conflict.
    clone(&env, "third");
    env.handoff_in("third", ["fetch"]).success();
    for name in [&format!("origin/{RUN}"), "origin/other"] {
        let report = json(&env.handoff_in("third", ["verify", "--json", name]).exit(0));
        assert_eq!(report.get("sameId"), None, "{report}");
    }
}

#[test]
fn another_id_and_a_deletion_leave_no_conflict() {
    let env = met();
    introduce(&env, &["repo", "clone"]);
    env.git_in("", ["init", "--quiet", "--bare", "fork.git"]).success();
    env.handoff_in("clone", ["push", "../fork.git", RUN]).success();
    run(&env, "clone", "mine");
    env.handoff_in("clone", ["delete", RUN, "--yes"]).success();
    env.handoff_in("clone", ["push", "--all"]).success();
    clone(&env, "third");
    introduce(&env, &["third"]);
    env.handoff_in("third", ["fetch"]).success();
    for name in [&format!("origin/{RUN}"), "origin/mine"] {
        let report = json(&env.handoff_in("third", ["verify", "--json", name]).exit(0));
        assert_eq!(report.get("sameId"), None, "{report}");
    }
}

#[test]
fn archived_id_is_in_use() {
    let env = pushed();
    run(&env, "repo", "second");
    env.handoff(["archive", RUN, "second"]).success();
    env.handoff(["push", "--all"]).success();
    run(&env, "clone", RUN);
    env.handoff_in("clone", ["fetch"]).success();
    let output = env.handoff_in("clone", ["push", "origin", RUN]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    error: the run "handoff-dag-1" on the remote is another one: it begins with another entry than the run here; nothing was pushed
    hint: git handoff adopt-run handoff-dag-1 --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete handoff-dag-1
    "#);
    // Where it came to lie there all the same, the archive is taken, and what was there before
    // stays.
    env.git_in("clone", ["push", "--quiet", "origin", &format!("refs/handoff/runs/{RUN}")]).success();
    clone(&env, "third");
    introduce(&env, &["third"]);
    env.handoff_in("third", ["fetch"]).success();
    assert_eq!(
        verdict(&env.handoff_in("third", ["verify", "origin/second"]).exit(0).stdout),
        "✓ INTACT · tamper-detecting"
    );
}
