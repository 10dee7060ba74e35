//! Compares a chain of ours with the remote's ref of the same name.
//!
//! Anyone with write access can put anything on a remote. An invalid object there says nothing
//! about our chain and must not prevent a push: our log then takes an alternative name.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::git::history;
use crate::git::remote::{self, Depth, Reach};
use crate::git::store::{KeepGuard, Store};
use crate::ledger::{chain, log, sign};
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;

use super::push::Status;
use super::shared_refs::refuses;
use super::{Kind, Place};

/// An invalid object on a remote under the name of one of our chains.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Rival {
    /// The place.
    #[serde(flatten)]
    pub place: Place,
    /// The object.
    #[serde(rename = "head")]
    pub theirs: Oid,
    /// The reason why it is invalid.
    #[serde(rename = "reason")]
    pub why: String,
    /// The alternative name of our log; `None` if ours was not pushed.
    pub instead: Option<LogName>,
}

/// The relation of our object to the remote's.
pub(super) enum Found {
    /// Comparable.
    Stands(Status),
    /// Comparable under an alternative name.
    Beside(LogName, Status),
    /// Diverged, as far as can be determined here.
    Apart,
    /// The remote has an invalid object.
    Blocked,
}

/// The remote's refs.
pub(super) struct RemoteRefs<'a> {
    pub(super) store: &'a Store,
    pub(super) reach: &'a Reach,
    pub(super) url: &'a str,
    pub(super) has: BTreeMap<Place, Oid>,
}

impl RemoteRefs<'_> {
    /// Compares our object with the remote's. Fetches what the comparison needs and keeps it as
    /// long as `guard`.
    pub(super) fn look(
        &self,
        place: &Place,
        ours: Oid,
        guard: &mut KeepGuard,
    ) -> Result<(Found, Option<Rival>), AnyError> {
        let Some(theirs) = self.has.get(place).copied() else { return Ok((Found::Stands(Status::New), None)) };
        let (status, fault) = match self.bring(place, theirs, guard)? {
            Some(why) => (None, Some(why)),
            None => self.compare(place, theirs, ours),
        };
        let log = LogName::parse(&place.name).filter(|_| place.kind == Kind::Log);
        let Some(why) = fault else {
            return Ok((self.honest(place, status, theirs, ours, log)?, None));
        };
        let alternative = match &log {
            Some(log) => self.free(log, theirs, ours)?,
            None => None,
        };
        let rival =
            Rival { place: place.clone(), theirs, why, instead: alternative.as_ref().map(|(name, _)| name.clone()) };
        Ok((alternative.map_or(Found::Blocked, |(name, free)| Found::Beside(name, free)), Some(rival)))
    }

    /// Compares two valid objects.
    fn honest(
        &self,
        place: &Place,
        status: Option<Status>,
        theirs: Oid,
        ours: Oid,
        log: Option<LogName>,
    ) -> Result<Found, AnyError> {
        if let Some(status) = status {
            return Ok(Found::Stands(status));
        }
        // Another clone with the same key pushed first.
        let Some(log) = log.filter(|_| self.store.contains(theirs)) else { return Ok(Found::Apart) };
        let Some(to) = log::separate_name(self.store, &log, ours, theirs)? else { return Ok(Found::Apart) };
        let separate = self.stand(&Place::of_log(&to), ours).filter(|_| place.kind == Kind::Log);
        Ok(separate.map_or(Found::Apart, |agreed| Found::Beside(to, agreed)))
    }

    /// Fetches the remote's log for comparison; returns a reason if the log is invalid.
    pub(super) fn bring(&self, place: &Place, theirs: Oid, guard: &mut KeepGuard) -> Result<Option<String>, AnyError> {
        if place.kind != Kind::Log || self.store.contains(theirs) {
            return Ok(None);
        }
        match remote::fetch(self.store, self.reach, self.url, &[theirs], Depth::History) {
            Ok(brought) => {
                guard.join(brought);
                Ok(None)
            }
            Err(remote::Error::Unsound(_, why)) => Ok(Some(format!("git finds what it holds unsound: {why}"))),
            Err(error @ remote::Error::TooLarge(..)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Compares two heads; also returns why the remote's is invalid, unless ours continues it.
    fn compare(&self, place: &Place, theirs: Oid, ours: Oid) -> (Option<Status>, Option<String>) {
        if ours == theirs {
            return (Some(Status::UpToDate), None);
        }
        let here = self.store.contains(theirs);
        if !place.kind.is_chain() {
            // Keeps time stamps of others that are not here.
            let unseen = place.kind.is_stamps() && !here;
            return (Some(if unseen { Status::Behind } else { Status::Updated }), None);
        }
        if !here {
            return (None, None);
        }
        match (history::continues(self.store, theirs, ours), history::continues(self.store, ours, theirs)) {
            (Ok(true), _) => (Some(Status::Updated), None),
            (_, Ok(true)) => (Some(Status::Behind), refuses(place, self.store, Some(ours), theirs).err()),
            // Two runs or threads of one name need a person's decision, even if the other is
            // invalid. A log can have an alternative name.
            _ if place.kind != Kind::Log => (None, None),
            (_, Ok(_)) => (None, refuses(place, self.store, None, theirs).err()),
            (_, Err(error)) => (None, Some(in_words(&error))),
        }
    }

    /// Returns the first alternative name for our log that is free or that ours continues.
    fn free(&self, log: &LogName, theirs: Oid, ours: Oid) -> Result<Option<(LogName, Status)>, AnyError> {
        let names = log::further_names(self.store, log, ours, theirs)?.into_iter();
        Ok(names.filter_map(|name| Some((self.stand(&Place::of_log(&name), ours)?, name))).map(|(s, n)| (n, s)).next())
    }

    /// Compares our log with the remote's ref of an alternative name; `None` if ours cannot be
    /// there.
    fn stand(&self, place: &Place, ours: Oid) -> Option<Status> {
        let Some(theirs) = self.has.get(place).copied() else { return Some(Status::New) };
        self.compare(place, theirs, ours).0.filter(|status| *status != Status::Behind)
    }
}

/// A chain that diverges from the remote's.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Diverged {
    /// The kind and name.
    #[serde(flatten)]
    pub place: Place,
    /// Our head.
    pub ours: Oid,
    /// The remote's.
    pub theirs: Oid,
    /// The relation of the two.
    #[serde(skip)]
    pub how: How,
}

/// The relation of two chains of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Unknown, because the remote's head is not in this repository.
    Unknown,
    /// They share the first entry.
    Forked,
    /// They differ in the first entry: two runs or threads of the same name.
    Another,
}

impl Diverged {
    /// Compares our head with the remote's.
    pub(super) fn compare(store: &Store, place: Place, ours: Oid, theirs: Oid) -> Self {
        let how = match (history::first(store, ours), history::first(store, theirs)) {
            _ if !store.contains(theirs) => How::Unknown,
            (Some(a), Some(b)) if a != b && matches!(place.kind, Kind::Run | Kind::Thread) => How::Another,
            _ => How::Forked,
        };
        Self { place, ours, theirs, how }
    }

    /// Returns true if both are continuations of one run.
    pub fn is_driven_twice(&self) -> bool {
        self.how == How::Forked && self.place.kind == Kind::Run
    }

    /// Formats the divergence of each chain.
    pub(super) fn sentence(diverged: &[Self]) -> String {
        diverged.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// Returns true if the first entries differ and are signed by different keys.
pub(super) fn are_by_two(store: &Store, one: Oid, other: Oid) -> bool {
    matches!((read_beginning(one, store), read_beginning(other, store)), (Some(one), Some(other)) if one.0 != other.0 && one.1 != other.1)
}

fn read_beginning(head: Oid, store: &Store) -> Option<(Oid, String)> {
    let first = history::first(store, head)?;
    let entry = chain::decode(store, first).ok()?;
    Some((first, sign::signer(&entry.payload, entry.signature.as_deref()).ok()?))
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.place.kind.word(), &self.place.name);
        let (ours, theirs) = (self.ours, self.theirs);
        match self.how {
            How::Another => write!(
                f,
                "the {kind} {name:?} on the remote is another one: it begins with another entry than the {kind} here"
            ),
            How::Forked if self.is_driven_twice() => write!(
                f,
                "the run {name:?} was driven twice: the remote has other entries of it, at {theirs}, than there are here, at {ours}"
            ),
            How::Forked => write!(f, "{kind} {name:?} on the remote, at {theirs}, does not go on from ours, at {ours}"),
            How::Unknown => {
                write!(f, "{kind} {name:?} is at {ours} here and at {theirs} on the remote, which is not here")
            }
        }
    }
}
