//! Hints about applying products and checking out work.

use std::fmt;
use std::path::PathBuf;

use super::{Hint, Parts, quoted};
use crate::model::digest::Oid;

hints! {
    fetch_base(base) => "git fetch origin {base}   # in a shallow clone: git fetch --unshallow";
    first_commit() => "git commit --allow-empty -m 'Start'";
    branch() => "say which branch: --branch NAME";
    apply_recorded(run) => "git handoff apply {run}   # as a commit: --commit";
    apply_red(run) => "git handoff apply {run} --allow-red   # to take it";
    record_by_agent(agent) => "git handoff record --agent {agent} TASK   # runs it with all that it needs";
    record_dirty() => "git stash --include-untracked   # or seal the changes as the base: --dirty";
    adopt_range() => "git handoff record --adopt FIRST..LAST   # the commits after FIRST, up to LAST";
    take_saved(base, work) => "git diff --binary {base} {work} | git apply --3way   # takes the saved work";
    take_commits(commits) => "git cat-file blob {commits} >saved.bundle && git fetch saved.bundle 'refs/*:refs/remotes/saved/*'   # takes the saved commits";
    shell_line() => "git handoff record -- sh -c 'COMMAND LINE'   # a shell line is one word; a program needs a folder of PATH";
    commit_first() => "git add FILE && git commit   # or, in the present work tree: git handoff record --here -- COMMAND";
    record_again(run) => "git handoff record --as {run}   # continues it; or seal it as it is: git handoff abandon {run}";
    record_left(run) => "git handoff record --as {run}   # takes what lies there, once the cause is gone: git config handoff.maxProductSize 1g; or give it up: git handoff abandon {run}";
    one_item(run) => "git handoff apply {run}/ITEM --commit -m MESSAGE   # one item after the other";
    three_way(what) => "git handoff apply {what} --commit --3way   # to resolve the conflicts in the work tree";
    no_verify() => "git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify";
    resolve() => "edit the files, `git add` them and `git handoff apply --continue`   # or give up: git handoff apply --abort";
    put_aside() => "put a copy aside, then `git restore --staged --worktree FILE` and `git handoff apply --abort`";
    give_up() => "git handoff apply --abort";
    apply_there(place) => "run `git handoff apply` without --branch in {place}";
    stash_or_branch() => "git stash --include-untracked   # or apply onto a branch: --branch NAME";
    finish() => "git status   # a merge, rebase or pick is not finished: it says how to go on, or to give it up";
    stash() => "git stash --include-untracked";
    switch(base) => "git switch --detach {base}";
    identity() => "git config user.name 'Your Name' && git config user.email you@example.com";
    bring_object() => "git handoff fetch --content   # in a partial clone; in a shallow one: git fetch --unshallow";
    fetch_products() => "git handoff fetch --content";
    fetch_products_and_history() => "git handoff fetch --content && git fetch --unshallow";
    fetch_object(id) => "git cat-file -e {id}   # brings it into a partial clone, if its remote has it";
}

/// The saved commit of a submodule is missing.
pub fn check_out_submodule(path: &str, commit: &Oid) -> String {
    let path = quoted(path);
    format!(
        "git submodule update --init -- {path} && git -C {path} fetch origin {commit} && git -C {path} checkout {commit}"
    )
}

/// Local changes prevent a checkout, and index flags hide them from `git stash`.
pub fn unmark_and_stash(skipped: &[PathBuf], assumed: &[PathBuf]) -> Hint {
    let unmarked = [unmark("--no-skip-worktree", skipped), unmark("--no-assume-unchanged", assumed)];
    let line = format!("{}{}", unmarked.into_iter().flatten().collect::<String>(), stash());
    Hint::new("unmark_and_stash", &[], line)
}

/// Returns the command that changes a flag of files in the index.
fn unmark(flag: &str, files: &[PathBuf]) -> Option<String> {
    let files: Vec<String> = files.iter().map(|file| quoted(&file.display().to_string())).collect();
    (!files.is_empty()).then(|| format!("git update-index {flag} -- {} && ", files.join(" ")))
}
