//! Several clones with one key: they go on from one log, and none is in another's way.

use crate::common::Environment;

use super::{refs, shared};
use crate::common::report::{find_row, verdict};

/// Runs a plan of one item in a clone.
fn run(env: &Environment, dir: &str, name: &str) {
    let plan = format!(
        r#"{{"id": "{name}", "items": [{{"id": "a", "executor": "command", "inputs": {{"command": "true"}}}}]}}"#
    );
    env.write(&format!("{dir}/{name}.json"), &plan);
    env.handoff_in(dir, ["run", &format!("{name}.json")]).success();
}

/// Returns the names of the logs in a repository, each with the number of its entries.
fn logs(env: &Environment, dir: &str, folder: &str) -> Vec<(String, usize)> {
    let pattern = format!("--format=%(refname)|{folder}");
    let listed = env.git_in(dir, ["for-each-ref", "--format=%(refname)", folder]).success();
    let count = |name: &str| env.git_in(dir, ["rev-list", "--count", name]).success().trim().parse().expect(&pattern);
    listed.lines().map(|name| (name.to_owned(), count(name))).collect()
}

/// Returns the log of a repository that travels.
fn travelling(env: &Environment, dir: &str) -> (String, usize) {
    let mut all = logs(env, dir, "refs/handoff/logs").into_iter().filter(|(name, _)| name.contains('.'));
    let one = all.next().expect("a log was pushed");
    assert_eq!(all.next(), None, "{}", refs(env, dir));
    one
}

/// Returns an environment whose clones `repo` and `clone` have one key, with a run from each pushed
/// to `hub`.
fn two() -> Environment {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    // As over a network: without the objects that no branch reaches.
    env.git_in(".", ["clone", "--quiet", "--no-local", "hub", "clone"]).success();
    run(&env, "clone", "second");
    env.handoff_in("clone", ["push", "--all"]).success();
    env
}

/// Returns the only log in a repository that travels there, with the number of its entries.
fn only(env: &Environment, dir: &str) -> (String, usize) {
    let mut all = logs(env, dir, "refs/handoff/logs");
    assert_eq!(all.len(), 1, "{}", refs(env, dir));
    all.remove(0)
}

/// Makes fresh clones with the key of `repo`, each with a run of its own name that is not pushed.
fn jobs(env: &Environment, count: usize) -> Vec<String> {
    let names: Vec<String> = (1..=count).map(|number| format!("job{number}")).collect();
    for name in &names {
        env.git_in(".", ["clone", "--quiet", "--no-local", "hub", name]).success();
        run(env, name, name);
    }
    names
}

/// Has every clone push its run by its name at the same time; returns how each ended.
fn push_at_once(env: &Environment, names: &[String]) -> Vec<String> {
    let program = crate::common::program_path();
    let push = |name: &String| {
        format!("(cd {name} && \"{program}\" push origin {name} >../{name}.out 2>&1; echo $? >../{name}.code) &")
    };
    let lines: Vec<String> = names.iter().map(push).collect();
    env.shell(".", &format!("{} wait", lines.join("\n"))).success();
    let read = |name: &String| env.shell(".", &format!("cat {name}.code {name}.out")).success();
    names.iter().map(|name| read(name).lines().next().expect("a code").to_owned()).collect()
}

/// Makes a clone that knows the key, fetches, and finds every run there intact and nothing to
/// complain about.
fn is_whole_elsewhere(env: &Environment, name: &str, runs: &[String]) {
    env.git_in(".", ["clone", "--quiet", "--no-local", "hub", name]).success();
    env.handoff_in(name, ["fetch"]).success();
    for run in runs {
        let report = env.handoff_in(name, ["verify", &format!("origin/{run}")]).success();
        assert_eq!(verdict(&report), "✓ INTACT · tamper-detecting");
    }
    env.handoff_in(name, ["verify", "--all"]).success();
    env.handoff_in(name, ["doctor"]).ends(0);
}

#[test]
fn a_second_clone_goes_on_from_the_log_of_the_first() {
    let env = two();
    let (first, _) = travelling(&env, "repo");
    assert_eq!(only(&env, "hub"), (first.clone(), 2), "{}", refs(&env, "hub"));
    // Another clone's statements are not about this clone's runs.
    assert!(logs(&env, "clone", "refs/handoff/logs").iter().all(|(name, _)| !name.contains('.')));
    run(&env, "clone", "third");
    run(&env, "repo", "fourth");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(only(&env, "hub"), (first, 4));
    env.handoff_in("clone", ["fetch"]).success();
    for run in ["origin/handoff-dag-1", "second", "third", "origin/fourth"] {
        env.handoff_in("clone", ["verify", run]).success();
    }
    for dir in ["repo", "clone"] {
        env.handoff_in(dir, ["verify", "--all"]).success();
        env.handoff_in(dir, ["doctor"]).ends(0);
    }
}

#[test]
fn fresh_clones_leave_one_log_that_tells_of_what_was_pushed() {
    let env = shared();
    for name in jobs(&env, 4) {
        run(&env, &name, &format!("secret-{name}"));
        env.handoff_in(&name, ["push", "origin", &name]).success();
        env.shell(".", &format!("rm -rf {name}")).success();
    }
    let (log, entries) = only(&env, "hub");
    assert_eq!(entries, 4);
    let log_text = env.git_in("hub", ["log", "-p", &log]).success();
    assert!(log_text.contains("job4") && !log_text.contains("secret"), "{log_text}");
    is_whole_elsewhere(&env, "reader", &["job1".to_owned(), "job4".to_owned()]);
}

#[test]
fn jobs_that_push_at_once_all_come_through() {
    let env = shared();
    let names = jobs(&env, 6);
    // Neither finds a log there, so each begins one.
    assert_eq!(push_at_once(&env, &names), ["0"; 6]);
    for name in &names {
        run(&env, name, &format!("{name}-again"));
        env.shell(".", &format!("mv {name} {name}-again")).success();
    }
    // All of them go on from the same log.
    let again: Vec<String> = names.iter().map(|name| format!("{name}-again")).collect();
    assert_eq!(push_at_once(&env, &again), ["0"; 6]);
    env.handoff(["push", "--all"]).success();
    let (_, entries) = only(&env, "hub");
    assert!(entries > 2 * 6, "{entries}");
    let all: Vec<String> = names.into_iter().chain(again).collect();
    is_whole_elsewhere(&env, "reader", &all);
}

/// Puts into `hub` the runs and logs of clones that each pushed to a place of their own, and
/// returns the clones.
fn push_separate_logs(env: &Environment, count: usize) -> Vec<String> {
    let names = jobs(env, count);
    for name in &names {
        env.git_in(".", ["init", "--quiet", "--bare", &format!("{name}.git")]).success();
        env.handoff_in(name, ["push", &format!("../{name}.git"), name]).success();
        env.git_in("hub", ["fetch", "--quiet", &format!("../{name}.git"), "refs/handoff/*:refs/handoff/*"]).success();
    }
    assert_eq!(logs(env, "hub", "refs/handoff/logs").len(), count, "{}", refs(env, "hub"));
    names
}

#[test]
fn a_push_of_everything_folds_the_logs_of_a_key() {
    let env = shared();
    let names = push_separate_logs(&env, 3);
    is_whole_elsewhere(&env, "reader", &names);
    env.git_in("reader", ["config", "handoff.signingKey", ""]).success();
    let dry = env.handoff_in("job1", ["push", "--all", "--dry-run"]).success();
    assert_eq!(dry.matches("folded   log ").count(), 2, "{dry}");
    assert_eq!(logs(&env, "hub", "refs/handoff/logs").len(), 3);
    let stdout = env.handoff_in("job1", ["push", "--all"]).success();
    assert_eq!(stdout.matches("folded   log ").count(), 2, "{stdout}");
    let (log, entries) = only(&env, "hub");
    assert_eq!(entries, 3);
    // A reader who had the others misses nothing and keeps one.
    let fetched = env.handoff_in("reader", ["fetch"]).exit(0);
    assert_eq!(fetched.stderr, "");
    let fetched_logs = logs(&env, "reader", "refs/handoff/remotes/origin/logs");
    assert_eq!(fetched_logs, [(log.replace("refs/handoff/", "refs/handoff/remotes/origin/"), 3)]);
    for name in &names {
        env.handoff_in("reader", ["verify", &format!("origin/{name}")]).success();
        // The log that a clone began does not come back.
        run(&env, name, &format!("{name}-more"));
        env.handoff_in(name, ["push", "--all"]).success();
    }
    assert_eq!(only(&env, "hub"), (log, 6));
    assert_eq!(env.handoff_in("reader", ["fetch"]).exit(0).stderr.matches("gone").count(), 0);
    env.handoff_in("reader", ["verify", "--all"]).success();
}

#[test]
fn verify_misses_a_removed_log() {
    let env = shared();
    let names = push_separate_logs(&env, 2);
    is_whole_elsewhere(&env, "reader", &names);
    let (first, _) = &logs(&env, "hub", "refs/handoff/logs")[0];
    env.git_in("hub", ["update-ref", "-d", first]).success();
    let fetched = env.handoff_in("reader", ["fetch"]).exit(0);
    insta::assert_snapshot!(fetched.stderr, @r#"
    warning: log "SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.35d452f7293b" is gone from origin, where it was; it is kept here, at refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.35d452f7293b
    everything is here already
    "#);
    assert_eq!(logs(&env, "reader", "refs/handoff/remotes/origin/logs").len(), 2);
}

#[test]
fn a_remote_that_lets_no_log_go_keeps_both() {
    let env = shared();
    push_separate_logs(&env, 2);
    env.git_in("hub", ["config", "receive.denyDeletes", "true"]).success();
    env.write("hub/hooks/update", "#!/bin/sh\ncase $3 in *[!0]*) exit 0 ;; esac\nexit 1\n");
    env.shell(".", "chmod +x hub/hooks/update").success();
    let output = env.handoff_in("job1", ["push", "--all"]).exit(0);
    insta::assert_snapshot!(output, @"updated  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.35d452f7293b");
    assert_eq!(logs(&env, "hub", "refs/handoff/logs").len(), 2);
    env.handoff_in("job2", ["push", "--all"]).success();
    is_whole_elsewhere(&env, "reader", &["job1".to_owned(), "job2".to_owned()]);
}

#[test]
fn contradicting_log_stays_a_second_log() {
    let env = shared();
    for dir in ["one", "other"] {
        env.git_in(".", ["clone", "--quiet", "--no-local", "hub", dir]).success();
        run(&env, dir, "same");
        env.git_in(".", ["init", "--quiet", "--bare", &format!("{dir}.git")]).success();
        env.handoff_in(dir, ["push", &format!("../{dir}.git"), "same"]).success();
    }
    env.git_in("hub", ["fetch", "--quiet", "../one.git", "refs/handoff/*:refs/handoff/*"]).success();
    env.git_in("hub", ["fetch", "--quiet", "../other.git", "refs/handoff/logs/*:refs/handoff/logs/*"]).success();
    env.handoff_in("one", ["push", "--all"]).success();
    assert_eq!(logs(&env, "hub", "refs/handoff/logs").len(), 2, "{}", refs(&env, "hub"));
    let output = env.handoff_in("one", ["fetch"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"hint: git handoff verify origin/same");
    let report = env.handoff_in("one", ["verify", "origin/same"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ TAMPERED");
}

#[test]
fn a_copied_clone_goes_on_from_the_same_log() {
    let env = two();
    env.shell(".", "cp -R repo copy").success();
    run(&env, "repo", "third");
    run(&env, "copy", "fourth");
    env.handoff(["push", "--all"]).success();
    env.handoff_in("copy", ["fetch"]).success();
    env.handoff_in("copy", ["push", "--all"]).success();
    assert_eq!(only(&env, "hub").1, 4, "{}", refs(&env, "hub"));
    env.handoff_in("clone", ["fetch"]).success();
    for run in ["origin/third", "second", "origin/fourth"] {
        env.handoff_in("clone", ["verify", run]).success();
    }
}

#[test]
fn a_name_stays_with_its_log() {
    let env = two();
    let (further, _) = &travelling(&env, "repo");
    let other = format!("{}000000000000", &further[..further.len() - 12]);
    env.git(["update-ref", &other, further]).success();
    env.git(["update-ref", "-d", further]).success();
    let report = env.handoff(["verify", "handoff-dag-1"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ NOT ANCHORED");
    insta::assert_snapshot!(find_row(&report, "anchor"), @"✗ anchor     refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.000000000000 is broken: it does not contain the entry in its name");
}

#[test]
fn one_name_for_two_runs_is_found_out() {
    let env = two();
    run(&env, "clone", "same");
    run(&env, "repo", "same");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff(["fetch"]).success();
    let refused = env.handoff(["push", "--all"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @r#"
    warning: the run "same" on the remote is another one: it begins with another entry than the run here; ours was left out
    hint: git handoff adopt-run same --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete same
    "#);
    // One key signed two versions of one run.
    let report = env.handoff(["verify", "same"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ TAMPERED");
    insta::assert_snapshot!(find_row(&report, "anchor"), @"✗ anchor     refs/handoff/remotes/origin/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.e54ff5b564bd holds another run by this name: that of the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg began with sha256:35d8b2a020e67c5caae72d2e242ebf6d5e30f46ded56bf81bbd7349738890dbe; that of SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg with sha256:15bea6e2c1ae24499f75d593b69d7e020061bb5c33cf0635ee91626178af339d");
}

#[test]
fn a_log_that_knows_less_of_a_run_tells_no_other_story() {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    let plan = r#"{"id": "more", "items": [{"id": "a", "executor": "command", "inputs": {"command": "true"}}]}"#;
    env.write("repo/more.json", plan);
    env.handoff(["submit", "more.json"]).success();
    // An interrupted push left the run without a log, and another clone with the same key repaired
    // it.
    env.git(["push", "--quiet", "origin", "refs/handoff/runs/more:refs/handoff/runs/more"]).success();
    env.handoff_in("hub", ["doctor", "--fix"]).success();
    let lengths = || logs(&env, "hub", "refs/handoff/logs").into_iter().map(|(_, length)| length).collect::<Vec<_>>();
    assert_eq!(lengths(), [3, 1], "a log of the hub's says that it was submitted");
    env.handoff(["run", "more"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(lengths(), [3, 2]);
    env.git_in(".", ["clone", "--quiet", "--no-local", "hub", "clone"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["verify", "origin/more"]).success();
    env.handoff(["verify", "more"]).success();
}

#[test]
fn a_fetched_run_is_looked_at_and_not_driven() {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    env.git_in(".", ["clone", "--quiet", "--no-local", "hub", "clone"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    for name in ["handoff-dag-1", "origin/handoff-dag-1"] {
        env.handoff_in("clone", ["status", name]).success();
        let refused = env.handoff_in("clone", ["run", name]).exit(1);
        assert_eq!(
            refused.stderr,
            "error: the run \"handoff-dag-1\" was fetched; it can only be changed where it is driven\n"
        );
        let retry_refused = env.handoff_in("clone", ["retry", &format!("{name}/edit-a")]).exit(1);
        assert_eq!(
            retry_refused.stderr,
            "error: the run \"handoff-dag-1\" was fetched; it can only be changed where it is driven\n"
        );
    }
}
