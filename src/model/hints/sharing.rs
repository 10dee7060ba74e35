//! Hints about pushing all or named runs.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    push_all(remote) => "git handoff push {remote} --all";
    rename_and_delete(run) =>
        "git handoff adopt-run {run} --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete {run}";
    run_via(run, remote) => "git handoff run {run} --via {remote}";
    end_there(run) => "in the repository that drove it: git handoff run {run}, or Ctrl-C and then --via";
    submit_then_share(remote) => "git handoff submit PLAN, then: git handoff run RUN --via {remote}";
    lost_after() => "git config handoff.lostAfter 60s";
    set_back(remote, run, bad, good) =>
        "one who may push sets it back: git push --force-with-lease=refs/handoff/runs/{run}:{bad} {remote} {good}:refs/handoff/runs/{run}";
    remove_lock_there(remote) =>
        "if no git runs in the repository of {remote}, remove the file there; or there, once it is an hour old: git handoff doctor --fix";
    no_push_option() =>
        "git -c push.pushOption= handoff push   # for this once; or for good: git config --unset-all push.pushOption";
}

/// Another process is changing a ref of the remote, or died; `names` is what was pushed, or empty
/// for all.
pub fn push_again(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    let (remote, what) = (remote.to_string(), asked(names));
    let about = [remote.as_str()];
    let remote = quoted(&remote);
    let line = format!(
        "git handoff push {remote} {what}   # again; if that stays: git handoff doctor --fix, in the remote's repository"
    );
    Hint::new("push_again", &about, line)
}

/// Formats the arguments to repeat the same command.
pub(super) fn asked(names: Option<&[String]>) -> String {
    names
        .map_or_else(|| "--all".to_owned(), |names| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" "))
}

/// An anchor of this name exists.
pub fn remove_anchor(name: impl fmt::Display) -> Hint {
    let section = quoted(&format!("handoff.anchor.{name}"));
    Hint::new("remove_anchor", &[&name.to_string()], format!("git config --remove-section {section}"))
}
