//! Hints about how products get into the repository.

use std::fmt;
use std::path::PathBuf;

use super::{Hint, Parts, quoted};
use crate::model::digest::Oid;

hints! {
    /// The commit that a run stands on is not here.
    fetch_base(base) => "git fetch origin {base}   # in a shallow clone: git fetch --unshallow";
    /// There is no commit to stand on.
    first_commit() => "git commit --allow-empty -m 'Start'";
    /// Which branch is meant cannot be told.
    branch() => "say which branch: --branch NAME";
    /// What is applied would be several commits, and there is one message.
    one_item(run) => "git handoff apply {run}/ITEM --commit -m MESSAGE   # one item after the other";
    /// Patches do not apply, and a person can resolve that in the work tree.
    three_way(what) => "git handoff apply {what} --commit --3way   # to resolve the conflicts in the work tree";
    /// A hook is in the way of a commit.
    no_verify() => "git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify";
    /// Conflicts are to be resolved before anything else is applied.
    resolve() => "edit the files, `git add` them and `git handoff apply --continue`   # or give up: git handoff apply --abort";
    /// What a person changed since is in the way of giving up.
    put_aside() => "put a copy aside, then `git restore --staged --worktree FILE` and `git handoff apply --abort`";
    /// What was begun can only be given up.
    give_up() => "git handoff apply --abort";
    /// The branch is checked out elsewhere.
    apply_there(place) => "run `git handoff apply` without --branch in {place}";
    /// Changes are in the way of what is applied.
    stash_or_branch() => "git stash --include-untracked   # or apply onto a branch: --branch NAME";
    /// Changes are in the way of what is checked out.
    stash() => "git stash --include-untracked";
    /// The work tree stands on another commit.
    switch(base) => "git switch --detach {base}";
    /// Git does not know who commits.
    identity() => "git config user.name 'Your Name' && git config user.email you@example.com";
    /// An object is not here, and may be elsewhere.
    bring_object() => "git handoff fetch --content   # in a partial clone; in a shallow one: git fetch --unshallow";
    /// Objects of a run are not in this partial clone.
    fetch_products() => "git handoff fetch --content";
    /// Objects of a run are not in this clone, which is partial and shallow.
    fetch_products_and_history() => "git handoff fetch --content && git fetch --unshallow";
    /// An object may be at the remote of a partial clone.
    fetch_object(id) => "git cat-file -e {id}   # brings it into a partial clone, if its remote has it";
}

/// A submodule is to be at a commit that is not here.
pub fn check_out_submodule(path: &str, commit: &Oid) -> String {
    let path = quoted(path);
    format!(
        "git submodule update --init -- {path} && git -C {path} fetch origin {commit} && git -C {path} checkout {commit}"
    )
}

/// Changes are in the way of a checkout, and the index marks their files, so that `git stash` would not see them.
pub fn unmark_and_stash(skipped: &[PathBuf], assumed: &[PathBuf]) -> Hint {
    let unmark = |flag: &str, files: &[PathBuf]| {
        let files: Vec<String> = files.iter().map(|file| quoted(&file.display().to_string())).collect();
        (!files.is_empty()).then(|| format!("git update-index {flag} -- {} && ", files.join(" ")))
    };
    let unmarked = [unmark("--no-skip-worktree", skipped), unmark("--no-assume-unchanged", assumed)];
    let line = format!("{}{}", unmarked.into_iter().flatten().collect::<String>(), stash());
    Hint::new("unmark_and_stash", &[], line)
}
