//! JSON output of `push` and `fetch`.

use serde::Serialize;

use crate::run::operate::statements::StatementOutcome;

use crate::git::remote;
use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::diverged::Diverged;
use super::fetch::{Fetched, Status, Taken};
use super::push::{Moved, Pushed};
use super::rival::Rival;
use super::unwritten::Unwritten;
use super::{Kind, fetch, push};

/// The output of `fetch --json`.
#[derive(Clone, Debug, Serialize)]
pub struct FetchAnswer<'a> {
    schema: &'static str,
    /// The remote's name.
    pub remote: &'a str,
    /// Every examined ref.
    pub refs: Vec<RefShown<'a>>,
    /// Names on the remote that are not valid.
    pub skipped: &'a [String],
    /// The number of blobs fetched in addition.
    pub blobs: usize,
    /// Shared runs that have the remote's entries here now; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub followed: &'a [RunId],
    /// Statements of others about our runs, and their effect; absent if there are none.
    #[serde(rename = "takenIn", skip_serializing_if = "<[_]>::is_empty")]
    pub taken_in: &'a [StatementOutcome],
    /// Names that the remote lacks although it had them or a log of its names them; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vanished: Vec<VanishedShown<'a>>,
    /// Runs whose fetched refs were replaced by archives; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<&'a str>,
}

/// A run, thread or log that a remote lacks.
#[derive(Clone, Debug, Serialize)]
pub struct VanishedShown<'a> {
    /// The kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Whether the remote had it before. Otherwise it may never have been pushed.
    pub seen: bool,
    /// A ref here that still has it: fetched, else ours; absent if there is none.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub kept: Option<&'a str>,
    /// The log, fetched from the remote, that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<&'a str>,
}

/// A ref with its result, or with its relation to the remote's.
#[derive(Clone, Debug, Serialize)]
pub struct RefShown<'a> {
    /// The kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// For a fetch, our ref; for a push, the remote's.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// The object before.
    pub old: Option<Oid>,
    /// The object after.
    pub new: Oid,
    /// The status.
    pub status: &'static str,
    /// The reason why it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

impl<'a> FetchAnswer<'a> {
    /// Returns the answer for a fetch from this remote.
    pub fn of(remote: &'a str, fetched: &'a Fetched, followed: &'a [RunId], taken_in: &'a [StatementOutcome]) -> Self {
        let taken = |taken: &'a Taken| RefShown {
            kind: taken.place.kind.word(),
            name: &taken.place.name,
            reference: &taken.reference,
            old: taken.old,
            new: taken.new,
            status: taken.status.word(),
            reason: match &taken.status {
                fetch::Status::Unsound(why) => Some(why),
                _ => None,
            },
        };
        let refs = fetched.taken.iter().map(taken).collect();
        let (skipped, blobs) = (&fetched.skipped[..], fetched.blobs);
        let vanished = fetched.vanished.iter().map(|vanished| VanishedShown {
            kind: vanished.place.kind.word(),
            name: &vanished.place.name,
            seen: vanished.seen,
            kept: vanished.kept.as_deref(),
            log: vanished.log.as_deref(),
        });
        let vanished = vanished.collect();
        let archived = fetched.archived.iter().filter(|place| place.kind == Kind::Run);
        let archived = archived.map(|place| place.name.as_str()).collect();
        Self { schema: "git-handoff.fetch/1", remote, refs, skipped, blobs, followed, taken_in, vanished, archived }
    }
}

/// The output of `push --json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushAnswer<'a> {
    schema: &'static str,
    /// The remote as given, without a password.
    pub remote: String,
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Every examined ref.
    pub refs: Vec<RefShown<'a>>,
    /// Objects on the remote that are not valid chains although they have the name of one of ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsound: Vec<UnsoundRef<'a>>,
    /// Runs and threads that were not pushed, because the remote has others of the same name;
    /// absent if there are none.
    #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut<'a>>,
    /// Refs of archived runs that the remote refused to delete; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<StaysThere<'a>>,
    /// Runs and threads whose log only another key can write; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<UnwrittenShown<'a>>,
}

/// A run or thread whose log only another key can write.
#[derive(Clone, Debug, Serialize)]
pub struct UnwrittenShown<'a> {
    /// The kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// The key.
    pub key: &'a str,
}

impl<'a> UnwrittenShown<'a> {
    /// Returns how it is shown.
    pub fn of(one: &'a Unwritten) -> Self {
        Self { kind: one.place.kind.word(), name: &one.place.name, key: &one.key }
    }
}

/// A ref of an archived run that a remote refused to delete.
#[derive(Clone, Debug, Serialize)]
pub struct StaysThere<'a> {
    /// The remote's ref.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// The remote's reason.
    pub reason: &'a str,
}

/// A run or thread that was not pushed, because the remote has another of the same name.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut<'a> {
    /// The kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Our head.
    pub ours: Oid,
    /// The remote's head.
    pub theirs: Oid,
}

impl<'a> LeftOut<'a> {
    fn of(other: &'a Diverged) -> Self {
        Self { kind: other.place.kind.word(), name: &other.place.name, ours: other.ours, theirs: other.theirs }
    }
}

/// An invalid object on the remote under the name of one of our chains.
#[derive(Clone, Debug, Serialize)]
pub struct UnsoundRef<'a> {
    /// The kind of our chain.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// The object.
    pub head: Oid,
    /// The reason why it is invalid.
    pub reason: &'a str,
    /// The alternative name of our log; `None` if ours was not pushed.
    pub instead: Option<String>,
}

impl<'a> PushAnswer<'a> {
    /// Returns the answer for a push.
    pub fn of(request: &push::Request, pushed: &'a Pushed) -> Self {
        let moved = |moved: &'a Moved| RefShown {
            kind: moved.place.kind.word(),
            name: &moved.place.name,
            reference: &moved.to,
            old: moved.old,
            new: moved.new,
            status: moved.status.word(),
            reason: None,
        };
        let unsound = |rival: &'a Rival| UnsoundRef {
            kind: rival.place.kind.word(),
            name: &rival.place.name,
            head: rival.theirs,
            reason: &rival.why,
            instead: rival.instead.as_ref().map(ToString::to_string),
        };
        Self {
            schema: "git-handoff.push/1",
            remote: remote::without_password(&request.remote.given),
            dry_run: request.dry_run,
            refs: pushed.moved.iter().map(moved).collect(),
            unsound: pushed.rivals.iter().map(unsound).collect(),
            left_out: pushed.others.iter().map(LeftOut::of).collect(),
            unwritten: pushed.unwritten.iter().map(UnwrittenShown::of).collect(),
            stays: pushed.stays.iter().map(|(reference, reason)| StaysThere { reference, reason }).collect(),
        }
    }
}

impl Status {
    /// Returns the reason why the remote's object was rejected.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::New | Self::Updated | Self::UpToDate => None,
            Self::Rewritten => Some("it does not continue what was fetched before".to_owned()),
            Self::Unfit(what) => Some(format!("it is {what}")),
            Self::Unsound(why) => Some(why.clone()),
        }
    }
}
