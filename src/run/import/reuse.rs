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
use crate::model::entry::{Event, ItemReconciled, Outcome, Product, Verified};
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::pipeline::BlockEnded;
use crate::model::plan::ProductKey;
use crate::model::reused::{BESIDE_TASK, Evidence, Reused, task};
use crate::repository::{Repository, Trust};
use crate::verify::{AtHand, Gate, Logs, Options};

use crate::run::query::target::{Target, own_runs};
use crate::run::query::{VerifiedRun, View};

/// Items of other runs that may be reused.
#[derive(Clone)]
pub struct Reusable {
    store: Store,
    options: Options,
    logs: Arc<Logs>,
    /// Candidates by their base and the digest of their task. None of them is verified yet.
    tasks: HashMap<(Oid, Digest), Vec<Hint>>,
    /// The first task of each item id with its run and base, to explain how another task differs.
    by_item: HashMap<ItemId, (RunId, Oid, Manifest)>,
    /// The verified runs by ref, or `None` if a run does not verify. A run is used as it was
    /// verified, even if its ref moves.
    vetted: BTreeMap<String, Option<Arc<Source>>>,
}

/// A verified run, with its reusable items.
struct Source {
    run: VerifiedRun,
    items: HashMap<ItemId, (ItemReconciled, Manifest)>,
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
        for Target { run, reference } in own.chain(fetched).filter(|target| logs.is_some() && target.run != *run) {
            let Ok(view) = (Target { run, reference: reference.clone() }).view(&self.store) else { continue };
            let base = view.state.submitted.base;
            for (ended, manifest) in done(&self.store, &view) {
                let hint = Hint { run: view.run.clone(), reference: reference.clone(), item: ended.item.clone() };
                tasks.entry((base, task(&manifest))).or_default().push(hint);
                by_item.entry(ended.item.clone()).or_insert_with(|| (view.run.clone(), base, manifest));
            }
        }
        let logs = Arc::new(logs.unwrap_or_default());
        Ok(Reusable { store: self.store.clone(), options, logs, tasks, by_item, vetted: BTreeMap::new() })
    }
}

/// Returns the items of a sealed run that were run there and are done, green and not superseded,
/// each with its manifest.
fn done<'v>(store: &Store, view: &'v View) -> Vec<(&'v ItemReconciled, Manifest)> {
    if !view.state.sealed {
        return Vec::new();
    }
    let ended = view.links.iter().filter_map(|link| match &link.entry.event {
        Event::ItemReconciled(e)
            if e.status == Outcome::Done
                && !e.is_red()
                && !e.protected_judged
                && e.reused.is_none()
                && e.grade.is_none() =>
        {
            Some(e)
        }
        _ => None,
    });
    let counts = ended.filter(|e| {
        let at = view.state.graph.position(&e.item);
        at.is_some_and(|at| view.state.items[at].products == e.products && !view.state.is_superseded(at))
    });
    let with_manifest = |e: &'v ItemReconciled| {
        let blob = view.state.items[view.state.graph.position(&e.item)?].manifest?.oid;
        let manifest = Manifest::parse(&store.contains(blob).then(|| store.read_blob(blob).ok())??).ok()?;
        Some((e, manifest))
    };
    counts.filter_map(with_manifest).collect()
}

impl Reusable {
    /// Finds an item with this base and the task of this manifest in a run that verifies.
    ///
    /// `fit` decides whether its products are what the item declares, because manifests do not say.
    pub fn find(
        &mut self,
        base: Oid,
        manifest: &Manifest,
        fit: &dyn Fn(&BTreeMap<ProductKey, Product>) -> bool,
    ) -> Option<Found> {
        let wanted = (base, task(manifest));
        let hints = self.tasks.get(&wanted)?.clone();
        hints.into_iter().find_map(|hint| {
            let source = self.vetted(&hint)?;
            let (ended, there) = source.items.get(&hint.item)?;
            let is_same = (source.run.state.submitted.base, task(there)) == wanted;
            (is_same && fit(&ended.products)).then_some(())?;
            let proof = prove::item_of(&self.store, &source.run.links, &hint.item, None).ok()?;
            let root = proof.root;
            let evidence = Evidence { proof: Some(proof), manifest: there.clone() }.canonical();
            // Evidence that no reader accepts is never written.
            let is_read = evidence.len() as u64 <= bounds::BLOB && Evidence::parse(&evidence).is_some();
            is_read.then_some(())?;
            let named = self.store.named(&evidence).ok()?;
            let reused = Reused { run: hint.run, item: hint.item, root, evidence: named, continued: false };
            let (products, blocks) = (ended.products.clone(), ended.blocks.clone());
            Some(Found { reused, evidence, products, verify: ended.verify, blocks })
        })
    }

    /// Returns why [`Reusable::find`] returned nothing for this base and manifest.
    pub fn why_not(&self, base: Oid, manifest: &Manifest) -> String {
        if let Some(hint) = self.tasks.get(&(base, task(manifest))).and_then(|hints| hints.first()) {
            let named = format!("{}/{}", hint.run, hint.item);
            return match self.vetted.get(&hint.reference) {
                Some(None) => format!("{named} did the same, and its run does not verify by keys that are known here"),
                _ => format!("{named} did the same, and its products are not what this item has to hand over"),
            };
        }
        match self.by_item.get(&manifest.item) {
            Some((run, other_base, other)) => {
                let mut differing = manifest.differing(other);
                differing.retain(|name| !BESIDE_TASK.contains(&name.as_str()));
                if *other_base != base {
                    differing.insert(0, "base".to_owned());
                }
                format!("{run}/{} was given something else to do: {}", manifest.item, differing.join(", "))
            }
            None => "no sealed run here has an item that is done and green and had the same to do".to_owned(),
        }
    }

    /// Returns the run of a candidate, if it verifies completely by known keys.
    fn vetted(&mut self, hint: &Hint) -> Option<Arc<Source>> {
        let Self { store, options, logs, vetted, .. } = self;
        let look = || {
            let gate = Gate { store, at_hand: &AtHand::logs(logs), options, accept_untrusted: false };
            let admitted = gate.admit_unreserved(&hint.run, &hint.reference).ok()?;
            let run = VerifiedRun::read(store, &admitted).ok()?;
            let items = done(store, &run).into_iter();
            let items = items.map(|(ended, there)| (ended.item.clone(), (ended.clone(), there))).collect();
            Some(Arc::new(Source { run, items }))
        };
        vetted.entry(hint.reference.clone()).or_insert_with(look).clone()
    }
}
