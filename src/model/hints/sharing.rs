//! Hints about what is pushed: all that there is, or what was named.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// Nothing was named to be pushed.
    push_all(remote) => "git handoff push {remote} --all";
    /// The remote has another run of this name, which keeps everything else from being pushed.
    rename_and_delete(run) =>
        "git handoff run PLAN --id ID   # gives yours an id of its own; then nothing is in the way of a push: git handoff delete {run}";
    /// The remote takes no push options, and the configuration sets one.
    no_push_option() =>
        "git -c push.pushOption= handoff push   # for this once; or for good: git config --unset-all push.pushOption";
}

/// Somebody is changing a ref of the remote, or died while they did; `names` is what was to be pushed, or none for all.
pub fn push_again(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    let (remote, what) = (remote.to_string(), asked(names));
    let about = [remote.as_str()];
    let remote = quoted(&remote);
    let line = format!(
        "git handoff push {remote} {what}   # again; if that stays: git handoff doctor --fix, in the remote's repository"
    );
    Hint::new("push_again", &about, line)
}

/// Returns the words that ask for the same once more.
pub(super) fn asked(names: Option<&[String]>) -> String {
    names
        .map_or_else(|| "--all".to_owned(), |names| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" "))
}

/// An anchor of that name is there.
pub fn remove_anchor(name: impl fmt::Display) -> Hint {
    let section = quoted(&format!("handoff.anchor.{name}"));
    Hint::new("remove_anchor", &[&name.to_string()], format!("git config --remove-section {section}"))
}
