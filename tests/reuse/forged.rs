//! Evidence that is none.

use git_handoff::model::role::every_role;
use std::collections::BTreeMap;

use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::bounds::CONTAINERS;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemReconciled, Outcome, Product, Verified, VerifiedBy};
use git_handoff::model::evidence::Evidence;
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::proof::{Handed, Proof};
use git_handoff::model::reused::Reused;
use git_handoff::verify::Options;
use serde_json::json;

use super::{id, plan};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_says, key, store_product};

/// A sealed run `first`, in which both items are done; `other` is red.
fn first(forge: &Forge) -> RunId {
    first_by(forge, &forge.signer)
}

/// Such a run, begun by another key.
fn first_by(forge: &Forge, signer: &Signer) -> RunId {
    let mut chain_builder = ChainBuilder::submit(forge, &plan("first"));
    if signer.fingerprint() != forge.signer.fingerprint() {
        let Event::RunSubmitted(e) = &mut chain_builder.drafts[0].event else { panic!() };
        e.roles.extend(every_role([signer.fingerprint()]));
        chain_builder.by(signer);
    }
    for item in ["make", "other"] {
        chain_builder.fire(item);
        chain_builder.done(item, &[("outputs/report", item.as_bytes())]);
    }
    if let Event::ItemReconciled(e) = &mut chain_builder.drafts.last_mut().unwrap().event {
        e.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    }
    chain_builder.seal();
    forge.finish(chain_builder);
    "first".parse().unwrap()
}

/// The proof of an item of the run.
fn prove(forge: &Forge, run: &RunId, item: &str) -> Proof {
    prove::item(&forge.store, &format::run_ref(run), &id(item), None).unwrap()
}

/// The proof as evidence.
fn evidence(proof: &Proof) -> Vec<u8> {
    Evidence::Proof(Box::new(proof.clone())).canonical()
}

/// The parts of a story of an item that was not run.
pub(crate) struct Story {
    proof: Proof,
    bytes: Option<Vec<u8>>,
    /// The time limit of the attempt.
    pub(crate) timeout: u64,
    pub(crate) item: &'static str,
    reused: Reused,
    pub(crate) products: BTreeMap<ProductKey, Product>,
    verify: Option<Verified>,
}

/// Tells it in the run `handoff-dag-1`, and verifies that.
fn verify_story(forge: &Forge, bend: impl FnOnce(&mut Story)) -> git_handoff::verify::Report {
    told_of(forge, first(forge), bend)
}

fn told_of(forge: &Forge, run: RunId, bend: impl FnOnce(&mut Story)) -> git_handoff::verify::Report {
    forge.finish(story(forge, run, bend));
    forge.verify()
}

/// A run that takes `make` from the run `first` and goes no further.
pub(crate) fn taking(forge: &Forge, bend: impl FnOnce(&mut Story)) -> ChainBuilder<'_> {
    story(forge, first(forge), bend)
}

/// Such a run, which takes it from a run that another key began.
pub(crate) fn taking_from<'a>(forge: &'a Forge, signer: &Signer) -> ChainBuilder<'a> {
    story(forge, first_by(forge, signer), |_| {})
}

/// Bends a story so that it takes the red item of the run `first` as it is.
pub(crate) fn red(story: &mut Story) {
    let forge = Forge::new();
    let run = first(&forge);
    story.proof = prove(&forge, &run, "other");
    (story.item, story.reused.item) = ("other", id("other"));
    story.reused.root = story.proof.root;
    let text = b"other";
    let product = Product { sha256: Digest::compute(text), oid: forge.store.write_blob(text).unwrap(), size: 5 };
    story.products = BTreeMap::from([(ProductKey::from_name("outputs/report").unwrap(), product)]);
    story.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
}

fn story(forge: &Forge, run: RunId, bend: impl FnOnce(&mut Story)) -> ChainBuilder<'_> {
    let proof = prove(forge, &run, "make");
    let text = b"make";
    let product =
        Product { sha256: Digest::compute(text), oid: forge.store.write_blob(text).unwrap(), size: text.len() as u64 };
    let products = BTreeMap::from([(ProductKey::from_name("outputs/report").unwrap(), product)]);
    let reused = Reused { run, item: id("make"), root: proof.root, evidence: None };
    let mut story = Story { proof, bytes: None, timeout: 7200, item: "make", reused, products, verify: None };
    bend(&mut story);
    let bytes = story.bytes.unwrap_or_else(|| evidence(&story.proof));
    story.reused.evidence.get_or_insert_with(|| store_product(forge, &bytes));
    let mut chain_builder = ChainBuilder::submit(forge, &plan("handoff-dag-1"));
    chain_builder.fire_with(story.item, |dispatch| dispatch.timeout = story.timeout);
    let event = ItemReconciled {
        products: story.products,
        verify: story.verify,
        reused: Some(story.reused),
        ..ItemReconciled::new(id(story.item), 1, Outcome::Done)
    };
    chain_builder.add(Event::ItemReconciled(event));
    chain_builder
}

/// A sealed run that takes `make` from the run `first`, where it consumed another artifact.
pub(crate) fn taking_with_inputs(forge: &Forge) -> ChainBuilder<'_> {
    let plan = |run: &str| {
        format!(
            r#"{{"id":"{run}","items":[{{"id":"make","executor":"command","inputs":{{"command":["make"]}},
            "needs":{{"spec":{{"from":"@artifacts","select":{{"kind":"output","path":"spec"}}}}}}}}],
            "artifacts":{{"spec":"spec"}}}}"#
        )
    };
    let mut first = ChainBuilder::submit(forge, &plan("first"));
    first.fire("make");
    first.done("make", &[]);
    first.seal();
    forge.finish(first);
    let run: RunId = "first".parse().unwrap();
    let proof = prove(forge, &run, "make");
    let evidence = Some(store_product(forge, &evidence(&proof)));
    let mut taking = ChainBuilder::submit(forge, &plan("handoff-dag-1"));
    let Event::RunSubmitted(e) = &mut taking.drafts[0].event else { panic!() };
    e.artifacts.values_mut().for_each(|spec| *spec = store_product(forge, b"# Another\n"));
    taking.state.submitted.artifacts = e.artifacts.clone();
    taking.fire("make");
    let reused = Some(Reused { run, item: id("make"), root: proof.root, evidence });
    taking.add(Event::ItemReconciled(ItemReconciled { reused, ..ItemReconciled::new(id("make"), 1, Outcome::Done) }));
    taking.seal();
    taking
}

#[test]
fn reuse_with_other_inputs_fails() {
    let forge = Forge::new();
    forge.finish(taking_with_inputs(&forge));
    let part = "entry 2: the products that item make reuses does not hold: its task differs from the task done there";
    assert_says(&forge.verify(), "handoff", part);
}

#[test]
fn reuse_holds_with_the_proof_of_its_source() {
    for format in ["sha1", "sha256"] {
        let forge = Forge::with_format(format);
        let report = verify_story(&forge, |_| {});
        let row = &report.rows.handoff;
        assert_eq!(row.detail, "0 input refs, 1 item of other runs proven");
    }
}

#[test]
fn reuse_of_a_missing_item_fails() {
    type Bend = (&'static str, fn(&mut Story), &'static str);
    let bends: [Bend; 10] = [
        (
            "other bytes",
            |s| s.bytes = Some(b"{}".to_vec()),
            "entry 2: the products that item make reuses does not hold: reused.json is not valid evidence",
        ),
        (
            "other evidence than the entry names",
            |s| {
                s.reused.evidence =
                    Some(Product { sha256: Digest::compute(b"x"), ..*s.products.values().next().unwrap() });
            },
            "entry 2: the products that item make reuses does not hold: reused.json is not the one that the \
             entry names",
        ),
        (
            "another run's name",
            |s| s.reused.run = "second".parse().unwrap(),
            "entry 2: the products that item make reuses does not hold: the proof is of another run, item or \
             root",
        ),
        (
            "another item's",
            |s| s.reused.item = id("other"),
            "entry 2: the products that item make reuses does not hold: the proof is of another run, item or \
             root",
        ),
        (
            "another root",
            |s| s.reused.root = Digest::compute(b"root"),
            "entry 2: the products that item make reuses does not hold: the proof is of another run, item or \
             root",
        ),
        (
            "a check that nobody made",
            |s| s.verify = Some(Verified { passed: true, by: VerifiedBy::Command }),
            "entry 2: the products that item make reuses does not hold: the item of that run has other \
             products",
        ),
        (
            "a proof of a single product",
            |s| {
                let (key, is) = s.products.first_key_value().unwrap();
                s.proof.product = Some(Handed { key: key.clone(), is: *is });
            },
            "entry 2: the products that item make reuses does not hold: the proof is of one product, and not \
             of the item",
        ),
        (
            "fewer products",
            |s| s.products.clear(),
            "entry 2: the products that item make reuses does not hold: the item of that run has other \
             products",
        ),
        (
            "another task",
            |s| s.item = "other",
            "entry 2: the products that item other reuses does not hold: its task differs from the task done \
             there",
        ),
        (
            "another manifest",
            |s| s.timeout = 1,
            "entry 2: the products that item make reuses does not hold: its task differs from the task done \
             there",
        ),
    ];
    for (what, bend, part) in bends {
        println!("{what}");
        let forge = Forge::new();
        assert_says(&verify_story(&forge, bend), "handoff", part);
    }
}

#[test]
fn a_run_with_another_base_did_another_task() {
    let forge = Forge::new();
    let mut run = taking(&forge, |_| {});
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    e.base = "1".repeat(40).parse().unwrap();
    forge.finish(run);
    let part = "entry 2: the products that item make reuses does not hold: that run starts from another base";
    assert_says(&forge.verify(), "handoff", part);
}

#[test]
fn a_red_item_and_a_forged_seal_are_nothing_to_take_from() {
    let forge = Forge::new();
    let run = first(&forge);
    let red = prove(&forge, &run, "other");
    let report = verify_story(&Forge::new(), |s| {
        (s.item, s.reused.item) = ("other", id("other"));
        s.proof = red;
        s.reused.root = s.proof.root;
    });
    assert_says(
        &report,
        "handoff",
        "entry 2: the products that item other reuses does not hold: the item of that run is red",
    );
    let second_report = verify_story(&Forge::new(), |s| {
        let last = &mut s.proof.last;
        last.commit = last.commit.replace("git-handoff", "git-handof");
    });
    assert_says(
        &second_report,
        "handoff",
        "entry 2: the products that item make reuses does not hold: the last entry: the commit's bytes \
         differ from those that its entry determines",
    );
}

#[test]
fn evidence_is_not_read_that_is_heavier_than_any_can_be() {
    let forge = Forge::new();
    let run = first(&forge);
    let mut heavy = prove(&forge, &run, "make");
    assert!(Evidence::parse(&evidence(&heavy)).is_some());
    // The included value is untrusted until parsed as an entry.
    heavy.shown[0].entry = vec![json!([]); 4 * CONTAINERS].into();
    assert!(Evidence::parse(&evidence(&heavy)).is_none());
}

#[test]
fn a_proof_is_worth_no_more_here_than_it_is_alone() {
    let forge = Forge::new();
    let other = key(forge.path(), 2);
    let report = told_of(&forge, first_by(&forge, &other), |_| {});
    insta::assert_snapshot!(report.rows.handoff.detail, @"0 input refs, 1 item of other runs proven");
    let strangers = report.signers.iter().filter(|signer| !signer.trusted);
    assert_eq!(strangers.map(|signer| &*signer.fingerprint).collect::<Vec<_>>(), [other.fingerprint()]);
    // The other run's first key is revoked, its sealing key is not.
    let revoked = [(other.fingerprint(), None)].into();
    let second_report = forge.verify_with(&Options { revoked, ..forge.options() });
    assert_says(
        &second_report,
        "signature",
        "entry 2: the products that item make reuses: the key SHA256:… is revoked",
    );
}
