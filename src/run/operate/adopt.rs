//! Continues a run whose owners cannot go on, as a new run of the same plan.
//!
//! The new run seals the signed entries of the old one. Items that are done there are recorded as
//! done in the new run with the same products, and the sealed entries prove their origin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::ledger::merkle;
use crate::model::any_error::AnyError;
use crate::model::bounds;
use crate::model::continued::Continues;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{
    Cause, DocumentWritten, Event, InputRef, ItemFired, ItemReconciled, Outcome, RunExtended, RunSubmitted,
};
use crate::model::event::Unnamed;
use crate::model::evidence::Evidence;
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::reused::Reused;
use crate::model::state::{Phase, RunState};
use crate::plan;
use crate::plan::validate::Problems;
use crate::repository::{Repository, Trust};
use crate::run::import::sources::{Carried, Found, Imports};
use crate::run::query::target::Target;
use crate::run::query::{self, VerifiedRun};
use crate::verify::{AtHand, Barred, Gate, Logs};

use super::submission::Wanted;
use super::{NewEntry, OpenRun, coordinate};

/// A run that continues another one, as `adopt-run` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.adopt-run/1")]
pub struct AdoptedRun {
    /// The new run.
    pub run: RunId,
    /// Whether it was created now, not by an earlier call.
    pub created: bool,
    /// The run that it continues.
    pub continues: RunId,
    /// The number of entries of that run, without its seal.
    pub entries: u64,
    /// The Merkle root over these entries.
    pub root: Digest,
    /// The items that were taken over, in the order in which they were done.
    pub taken: Vec<ItemId>,
    /// The number of items that are left to do.
    pub left: usize,
    /// Warnings of the submission.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Repository {
    /// Continues a run under another id, with our key as its owner. Problems of its plan are a
    /// result, not an error.
    ///
    /// The run and all its products must verify, and every key that signed it must be known here.
    /// Calling this again completes an interrupted call.
    pub fn adopt_run(&self, text: &str, id: &RunId) -> Result<Result<AdoptedRun, Problems>, AnyError> {
        let old = self.continuable_elsewhere(&Target::find(&self.store, text)?)?;
        if old.run == *id {
            return Err(Error::SameId(id.clone()).into());
        }
        let (continues, evidence) = self.entries_of(&old)?;
        let carried =
            Carried { artifacts: old.state.submitted.artifacts.clone(), continues: continues.clone(), evidence };
        let imports = Imports { found: self.imported(&old)?, carried: Some(carried), ..Imports::default() };
        let submitted = &old.state.submitted;
        let (queue, base) = (Some(submitted.queue.clone()), Some(submitted.base.to_string()));
        let options = Wanted { queue, base, recorded: true, ..Wanted::default() };
        let sealed = old.blob(&submitted.plan).read(&self.store);
        let bytes = plan::renamed(&sealed.map_err(|_| Error::Unreadable(old.run.clone()))?, id.as_str())
            .ok_or_else(|| Error::Unreadable(old.run.clone()))?;
        let valid = match self.valid(&bytes, &options) {
            Ok((valid, _)) => valid,
            Err(problems) => return Ok(Err(problems)),
        };
        let submission = self.submit_valid(&valid, imports, PathBuf::new(), &options)?;
        let mut open = self.opened(&submission.run)?;
        if open.state.submitted.continues.as_ref() != Some(&continues) {
            return Err(Error::Other { run: id.clone(), old: old.run.clone() }.into());
        }
        let carried_items = self.carry(&mut open, &old, &continues)?;
        let left = open.state.items.iter().filter(|item| !item.phase.is_terminal()).count();
        let Continues { run, entries, root, .. } = continues;
        Ok(Ok(AdoptedRun {
            run: submission.run,
            created: submission.created,
            continues: run,
            entries,
            root,
            taken: carried_items,
            left,
            warnings: submission.warnings,
        }))
    }

    /// Passes a run through the gate, sealed or not, if all its keys are known here.
    fn continuable_elsewhere(&self, target: &Target) -> Result<VerifiedRun, AnyError> {
        let options = self.options(&Trust::default(), &mut |_| ())?;
        let logs = Logs::read(&self.store)?;
        let gate =
            Gate { store: &self.store, at_hand: &AtHand::logs(&logs), options: &options, accept_untrusted: false };
        let admitted = gate.admit_whole(&target.run, &target.reference).map_err(Error::Barred)?;
        if let Some(key) = admitted.strangers.first() {
            return Err(Error::Stranger { run: target.run.clone(), key: key.clone() }.into());
        }
        Ok(VerifiedRun::read(&self.store, &admitted)?)
    }

    /// Returns what entry 0 records of the continued run, and the evidence.
    fn entries_of(&self, old: &VerifiedRun) -> Result<(Continues, Vec<u8>), AnyError> {
        let commits = old.links.iter().map(|link| self.raw_commit(old, link.commit)).collect::<Result<Vec<_>, _>>()?;
        let evidence = Evidence::Commits(commits).canonical();
        if evidence.len() as u64 > bounds::BLOB {
            return Err(Error::TooLarge { run: old.run.clone(), bytes: evidence.len() }.into());
        }
        let under = &old.links[..old.links.len() - usize::from(old.state.sealed)];
        let (entries, root) = (under.len() as u64, merkle::root(under.iter().map(|link| link.hash)));
        let stored = self.store.compute_product(&evidence)?;
        Ok((Continues { run: old.run.clone(), entries, root, evidence: stored }, evidence))
    }

    /// Returns the bytes of a commit of a run, which are text.
    fn raw_commit(&self, old: &VerifiedRun, oid: Oid) -> Result<String, AnyError> {
        let (_, raw) = self.store.read(oid)?;
        Ok(String::from_utf8(raw).map_err(|_| Error::Unreadable(old.run.clone()))?)
    }

    /// Returns the imports of the old run, with their evidence.
    fn imported(&self, old: &VerifiedRun) -> Result<BTreeMap<String, Found>, AnyError> {
        let RunSubmitted { imports, .. } = &old.state.submitted;
        imports
            .iter()
            .map(|(name, import)| {
                let evidence =
                    old.blob(&import.evidence).read(&self.store).map_err(|_| Error::Unreadable(old.run.clone()))?;
                Ok((name.clone(), Found { product: import.product, evidence }))
            })
            .collect()
    }

    /// Records the results of the old run in their order, as far as the new run allows. Returns the
    /// items.
    fn carry(&self, open: &mut OpenRun, old: &VerifiedRun, continues: &Continues) -> Result<Vec<ItemId>, AnyError> {
        let mut carried = Vec::new();
        for link in &old.links[1..] {
            let entries = match &link.entry.event {
                Event::ItemReconciled(e) if may_take(&open.state, e) => {
                    let work = self.work(old, &e.item)?;
                    self.expect_here(old, e)?;
                    done_again(open, continues, (&work.0, work.1), e)?
                }
                Event::DocumentWritten(e) => vec![written_again(open, e)],
                Event::RunExtended(e) if e.cause == Cause::Actor => added_again(old, e, self.store.hash_kind())?,
                _ => Vec::new(),
            };
            let item = entries.first().and_then(NewEntry::item).cloned();
            if entries.is_empty() {
                continue;
            }
            match open.record(&entries) {
                // The new run does such items itself, for example those that wait for people.
                Err(super::Error::Illegal(_)) => {}
                Err(other) => return Err(other.into()),
                Ok(links) if links.is_empty() => {}
                Ok(_) => {
                    carried.extend(item);
                    coordinate::apply(open, self.config.max_items)?;
                }
            }
        }
        Ok(carried)
    }

    /// Returns the manifest and the inputs of the attempt that did an item, which is its last.
    fn work<'r>(
        &self,
        old: &'r VerifiedRun,
        item: &ItemId,
    ) -> Result<(Manifest, &'r BTreeMap<FilePath, InputRef>), Error> {
        let blob = old.manifest(item).ok_or_else(|| unreadable(old))?;
        let bytes = blob.read(&self.store).map_err(|_| unreadable(old))?;
        let at = old.state.graph.position(item).ok_or_else(|| unreadable(old))?;
        Ok((Manifest::parse(&bytes).map_err(|_| unreadable(old))?, &old.state.items[at].inputs))
    }

    fn expect_here(&self, old: &VerifiedRun, e: &ItemReconciled) -> Result<(), AnyError> {
        if e.products.values().all(|product| self.store.contains(product.oid)) {
            return Ok(());
        }
        Err(Error::Absent { run: old.run.clone(), item: e.item.clone() }.into())
    }
}

/// Reports that a run lacks something.
fn unreadable(old: &VerifiedRun) -> Error {
    Error::Unreadable(old.run.clone())
}

/// Returns true if the old run itself did an item, the item is green, and it waits in the new run.
fn may_take(state: &RunState, e: &ItemReconciled) -> bool {
    let waits = state.graph.position(&e.item).is_some_and(|at| state.items[at].phase == Phase::Waiting);
    e.status == Outcome::Done
        && e.attempt > 0
        && !e.is_red()
        && e.protected.is_empty()
        && e.reused.is_none()
        && e.grade.is_none()
        && waits
}

/// Returns the entries that record an item as done in the new run, or nothing if its pipeline
/// differs here.
fn done_again(
    open: &OpenRun,
    continues: &Continues,
    (manifest, inputs): (&Manifest, &BTreeMap<FilePath, InputRef>),
    e: &ItemReconciled,
) -> Result<Vec<NewEntry>, query::Error> {
    let state = &open.state;
    let Some(at) = state.graph.position(&e.item) else { return Ok(Vec::new()) };
    let pipeline = state.graph.item(at).pipeline().and_then(|name| state.pipelines.get(name));
    if manifest.pipeline != pipeline.map(|bytes| bytes.sha256) {
        return Ok(Vec::new());
    }
    let attempt = state.items[at].attempts + 1;
    let reused = Reused { run: continues.run.clone(), item: e.item.clone(), root: continues.root, evidence: None };
    let fired =
        ItemFired::new(e.item.clone(), attempt, open.store().compute_product(&manifest.canonical())?, inputs.clone());
    let ended = ItemReconciled {
        attempt,
        reason: None,
        exit: None,
        duration_ms: 0,
        transcript: None,
        usage: None,
        claims: None,
        reference: None,
        check: None,
        check_before: None,
        reused: Some(reused),
        ..e.clone()
    };
    Ok(vec![NewEntry::fired(Event::ItemFired(fired), manifest), NewEntry::plain(Event::ItemReconciled(ended))])
}

/// Returns the entry that writes a document of the old run again, with us as its author.
fn written_again(open: &OpenRun, e: &DocumentWritten) -> NewEntry {
    let author = open.writer().actor.clone();
    NewEntry::plain(Event::DocumentWritten(DocumentWritten { author, said: None, ..e.clone() }))
}

/// Returns the entry that adds the items that an actor added to the old run, or nothing if one of
/// them names a pipeline.
fn added_again(old: &VerifiedRun, e: &RunExtended, hash: gix::hash::Kind) -> Result<Vec<NewEntry>, Unnamed> {
    let items = e.items.keys().map(|id| old.state.graph.position(id).map(|at| old.state.graph.item(at).clone()));
    match items.collect::<Option<Vec<_>>>() {
        Some(items) if e.pipelines.is_empty() && items.iter().all(|added| added.pipeline().is_none()) => {
            Ok(vec![NewEntry::extended(Cause::Actor, items, &BTreeMap::new(), hash)?])
        }
        _ => Ok(Vec::new()),
    }
}

errors! {
    /// Failures to continue a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    SameId(RunId) "usage" 2: "the run {0:?} cannot continue itself: name another id with --id";
    Stranger { run: RunId, key: String } "unknown-key":
        "cannot continue the run {:?}: it is signed with the key {key}, which is not known here" [run.as_str()];
    Other { run: RunId, old: RunId } "run-exists":
        "the run {:?} exists, and does not continue the current state of {:?}" [run.as_str(), old.as_str()];
    TooLarge { run: RunId, bytes: usize } "too-large":
        "the entries of the run {:?} have {bytes} bytes; at most {} can be sealed with another run"
        [run.as_str(), bounds::BLOB];
    Absent { run: RunId, item: ItemId } "absent":
        "the products of {:?} of the run {:?} are not here" [item.as_str(), run.as_str()];
    Unreadable(RunId) "not-a-run": "cannot read all of the run {:?}" [.0.as_str()];
    #[from] Barred(Barred);
}
