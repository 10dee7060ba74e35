//! A run that is recorded entry by entry, without a driver: for measuring what entries cost, and
//! what is made of many.

use std::path::Path;

use git_handoff::clock::Clock;
use git_handoff::git::store::{Durability, Store};
use git_handoff::ledger::chain::Writer;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::catalog::Catalog;
use git_handoff::model::credential::gate::Gate;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemFired, ItemReconciled, Outcome, Product};
use git_handoff::model::manifest::Manifest;
use git_handoff::model::plan::Item;
use git_handoff::plan::validate::validate;
use git_handoff::run::operate::submit::{self, Request};
use git_handoff::run::operate::{NewEntry, OpenRun};

/// A run with everything that its entries are made of.
pub(crate) struct Recording {
    /// The run.
    pub(crate) open: OpenRun,
    /// Its items.
    pub(crate) items: Vec<Item>,
}

impl Recording {
    /// Submits a plan in a repository that has a commit.
    pub(crate) fn submit(dir: &Path, durability: Durability, plan: &[u8]) -> Self {
        let store = Store::discover(dir).expect("the repository opens").with_durability(durability);
        let signer = Signer::own(&dir.join(".git/handoff/signing_key")).expect("a key is made");
        let writer = Writer { store: store.clone(), signer, clock: Clock::System, actor: "bench".into() };
        let valid = validate(plan, &Catalog::default()).expect("the plan is valid");
        let base = submit::resolve_base(&store, "HEAD").expect("there is a commit");
        let request = Request {
            base,
            queue: None,
            folder: dir.to_owned(),
            gate: Gate::default(),
            imports: std::collections::BTreeMap::new(),
            roles: None,
            carried: None,
        };
        submit::submit(&writer, &valid, &request).expect("the plan is submitted");
        let open = OpenRun::open(&writer, &valid.plan().id).expect("the run opens");
        Self { open, items: valid.plan().items.clone() }
    }

    /// Returns the dispatch of an item that needs nothing.
    pub(crate) fn fired(&self, item: &Item, attempt: u32) -> NewEntry {
        let mut manifest = Manifest { argv: vec!["true".into()], timeout: 7200, ..Manifest::begin(item) };
        manifest.claims.env = ["HOME", "LANG", "PATH", "TMPDIR", "TZ"].map(str::to_owned).to_vec();
        manifest.claims.sandbox = "none".into();
        let product = self.open.store().compute_product(&manifest.canonical()).expect("the manifest has a name");
        let fired = ItemFired::new(item.id.clone(), attempt, product, [].into());
        NewEntry::fired(Event::ItemFired(fired), &manifest)
    }

    /// Returns the end of an attempt that did its work; `report` is what it hands over as
    /// `outputs/report`.
    pub(crate) fn done(&self, item: &Item, attempt: u32, report: Option<&[u8]>) -> NewEntry {
        let product = |bytes: &[u8]| {
            let oid = self.open.store().write_blob(bytes).expect("the product is written");
            let product = Product { sha256: Digest::compute(bytes), oid, size: bytes.len() as u64 };
            ("outputs/report".parse().expect("a plain key"), product)
        };
        NewEntry::plain(Event::ItemReconciled(ItemReconciled {
            duration_ms: 1,
            products: report.map(product).into_iter().collect(),
            ..ItemReconciled::new(item.id.clone(), attempt, Outcome::Done)
        }))
    }
}
