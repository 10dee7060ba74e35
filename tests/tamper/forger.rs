//! A forger of proofs: without the run's key, but with all its data.

use git_handoff::git::codec;
use git_handoff::git::store::Store;
use git_handoff::ledger::chain::Link;
use git_handoff::ledger::merkle;
use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Entry, Event};
use git_handoff::model::proof::Proof;
use git_handoff::verify::{AtHand, Beside, Logs, Report, verify_proof};
use serde_json::{Value, json};

use super::run::{End, PLAN, RUN, Scene, failing};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, key};

/// Where the first story has what is shown of it.
pub(super) const MAKE: [usize; 2] = [9, 10];

/// A sealed run, true proofs of it, and what a forger has besides.
pub(super) struct Forger {
    pub(super) scene: Scene,
    /// A proof of the patch of `make`, made in the fourth attempt.
    pub(super) patch: Value,
    /// A proof of the run's continuation after its first five entries.
    pub(super) grown: Value,
    /// A proof of the same patch in another run of the same name and key.
    pub(super) twin: Value,
    /// A proof of a patch of an item with the same name in a run of another name, by the same key.
    pub(super) sibling: Value,
    /// Another run of the same name and by the same key, in which `make` is done before it is
    /// dispatched.
    pub(super) backwards: Vec<Link>,
    pub(super) stranger: Signer,
}

impl Forger {
    pub(super) fn new() -> Self {
        let scene = Scene::new(End::Closed);
        let forge = &scene.forge;
        let grown = value(&prove::growth(&forge.store, RUN, 4).unwrap());
        let patch = proof_of_patch(&forge.store, RUN);
        let mut tale = scene.tale();
        tale.swap(MAKE[0], MAKE[1]);
        let backwards = scene.tell(tale, &forge.signer).links;
        let mut second_tale = scene.tale();
        let Event::ItemReconciled(e) = &mut second_tale[MAKE[1]] else { panic!() };
        e.duration_ms += 1;
        scene.tell(second_tale, &forge.signer);
        let twin = proof_of_patch(&forge.store, RUN);
        let sibling = sibling(forge);
        let stranger = key(forge.path(), 9);
        Self { scene, patch, grown, twin, sibling, backwards, stranger }
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.scene.chain.links
    }

    /// The bytes of a commit of the run.
    pub(super) fn commit(&self, link: &Link) -> String {
        String::from_utf8(self.scene.forge.store.read(link.commit).unwrap().1).unwrap()
    }

    /// A replaced commit of an entry, signed by another key or unsigned.
    pub(super) fn commit_as(&self, at: usize, entry: &Entry, signer: Option<&Signer>) -> String {
        let before: Vec<_> = at.checked_sub(1).map(|before| self.links()[before].commit).into_iter().collect();
        let payload = codec::payload(entry, self.links()[at].tree, &before);
        let raw = match signer {
            Some(signer) => codec::signed(entry, self.links()[at].tree, &before, &signer.sign(&payload).unwrap()),
            None => payload,
        };
        String::from_utf8(raw).unwrap()
    }

    /// The seal, saying another root.
    pub(super) fn seal_of(&self, root: Digest) -> Entry {
        let mut seal = self.links().last().unwrap().entry.clone();
        let Event::RunSealed(e) = &mut seal.event else { panic!() };
        e.root = root;
        seal
    }

    /// The entries before the seal.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let links = self.links();
        links[..links.len() - 1].iter().map(|link| link.entry.clone()).collect()
    }

    /// The same, one of them made up: `make` handed over something else.
    pub(super) fn made_up(&self) -> Vec<Entry> {
        let mut entries = self.entries();
        let Event::ItemReconciled(e) = &mut entries[MAKE[1]].event else { panic!() };
        e.products.get_mut(&"patch".parse().unwrap()).unwrap().sha256 = Digest::compute(b"made up\n");
        entries
    }

    /// A proof over entries of the forger's choice with true paths, between the run's own first
    /// entry and its latest before the seal.
    pub(super) fn over(&self, entries: &[Entry], about: &Value) -> Value {
        let leaves: Vec<Digest> = entries.iter().map(Entry::hash).collect();
        let (path, last) = (|at: usize| merkle::inclusion(&leaves, at).unwrap(), leaves.len() - 1);
        let mut proof = json!({
            "schema": "git-handoff.proof/1", "run": self.scene.chain.run,
            "entries": leaves.len(), "root": merkle::root(leaves.iter().copied()),
            "first": { "commit": self.commit(&self.links()[0]), "path": path(0) },
            "last": { "commit": self.commit(&self.links()[last]), "path": path(last) },
        });
        for (field, value) in about.as_object().unwrap() {
            proof[field] = value.clone();
        }
        if about.get("item").is_some() {
            proof["shown"] =
                MAKE.iter().map(|at| json!({ "entry": of_entry(&entries[*at]), "path": path(*at) })).collect();
            proof["product"] = json!({ "key": "patch", "is": proof["shown"][1]["entry"]["products"]["patch"] });
        }
        if let Some(old) = about.pointer("/since/entries").and_then(Value::as_u64) {
            let old = usize::try_from(old).unwrap();
            proof["since"]["root"] = json!(merkle::root(leaves[..old].iter().copied()));
            proof["since"]["path"] = json!(merkle::consistency(&leaves, old).unwrap());
        }
        proof
    }

    /// The same, with a seal in the last place.
    pub(super) fn sealed_over(&self, entries: &[Entry], about: &Value, seal: &str) -> Value {
        with(&self.over(entries, about), |proof| proof["last"] = json!({ "commit": seal }))
    }

    /// An entry of the run with its true path.
    pub(super) fn leaf(&self, at: usize) -> Value {
        let leaves: Vec<Digest> = self.entries().iter().map(Entry::hash).collect();
        json!({ "entry": of_entry(&self.links()[at].entry), "path": merkle::inclusion(&leaves, at).unwrap() })
    }

    /// Checks a proof where nothing but the run's key is known.
    pub(super) fn report(&self, proof: &Value) -> Report {
        self.report_of(&Proof::parse(proof.to_string().as_bytes()).unwrap())
    }

    fn report_of(&self, proof: &Proof) -> Report {
        verify_proof(proof, Beside::default(), &self.scene.forge.options(), &AtHand::logs(&Logs::default()))
    }

    /// Says how a forgery reads.
    #[track_caller]
    pub(super) fn row(&self, (what, proof): (&str, Value)) -> Vec<String> {
        match Proof::parse(proof.to_string().as_bytes()) {
            Ok(proof) => verdict(what, &self.report_of(&proof)),
            Err(problem) => vec![what.to_owned(), format!("no proof: `{}`", problem.code), "–".to_owned()],
        }
    }
}

fn sibling(forge: &Forge) -> Value {
    let plan = PLAN.replace("handoff-dag-1", "handoff-dag-2");
    let mut run = ChainBuilder::submit(forge, &plan);
    run.fire("make");
    run.done("make", &[("patch", b"diff of another run\n")]);
    run.close();
    run.seal();
    run.write(&forge.signer);
    proof_of_patch(&forge.store, "refs/handoff/runs/handoff-dag-2")
}

fn proof_of_patch(store: &Store, reference: &str) -> Value {
    value(&prove::item(store, reference, &"make".parse().unwrap(), Some(&"patch".parse().unwrap())).unwrap())
}

fn value(proof: &Proof) -> Value {
    serde_json::to_value(proof).unwrap()
}

pub(super) fn of_entry(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.canonical()).unwrap()
}

pub(super) fn with(proof: &Value, bend: impl FnOnce(&mut Value)) -> Value {
    let mut bent = proof.clone();
    bend(&mut bent);
    assert_ne!(bent, *proof, "nothing was bent");
    bent
}

pub(super) fn without(proof: &Value, fields: &[&str]) -> Value {
    with(proof, |proof| fields.iter().for_each(|field| drop(proof.as_object_mut().unwrap().remove(*field))))
}

pub(super) fn list<'v>(proof: &'v mut Value, at: &str) -> &'v mut Vec<Value> {
    proof.pointer_mut(at).unwrap().as_array_mut().unwrap()
}

#[track_caller]
pub(super) fn verdict(what: &str, report: &Report) -> Vec<String> {
    assert!(!report.intact, "{what}\n{}", report.to_text(false));
    vec![what.to_owned(), format!("`✗ {}`", report.headline), failing(report)]
}
