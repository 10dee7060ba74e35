//! Hints for a host's refusals, by its message.
//!
//! The messages are those of git and of hosts. They only select a hint.

use git_handoff::git::porcelain::{Answer, http_status};
use git_handoff::git::{fsck, remote};
use git_handoff::model::format;
use git_handoff::model::hints::{self, Hint};
use git_handoff::share::push::Request;

/// The reason for a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It does not accept these ref names.
    Names,
    /// The ref names are too long; names of branches would not be shorter.
    Long,
    /// It could not write.
    Disk,
    /// It rejected an object.
    Objects,
    /// The push is too large.
    Size,
    /// The refs are protected.
    Protected,
    /// The user may not write there.
    Rights,
    /// The clone lacks history.
    Shallow,
    /// It has a newer state.
    Newer,
}

/// Lower-case phrases by reason, with a bar between them; the first match counts.
const WORDS: [(Reason, &str); 9] = [
    (Reason::Shallow, "shallow update not allowed|(shallow)"),
    (Reason::Newer, "(fetch first)|non-fast-forward|(stale info)|(needs force)|(already exists)"),
    (Reason::Size, "exceeds maximum allowed size|too large|size limit|exceeds the maximum|exceeds github|http 413"),
    (
        Reason::Disk,
        "no space left|quota|read-only file system|insufficient permission for adding|unable to create temp",
    ),
    (Reason::Objects, "fsck|unpacker error"),
    (Reason::Long, "too long|name length"),
    (Reason::Protected, "protected|gh006|gh013|rule violation|restricted"),
    (Reason::Names, "hidden ref|illegal|branches|branch names|ref name|refname|refs/heads|not a branch|namespace"),
    (
        Reason::Rights,
        "read only|read-only|readonly|not allowed to|permission|write access|denied to|unauthorized|not authorized|\
         access denied|forbidden",
    ),
];

/// Lower-case phrases of failed authentication.
const SIGN_IN: [&str; 5] = [
    "authentication failed",
    "could not read username",
    "could not read password",
    "permission denied (",
    "host key verification failed",
];

/// Lower-case phrases of an unreachable host.
const DOWN: [&str; 8] = [
    "could not resolve",
    "connection refused",
    "connection reset",
    "connection timed out",
    "operation timed out",
    "couldn't connect",
    "failed to connect",
    "hung up unexpectedly",
];

/// Lower-case phrases about a repository whose objects have names of another hash.
const OTHER_HASH: [&str; 2] = ["hash algorithm", "mismatched algorithms"];

/// Lower-case phrases about a missing repository.
const NOWHERE: [&str; 3] = ["does not appear to be a git repository", "repository not found", "not found"];

/// git's message about a repository of another user.
const OWNER: &str = "dubious ownership in repository at '";

/// Returns the hint for refused refs.
pub(super) fn of_declined(request: &Request, answers: &[Answer], output: &str) -> Hint {
    let (to, names) = (&request.remote.given, request.selection.names());
    let outside = request.space.folder() == format::REFS;
    let remote = output.lines().filter(|line| line.starts_with("remote: ") || line.contains("unpack failed"));
    let summaries = answers.iter().filter(|answer| !answer.accepted).map(|answer| answer.summary.as_str());
    let text = remote.chain(summaries).collect::<Vec<_>>().join("\n");
    match reason(&text) {
        Some(Reason::Disk) => hints::host_disk(),
        Some(Reason::Objects) => hints::host_checks(),
        Some(Reason::Size) => hints::push_less(to),
        Some(Reason::Protected) => hints::protected(to, names),
        Some(Reason::Rights) => hints::push_right(to),
        Some(Reason::Shallow) => hints::unshallow(),
        Some(Reason::Newer) => hints::fetch_first(to),
        Some(Reason::Names) if outside => hints::push_as_branch(to, names),
        None if outside => hints::declined(to, names),
        Some(Reason::Names | Reason::Long) | None => hints::bundle(),
    }
}

/// Returns the hint for a push that failed before the remote reported refs.
pub(super) fn of_push(request: &Request, output: &str) -> Option<Hint> {
    let to = &request.remote.given;
    match (http_status(output), reason(output)) {
        (Some(413), _) | (_, Some(Reason::Size)) => Some(hints::push_less(to)),
        (Some(403) | None, Some(Reason::Rights)) if !signs_in(output) => Some(hints::push_right(to)),
        _ => None,
    }
}

/// Returns the hint for any failure of a remote.
pub(super) fn of_remote(error: &remote::Error) -> Option<Hint> {
    match error {
        remote::Error::Failed(to, why) => of_words(to, &why.to_string()),
        remote::Error::Unsound(_, why) => of_check(why),
        _ => None,
    }
}

/// Returns the hint for an unreachable remote or failed authentication.
fn of_words(remote: &str, output: &str) -> Option<Hint> {
    let small = output.to_ascii_lowercase();
    let owned = output.split_once(OWNER).and_then(|(_, rest)| rest.split('\'').next());
    match http_status(output) {
        _ if contains_any(&small, &OTHER_HASH) => Some(hints::remote_of_same_hash()),
        _ if let Some(path) = owned => Some(hints::safe_directory(path)),
        Some(401) => Some(hints::sign_in(remote)),
        Some(404) => Some(hints::remotes()),
        Some(429 | 500..=599) => Some(hints::again_later()),
        None if signs_in(output) => Some(hints::sign_in(remote)),
        None if contains_any(&small, &NOWHERE) => Some(hints::remotes()),
        None if contains_any(&small, &DOWN) => Some(hints::again_later()),
        _ => None,
    }
}

fn contains_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Returns the setting that accepts objects that git's check rejects, if there is one.
pub(super) fn of_check(output: &str) -> Option<Hint> {
    fsck::finding(output).map(hints::let_through)
}

fn signs_in(output: &str) -> bool {
    let small = output.to_ascii_lowercase();
    contains_any(&small, &SIGN_IN)
}

fn reason(output: &str) -> Option<Reason> {
    let small = output.to_ascii_lowercase();
    let found = WORDS.iter().find(|(_, words)| words.split('|').any(|words| small.contains(words)));
    found.map(|(reason, _)| *reason)
}
