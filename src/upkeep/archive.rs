//! Moves sealed runs from refs of their own into the archive of the caller's key, and back.
//!
//! The archive contains the evidence before any ref is deleted. A crash in between leaves runs in
//! both places; they are then read by their refs, and the same command finishes the move.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Span;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::git::archives::{self, Contents};
use crate::git::refs;
use crate::git::retry::{self, Lost};
use crate::git::store::Store;
use crate::ledger::archive;
use crate::ledger::chain::{self, Writer};
use crate::model::any_error::AnyError;
use crate::model::archive::ArchivedRun;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::format::{self, REFS};
use crate::model::name::RunId;
use crate::model::outcomes::Outcomes;
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::run::query::target::{Target, unarchived_runs};
use crate::verify::{self, Chain};

use super::replaced::{self, By};

/// A selection of runs to archive.
#[derive(Clone, Debug)]
pub enum Request {
    /// Named runs: each must be ours, sealed and valid.
    Named(Vec<String>),
    /// Runs sealed before this age. Invalid ones are skipped.
    OlderThan(Span),
}

/// The output of `archive --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.archive/1", rename_all = "camelCase")]
pub struct ArchiveAnswer {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// The ref of the archive; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The archived runs, in order of name.
    pub runs: Vec<PutAway>,
    /// The skipped runs and the reasons; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftThere>,
    /// The number of refs below `refs/handoff/`, before and after.
    pub refs: Counted,
}

/// An archived run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PutAway {
    /// The run.
    pub run: RunId,
    /// The commit of its seal.
    pub commit: Oid,
    /// The time of the seal.
    pub sealed_at: Moment,
    /// Whether it had been archived before.
    pub already: bool,
    /// The results of its items; an archived run need not be done and green.
    pub outcome: Outcomes,
    #[serde(skip)]
    archived: ArchivedRun,
}

/// A skipped run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LeftThere {
    /// The run.
    pub run: RunId,
    /// The reason.
    pub reason: String,
}

/// The number of refs.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Counted {
    /// Before.
    pub before: usize,
    /// After.
    pub after: usize,
}

/// The output of `unarchive --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.unarchive/1")]
pub struct UnarchiveAnswer {
    /// The restored runs, in the given order.
    pub runs: Vec<RunId>,
    /// The number of refs below `refs/handoff/`, before and after.
    pub refs: Counted,
}

impl Repository {
    /// Archives runs under the caller's key and deletes their refs. With `dry_run`, only reports.
    pub fn archive(&self, request: &Request, dry_run: bool) -> Result<ArchiveAnswer, AnyError> {
        let (runs, left) = match request {
            Request::Named(names) => (self.named_for_archive(names)?, Vec::new()),
            Request::OlderThan(age) => self.sealed_before(*age)?,
        };
        let writer = self.writer()?;
        let before = refs::list(&self.store, REFS)?.len();
        let mut answer = ArchiveAnswer {
            dry_run,
            archive: archive::own(&self.store, &writer.signer.fingerprint())
                .map_err(Error::Archive)?
                .map(|name| name.archive_reference()),
            refs: Counted { before, after: before },
            runs,
            left,
        };
        if answer.runs.is_empty() {
            return Ok(answer);
        }
        if dry_run {
            let gone = replaced::replaced(&self.store, &answer.ids())?;
            let made = usize::from(answer.archive.is_none()) + usize::from(replaced::begins(&self.store, &gone)?);
            answer.refs.after = before + made - gone.len();
            return Ok(answer);
        }
        answer.archive = Some(retry::run_while(is_lost, || put_away(&writer, &answer.runs))?);
        answer.refs.after = refs::list(&self.store, REFS)?.len();
        Ok(answer)
    }

    /// Restores the refs of archived runs. The archive keeps them as well.
    pub fn unarchive(&self, names: &[String]) -> Result<UnarchiveAnswer, AnyError> {
        let mut runs = Vec::new();
        for name in names {
            let run = own(Target::find(&self.store, name)?)?;
            if refs::is_stored(&self.store, &format::run_ref(&run))? {
                return Err(Error::NotArchived(run).into());
            }
            runs.push(run);
        }
        let before = refs::list(&self.store, REFS)?.len();
        for run in &runs {
            replaced::restore(&self.store, run)?;
        }
        let after = refs::list(&self.store, REFS)?.len();
        Ok(UnarchiveAnswer { runs, refs: Counted { before, after } })
    }

    fn named_for_archive(&self, names: &[String]) -> Result<Vec<PutAway>, AnyError> {
        let mut runs = BTreeMap::new();
        for name in names {
            let run = own(Target::find(&self.store, name)?)?;
            let put = looked_at(&self.store, &run)?.ok_or_else(|| Error::NotSealed(run.clone()))?;
            let put = sound(&self.store, put).map_err(|why| Error::Unsound { run: run.clone(), why })?;
            runs.insert(run, put);
        }
        Ok(runs.into_values().collect())
    }

    fn sealed_before(&self, age: Span) -> Result<(Vec<PutAway>, Vec<LeftThere>), AnyError> {
        let limit = before(self.environment.clock.now(), age).ok_or(Error::Age)?;
        let (mut runs, mut left) = (Vec::new(), Vec::new());
        for run in unarchived_runs(&self.store)? {
            match looked_at(&self.store, &run) {
                Ok(Some(put)) if put.sealed_at <= limit => match sound(&self.store, put) {
                    Ok(put) => runs.push(put),
                    Err(reason) => left.push(LeftThere { run, reason }),
                },
                Ok(_) => {}
                // An unreadable archive does not prevent the others from being used.
                Err(error) => left.push(LeftThere { run, reason: in_words(&*error) }),
            }
        }
        Ok((runs, left))
    }
}

impl ArchiveAnswer {
    /// Returns the ids of the runs.
    pub fn ids(&self) -> BTreeSet<RunId> {
        self.runs.iter().map(|put| put.run.clone()).collect()
    }
}

fn own(target: Target) -> Result<RunId, AnyError> {
    if target.is_own() { Ok(target.run) } else { Err(Error::Foreign(target.name()).into()) }
}

/// Returns the moment of this age ago.
fn before(now: Moment, age: Span) -> Option<Moment> {
    if !age.is_positive() {
        return None;
    }
    let now = jiff::Timestamp::from_millisecond(now.millis()).ok()?.to_zoned(TimeZone::UTC);
    Some(Moment::from_millis(now.checked_sub(age).ok()?.timestamp().as_millisecond()))
}

/// Returns the archive's record of a run without its results, or `None` if it is not sealed.
fn looked_at(store: &Store, run: &RunId) -> Result<Option<PutAway>, AnyError> {
    let reference = format::run_ref(run);
    let Some(commit) = refs::read(store, &reference)? else { return Ok(None) };
    let decoded = chain::decode(store, commit)?;
    if !matches!(decoded.entry.event, Event::RunSealed(_)) {
        return Ok(None);
    }
    let stamps = refs::read(store, &format::stamps_ref(run))?;
    let archived = ArchivedRun { commit, seal: decoded.hash, stamps };
    let already = !refs::is_stored(store, &reference)?;
    let outcome = Outcomes::default();
    Ok(Some(PutAway { run: run.clone(), commit, sealed_at: decoded.entry.at, already, outcome, archived }))
}

/// Adds the results of a run. Fails if a reader of the archive would reject the run.
fn sound(store: &Store, put: PutAway) -> Result<PutAway, String> {
    verify::check_incoming(store, Chain::Run(&put.run), None, put.commit)?;
    let view = Target::own(put.run.clone()).view(store).map_err(|error| in_words(&error))?;
    Ok(PutAway { outcome: view.state.outcomes(), ..put })
}

/// Archives runs, then keeps their other refs, then deletes the refs.
fn put_away(writer: &Writer, runs: &[PutAway]) -> Result<String, AnyError> {
    let store = &writer.store;
    let contents: Contents = runs.iter().map(|put| (put.run.clone(), put.archived)).collect();
    let reference = archive::add(writer, &contents).map_err(Error::Archive)?;
    // Deletes only what a read of the archive confirms.
    let tip = refs::read(store, &reference)?.ok_or_else(|| refs::Error::LostRace(reference.clone()))?;
    let has = archives::contents(store, tip)?;
    let ids: BTreeSet<RunId> = contents.keys().filter(|run| has.get(*run) == contents.get(*run)).cloned().collect();
    let replaced = replaced::replaced(store, &ids)?;
    replaced::keep(writer, &replaced)?;
    let gone: Vec<(String, Oid)> = replaced
        .iter()
        .filter(|one| {
            let archived = has[&one.run];
            // Time stamps that arrived in the meantime keep their ref.
            one.by != By::Archive || one.oid == archived.commit || Some(one.oid) == archived.stamps
        })
        .map(|one| (one.name.clone(), one.oid))
        .collect();
    refs::delete_all(store, &gone)?;
    Ok(reference)
}

errors! {
    /// An error while archiving or restoring runs.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Foreign(String) "not-ours": "the run {0:?} was fetched; only runs of this repository are archived here";
    NotSealed(RunId) "not-sealed": "the run {:?} is not sealed; only what is sealed is archived" [.0.as_str()];
    Unsound { run: RunId, why: String } "unsound":
        "the run {:?} is not sound, and was left where it is: {why}" [run.as_str()];
    NotArchived(RunId) "not-archived": "the run {:?} is not archived" [.0.as_str()];
    Age "usage" 2: "the age must be a time like 90d, 12w or 6mo";
    #[from "archive"] Archive(archive::Error);
}

/// Returns true if another process moved a ref first.
pub(super) fn is_lost(error: &AnyError) -> bool {
    error.downcast_ref::<refs::Error>().is_some_and(Lost::is_lost)
        || matches!(error.downcast_ref(), Some(Error::Archive(error)) if error.is_lost())
}
