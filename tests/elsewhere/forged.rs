//! Evidence that shows something else.

use git_handoff::git::store::Edit;
use git_handoff::ledger::prove;
use git_handoff::model::digest::Digest;
use git_handoff::model::elsewhere::{Evidence, Import};
use git_handoff::model::entry::{Event, Product, RunSubmitted, Verified, VerifiedBy};
use git_handoff::model::format;
use git_handoff::verify::Report;

use crate::common::lab::{Lab, assert_fails, assert_intact, blob};
use crate::common::teller::Teller;

const REPORT: &[u8] = b"make";

/// A run `first` of two items, of which `other` is red.
fn first(lab: &Lab) {
    let plan = r#"{"id":"first","items":[{"id":"make","executor":"command","inputs":{"command":["make"]}},
        {"id":"other","executor":"command","inputs":{"command":["other"]}}]}"#;
    let mut teller = Teller::submit(lab, plan);
    for item in ["make", "other"] {
        teller.fire(item);
        teller.done(item, &[("outputs/report", item.as_bytes()), ("outputs/more", b"more")]);
    }
    if let Event::ItemReconciled(e) = &mut teller.drafts.last_mut().unwrap().event {
        e.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    }
    teller.seal();
    lab.finish(teller);
}

fn proof(lab: &Lab, item: &str) -> Evidence {
    let proof = prove::item(&lab.store, "refs/handoff/runs/first", &item.parse().unwrap(), None).unwrap();
    Evidence::Item(Box::new(proof))
}

fn product(lab: &Lab, bytes: &[u8]) -> Product {
    Product { sha256: Digest::of(bytes), oid: lab.store.write_blob(bytes).unwrap(), size: bytes.len() as u64 }
}

/// A run that takes `report` of `make`, as it is told.
struct Story {
    /// What the plan calls it.
    run: &'static str,
    item: &'static str,
    /// What entry 0 calls it.
    name: String,
    product: Product,
    /// The bytes of the evidence, and what entry 0 says they are.
    evidence: Option<Vec<u8>>,
    digest: Option<Digest>,
    /// What the item says it consumed.
    consumed: Option<Digest>,
}

fn told(lab: &Lab, bend: impl FnOnce(&Lab, &mut Story)) -> Report {
    first(lab);
    let mut story = Story {
        run: "first",
        item: "make",
        name: "@run/first/make:outputs/report".to_owned(),
        product: product(lab, REPORT),
        evidence: Some(proof(lab, "make").canonical()),
        digest: None,
        consumed: None,
    };
    bend(lab, &mut story);
    let plan = format!(
        r#"{{"id":"handoff-dag-1","items":[{{"id":"take","executor":"command","inputs":{{"command":["take"]}},
        "needs":{{"it":{{"run":"{}","from":"{}","select":{{"kind":"output","path":"report"}}}}}}}}]}}"#,
        story.run, story.item
    );
    let mut teller = Teller::submit(lab, &plan);
    let bytes = story.evidence.clone().unwrap_or_default();
    let import = Import { product: story.product, evidence: story.digest.unwrap_or_else(|| Digest::of(&bytes)) };
    let [product, evidence] = format::import_paths(&story.name);
    let imports = |e: &mut RunSubmitted| e.imports.insert(story.name.clone(), import).is_some();
    imports(&mut teller.state.submitted);
    if let Event::RunSubmitted(e) = &mut teller.drafts[0].event {
        imports(e);
    }
    teller.drafts[0].edits.push((product, Edit::Blob(story.product.oid)));
    if story.evidence.is_some() {
        teller.drafts[0].edits.push((evidence, blob(lab, &bytes)));
    }
    teller.fire_with("take", |manifest| {
        if let (Some(digest), Some(input)) = (story.consumed, manifest.input_refs.values_mut().next()) {
            input.digest = digest;
        }
    });
    teller.done("take", &[]);
    teller.seal();
    lab.finish(teller);
    lab.verify()
}

#[test]
fn what_another_run_handed_over_holds_with_its_proof() {
    for format in ["sha1", "sha256"] {
        let report = told(&Lab::with_format(format), |_, _| {});
        assert_intact(&report);
        let row = report.row("handoff").unwrap();
        assert!(row.detail.contains("1 product from elsewhere proven"), "{}", report.to_text(false));
    }
}

#[test]
fn what_it_did_not_hand_over_does_not_hold() {
    type Bend = (&'static str, fn(&Lab, &mut Story), &'static str, &'static str);
    let bends: [Bend; 11] = [
        ("no evidence", |_, s| s.evidence = None, "handoff", "not in the tree"),
        ("none that can be read", |_, s| s.evidence = Some(b"{}".to_vec()), "handoff", "is none"),
        ("other evidence", |_, s| s.digest = Some(Digest::of(b"x")), "handoff", "is not what the entry names"),
        ("other bytes", |lab, s| s.product = product(lab, b"else"), "handoff", "did not hand that over"),
        ("a size that is not theirs", |_, s| s.product.size = 7, "handoff", "did not hand that over"),
        (
            "another item's",
            |lab, s| s.evidence = Some(proof(lab, "other").canonical()),
            "handoff",
            "of another run or item",
        ),
        (
            "another run's",
            |_, s| (s.run, s.name) = ("second", "@run/second/make:outputs/report".to_owned()),
            "handoff",
            "of another run or item",
        ),
        (
            "a red item's",
            |lab, s| {
                (s.item, s.name) = ("other", "@run/first/other:outputs/report".to_owned());
                (s.product, s.evidence) = (product(lab, b"other"), Some(proof(lab, "other").canonical()));
            },
            "handoff",
            "is red",
        ),
        (
            "another product than the plan takes",
            |_, s| s.name = "@run/first/make:outputs/more".to_owned(),
            "plan",
            "not what the plan takes",
        ),
        ("a name of nothing", |_, s| s.name = "make".to_owned(), "plan", "not what the plan takes"),
        ("something else consumed", |_, s| s.consumed = Some(Digest::of(b"else")), "handoff", "was consumed, but"),
    ];
    for (what, bend, row, part) in bends {
        println!("{what}");
        assert_fails(&told(&Lab::new(), bend), row, part);
    }
}

#[test]
fn a_signature_of_a_proof_that_was_changed_does_not_hold() {
    let report = told(&Lab::new(), |lab, s| {
        let Evidence::Item(mut proof) = proof(lab, "make") else { unreachable!() };
        proof.last.commit = proof.last.commit.replace("git-handoff", "git-handof");
        s.evidence = Some(Evidence::Item(proof).canonical());
    });
    assert_fails(&report, "handoff", "does not hold");
}

#[test]
fn a_checkpoint_is_no_item() {
    let report = told(&Lab::new(), |lab, s| {
        let commit = lab.git(&["cat-file", "commit", "refs/handoff/runs/first"]);
        s.evidence = Some(Evidence::Checkpoint(commit).canonical());
    });
    assert_fails(&report, "handoff", "of something else");
    // And the seal of a run is no checkpoint.
    let lab = Lab::new();
    first(&lab);
    let commit = lab.git(&["cat-file", "commit", "refs/handoff/runs/first"]);
    assert!(Evidence::parse(&Evidence::Checkpoint(commit).canonical()).is_some());
}

#[test]
fn a_copy_of_the_other_run_that_says_another_root_speaks_against_it() {
    let lab = Lab::new();
    let report = told(&lab, |_, _| {});
    assert_intact(&report);
    // The same beginning, another end.
    let links: Vec<_> = {
        let (_, links) = git_handoff::ledger::chain::read(&lab.store, "refs/handoff/runs/first").unwrap().unwrap();
        links.into_iter().map(|link| (link.entry, link.tree)).collect()
    };
    let mut bent = links.clone();
    if let Event::ItemReconciled(e) = &mut bent[2].0.event {
        e.duration_ms = 99;
    }
    let tip = crate::common::lab::relink(&lab, &bent);
    lab.git(&["update-ref", "refs/handoff/runs/first", &tip.to_string()]);
    let report = lab.verify();
    assert_fails(&report, "handoff", "is here and is not the same");
}
