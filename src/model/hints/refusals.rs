//! Hints about what a host, a proxy or a server of S3 refuses.

use std::fmt;

use super::sharing::asked;
use super::{Hint, Parts, quoted};

hints! {
    /// The remote knows who asks, and lets them write nothing.
    push_right(remote) =>
        "git remote set-url --push {remote} URL   # with an account, key or token that may write there";
    /// The remote wants to know who asks.
    sign_in(remote) => "git ls-remote {remote}   # asks for the credentials; a helper of git's can keep them";
    /// The push is larger than the remote, or a proxy before it, takes.
    push_less(remote) =>
        "git handoff push {remote} RUN   # one run a push, without --transcripts; or the host must raise its limit";
    /// The remote went on meanwhile.
    fetch_first(remote) => "git handoff fetch {remote}   # then push again";
    /// The remote could not write.
    host_disk() => "ask the owner of the host, which could not write there; then push again";
    /// The remote checks objects and found fault with one.
    host_checks() =>
        "git -c transfer.fsckObjects=true fsck   # names what the host found; `receive.fsck.<message> = ignore` there lets it through";
    /// git's check of what came in found fault with an object.
    let_through(finding) =>
        "git config fetch.fsck.{finding} ignore   # if you take such objects all the same; then the same command again";
    /// The server cannot answer now.
    again_later() => "the same command again, a little later";
    /// The clock here is too far from the server's.
    set_clock() => "date -u   # set the clock of this machine, then the same command again";
    /// S3 does not know who asks.
    s3_credentials() =>
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or: git config handoff.anchor.NAME.profile PROFILE";
    /// S3 knows the key and does not let it do this.
    s3_rights() =>
        "grant the key s3:ListBucketVersions, s3:GetObjectVersion, s3:GetObjectRetention and, to publish, s3:PutObject and s3:PutObjectRetention";
    /// The bucket is in another region.
    s3_region() => "git config handoff.anchor.NAME.region REGION   # when you add the anchor: --region REGION";
    /// A bucket lets objects be deleted, or is not there.
    s3_lock() => "aws s3api create-bucket --object-lock-enabled-for-bucket --bucket NAME";
}

/// The remote takes branches alone, or nothing; `names` is what was to be pushed, or none for all.
pub fn push_as_branch(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("push_as_branch", &remote, names, "or in a file: git handoff bundle --all --output runs.bundle")
}

/// A hook of the remote refuses the push; `names` is what was to be pushed, or none for all.
pub fn declined(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("declined", &remote, names, "if the host takes branches alone; else do what it says above")
}

/// The remote, or what stands before it, forbids the push; `names` is what was to be pushed, or
/// none for all.
pub fn forbidden(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("forbidden", &remote, names, "if it takes branches alone; or you lack the right to push there")
}

/// The remote took a ref and does not show it; `names` is what was to be pushed, or none for all.
pub fn hidden(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    as_branch("hidden", &remote, names, "the host does not show other refs than branches")
}

/// The remote protects the refs; `names` is what was to be pushed, or none for all.
pub fn protected(remote: impl fmt::Display, names: Option<&[String]>) -> Hint {
    let (remote, what) = (remote.to_string(), asked(names));
    let about = [remote.as_str()];
    let remote = quoted(&remote);
    let line = format!(
        "git handoff push {remote} {what} --as-branch PREFIX   # a prefix that the host does not protect; or have its owner allow it"
    );
    Hint::new("protected", &about, line)
}

fn as_branch(name: &'static str, remote: &dyn fmt::Display, names: Option<&[String]>, why: &str) -> Hint {
    let (remote, what) = (remote.to_string(), asked(names));
    let about = [remote.as_str()];
    let line = format!("git handoff push {} {what} --as-branch handoff   # {why}", quoted(&remote));
    Hint::new(name, &about, line)
}
