//! Builds the chain of a run entry by entry. Derives everything as the format says, and lets a test
//! change any part before it is written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use git_handoff::model::role::every_role;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use git_handoff::git::refs;
use git_handoff::ledger::chain::{Draft, Head, Link};
use git_handoff::ledger::merkle::Frontier;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::confinement::NONE;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::document::Revision;
use git_handoff::model::driver::{Because, DriverId};
use git_handoff::model::entry::{
    Again, Cause, DocumentWritten, Event, InputRef, ItemDropped, ItemEnded, ItemFired, ItemReconciled, Outcome,
    Product, RunEnded, RunExtended, RunSealed, RunSubmitted, Verified, VerifiedBy,
};
use git_handoff::model::extension::definition;
use git_handoff::model::format;
use git_handoff::model::judge;
use git_handoff::model::manifest::Manifest;
use git_handoff::model::name::{FilePath, ItemId, RunId};
use git_handoff::model::plan::{Item, Need, Plan, ProductKey, Selector, Source};
use git_handoff::model::state::{Phase, RunState};
use serde_json::Value;

use super::forge::{Forge, PLAN, next, path, store_product};

/// The draft of an entry of a run.
pub(crate) fn draft(run: &RunId, event: Event) -> Draft {
    Draft { about: run.clone().into(), event, bytes: Vec::new(), edits: Vec::new() }
}

/// Points at another blob where an entry names bytes, by the path of its file.
pub(crate) fn point_to(event: &mut Event, path: &str, oid: Oid) {
    let before = event.files().get(path).expect("the entry has this file").oid;
    let mut products: Vec<&mut Product> = match event {
        Event::RunSubmitted(e) => {
            let imports = e.imports.values_mut().flat_map(|import| [&mut import.product, &mut import.evidence]);
            let evidence = e.continues.iter_mut().map(|continues| &mut continues.evidence);
            let others = e.rules.iter_mut().chain(e.artifacts.values_mut()).chain(e.pipelines.values_mut());
            std::iter::once(&mut e.plan).chain(others).chain(imports).chain(evidence).collect()
        }
        Event::ItemFired(e) => vec![&mut e.manifest],
        Event::ItemReconciled(e) => {
            let evidence = e.reused.iter_mut().filter_map(|reused| reused.evidence.as_mut());
            e.products.values_mut().chain(evidence).collect()
        }
        Event::RunExtended(e) => e.items.values_mut().chain(e.pipelines.values_mut()).collect(),
        Event::DocumentWritten(e) => return e.oid = oid,
        _ => Vec::new(),
    };
    products.iter_mut().filter(|product| product.oid == before).for_each(|product| product.oid = oid);
}

/// A chain that was written and published.
pub(crate) struct BuiltChain {
    pub(crate) run: RunId,
    pub(crate) head: Head,
    pub(crate) links: Vec<Link>,
}

/// A dispatch that is not an entry yet. Its manifest's fields are at hand.
pub(crate) struct Dispatch {
    pub(crate) attempt: u32,
    pub(crate) input_refs: BTreeMap<FilePath, InputRef>,
    pub(crate) manifest: Manifest,
}

impl Deref for Dispatch {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.manifest
    }
}

impl DerefMut for Dispatch {
    fn deref_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }
}

/// A chain that is not written yet: the plan, the entries so far and the state after them.
pub(crate) struct ChainBuilder<'a> {
    forge: &'a Forge,
    pub(crate) plan: Plan,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) state: RunState,
    /// Whether a seal's root and count are filled in when it is written.
    pub(crate) true_seal: bool,
    /// The signers of entries, by number, other than the default one.
    pub(crate) signers: BTreeMap<usize, Signer>,
    /// The driver that dispatches and ends attempts, if one does.
    pub(crate) driver: Option<DriverId>,
}

impl<'a> ChainBuilder<'a> {
    pub(crate) fn honest(forge: &'a Forge) -> Self {
        let mut chain_builder = Self::submit(forge, PLAN);
        chain_builder.fire("edit-a");
        chain_builder.done("edit-a", &[("patch", b"diff --git a/x b/x\n"), ("outputs/we ird.bin", b"\0\x01\x02")]);
        chain_builder.fire("edit-b");
        chain_builder.done("edit-b", &[("outputs/report.md", b"fine\n")]);
        chain_builder.seal();
        chain_builder
    }

    pub(crate) fn submit(forge: &'a Forge, plan: &str) -> Self {
        let parsed = git_handoff::plan::parse(plan.as_bytes()).unwrap();
        let spec = b"# Spec\n";
        let plan_bytes = store_product(forge, plan.as_bytes());
        let submitted = RunSubmitted {
            artifacts: parsed.artifacts.keys().map(|path| (path.clone(), store_product(forge, spec))).collect(),
            queue: parsed.queue.clone(),
            ..RunSubmitted::new(plan_bytes, forge.base, every_role([forge.signer.fingerprint()]))
        };
        let state = RunState::new(submitted.clone(), &parsed).with_rules(parsed.rules.clone());
        let first = draft(&parsed.id, Event::RunSubmitted(submitted));
        Self {
            forge,
            plan: parsed,
            drafts: vec![first],
            state,
            true_seal: true,
            signers: BTreeMap::new(),
            driver: None,
        }
    }

    /// Adds an entry; what the rules do not allow is forced upon the state.
    pub(crate) fn add(&mut self, event: Event) {
        if let Event::RunExtended(e) = &event {
            let _ = self.state.extend(e, self.items(e));
            return self.drafts.push(draft(&self.plan.id, event));
        }
        let at = event.item().and_then(|(item, _)| self.state.graph.position(item));
        if let (Err(_), Some(at)) = (self.state.apply(&event), at) {
            let state = &mut self.state.items[at];
            match &event {
                Event::ItemFired(e) => (state.phase, state.attempts) = (Phase::Running, e.attempt),
                Event::ItemReconciled(e) => {
                    state.phase = if e.status == Outcome::Done { Phase::Done } else { Phase::Failed };
                    state.products = e.products.clone();
                }
                _ => {}
            }
        }
        self.drafts.push(draft(&self.plan.id, event));
    }

    /// The items whose `item.json` the entry names.
    fn items(&self, e: &RunExtended) -> Vec<Item> {
        let read =
            |product: &Product| git_handoff::plan::parse_item(&self.forge.store.read_blob(product.oid).ok()?).ok();
        e.items.values().filter_map(read).collect()
    }

    /// The item that a rule names after what it sees, whether it would create it or not.
    pub(crate) fn of_rule(&self, at: usize) -> Item {
        let rule = &self.state.rules[at];
        rule.item(&self.state.latest_documents(rule)).unwrap()
    }

    pub(crate) fn extend(&mut self, cause: Cause, items: &[Item]) {
        for item in items {
            store_product(self.forge, &definition(item));
        }
        self.add(Event::RunExtended(RunExtended::new(cause, items, self.forge.store.hash_kind()).unwrap()));
    }

    pub(crate) fn fire(&mut self, item: &str) {
        self.fire_with(item, |_| {});
    }

    /// Dispatches an item, and bends the dispatch first.
    pub(crate) fn fire_with(&mut self, item: &str, bend: impl FnOnce(&mut Dispatch)) {
        let id = ItemId::parse(item).unwrap();
        let at = self.state.graph.position(&id).unwrap();
        let node = self.state.graph.item(at).clone();
        let argv = match node.inputs.get("command") {
            Some(Value::String(script)) => vec!["sh".to_owned(), "-c".to_owned(), script.clone()],
            Some(Value::Array(argv)) => argv.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect(),
            _ => vec!["agent".to_owned()],
        };
        let mut manifest = Manifest { argv, timeout: node.timeout.unwrap_or(7200), ..Manifest::begin(&node) };
        manifest.claims.sandbox = NONE.into();
        let mut dispatch = Dispatch {
            attempt: self.state.items[at].attempts + 1,
            input_refs: node.needs.iter().map(|(key, need)| (key.clone(), self.resolve(need))).collect(),
            manifest,
        };
        bend(&mut dispatch);
        let second_manifest = store_product(self.forge, &dispatch.manifest.canonical());
        let fired = ItemFired::new(id, dispatch.attempt, second_manifest, dispatch.input_refs);
        self.add(Event::ItemFired(ItemFired { driver: self.driver.clone(), ..fired }));
    }

    fn resolve(&self, need: &Need) -> InputRef {
        let product = |id: &ItemId| {
            let at = self.state.graph.position(id).unwrap();
            self.state.items[at].products.get(&need.select.product_key()).map(|product| product.sha256)
        };
        let document = |name: &FilePath| Some(self.state.documents.latest(name)?.product.sha256);
        let digest = match (&need.from, &need.select) {
            (Source::Item(id), _) => product(id),
            (Source::Documents, Selector::Document { name, .. }) => document(name),
            (Source::Elsewhere(_), _) => self.state.submitted.import(need).map(|import| import.product.sha256),
            _ => self.state.submitted.artifacts.values().next().map(|sealed| sealed.sha256),
        };
        let digest = digest.unwrap_or_else(|| Digest::compute(b"made up"));
        InputRef { from: need.from.clone(), select: need.select.clone(), digest }
    }

    /// Puts a revision of a document on the run.
    pub(crate) fn document(&mut self, name: &str, schema: Option<&str>, bytes: &[u8]) {
        self.document_with(name, bytes, |e| e.schema = schema.map(|schema| schema.parse().unwrap()));
    }

    /// Puts a revision on the run that is bent first.
    pub(crate) fn document_with(&mut self, name: &str, bytes: &[u8], bend: impl FnOnce(&mut DocumentWritten)) {
        let name = path(name);
        let latest = self.state.documents.latest(&name);
        let (revision, product) = (latest.map_or(1, |latest| latest.number + 1), store_product(self.forge, bytes));
        let previous = latest.map(|latest| latest.product.sha256);
        let mut event =
            DocumentWritten { previous, ..DocumentWritten::new(name, revision, product, "human:ada".to_owned()) };
        bend(&mut event);
        self.add(Event::DocumentWritten(event));
    }

    pub(crate) fn done(&mut self, item: &str, products: &[(&str, &[u8])]) {
        let made =
            products.iter().map(|(key, bytes)| (key.parse().unwrap(), store_product(self.forge, bytes))).collect();
        self.end(item, (Outcome::Done, None), made);
    }

    /// Ends an item as done although its check did not pass.
    pub(crate) fn red(&mut self, item: &str) {
        self.red_with(item, &[]);
    }

    /// Ends an item so, with products.
    pub(crate) fn red_with(&mut self, item: &str, products: &[(&str, &[u8])]) {
        self.done(item, products);
        let Some(Draft { event: Event::ItemReconciled(mut e), .. }) = self.drafts.pop() else { unreachable!() };
        e.verify = Some(Verified { passed: false, by: VerifiedBy::Itself });
        let at = self.state.graph.position(&e.item).unwrap();
        self.state.items[at].red = true;
        self.drafts.push(draft(&self.plan.id, Event::ItemReconciled(e)));
    }

    pub(crate) fn fail(&mut self, item: &str) {
        self.fail_for(item, Some("exit code 1"));
    }

    /// Ends an item as failed for a reason, or without one.
    pub(crate) fn fail_for(&mut self, item: &str, reason: Option<&str>) {
        self.end(item, (Outcome::Failed, reason), BTreeMap::new());
    }

    fn end(&mut self, item: &str, (status, reason): (Outcome, Option<&str>), products: BTreeMap<ProductKey, Product>) {
        let id = ItemId::parse(item).unwrap();
        let at = self.state.graph.position(&id).unwrap();
        let event = ItemReconciled {
            reason: reason.map(str::to_owned),
            duration_ms: 12,
            products,
            driver: self.driver.clone(),
            ..ItemReconciled::new(id, self.state.items[at].attempts, status)
        };
        self.add(Event::ItemReconciled(event));
    }

    pub(crate) fn skip(&mut self, item: &str) {
        let id = ItemId::parse(item).unwrap();
        let attempt = self.state.items[self.state.graph.position(&id).unwrap()].attempts;
        self.add(Event::ItemSkipped(ItemDropped::new(id, attempt, "edit-a failed")));
    }

    pub(crate) fn requeue(&mut self, item: &str, reason: Again) {
        let id = ItemId::parse(item).unwrap();
        let attempt = self.state.items[self.state.graph.position(&id).unwrap()].attempts;
        let event = ItemEnded { driver: self.driver.clone(), ..ItemEnded::new(id, attempt, reason) };
        let event = if reason == Again::Failure { Event::ItemRetried(event) } else { Event::ItemRequeued(event) };
        self.add(event);
    }

    /// Takes a running item from the driver that holds it.
    pub(crate) fn take(&mut self, item: &str, taker: Option<DriverId>, because: Option<Because>) {
        let id = ItemId::parse(item).unwrap();
        let state = &self.state.items[self.state.graph.position(&id).unwrap()];
        let driver = state.holder.as_ref().map(|holder| holder.driver.clone());
        let event = ItemEnded { driver, taker, because, ..ItemEnded::new(id, state.attempts, Again::Lost) };
        self.add(Event::ItemRequeued(event));
    }

    pub(crate) fn close(&mut self) {
        self.add(Event::RunClosed(RunEnded::new("enough")));
    }

    pub(crate) fn seal(&mut self) {
        let read = |_: &FilePath, revision: &Revision| self.forge.store.read_blob(revision.product.oid);
        let stopped = judge::stopped(&self.state, read).unwrap_or_default();
        self.add(Event::RunSealed(RunSealed { stopped, ..RunSealed::new(Digest::compute(b"")) }));
    }

    /// Signs the latest entry with another key.
    pub(crate) fn by(&mut self, signer: &Signer) {
        self.signers.insert(self.drafts.len() - 1, signer.clone());
    }

    /// Writes the chain with true links, true seals and true signatures, and publishes it.
    pub(crate) fn write(self, signer: &Signer) -> BuiltChain {
        let mut head = Head::unborn(String::new());
        let (mut links, mut frontier) = (Vec::<Link>::new(), Frontier::default());
        for (number, mut draft) in self.drafts.into_iter().enumerate() {
            let writer = self.forge.writer_with(self.signers.get(&number).unwrap_or(signer));
            if let (Event::RunSealed(seal), true) = (&mut draft.event, self.true_seal) {
                seal.root = frontier.root();
            }
            // Nothing is pruned before the ref is set.
            let (_, written) = writer.append(&head, vec![draft]).unwrap().place().unwrap();
            let link = written[0].clone();
            head = next(&head, &link);
            frontier.push(link.hash);
            links.push(link);
        }
        refs::set(&self.forge.store, &format::run_ref(&self.plan.id), links.last().unwrap().commit).unwrap();
        BuiltChain { run: self.plan.id, head, links }
    }
}
