//! Finds identical items of sealed runs, to reuse their products.
//!
//! Products are reused only from runs that verify completely, and are signed by keys that are known
//! here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::git::store::Store;
use crate::ledger::prove;
use crate::model::bounds;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, InputRef, ItemFired, ItemReconciled, Outcome, Product, Verified};
use crate::model::evidence::Evidence;
use crate::model::format;
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::pipeline::BlockEnded;
use crate::model::plan::ProductKey;
use crate::model::reused::{Reused, Work};
use crate::repository::{Repository, Trust};
use crate::verify::{AtHand, Gate, Logs, Options};

use crate::run::query::target::{Target, own_runs};
use crate::run::query::{VerifiedRun, View, show};

/// Items of other runs that may be reused.
#[derive(Clone)]
pub struct Reusable {
    store: Store,
    options: Options,
    logs: Arc<Logs>,
    /// Candidates by their base and the digest of their work. None of them is verified yet.
    tasks: HashMap<(Oid, Digest), Vec<Hint>>,
    /// The first attempt of each item id with its run, to explain how another task differs.
    by_item: HashMap<ItemId, Earlier>,
    /// The verified runs by ref, or `None` if a run does not verify. A run is used as it was
    /// verified, even if its ref moves.
    vetted: BTreeMap<String, Option<Arc<Source>>>,
}

/// An attempt that another one is compared with in words.
#[derive(Clone)]
struct Earlier {
    run: RunId,
    base: Oid,
    manifest: Product,
    inputs: BTreeMap<FilePath, InputRef>,
}

/// A verified run, with its reusable items.
struct Source {
    run: VerifiedRun,
    items: HashMap<ItemId, (ItemReconciled, Digest)>,
}

/// An item that looks done and green.
#[derive(Clone, Debug)]
struct Hint {
    run: RunId,
    reference: String,
    item: ItemId,
}

/// A reusable result.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Found {
    pub reused: Reused,
    /// The content of `reused.json`.
    pub evidence: Vec<u8>,
    pub products: BTreeMap<ProductKey, Product>,
    pub verify: Option<Verified>,
    pub blocks: Vec<BlockEnded>,
}

impl Repository {
    /// Lists the items of other runs, ours and fetched ones. Skips runs that cannot be read,
    /// because this is only an index.
    pub fn reusable(&self, run: &RunId) -> Result<Reusable, crate::repository::trust::Error> {
        let options = self.options(&Trust::default(), &mut |_| ())?;
        // Without the logs no run can be verified.
        let logs = Logs::read(&self.store).ok();
        let own = own_runs(&self.store).unwrap_or_default().into_iter().map(Target::own);
        let fetched = Target::all_fetched(&self.store).unwrap_or_default();
        let mut tasks: HashMap<(Oid, Digest), Vec<Hint>> = HashMap::new();
        let mut by_item = HashMap::new();
        for Target { run: target_run, reference } in
            own.chain(fetched).filter(|target| logs.is_some() && target.run != *run)
        {
            let Ok(view) = (Target { run: target_run, reference: reference.clone() }).view(&self.store) else {
                continue;
            };
            let base = view.state.submitted.base;
            for (ended, work, manifest) in done(&view) {
                let hint = Hint { run: view.run.clone(), reference: reference.clone(), item: ended.item.clone() };
                tasks.entry((base, format::digest_of(&work))).or_default().push(hint);
                by_item.entry(ended.item.clone()).or_insert_with(|| Earlier {
                    run: view.run.clone(),
                    base,
                    manifest,
                    inputs: work.inputs.clone(),
                });
            }
        }
        let logs = Arc::new(logs.unwrap_or_default());
        Ok(Reusable { store: self.store.clone(), options, logs, tasks, by_item, vetted: BTreeMap::new() })
    }
}

/// Returns the items of a sealed run that were run there and are done, green and not superseded,
/// each with its work and its manifest.
fn done(view: &View) -> Vec<(&ItemReconciled, Work<'_>, Product)> {
    if !view.state.sealed {
        return Vec::new();
    }
    let ended = view.links.iter().filter_map(|link| match &link.entry.event {
        Event::ItemReconciled(e)
            if e.status == Outcome::Done
                && !e.is_red()
                && e.protected.is_empty()
                && e.reused.is_none()
                && e.grade.is_none() =>
        {
            Some(e)
        }
        _ => None,
    });
    ended
        .filter_map(|e| {
            let at = view.state.graph.position(&e.item)?;
            let item = &view.state.items[at];
            let counts = item.products == e.products && !view.state.is_superseded(at);
            Some((e, Work::latest(item)?, item.manifest.filter(|_| counts)?))
        })
        .collect()
}

impl Reusable {
    /// Finds an item with this base and the task of this dispatch in a run that verifies.
    ///
    /// `fit` decides whether its products are what the item declares, because tasks do not say.
    pub fn find(
        &mut self,
        base: Oid,
        fired: &ItemFired,
        fit: &dyn Fn(&BTreeMap<ProductKey, Product>) -> bool,
    ) -> Option<Found> {
        let task = (base, format::digest_of(&Work::from_fired(fired)));
        let hints = self.tasks.get(&task)?.clone();
        hints.into_iter().find_map(|hint| {
            let source = self.vetted(&hint)?;
            let (ended, there) = source.items.get(&hint.item)?;
            let is_same = (source.run.state.submitted.base, *there) == task;
            (is_same && fit(&ended.products)).then_some(())?;
            let proof = prove::item_of(&self.store, &source.run.links, &hint.item, None).ok()?;
            let root = proof.root;
            let evidence = Evidence::Proof(Box::new(proof)).canonical();
            // Evidence that no reader accepts is never written.
            let is_read = evidence.len() as u64 <= bounds::BLOB && Evidence::parse(&evidence).is_some();
            is_read.then_some(())?;
            let stored = self.store.compute_product(&evidence).ok()?;
            let reused = Reused { run: hint.run, item: hint.item, root, evidence: Some(stored) };
            let (products, blocks) = (ended.products.clone(), ended.blocks.clone());
            Some(Found { reused, evidence, products, verify: ended.verify, blocks })
        })
    }

    /// Returns why [`Reusable::find`] returned nothing for this dispatch, which has this manifest.
    pub fn why_not(&self, base: Oid, fired: &ItemFired, manifest: &Manifest) -> String {
        let task = (base, format::digest_of(&Work::from_fired(fired)));
        if let Some(hint) = self.tasks.get(&task).and_then(|hints| hints.first()) {
            let address = format!("{}/{}", hint.run, hint.item);
            return match self.vetted.get(&hint.reference) {
                Some(None) => {
                    format!("{address} did the same, and its run does not verify by keys that are known here")
                }
                _ => format!("{address} did the same, and its products are not what this item has to hand over"),
            };
        }
        let Some(Earlier { run, base: other_base, manifest: other, inputs }) = self.by_item.get(&fired.item) else {
            return "no sealed run here has an item that is done and green and had the same to do".to_owned();
        };
        let mut differing: Vec<String> = Vec::new();
        differing.extend((*other_base != base).then(|| "base".to_owned()));
        differing.extend((*inputs != fired.input_refs).then(|| "inputRefs".to_owned()));
        if let Ok(Some(other)) = show::manifest(&self.store, other) {
            differing.extend(manifest.differing(&other));
        }
        format!("{run}/{} was given something else to do: {}", fired.item, differing.join(", "))
    }

    /// Returns the run of a candidate, if it verifies completely by known keys.
    fn vetted(&mut self, hint: &Hint) -> Option<Arc<Source>> {
        let Self { store, options, logs, vetted, .. } = self;
        vetted
            .entry(hint.reference.clone())
            .or_insert_with(|| {
                let gate = Gate { store, at_hand: &AtHand::logs(logs), options, accept_untrusted: false };
                let admitted = gate.admit_unreserved(&hint.run, &hint.reference).ok()?;
                let run = VerifiedRun::read(store, &admitted).ok()?;
                let items = done(&run).into_iter();
                let items = items
                    .map(|(ended, work, _)| (ended.item.clone(), (ended.clone(), format::digest_of(&work))))
                    .collect();
                Some(Arc::new(Source { run, items }))
            })
            .clone()
    }
}
