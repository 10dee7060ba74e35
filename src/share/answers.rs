//! What `push` and `fetch` answer, as JSON has it.

use serde::Serialize;

use crate::run::taking::TakenIn;

use crate::git::remote;
use crate::model::digest::Oid;

use super::diverged::Diverged;
use super::fetch::{Fetched, Taken};
use super::push::{Moved, Pushed};
use super::rival::Rival;
use super::{Kind, fetch, push};

/// What was fetched: what `fetch --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct FetchAnswer<'a> {
    schema: &'static str,
    /// The remote's name.
    pub remote: &'a str,
    /// Every ref that was looked at.
    pub refs: Vec<RefShown<'a>>,
    /// Names of the remote's that are none of ours.
    pub skipped: &'a [String],
    /// How many blobs were brought besides.
    pub blobs: usize,
    /// What others said of runs of ours, and what became of it; absent where nobody said anything new.
    #[serde(rename = "takenIn", skip_serializing_if = "<[_]>::is_empty")]
    pub taken_in: &'a [TakenIn],
    /// What the remote does not show, although it did or a log of its names it; absent where there is nothing of the kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vanished: Vec<VanishedShown<'a>>,
    /// The runs that had refs here and lie in archives alone now; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<&'a str>,
}

/// A run, thread or log that a remote does not show.
#[derive(Clone, Debug, Serialize)]
pub struct VanishedShown<'a> {
    /// What it is.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Whether the remote showed it before. Otherwise it may never have been pushed.
    pub seen: bool,
    /// The ref here that holds it: what was fetched from there, else ours; absent where there is none.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub kept: Option<&'a str>,
    /// The log that names it, fetched from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<&'a str>,
}

/// A ref, and what was made of it, or how what we have stands to what the remote has.
#[derive(Clone, Debug, Serialize)]
pub struct RefShown<'a> {
    /// What it holds.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Of what was fetched, our ref for it; of what was pushed, the remote's.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// What stood there before.
    pub old: Option<Oid>,
    /// What stands there after.
    pub new: Oid,
    /// What that means, in a word.
    pub status: &'static str,
    /// Why it was not fetched, if it was not sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

impl<'a> FetchAnswer<'a> {
    /// Answers what was fetched from a remote of this name.
    pub fn of(remote: &'a str, fetched: &'a Fetched, taken_in: &'a [TakenIn]) -> Self {
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
        Self { schema: "git-handoff.fetch/1", remote, refs, skipped, blobs, taken_in, vanished, archived }
    }
}

/// What was pushed: what `push --json` prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushAnswer<'a> {
    schema: &'static str,
    /// The remote, as it was named, without a password.
    pub remote: String,
    /// Whether nothing was to be moved.
    pub dry_run: bool,
    /// Every ref that was looked at.
    pub refs: Vec<RefShown<'a>>,
    /// What lies on the remote in the place of a chain of ours, and is no such chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsound: Vec<UnsoundRef<'a>>,
    /// What was not pushed, because the remote has another run or thread of that name; absent where there is none.
    #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut<'a>>,
    /// Refs of archived runs that the remote would not let go; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<StaysThere<'a>>,
}

/// A ref of an archived run that a remote keeps.
#[derive(Clone, Debug, Serialize)]
pub struct StaysThere<'a> {
    /// The remote's ref.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// Why, in the remote's words.
    pub reason: &'a str,
}

/// A run or thread of ours that was not pushed, because the remote has another one under the name.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut<'a> {
    /// What it is.
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

/// What lies in the place of a chain of ours.
#[derive(Clone, Debug, Serialize)]
pub struct UnsoundRef<'a> {
    /// What ours is.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// What lies there.
    pub head: Oid,
    /// What is wrong with it.
    pub reason: &'a str,
    /// The name beside it that our log takes; none where ours is left out.
    pub instead: Option<String>,
}

impl<'a> PushAnswer<'a> {
    /// Answers what was pushed.
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
            stays: pushed.stays.iter().map(|(reference, reason)| StaysThere { reference, reason }).collect(),
        }
    }
}
