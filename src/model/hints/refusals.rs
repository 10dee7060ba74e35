//! Hints for refusals by hosts, proxies and S3 servers.

use std::fmt;

use super::sharing::requested_names;
use super::{Hint, Parts, quoted};

hints! {
    hand_over_files() => "leave edits in the work tree and files in outputs/   # the run takes them when this attempt ends";
    push_right(remote) =>
        "git remote set-url --push {remote} URL   # with an account, key or token that may write there";
    sign_in(remote) => "git ls-remote {remote}   # asks for the credentials; a helper of git's can keep them";
    push_less(remote) =>
        "git handoff push {remote} RUN   # one run a push, without --transcripts; or the host must raise its limit";
    fetch_first(remote) => "git handoff fetch {remote}   # then push again";
    host_disk() => "ask the owner of the host, which could not write there; then push again";
    host_checks() =>
        "git -c transfer.fsckObjects=true fsck   # names what the host found; `receive.fsck.<message> = ignore` there lets it through";
    let_through(finding) =>
        "git config fetch.fsck.{finding} ignore   # if you take such objects all the same; then the same command again";
    remote_of_same_hash() =>
        "git init --bare --object-format=\"$(git rev-parse --show-object-format)\" FOLDER   # a remote of the same hash: git carries nothing between two";
    again_later() => "the same command again, a little later";
    set_clock() => "date -u   # set the clock of this machine, then the same command again";
    s3_credentials() =>
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or: git config handoff.anchor.NAME.profile PROFILE";
    s3_rights() =>
        "grant the key s3:ListBucketVersions, s3:GetObjectVersion, s3:GetObjectRetention and, to publish, s3:PutObject and s3:PutObjectRetention";
    s3_region() => "git config handoff.anchor.NAME.region REGION   # when you add the anchor: --region REGION";
    s3_lock() => "aws s3api create-bucket --object-lock-enabled-for-bucket --bucket NAME";
}

/// The remote accepts branches only; `names` is what was pushed, or empty for all.
pub fn push_as_branch(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("push_as_branch", &remote, names, "or in a file: git handoff bundle --all --output runs.bundle")
}

/// A hook of the remote refused the push; `names` is what was pushed, or empty for all.
pub fn declined(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("declined", &remote, names, "if the host takes branches alone; else do what it says above")
}

/// The remote or a proxy forbids the push; `names` is what was pushed, or empty for all.
pub fn forbidden(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("forbidden", &remote, names, "if it takes branches alone; or you lack the right to push there")
}

/// The remote accepted a ref and does not show it; `names` is what was pushed, or empty for all.
pub fn hidden(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("hidden", &remote, names, "the host does not show other refs than branches")
}

/// The refs are protected; `names` is what was pushed, or empty for all.
pub fn protected(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    let (remote, what) = (remote.to_string(), requested_names(names));
    let about = [remote.as_str()];
    let remote = quoted(&remote);
    let line = format!(
        "git handoff push {remote} {what} --as-branch PREFIX   # a prefix that the host does not protect; or have its owner allow it"
    );
    Hint::new("protected", &about, line)
}

fn as_branch(name: &'static str, remote: &dyn fmt::Display, names: Option<&[String]>, why: &str) -> Hint {
    let (remote, what) = (remote.to_string(), requested_names(names));
    let about = [remote.as_str()];
    let line = format!("git handoff push {} {what} --as-branch handoff   # {why}", quoted(&remote));
    Hint::new(name, &about, line)
}
