//! Hints about pushing all or named runs.

use std::fmt;

use super::{Hint, Parts, quoted};
use crate::model::quote::quoted_words;

hints! {
    push_all(remote) => "git handoff push {remote} --all";
    rename_and_delete(run) =>
        "git handoff adopt-run {run} --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete {run}";
    run_via(run, remote) => "git handoff run {run} --via {remote}";
    with_offline() => "the same command with --offline   # goes by what is here: other machines may have done more";
    without_offline() => "the same command without --offline";
    keep_one(run, remote) =>
        "git handoff adopt-run {run} --id ID && git handoff delete {run} && git handoff fetch {remote} {run}   # keeps both: yours as ID, and the one of {remote} as {remote}/{run}";
    adopt_and_delete(run) => "git handoff adopt-run {run} --id ID && git handoff delete {run}   # keeps both";
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
    let (remote, what) = (remote.to_string(), requested_names(names));
    let about = [remote.as_str()];
    let remote = quoted(&remote);
    let line = format!(
        "git handoff push {remote} {what}   # again; if that stays: git handoff doctor --fix, in the remote's repository"
    );
    Hint::new("push_again", &about, line)
}

/// Only another key can write the logs of these runs and threads; `file` is the key's, if found.
pub fn push_with(file: Option<&str>, remote: Option<&str>, names: &[String]) -> Hint {
    let setting = file.map_or_else(|| "KEY-FILE".to_owned(), quoted);
    let (to, what) = (remote.map_or_else(|| "REMOTE".to_owned(), quoted), requested_names(Some(names)));
    let about: Vec<&str> = remote.into_iter().chain(names.iter().map(String::as_str)).collect();
    Hint::new("push_with", &about, format!("git -c handoff.signingKey={setting} handoff push {to} {what}"))
}

/// Formats the arguments to repeat the same command.
pub(super) fn requested_names(names: Option<&[String]>) -> String {
    names.map_or_else(|| "--all".to_owned(), quoted_words)
}

/// An anchor of this name exists.
pub fn remove_anchor(name: impl fmt::Display) -> Hint {
    let section = quoted(&format!("handoff.anchor.{name}"));
    Hint::new("remove_anchor", &[&name.to_string()], format!("git config --remove-section {section}"))
}
