//! What a remote has in the place of a chain of ours, and what becomes of ours there.
//!
//! Whoever may write a remote can put anything there. What is no such chain says nothing about ours, and is no reason to hand
//! over less than can be: a log of ours takes a further name beside it.

use std::collections::BTreeMap;

use crate::git::history;
use crate::git::remote::{self, Depth, Reach};
use crate::git::store::{Kept, Store};
use crate::ledger::log;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;

use super::place::refuses;
use super::push::{Error, Status};
use super::{Kind, Place};

/// Something that lies in the place of a chain of ours on a remote and is no such chain.
#[derive(Clone, Debug)]
pub struct Rival {
    /// Where it lies.
    pub place: Place,
    /// What it is.
    pub theirs: Oid,
    /// What is wrong with it.
    pub why: String,
    /// The name beside it that our log takes; none where ours is left out.
    pub instead: Option<LogName>,
}

/// How what we have stands to what the remote has.
pub(super) enum Found {
    /// Like this.
    Stands(Status),
    /// It goes under another name, under which it stands like this.
    Beside(LogName, Status),
    /// Neither goes on from the other, as far as can be told here.
    Apart,
    /// Something else lies in its place.
    Blocked,
}

/// What a remote has.
pub(super) struct Remotely<'a> {
    pub(super) store: &'a Store,
    pub(super) reach: &'a Reach,
    pub(super) url: &'a str,
    pub(super) has: BTreeMap<Place, Oid>,
}

impl Remotely<'_> {
    /// Holds what we have in a place against what lies there; what is brought for that is kept as long as `kept`.
    pub(super) fn look(&self, place: &Place, ours: Oid, kept: &mut Kept) -> Result<(Found, Option<Rival>), Error> {
        let Some(theirs) = self.has.get(place).copied() else { return Ok((Found::Stands(Status::New), None)) };
        let (status, fault) = match self.bring(place, theirs, kept)? {
            Some(why) => (None, Some(why)),
            None => self.compare(place, theirs, ours),
        };
        let log = LogName::parse(&place.name).filter(|_| place.kind == Kind::Log);
        let Some(why) = fault else {
            return Ok((self.honest(place, status, (theirs, ours), log)?, None));
        };
        let beside = match &log {
            Some(log) => self.free(log, theirs, ours)?,
            None => None,
        };
        let rival = Rival { place: place.clone(), theirs, why, instead: beside.as_ref().map(|(name, _)| name.clone()) };
        Ok((beside.map_or(Found::Blocked, |(name, status)| Found::Beside(name, status)), Some(rival)))
    }

    /// Says what becomes of ours where what lies there is what it should be.
    fn honest(
        &self,
        place: &Place,
        status: Option<Status>,
        (theirs, ours): (Oid, Oid),
        log: Option<LogName>,
    ) -> Result<Found, Error> {
        if let Some(status) = status {
            return Ok(Found::Stands(status));
        }
        // The same key writes in another clone, and was there first.
        let Some(log) = log.filter(|_| self.store.contains(theirs)) else { return Ok(Found::Apart) };
        let Some(to) = log::apart(self.store, &log, ours, theirs)? else { return Ok(Found::Apart) };
        let status = self.stand(&Place::of_log(&to), ours).filter(|_| place.kind == Kind::Log);
        Ok(status.map_or(Found::Apart, |status| Found::Beside(to, status)))
    }

    /// Brings the log that lies in the place of ours, so that the two can be compared; returns why that cannot be, if it is its fault.
    pub(super) fn bring(&self, place: &Place, theirs: Oid, kept: &mut Kept) -> Result<Option<String>, Error> {
        if place.kind != Kind::Log || self.store.contains(theirs) {
            return Ok(None);
        }
        match remote::fetch(self.store, self.reach, self.url, &[theirs], Depth::History) {
            Ok(brought) => {
                kept.join(brought);
                Ok(None)
            }
            Err(remote::Error::Unsound(_, why)) => Ok(Some(format!("git finds what it holds unsound: {why}"))),
            Err(error @ remote::Error::TooLarge(..)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Compares two heads; says besides what is wrong with the remote's, unless it is what ours goes on from.
    fn compare(&self, place: &Place, theirs: Oid, ours: Oid) -> (Option<Status>, Option<String>) {
        if ours == theirs {
            return (Some(Status::UpToDate), None);
        }
        let here = self.store.contains(theirs);
        if !place.kind.is_chain() {
            // Somebody else's time stamps are not thrown away unseen.
            let unseen = place.kind == Kind::Stamps && !here;
            return (Some(if unseen { Status::Behind } else { Status::Updated }), None);
        }
        if !here {
            return (None, None);
        }
        let goes_on = |from, to| history::continues(self.store, from, to);
        match (goes_on(theirs, ours), goes_on(ours, theirs)) {
            (Ok(true), _) => (Some(Status::Updated), None),
            (_, Ok(true)) => (Some(Status::Behind), refuses(place, self.store, Some(ours), theirs).err()),
            // Two runs or threads of one name are for people to look at, whatever the other is; a log can stand beside another.
            _ if place.kind != Kind::Log => (None, None),
            (_, Ok(_)) => (None, refuses(place, self.store, None, theirs).err()),
            (_, Err(error)) => (None, Some(in_words(&error))),
        }
    }

    /// Returns the first further name of our log that is free on the remote, or that ours can go on under.
    fn free(&self, log: &LogName, theirs: Oid, ours: Oid) -> Result<Option<(LogName, Status)>, Error> {
        let names = log::further_names(self.store, log, ours, theirs)?.into_iter();
        Ok(names.filter_map(|name| Some((self.stand(&Place::of_log(&name), ours)?, name))).map(|(s, n)| (n, s)).next())
    }

    /// Returns how ours would stand in another place; none where it cannot be there.
    fn stand(&self, place: &Place, ours: Oid) -> Option<Status> {
        let Some(theirs) = self.has.get(place).copied() else { return Some(Status::New) };
        self.compare(place, theirs, ours).0.filter(|status| *status != Status::Behind)
    }
}
