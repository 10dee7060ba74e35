//! Filters that are switched off, and repositories that keep more than git does: git-annex
//! and git-crypt.

use serde_json::{Value, json};

use super::pool;
use crate::common::Environment;

/// A repository whose files a script makes.
fn repository(sandbox: &str, make: &str) -> Environment {
    let env = Environment::empty();
    env.git_in("", ["config", "--global", "handoff.sandbox", sandbox]).success();
    let start = "git init --quiet repo && cd repo && echo one >README.md && git add README.md && git commit --quiet --message Start";
    env.shell("", start).success();
    env.shell("repo", make).success();
    env
}

/// Runs one item, which must be done; returns what it printed.
#[track_caller]
fn done(env: &Environment, run: &str, command: &str) -> String {
    let plan = json!({ "id": run, "items": [{ "id": "a", "executor": "command", "maxAttempts": 1, "inputs": { "command": command } }] });
    env.write("plan.json", &plan.to_string());
    env.handoff(["run", "../plan.json"]).success();
    env.handoff(["cat", &format!("{run}/a:transcript")]).success()
}

/// Returns a file of the branch that a run is applied to.
fn applied(env: &Environment, run: &str, file: &str) -> String {
    env.handoff(["apply", run, "--branch", run]).success();
    env.git(["cat-file", "blob", &format!("{run}:{file}")]).success()
}

/// Returns true if a program is there to be run.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").expect("there is a PATH");
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        pool::skipped(&format!("{program} is not here"));
    }
    found
}

/// Everything in a repository that is not ours: files, status, refs.
fn untouched(env: &Environment) -> String {
    let list = "git status --short; git for-each-ref refs/heads refs/tags; find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort";
    env.shell("repo", list).success()
}

#[test]
fn an_empty_filter_command_is_no_filter() {
    let make = "printf '*.bin filter=own -text\\n' >.gitattributes && printf 'data\\n' >x.bin && git add --all && git commit --quiet --message More";
    for sandbox in ["none", "auto"] {
        for settings in [
            "git config filter.own.smudge '' && git config filter.own.clean ''",
            "git config filter.own.smudge '' && git config filter.own.process '' && git config filter.own.required false",
            // With an empty process, git runs no other command.
            "git config filter.own.process '' && git config filter.own.clean 'tr a-z A-Z' && git config filter.own.smudge 'tr a-z A-Z'",
            // The nearest file counts, for each setting.
            "git config --global filter.own.clean 'tr a-z A-Z' && git config --global filter.own.required true \
             && git config filter.own.clean '' && git config filter.own.required false",
        ] {
            let env = repository(sandbox, &format!("{make} && {settings}"));
            let before = untouched(&env);
            assert_eq!(
                done(&env, "r", "cat x.bin; echo more >>x.bin; git status --short"),
                "data\n M x.bin\n",
                "{settings}"
            );
            assert_eq!(applied(&env, "r", "x.bin"), "data\nmore\n", "{settings}");
            env.git(["branch", "--quiet", "-D", "r"]).success();
            assert_eq!(untouched(&env), before);
        }
        // One that is there still counts.
        let env = repository(
            sandbox,
            &format!("{make} && git config filter.own.smudge '' && git config filter.own.clean 'tr a-z A-Z'"),
        );
        done(&env, "r", "echo more >>x.bin");
        assert_eq!(applied(&env, "r", "x.bin"), "DATA\nMORE\n");
    }
}

#[test]
fn items_edit_files_of_git_crypt() {
    if !has("git-crypt") {
        return;
    }
    let make = "git crypt init >/dev/null && printf 'secret.* filter=git-crypt diff=git-crypt\\n' >.gitattributes \
        && printf 'hidden\\n' >secret.txt && git add --all && git commit --quiet --message More";
    for sandbox in ["none", "auto"] {
        let env = repository(sandbox, make);
        assert_eq!(done(&env, "plain", "echo two >>README.md"), "");
        assert_eq!(applied(&env, "plain", "README.md"), "one\ntwo\n");
        assert_eq!(done(&env, "edit", "cat secret.txt; echo more >>secret.txt"), "hidden\n");
        assert_eq!(
            done(&env, "commit", "echo most >>secret.txt; git commit --quiet --all --message x && git status --short"),
            ""
        );
        for (run, text) in [("edit", "hidden\nmore\n"), ("commit", "hidden\nmost\n")] {
            assert!(applied(&env, run, "secret.txt").starts_with("\0GITCRYPT\0"), "{sandbox} {run}");
            env.git(["checkout", "--quiet", run]).success();
            assert_eq!(std::fs::read_to_string(env.path().join("repo/secret.txt")).expect("it is there"), text);
            env.git(["checkout", "--quiet", "main"]).success();
        }
        // A locked clone has no key, and items that leave those files alone work.
        done(&env, "again", "head -c 6 secret.txt; echo three >>README.md");
        env.git_in("", ["clone", "--quiet", "repo", "locked"]).success();
        env.git_in("locked", ["config", "handoff.signingKey", ""]).success();
        env.handoff_in("locked", ["run", "../plan.json", "--id", "l"]).success();
    }
}

/// Asserts that neither a run nor a recording starts in a repository, which stays as it is.
#[track_caller]
fn refused(env: &Environment, sign: &str) {
    let plan =
        json!({ "id": "r", "items": [{ "id": "a", "executor": "command", "inputs": { "command": "touch ../ran" } }] });
    env.write("plan.json", &plan.to_string());
    let before = untouched(env);
    for args in [&["run", "../plan.json", "--json"][..], &["record", "--json", "--", "touch", "../ran"]] {
        let printed = env.handoff(args).exit(1);
        let failure: Value =
            serde_json::from_str(printed.stderr.lines().last().unwrap_or_default()).expect("it is JSON");
        assert_eq!(failure["code"], "git-annex");
        let message = failure["message"].as_str().expect("it is a text");
        assert!(message.contains("git-annex") && message.contains(sign), "{message}");
        assert!(failure["hint"].as_str().is_some_and(|hint| hint.contains("--single-branch")), "{failure}");
    }
    assert_eq!(untouched(env), before);
    let left = env.shell("", "find . -name ran -o -name 'a.1' -o -name 'record.1'").success();
    assert_eq!(left, "");
}

#[test]
fn no_run_starts_in_a_repository_of_git_annex() {
    if !has("git-annex") {
        return;
    }
    let make = "git annex init --quiet here && seq 2000 >big.dat && printf 'small\\n' >locked.dat \
        && git annex add --quiet big.dat locked.dat && git annex unlock --quiet big.dat && git commit --quiet --message Annexed";
    let env = repository("auto", make);
    refused(&env, "the setting annex.uuid");
    // A clone in which git-annex never ran.
    env.shell("", "mv repo origin && git clone --quiet origin repo").success();
    refused(&env, "the branch refs/remotes/origin/git-annex");
    // A branch without such files, from which the clone takes nothing else.
    env.shell("origin", "git branch plain HEAD~").success();
    env.shell("", "rm -rf repo && git clone --quiet --single-branch --branch plain origin repo").success();
    done(&env, "r", "echo two >>README.md");
    assert_eq!(applied(&env, "r", "README.md"), "one\ntwo\n");
}

#[test]
fn links_to_contents_of_git_annex_are_enough_to_refuse() {
    let make = "mkdir deep && ln -s ../.git/annex/objects/79/mG/K/K deep/locked.dat && git add --all && git commit --quiet --message More";
    let env = repository("none", make);
    refused(&env, "the link deep/locked.dat in ");
    // In a submodule too, if it is checked out.
    env.shell("", "mv repo sub && git init --quiet repo").success();
    let add = "git -c protocol.file.allow=always submodule --quiet add ../sub sub && git commit --quiet --message Sub";
    env.shell("repo", add).success();
    done(&env, "without", "echo one >one.txt");
    env.git(["config", "handoff.workspace.submodules", "true"]).success();
    let plan =
        json!({ "id": "with", "items": [{ "id": "a", "executor": "command", "inputs": { "command": "true" } }] });
    env.write("plan.json", &plan.to_string());
    let output = env.handoff(["run", "../plan.json"]);
    assert_ne!(output.status, Some(0), "{output}");
    assert!(output.stderr.contains("the link deep/locked.dat in "), "{output}");
}
