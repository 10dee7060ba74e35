//! Several clones of one person, with one key: each writes its log, and none is in another's way.

use crate::common::Environment;

use super::{refs, shared};

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

/// Returns an environment whose clones `repo` and `clone` have one key, with a run from each pushed to `hub`.
fn two() -> Environment {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    // As over a network: without the objects that no branch reaches.
    env.git_in(".", ["clone", "--quiet", "--no-local", "hub", "clone"]).success();
    run(&env, "clone", "second");
    env.handoff_in("clone", ["push", "--all"]).success();
    env
}

#[test]
fn a_second_clone_writes_a_log_beside_the_first() {
    let env = two();
    let (first, second) = (travelling(&env, "repo"), travelling(&env, "clone"));
    let mut both = [first.clone(), second.clone()];
    both.sort();
    assert_eq!(logs(&env, "hub", "refs/handoff/logs"), both, "{}", refs(&env, "hub"));
    assert_ne!(first, second);
    // Both go on, and neither hears of the other again.
    run(&env, "clone", "third");
    run(&env, "repo", "fourth");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(logs(&env, "hub", "refs/handoff/logs"), both.map(|(name, _)| (name, 4)));
    env.handoff_in("clone", ["fetch"]).success();
    for run in ["origin/handoff-dag-1", "second", "third", "origin/fourth"] {
        env.handoff_in("clone", ["verify", run]).success();
    }
    env.handoff_in("clone", ["doctor"]).ends(0);
}

#[test]
fn a_copied_clone_parts_where_it_begins_to_differ() {
    let env = two();
    env.shell(".", "cp -R clone copy").success();
    run(&env, "clone", "third");
    run(&env, "copy", "fourth");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff_in("copy", ["fetch"]).success();
    env.handoff_in("copy", ["push", "--all"]).success();
    let lengths: Vec<_> = logs(&env, "hub", "refs/handoff/logs").into_iter().map(|(_, length)| length).collect();
    assert_eq!((lengths.len(), lengths.iter().sum::<usize>()), (3, 2 + 4 + 4), "{}", refs(&env, "hub"));
    env.handoff_in("clone", ["fetch"]).success();
    for run in ["third", "origin/second", "origin/fourth"] {
        env.handoff_in("clone", ["verify", run]).success();
    }
}

#[test]
fn a_crash_between_the_names_loses_nothing() {
    let env = two();
    let (before, _) = travelling(&env, "clone");
    env.shell(".", "cp -R clone copy").success();
    run(&env, "clone", "third");
    run(&env, "copy", "fourth");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff_in("copy", ["push", "--all"]).success();
    let (after, _) = travelling(&env, "copy");
    assert_ne!(before, after);
    env.git_in("copy", ["update-ref", &before, &after]).success();
    run(&env, "copy", "fifth");
    env.handoff_in("copy", ["push", "--all"]).success();
    assert_eq!(travelling(&env, "copy"), (after, 6));
}

#[test]
fn a_name_stays_with_its_log() {
    let env = two();
    let (further, _) = &travelling(&env, "clone");
    let other = format!("{}000000000000", &further[..further.len() - 12]);
    env.git_in("clone", ["update-ref", &other, further]).success();
    env.git_in("clone", ["update-ref", "-d", further]).success();
    env.shell("clone", "git for-each-ref --format='delete %(refname)' refs/handoff/remotes | git update-ref --stdin")
        .success();
    let said = env.handoff_in("clone", ["verify", "second"]).exit(3).stdout;
    assert!(said.contains("✗ NOT ANCHORED") && said.contains("it has not the entry that its name says"), "{said}");
}

#[test]
fn one_name_for_two_runs_is_found_out() {
    let env = two();
    run(&env, "clone", "same");
    run(&env, "repo", "same");
    env.handoff_in("clone", ["push", "--all"]).success();
    env.handoff(["fetch"]).success();
    let refused = env.handoff(["push", "--all"]).exit(1);
    assert!(refused.stderr.contains(r#"the run "same" on the remote is another one"#), "{refused}");
    // One key tells two stories of one run.
    let said = env.handoff(["verify", "same"]).exit(3).stdout;
    assert!(said.contains("✗ TAMPERED") && said.contains("holds another run by this name"), "{said}");
}

#[test]
fn a_log_that_knows_less_of_a_run_tells_no_other_story() {
    let env = shared();
    env.handoff(["push", "--all"]).success();
    let plan = r#"{"id": "more", "items": [{"id": "a", "executor": "command", "inputs": {"command": "true"}}]}"#;
    env.write("repo/more.json", plan);
    env.handoff(["submit", "more.json"]).success();
    // A push that broke off left the run and not the log, and somebody mended the other repository with the same key.
    env.git(["push", "--quiet", "origin", "refs/handoff/runs/more:refs/handoff/runs/more"]).success();
    env.handoff_in("hub", ["doctor", "--fix"]).success();
    let lengths = || logs(&env, "hub", "refs/handoff/logs").into_iter().map(|(_, length)| length).collect::<Vec<_>>();
    assert_eq!(lengths(), [3, 2], "a log of the hub's says that it was submitted");
    env.handoff(["run", "more"]).success();
    env.handoff(["push", "--all"]).success();
    assert_eq!(lengths(), [3, 4]);
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
    for named in ["handoff-dag-1", "origin/handoff-dag-1"] {
        env.handoff_in("clone", ["status", named]).success();
        let refused = env.handoff_in("clone", ["run", named]).exit(1);
        assert!(refused.stderr.contains("it can only be changed where it is driven"), "{refused}");
        let refused = env.handoff_in("clone", ["retry", &format!("{named}/edit-a")]).exit(1);
        assert!(refused.stderr.contains("it can only be changed where it is driven"), "{refused}");
    }
}
