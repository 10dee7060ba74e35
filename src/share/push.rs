//! Pushes runs and threads to a remote, with the logs that name them.
//!
//! Pushes nothing unless everything requested is a fast-forward. Reads the remote's refs
//! afterwards, because only what it then shows has been pushed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;

use crate::git::porcelain::{self, Answer};
use crate::git::remote::{self, Reach, Remote};
use crate::git::retry::{Lost as _, Retry};
use crate::git::store::{Batch, KeepGuard, Store};
use crate::git::work_tree;
use crate::ledger::chain::Writer;
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::credential::gate::Gate;
use crate::model::digest::Oid;
use crate::model::entry::Subject;
use crate::model::words::{schema_of_words, words, written_as_text};
use crate::run::query::target::{self, Target};

use super::archived_runs;
use super::compare::Diverged;
use super::compare::{RemoteRefs, Rival};
use super::push_logs::{self, Outbound};
use super::push_plan::Plan;
use super::push_refs::{self, Outgoing};
use super::pushed_remotes;
use super::remote_logs::{self, Overtaken};
use super::secret_check::check_secrets;
use super::unwritten_logs::{self, Unwritten};
use super::update_remote::update_refs;
use super::{Place, Space};

/// The number of retries if a log is locked or does not show the pushed head.
const MOST_BUSY: u32 = 5;

/// The runs and threads to push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// Those with these names; an empty list means none.
    Named(Vec<String>),
}

impl Selection {
    /// Returns the names, or `None` for all.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::Named(names) => Some(names),
        }
    }

    /// Returns the same with the id of the newest run in place of `@`.
    fn expanded(&self, store: &Store) -> Result<Self, target::Error> {
        let names = self.names().map(|names| names.iter().map(|name| Target::expanded(store, name)).collect());
        Ok(names.transpose()?.map_or(Self::All, Self::Named))
    }
}

/// A push request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The remote.
    pub remote: Remote,
    /// The runs and threads.
    pub selection: Selection,
    /// Push only threads and logs of these names.
    pub threads_only: bool,
    /// Include transcripts.
    pub transcripts: bool,
    /// The folder of the remote's refs.
    pub space: Space,
    /// Dry run.
    pub dry_run: bool,
    /// The check for credentials.
    pub gate: Gate,
}

/// The result, or planned result, for one ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Moved {
    /// The kind and name.
    #[serde(flatten)]
    pub place: Place,
    /// The remote's ref.
    #[serde(rename = "ref")]
    pub to: String,
    /// The remote's object before.
    pub old: Option<Oid>,
    /// Our object.
    pub new: Oid,
    /// The status.
    pub status: Status,
}

words! {
    word
    /// The relation of our object to the remote's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Status {
        /// The remote lacks it.
        New = "new",
        /// The remote has an earlier head.
        Updated = "updated",
        /// Equal.
        UpToDate = "up-to-date",
        /// The remote has a later head; nothing is pushed.
        Behind = "behind",
        /// The remote has it in an archive of ours; its own ref is deleted.
        Archived = "archived",
        /// Another log of our key on the remote contains all its statements; its ref is deleted.
        Folded = "folded",
    }
}

written_as_text!(Status);
schema_of_words!(Status: "The relation of our object to the remote's.");

impl Status {
    /// Returns true if something is to be pushed.
    pub fn moves(self) -> bool {
        matches!(self, Self::New | Self::Updated)
    }
}

/// The result of a push.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Pushed {
    /// Every examined ref, except those left out.
    #[serde(rename = "refs")]
    pub moved: Vec<Moved>,
    /// Invalid objects on the remote under the names of our chains.
    #[serde(rename = "unsound", skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Rival>,
    /// Refs of archived runs that the remote refused to delete; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<Stays>,
    /// Runs and threads that were left out, because the remote has others of the same name; absent
    /// if there are none.
    #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Diverged>,
    /// Runs and threads whose log only another key can write, as after a rotation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<Unwritten>,
}

/// A ref of an archived run that the remote refused to delete.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Stays {
    /// The remote's ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The reason, in the remote's words.
    pub reason: String,
}

impl Pushed {
    /// Returns what was not pushed because of an invalid object on the remote.
    pub fn left_out(&self) -> impl Iterator<Item = &Rival> {
        self.rivals.iter().filter(|rival| rival.instead.is_none())
    }

    /// Returns true if something requested was not pushed.
    pub fn is_partial(&self) -> bool {
        self.left_out().next().is_some() || !self.others.is_empty()
    }
}

/// Pushes, and reports what was left out.
///
/// Includes a log with the statements of `writer` about what is pushed, and no others.
pub fn push(store: &Store, reach: &Reach, request: &Request, writer: Option<&Writer>) -> Result<Pushed, AnyError> {
    let request = &Request { selection: request.selection.expanded(store)?, ..request.clone() };
    let here = push_refs::list_local(store)?;
    let chains = Outgoing::all(store, request, &here)?;
    let all = request.selection == Selection::All && !request.threads_only;
    let handed: Option<BTreeSet<Subject>> =
        (!all).then(|| chains.iter().filter_map(|chain| push_logs::subject_of(&chain.place)).collect());
    let pushed = Delivery { store, reach, request, writer, here, chains, handed }.deliver()?;
    if !request.dry_run && request.space.is_default() {
        pushed_remotes::remember(store, reach, request, &pushed, writer).map_err(Error::Record)?;
    }
    Ok(pushed)
}

/// Pushes only logs, which anchor some runs and threads.
pub fn push_logs(
    store: &Store,
    reach: &Reach,
    request: &Request,
    writer: Option<&Writer>,
    subjects: BTreeSet<Subject>,
) -> Result<Pushed, AnyError> {
    let (here, handed) = (push_refs::list_local(store)?, Some(subjects));
    Delivery { store, reach, request, writer, here, chains: Vec::new(), handed }.deliver()
}

/// A push in progress.
struct Delivery<'a> {
    store: &'a Store,
    reach: &'a Reach,
    request: &'a Request,
    writer: Option<&'a Writer>,
    here: BTreeMap<Place, Oid>,
    chains: Vec<Outgoing>,
    /// The runs and threads that the logs may reveal; `None` means all.
    handed: Option<BTreeSet<Subject>>,
}

impl Delivery<'_> {
    /// Pushes the requested chains and the logs that name them.
    fn deliver(&self) -> Result<Pushed, AnyError> {
        let key = self.writer.map(|writer| writer.signer.fingerprint());
        let all = self.handed.is_none();
        let done = self.deliver_in_turn(all)?;
        let is_one_of_two = key.is_some_and(|key| remote_logs::began_beside(&key, &done));
        if all || !is_one_of_two {
            return Ok(done.pushed);
        }
        // Everything is pushed. It is harmless if two logs stay unfolded.
        let mut pushed = done.pushed;
        if let Ok(folded) = self.deliver_in_turn(true) {
            remote_logs::replace(&mut pushed, folded.pushed);
        }
        Ok(pushed)
    }

    /// Retries while other pushes with the same key move the log first.
    fn deliver_in_turn(&self, folds: bool) -> Result<Delivered, AnyError> {
        let (mut race, mut busy) = (Retry::default(), 0);
        loop {
            let error = match self.deliver_once(folds) {
                Err(error) => error.downcast()?,
                delivered => return delivered,
            };
            let Error::Overtaken(error, how) = error else { return Err(error.into()) };
            busy += u32::from(how == Overtaken::Busy);
            if busy > MOST_BUSY || !race.again() {
                return Err(error);
            }
        }
    }

    /// Plans the changes to the refs of runs, threads and archives.
    fn plan_chains(
        &self,
        there: &RemoteRefs<'_>,
        in_archives: &BTreeMap<Place, Oid>,
        batch: &mut Batch,
        guard: &mut KeepGuard,
    ) -> Result<Plan<'_>, AnyError> {
        let store = self.store;
        let mut plan = Plan::new(self.request.space.folder());
        for chain in &self.chains {
            let old = there.has.get(&chain.place).copied();
            let new = chain.united(there, batch, guard)?;
            let Outgoing { place, is_archived, .. } = chain.clone();
            if old.is_none() && (is_archived || in_archives.get(&place) == Some(&new)) {
                if !is_archived {
                    plan.add(place, Some(new), new, Status::UpToDate);
                }
                continue;
            }
            if let (None, Some(theirs)) = (old, in_archives.get(&place))
                && !is_archived
                && plan.is_another(store, &place, new, *theirs)
            {
                continue;
            }
            plan.take(there, place, new, is_archived, guard)?;
        }
        Ok(plan)
    }

    fn deliver_once(&self, folds: bool) -> Result<Delivered, AnyError> {
        let Self { store, reach, request, writer, ref here, .. } = *self;
        let url = remote::push_url(store, &request.remote)?;
        let there = RemoteRefs { store, reach, url: &url, has: list_refs(store, reach, &url, &request.space)? };
        let in_archives = archived_runs::on_remote(store, &there.has)?;
        let (mut guard, mut batch) = (KeepGuard::default(), store.batch());
        let mut plan = self.plan_chains(&there, &in_archives, &mut batch, &mut guard)?;
        let in_archive = self.chains.iter().filter(|one| one.is_archived);
        let archived: BTreeSet<Place> = in_archive.map(|one| one.place.clone()).collect();
        let mut handed = self.handed.clone();
        if handed.is_none() && plan.leave_out_others(&archived) {
            // Reveals the logs' statements about other pushed runs, not about those that stay here.
            let rest = here.keys().filter(|place| plan.pushed.others.iter().all(|other| other.place != **place));
            handed = Some(rest.filter_map(push_logs::subject_of).collect());
        }
        plan.refuse_apart()?;
        let mut remote_refs = there.has.clone();
        in_archives.into_iter().for_each(|(place, tip)| _ = remote_refs.entry(place).or_insert(tip));
        let key = writer.map(|writer| writer.signer.fingerprint());
        let theirs = &key
            .as_ref()
            .map_or_else(|| Ok(BTreeMap::new()), |key| remote_logs::heads(&there, key, folds, &mut guard))?;
        let firsts = std::cell::RefCell::default();
        let outbound = Outbound { store, writer, handed, ours: here, there: &remote_refs, theirs, folds, firsts };
        let mut logs = outbound.logs()?;
        plan.pushed.unwritten = unwritten_logs::after_push(&outbound, &logs, &there, &mut guard)?;
        plan.logs = logs.heads.iter().map(|(log, _)| Place::of_log(log)).collect();
        for (log, head) in &logs.heads {
            plan.take(&there, Place::of_log(log), *head, false, &mut guard)?;
        }
        plan.refuse_apart()?;
        plan.pushed.moved.sort_by(|one, other| one.place.cmp(&other.place));
        check_secrets(store, request, &plan.pushed.moved)?;
        for (from, to) in plan.renamed.iter().filter(|_| !request.dry_run) {
            log::rename(store, from, to)?;
            logs.rename(from, to);
        }
        let (mut pushed, mut has) = (plan.pushed, None);
        let folded = remote_logs::retired(&logs, request);
        if !request.dry_run {
            guard.join(batch.keep()?);
            has = update_refs(&there, request, &pushed.moved, key.as_deref())?;
            logs.publish(store).or_else(|error| if error.is_lost() { Ok(()) } else { Err(error) })?;
        }
        archived_runs::retire(store, reach, request, &mut pushed)?;
        pushed.moved.extend(remote_logs::retire(store, reach, request, folded)?);
        Ok(Delivered { pushed, before: there.has, after: has.unwrap_or_default() })
    }
}

/// A push attempt with the remote's refs before and after.
pub(super) struct Delivered {
    pub(super) pushed: Pushed,
    pub(super) before: BTreeMap<Place, Oid>,
    /// The refs after the push; empty if nothing was moved.
    pub(super) after: BTreeMap<Place, Oid>,
}

/// Returns the changes that push something.
pub(super) fn moving(moves: &[Moved]) -> impl Iterator<Item = &Moved> {
    moves.iter().filter(|moved| moved.status.moves())
}

/// Returns the remote's refs in its folder, without invalid names.
pub(super) fn list_refs(
    store: &Store,
    reach: &Reach,
    url: &str,
    space: &Space,
) -> Result<BTreeMap<Place, Oid>, AnyError> {
    let listed = remote::list(store, reach, url, &space.pattern())?;
    Ok(listed
        .into_iter()
        .filter_map(|(oid, name)| Some((Place::parse(name.strip_prefix(space.folder())?)?, oid)))
        .collect())
}

errors! {
    /// An error while pushing.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unknown(String) "unknown-run": "there is no run or thread {0:?} here";
    Diverged(Vec<Diverged>) "diverged": "{}; nothing was pushed" [Diverged::sentence(.0)];
    Blocked(Box<Rival>) "unsound":
        "{} {:?} on the remote is not sound, and ours has no other name: {}"
        [.0.place.kind.word(), .0.place.name, .0.why];
    Declined { answers: Vec<Answer>, messages: String } "declined": "the remote refused {}" [porcelain::refused(answers)];
    ReadBack { name: String, pushed: Oid, found: Option<Oid> } "read-back":
        "{name} was pushed as {pushed}, but the remote shows {}"
        [.found.map_or("nothing".into(), |oid| oid.to_string())];
    Record(#[source] io::Error) "io": "cannot record the remote with a pushed run";
    Overtaken(#[source] AnyError, Overtaken): "{0}";
    #[from "git"] Head(work_tree::Error);
}
