//! An index of the patches that local and fetched runs record.
//!
//! The index only says where to look; its content is not trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::git::borrowed_repo::BorrowedRepo;
use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, Outcome, Product};
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::place::{Kind, Place};
use crate::model::plan::ProductKey;

use super::diff::Diff;

/// The maximum size of a patch to index by patch id; larger ones are found by digest only.
const LARGEST: usize = 64 << 20;

/// The maximum size of a patch whose lines are indexed.
const REMEMBERED: usize = 1 << 20;

/// The maximum total size of patches whose lines are indexed, in bytes.
const REMEMBERED_IN_ALL: usize = 128 << 20;

/// The maximum input of one git process, in bytes.
const AT_ONCE: usize = 32 << 20;

/// A run at one ref.
#[derive(Clone, Debug)]
pub(super) struct RunPlace {
    /// The run.
    pub(super) run: RunId,
    /// The ref.
    pub(super) reference: String,
    /// The remote that it was fetched from, if any.
    pub(super) remote: Option<String>,
}

/// The record of a run, not yet verified.
pub(super) struct RunRecord {
    /// The place of the run.
    pub(super) at: RunPlace,
    /// The hash of its first entry, equal in every copy.
    pub(super) first: Option<Digest>,
    /// The patches of its done items.
    pub(super) patches: BTreeMap<ItemId, Product>,
    /// The reason why the run cannot be read.
    pub(super) unreadable: Option<String>,
}

/// A patch that a run records for an item.
#[derive(Clone)]
pub(super) struct Patch {
    /// The run.
    pub(super) record: Rc<RunRecord>,
    /// The item.
    pub(super) item: ItemId,
    /// The product.
    pub(super) product: Product,
}

/// All runs; each is read on first use.
pub(super) struct Index {
    refs: Vec<RunPlace>,
    records: BTreeMap<usize, Rc<RunRecord>>,
    contents: Option<Rc<Contents>>,
}

/// All patches, by content.
#[derive(Default)]
pub(super) struct Contents {
    /// Patches by patch id.
    pub(super) by_id: BTreeMap<String, Vec<Patch>>,
    /// The changes of patches within the size limit.
    pub(super) known: Vec<(Patch, Rc<Diff>)>,
}

impl Index {
    /// Lists the runs.
    pub(super) fn new(store: &Store) -> Result<Self, refs::Error> {
        let own = refs::list_with_archived(store, format::RUN_REFS)?;
        let own = own.into_iter().filter_map(|(reference, tip)| {
            let run = RunId::decode(reference.strip_prefix(format::RUN_REFS)?)?;
            Some((RunPlace { run, reference, remote: None }, tip))
        });
        let fetched = refs::list_with_archived(store, format::FETCHED_REFS)?;
        let fetched = fetched.into_iter().filter_map(|(reference, tip)| {
            let (remote, place) = Place::fetched(&reference)?;
            let run = RunId::parse(&place.name).ok().filter(|_| place.kind == Kind::Run)?;
            let remote = Some(remote.to_owned());
            Some((RunPlace { run, reference, remote }, tip))
        });
        // Skips identical copies.
        let mut visited = BTreeSet::new();
        let all = own.chain(fetched).filter(|(place, tip)| visited.insert((place.run.clone(), *tip)));
        Ok(Self { refs: all.map(|(place, _)| place).collect(), records: BTreeMap::new(), contents: None })
    }

    /// Returns the runs with a name, ours first.
    pub(super) fn runs_with_name(&mut self, store: &Store, run: &str) -> Vec<Rc<RunRecord>> {
        let places = 0..self.refs.len();
        let positions: Vec<usize> = places.filter(|at| self.refs[*at].run.as_str() == run).collect();
        positions.into_iter().map(|at| self.record(store, at)).collect()
    }

    /// Returns messages about unreadable runs that were needed.
    pub(super) fn complaints(&self) -> impl Iterator<Item = String> {
        self.records.values().filter_map(|record| {
            let why = record.unreadable.as_ref()?;
            Some(format!("{} cannot be read, so nothing was looked for in it: {why}", record.at.reference))
        })
    }

    fn record(&mut self, store: &Store, at: usize) -> Rc<RunRecord> {
        let place = &self.refs[at];
        Rc::clone(self.records.entry(at).or_insert_with(|| Rc::new(read_record(store, place.clone()))))
    }

    /// Returns all patches, by content.
    pub(super) fn contents(&mut self, store: &Store, borrowed: &BorrowedRepo) -> Result<Rc<Contents>, AnyError> {
        if let Some(contents) = &self.contents {
            return Ok(Rc::clone(contents));
        }
        let mut users: BTreeMap<Oid, Vec<Patch>> = BTreeMap::new();
        for at in 0..self.refs.len() {
            let record = self.record(store, at);
            for (item, product) in &record.patches {
                let patch = Patch { record: Rc::clone(&record), item: item.clone(), product: *product };
                users.entry(product.oid).or_default().push(patch);
            }
        }
        let contents = Rc::new(read(store, borrowed, &users)?);
        self.contents = Some(Rc::clone(&contents));
        Ok(contents)
    }
}

fn read(store: &Store, borrowed: &BorrowedRepo, users: &BTreeMap<Oid, Vec<Patch>>) -> Result<Contents, AnyError> {
    let mut contents = Contents::default();
    let mut ids: BTreeSet<(Oid, String)> = BTreeSet::new();
    let (mut waiting, mut bytes): (Vec<(Oid, Vec<u8>)>, usize) = (Vec::new(), 0);
    let mut remembered = 0;
    for (oid, using) in users {
        // A missing or oversized patch is found by its digest only.
        let Ok(patch) = store.read_blob_of(*oid, LARGEST as u64) else { continue };
        if patch.len() <= REMEMBERED && remembered + patch.len() <= REMEMBERED_IN_ALL {
            remembered += patch.len();
            let diff = Rc::new(Diff::read(&patch));
            contents.known.extend(using.iter().map(|user| (user.clone(), Rc::clone(&diff))));
        }
        bytes += patch.len();
        waiting.push((*oid, patch));
        if bytes > AT_ONCE {
            ids.extend(borrowed.patch_ids(waiting.iter().map(|(blob, content)| (*blob, content.as_slice())))?);
            (waiting, bytes) = (Vec::new(), 0);
        }
    }
    ids.extend(borrowed.patch_ids(waiting.iter().map(|(oid, patch)| (*oid, patch.as_slice())))?);
    for (oid, id) in ids {
        contents.by_id.entry(id).or_default().extend(users.get(&oid).into_iter().flatten().cloned());
    }
    Ok(contents)
}

fn read_record(store: &Store, at: RunPlace) -> RunRecord {
    let links = match chain::read(store, &at.reference) {
        Ok(Some((_, links))) => links,
        Ok(None) => Vec::new(),
        Err(error) => {
            return RunRecord { at, first: None, patches: BTreeMap::new(), unreadable: Some(error.to_string()) };
        }
    };
    let mut patches = BTreeMap::new();
    for link in &links {
        if let Event::ItemReconciled(e) = &link.entry.event
            && let Some(product) = e.products.get(&ProductKey::Patch).filter(|_| e.status == Outcome::Done)
        {
            patches.insert(e.item.clone(), *product);
        }
    }
    RunRecord { at, first: links.first().map(|link| link.hash), patches, unreadable: None }
}
