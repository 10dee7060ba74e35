//! Filters that are switched off, and repositories that keep more than git does: git-annex,
//! `DataLad` and git-crypt.

use std::path::Path;

use serde_json::json;

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

/// A repository of git-annex with an unlocked and a locked file.
const ANNEX: &str = "git annex init --quiet here && seq 2000 >big.dat && printf 'small\\n' >locked.dat && git annex add --quiet big.dat locked.dat \
    && git annex unlock --quiet big.dat && git commit --quiet --message Annexed";

#[test]
fn items_work_in_a_repository_of_git_annex() {
    if !has("git-annex") {
        return;
    }
    for sandbox in ["none", "auto"] {
        let env = repository(sandbox, ANNEX);
        let before = untouched(&env);
        // One that touches no annexed file.
        assert_eq!(done(&env, "plain", "echo two >>README.md; git status --short"), " M README.md\n");
        assert_eq!(applied(&env, "plain", "README.md"), "one\ntwo\n");
        assert_eq!(env.git(["diff", "--name-only", "main", "plain"]).success(), "README.md\n");
        // Contents are there, and nothing is changed by that.
        let read = done(
            &env,
            "read",
            "cat locked.dat; tail -1 big.dat; git status --short; git commit --quiet --allow-empty -m x",
        );
        assert_eq!(read, "small\n2000\n", "{sandbox}");
        // Changed files are captured as git would commit them, with the content in the annex.
        done(&env, "edit", "echo 2001 >>big.dat; echo new >new.txt");
        let pointer = applied(&env, "edit", "big.dat");
        let key = pointer.trim().strip_prefix("/annex/objects/").unwrap_or_else(|| panic!("{sandbox}: {pointer}"));
        let mut expected = (1..=2001).fold(String::new(), |text, n| text + &n.to_string() + "\n");
        assert_eq!(env.shell("repo", &format!("cat \"$(git annex contentlocation {key})\"")).success(), expected);
        assert_eq!(env.git(["diff", "--name-only", "main", "edit"]).success(), "big.dat\nnew.txt\n");
        for run in ["plain", "edit"] {
            env.git(["branch", "--quiet", "-D", run]).success();
        }
        let after = untouched(&env);
        let ours = |text: &str| {
            text.lines().filter(|line| !line.contains("refs/heads/git-annex")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(ours(&after), ours(&before));
        // A content that is not present leaves the pointer, and the item works.
        env.shell("repo", "git annex drop --force --quiet big.dat && git annex drop --force --quiet locked.dat")
            .success();
        expected = done(
            &env,
            "absent",
            "head -c 15 big.dat; echo; test ! -e locked.dat && git status --short; echo three >>README.md",
        );
        assert_eq!(expected, "/annex/objects/\n", "{sandbox}");
        env.handoff(["apply", "absent", "--branch", "absent"]).success();
        assert_eq!(env.git(["diff", "--name-only", "main", "absent"]).success(), "README.md\n");
    }
}

#[test]
fn items_work_in_a_dataset_of_datalad() {
    if !has("datalad") || !has("git-annex") {
        return;
    }
    for sandbox in ["none", "auto"] {
        let env = Environment::empty();
        env.git_in("", ["config", "--global", "handoff.sandbox", sandbox]).success();
        let make = "datalad -l critical create -c text2git repo >/dev/null 2>&1 && cd repo && echo one >README.md && head -c 3000 /dev/zero >data.bin \
            && datalad -l critical save -m Start >/dev/null 2>&1 && test -L data.bin";
        env.shell("", make).success();
        assert!(Path::new(&env.path().join("repo/.datalad")).is_dir());
        assert_eq!(
            done(&env, "plain", "wc -c <data.bin; echo two >>README.md; git status --short"),
            "3000\n M README.md\n"
        );
        assert_eq!(applied(&env, "plain", "README.md"), "one\ntwo\n");
        // A new file that is not text is large, by the attributes of the dataset, and kept under an
        // MD5.
        done(&env, "new", "head -c 4000 /dev/zero >more.bin");
        let pointer = applied(&env, "new", "more.bin");
        assert!(pointer.starts_with("/annex/objects/MD5E-s4000--"), "{sandbox}: {pointer}");
        let key = pointer.trim().trim_start_matches("/annex/objects/");
        assert_eq!(env.shell("repo", &format!("wc -c <\"$(git annex contentlocation {key})\"")).success(), "4000\n");
    }
}
