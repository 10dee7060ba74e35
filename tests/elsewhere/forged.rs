//! Evidence that shows something else.

use std::time::{Duration, Instant};

use git_handoff::git::codec;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head};
use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::elsewhere::{Evidence, Import};
use git_handoff::model::entry::{Entry, Event, Product, RunSubmitted, ThreadCheckpointed, Verified, VerifiedBy};
use git_handoff::model::format;
use git_handoff::model::name::ThreadId;
use git_handoff::model::thread::Content;
use git_handoff::model::time::Moment;
use git_handoff::verify::Report;

use crate::common::lab::{Lab, assert_fails, assert_intact, key};
use crate::common::teller::{Teller, Told};

const REPORT: &[u8] = b"make";

/// A run `first` of two items, of which `other` is red.
fn first(lab: &Lab) {
    let told = told_first(lab, &lab.signer, b"more");
    lab.log(&told, &lab.signer);
}

/// Tells that run by a key, with an output of these bytes.
fn told_first(lab: &Lab, signer: &Signer, more: &[u8]) -> Told {
    let plan = r#"{"id":"first","items":[{"id":"make","executor":"command","inputs":{"command":["make"]}},
        {"id":"other","executor":"command","inputs":{"command":["other"]}}]}"#;
    let mut teller = Teller::submit(lab, plan);
    let Event::RunSubmitted(e) = &mut teller.drafts[0].event else { panic!() };
    e.writers = vec![signer.fingerprint()];
    for item in ["make", "other"] {
        teller.fire(item);
        teller.done(item, &[("outputs/report", item.as_bytes()), ("outputs/more", more)]);
    }
    if let Event::ItemReconciled(e) = &mut teller.drafts.last_mut().unwrap().event {
        e.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    }
    teller.seal();
    teller.write(signer)
}

fn proof(lab: &Lab, item: &str) -> Evidence {
    let proof = prove::item(&lab.store, "refs/handoff/runs/first", &item.parse().unwrap(), None).unwrap();
    Evidence::Item(Box::new(proof))
}

fn product(lab: &Lab, bytes: &[u8]) -> Product {
    Product { sha256: Digest::of(bytes), oid: lab.store.write_blob(bytes).unwrap(), size: bytes.len() as u64 }
}

/// A run that takes `report` of `make`, to be modified.
pub(crate) struct Story {
    /// The need in the plan, if not an item of the run.
    need: Option<&'static str>,
    /// The name in the plan.
    run: &'static str,
    item: &'static str,
    /// The name in entry 0.
    pub(crate) name: String,
    pub(crate) product: Product,
    /// The bytes of the evidence, and what entry 0 says they are.
    evidence: Option<Vec<u8>>,
    digest: Option<Digest>,
    /// How often it is sealed again, under names of nothing.
    copies: usize,
    /// The recorded input.
    consumed: Option<Digest>,
    /// Whether actors may add items.
    pub(crate) open_ended: bool,
}

/// Has it take a product of the red item.
pub(crate) fn of_red_item(lab: &Lab, s: &mut Story) {
    (s.item, s.name) = ("other", "@run/first/other:outputs/report".to_owned());
    (s.product, s.evidence) = (product(lab, b"other"), Some(proof(lab, "other").canonical()));
}

/// Has it take from a run `first` by another key.
pub(crate) fn by_another(lab: &Lab, s: &mut Story) {
    told_first(lab, &key(lab.path(), 2), b"more");
    s.evidence = Some(proof(lab, "make").canonical());
}

fn told(lab: &Lab, bend: impl FnOnce(&Lab, &mut Story)) -> Report {
    lab.finish(taking(lab, bend));
    lab.verify()
}

/// A sealed run that takes `report` of `make` from the run `first`.
pub(crate) fn taking(lab: &Lab, bend: impl FnOnce(&Lab, &mut Story)) -> Teller<'_> {
    first(lab);
    let mut story = Story {
        need: None,
        run: "first",
        item: "make",
        name: "@run/first/make:outputs/report".to_owned(),
        product: product(lab, REPORT),
        evidence: Some(proof(lab, "make").canonical()),
        digest: None,
        copies: 0,
        consumed: None,
        open_ended: false,
    };
    bend(lab, &mut story);
    let of_item =
        format!(r#"{{"run":"{}","from":"{}","select":{{"kind":"output","path":"report"}}}}"#, story.run, story.item);
    let plan = format!(
        r#"{{"id":"handoff-dag-1",{}"items":[{{"id":"take","executor":"command","inputs":{{"command":["take"]}},
        "needs":{{"it":{}}}}}]}}"#,
        if story.open_ended { r#""openEnded":true,"# } else { "" },
        story.need.unwrap_or(&of_item)
    );
    let mut teller = Teller::submit(lab, &plan);
    let bytes = story.evidence.clone().unwrap_or_default();
    let import = Import { product: story.product, evidence: story.digest.unwrap_or_else(|| Digest::of(&bytes)) };
    let shown_by = story.evidence.is_some().then(|| lab.store.write_blob(&bytes).unwrap());
    for name in std::iter::once(story.name.clone()).chain((0..story.copies).map(|nth| format!("copy {nth}"))) {
        let [product, evidence] = format::import_paths(&name);
        let imports = |e: &mut RunSubmitted| e.imports.insert(name.clone(), import).is_some();
        imports(&mut teller.state.submitted);
        if let Event::RunSubmitted(e) = &mut teller.drafts[0].event {
            imports(e);
        }
        teller.drafts[0].edits.push((product, Edit::Blob(story.product.oid)));
        teller.drafts[0].edits.extend(shown_by.map(|oid| (evidence, Edit::Blob(oid))));
    }
    teller.fire_with("take", |manifest| {
        if let (Some(digest), Some(input)) = (story.consumed, manifest.input_refs.values_mut().next()) {
            input.digest = digest;
        }
    });
    teller.done("take", &[]);
    teller.seal();
    teller
}

#[test]
fn what_another_run_handed_over_holds_with_its_proof() {
    for format in ["sha1", "sha256"] {
        let report = told(&Lab::with_format(format), |_, _| {});
        assert_intact(&report);
        let row = report.row("handoff").unwrap();
        assert_eq!(row.detail, "1 input ref accounted for, 1 product from elsewhere proven");
    }
}

#[test]
fn what_it_did_not_hand_over_does_not_hold() {
    type Bend = (&'static str, fn(&Lab, &mut Story), &'static str, &'static str);
    let bends: [Bend; 11] = [
        ("no evidence", |_, s| s.evidence = None, "handoff", "not in the tree"),
        ("none that can be read", |_, s| s.evidence = Some(b"{}".to_vec()), "handoff", "is not valid"),
        ("other evidence", |_, s| s.digest = Some(Digest::of(b"x")), "handoff", "is not what the entry names"),
        ("other bytes", |lab, s| s.product = product(lab, b"else"), "handoff", "does not have that product"),
        ("a size that is not theirs", |_, s| s.product.size = 7, "handoff", "does not have that product"),
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
        ("a red item's", of_red_item, "handoff", "is red"),
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
fn evidence_of_many_products_is_read_once() {
    let begun = Instant::now();
    let report = told(&Lab::new(), |_, s| {
        s.evidence = Some(Evidence::Checkpoint("x".repeat(8 << 20)).canonical());
        s.copies = 3000;
    });
    assert_fails(&report, "handoff", "(and 3000 more)");
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
}

#[test]
fn a_long_name_is_cut() {
    let name = "x".repeat(1 << 20);
    let report = told(&Lab::new(), |_, s| s.name = name);
    assert_fails(&report, "handoff", "its name is not that of a product");
    let text = report.to_text(false);
    assert!(text.len() < 20_000, "{} bytes", text.len());
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
    for spoil in [tell_first_otherwise, damage_first] {
        let lab = Lab::new();
        lab.finish(taking(&lab, |_, _| {}));
        spoil(&lab);
        assert_fails(&lab.verify(), "handoff", "is here, but different");
    }
}

/// Replaces `first` by another valid run with the same entry 0 and another root.
pub(crate) fn tell_first_otherwise(lab: &Lab) {
    told_first(lab, &lab.signer, b"other");
}

/// Puts a copy of `first` in its place in which an entry was changed and nothing linked again.
pub(crate) fn damage_first(lab: &Lab) {
    let links: Vec<_> = {
        let (_, links) = git_handoff::ledger::chain::read(&lab.store, "refs/handoff/runs/first").unwrap().unwrap();
        links.into_iter().map(|link| (link.entry, link.tree)).collect()
    };
    let mut bent = links.clone();
    if let Event::ItemReconciled(e) = &mut bent[2].0.event {
        e.duration_ms = 99;
    }
    let tip = crate::common::lab::relink(lab, &bent);
    lab.git(&["update-ref", "refs/handoff/runs/first", &tip.to_string()]);
}

/// Tells a run that takes the state of the second of two checkpoints that key 1 made, whose entry
/// and tree are bent and signed by a key.
fn of_thread(by: u8, bend: impl Fn(&Lab, &mut Entry, &mut Oid)) -> Report {
    told(&Lab::new(), |lab, s| {
        let mut head = Head::unborn("refs/handoff/threads/login".to_owned());
        let mut links = Vec::new();
        for state in ["one", "two"] {
            let content = Content {
                state: product(lab, state.as_bytes()),
                summary: None,
                packet: None,
                worktree: None,
                base: None,
            };
            let edits = vec![("state".to_owned(), Edit::Blob(content.state.oid))];
            let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(None, content));
            let draft = Draft { about: ThreadId::parse("login").unwrap().into(), event, edits };
            let appended = lab.writer_with(&lab.signer).append(&head, vec![draft]).unwrap();
            let (next, written) = appended.publish().unwrap();
            head = next;
            links.extend(written);
        }
        let (mut entry, mut tree) = (links[1].entry.clone(), links[1].tree);
        bend(lab, &mut entry, &mut tree);
        let (signer, parents) = (key(lab.path(), by), [links[0].commit]);
        let signature = signer.sign(&codec::payload(&entry, tree, &parents)).unwrap();
        let raw = codec::signed(&entry, tree, &parents, &signature);
        s.evidence = Some(Evidence::Checkpoint(String::from_utf8(raw).unwrap()).canonical());
        s.need = Some(r#"{"thread":"login","select":{"kind":"output","path":"state"}}"#);
        "@thread/login/latest:outputs/state".clone_into(&mut s.name);
        s.product = match &entry.event {
            Event::ThreadCheckpointed(e) => e.content().state,
            _ => product(lab, b"two"),
        };
    })
}

#[test]
fn what_is_no_entry_of_a_thread_does_not_hold() {
    assert_intact(&of_thread(1, |_, _, _| {}));
    let report = of_thread(1, |_, entry, _| entry.prev = None);
    assert_fails(&report, "handoff", "is not an entry of a thread");
    let report = of_thread(1, |_, entry, _| entry.seq = 0);
    assert_fails(&report, "handoff", "is not an entry of a thread");
    let report = of_thread(1, |lab, _, tree| *tree = lab.git(&["write-tree"]).parse().unwrap());
    assert_fails(&report, "handoff", "is not an entry of a thread");
    let report = of_thread(1, |_, entry, _| entry.about = ThreadId::parse("logon").unwrap().into());
    assert_fails(&report, "handoff", "another thread's");
}

#[test]
fn an_entry_by_another_key_than_the_thread_that_is_here_speaks_against_itself() {
    let report = of_thread(2, |_, entry, _| entry.at = Moment::from_millis(entry.at.millis() + 1));
    assert_fails(&report, "handoff", "by another key than that thread");
}
