//! Finds items of sealed runs that had just the same to do, so that it need not be done again.
//!
//! Whose run that is counts as much as what it did: only one that verifies to the last byte, by keys that are known here, is taken from.

use std::collections::{BTreeMap, HashMap};

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::prove;
use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemReconciled, Outcome, Product, Verified};
use crate::model::format;
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::pipeline::BlockEnded;
use crate::model::place::{Kind, Place};
use crate::model::plan::ProductKey;
use crate::model::reused::{Evidence, Reused, task};
use crate::repository::{Repository, Trust};
use crate::verify::{Options, State, verify};

use super::target::{Target, own_runs};

/// The items of other runs that there are to take from.
#[derive(Clone)]
pub struct Reusable {
    store: Store,
    options: Options,
    /// By the digest of what was to be done.
    tasks: HashMap<Digest, Vec<Candidate>>,
    /// The runs that were looked at whole, and whether anything may be taken from them.
    sound: BTreeMap<String, bool>,
}

/// An item that seems to be done and green.
#[derive(Clone, Debug)]
struct Candidate {
    run: RunId,
    reference: String,
    item: ItemId,
    manifest: Manifest,
    products: BTreeMap<ProductKey, Product>,
    verify: Option<Verified>,
    blocks: Vec<BlockEnded>,
}

/// What an item need not be run for.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it comes from.
    pub reused: Reused,
    /// What shows that: the bytes of `reused.json`.
    pub evidence: Vec<u8>,
    /// The products.
    pub products: BTreeMap<ProductKey, Product>,
    /// What the check said there.
    pub verify: Option<Verified>,
    /// What became of the blocks there.
    pub blocks: Vec<BlockEnded>,
}

impl Repository {
    /// Gathers what runs other than this one, our own and fetched, have done; what cannot be read is passed over, for nothing rests on it.
    pub fn reusable(&self, run: &RunId) -> Result<Reusable, crate::repository::trust::Error> {
        let options = self.options(&Trust::default(), &mut |_| ())?;
        let own = own_runs(&self.store).unwrap_or_default().into_iter().map(Target::own);
        let listed = refs::list(&self.store, format::FETCHED_REFS).unwrap_or_default();
        let fetched = listed.into_iter().filter_map(|(reference, _)| {
            let (_, place) = Place::fetched(&reference)?;
            let run = (place.kind == Kind::Run).then(|| RunId::parse(&place.name).ok()).flatten()?;
            Some(Target { run, reference })
        });
        let mut tasks: HashMap<Digest, Vec<Candidate>> = HashMap::new();
        for target in own.chain(fetched).filter(|target| target.run != *run) {
            for candidate in candidates(&self.store, &target) {
                tasks.entry(task(&candidate.manifest)).or_default().push(candidate);
            }
        }
        Ok(Reusable { store: self.store.clone(), options, tasks, sound: BTreeMap::new() })
    }
}

/// Returns the items of a sealed run that are done, green, count, and were run there.
fn candidates(store: &Store, target: &Target) -> Vec<Candidate> {
    let Ok(view) = target.view(store) else { return Vec::new() };
    let (Some(tree), true) = (view.head.tree, view.state.sealed) else { return Vec::new() };
    let layout = view.state.layout();
    let ended = view.links.iter().filter_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) if e.status == Outcome::Done && !e.is_red() && e.reused.is_none() => Some(e),
        _ => None,
    });
    let counts = ended.filter(|e| {
        let at = view.state.graph.position(&e.item);
        at.is_some_and(|at| view.state.items[at].products == e.products && !view.state.is_superseded(at))
    });
    let candidate = |e: &ItemReconciled| {
        let blob = store.blob_at(tree, &layout.manifest(&e.item)).ok()??;
        let manifest = Manifest::parse(&store.contains(blob).then(|| store.read_blob(blob).ok())??).ok()?;
        Some(Candidate {
            run: view.run.clone(),
            reference: target.reference.clone(),
            item: e.item.clone(),
            manifest,
            products: e.products.clone(),
            verify: e.verify,
            blocks: e.blocks.clone(),
        })
    };
    counts.filter_map(candidate).collect()
}

impl Reusable {
    /// Finds an item that had just what this manifest says to do, in a run that may be taken from, and whose products fit.
    ///
    /// A manifest does not say what an item declares to hand over, so that `fit` is to be asked.
    pub fn find(&mut self, manifest: &Manifest, fit: &dyn Fn(&BTreeMap<ProductKey, Product>) -> bool) -> Option<Found> {
        let candidates = self.tasks.get(&task(manifest))?.clone();
        candidates.into_iter().find_map(|candidate| {
            if !self.is_sound(&candidate) || !fit(&candidate.products) {
                return None;
            }
            let Candidate { run, reference, item, manifest, products, verify, blocks } = candidate;
            let proof = prove::item(&self.store, &reference, &item, None).ok()?;
            let root = proof.root;
            let evidence = Evidence { proof, manifest }.canonical();
            let reused = Reused { run, item, root, evidence: Digest::of(&evidence) };
            Some(Found { reused, evidence, products, verify, blocks })
        })
    }

    /// Whether the run of an item verifies to the last byte, all by keys that are known.
    fn is_sound(&mut self, candidate: &Candidate) -> bool {
        let (store, options) = (&self.store, &self.options);
        *self.sound.entry(candidate.reference.clone()).or_insert_with(|| {
            let report = verify(store, &candidate.run, &candidate.reference, options);
            report.is_ok_and(|report| {
                let whole = report.row("content").is_some_and(|row| row.state == State::Ok);
                let known = report.signers.iter().all(|signer| signer.trusted);
                report.intact && report.sealed && whole && known
            })
        })
    }
}
