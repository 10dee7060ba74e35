//! Evidence that shows something else.

use git_handoff::model::role::every_role;
use std::time::{Duration, Instant};

use git_handoff::git::codec;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head};
use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::elsewhere::Import;
use git_handoff::model::entry::{Entry, Event, Product, RunSubmitted, ThreadCheckpointed, Verified, VerifiedBy};
use git_handoff::model::evidence::Evidence;
use git_handoff::model::name::ThreadId;
use git_handoff::model::thread::Content;
use git_handoff::model::time::Moment;
use git_handoff::verify::Report;

use crate::common::chain_builder::{BuiltChain, ChainBuilder};
use crate::common::forge::{Forge, assert_fails, assert_intact, assert_says, key, store_product};

const REPORT: &[u8] = b"make";

/// A run `first` of two items, of which `other` is red.
fn first(forge: &Forge) {
    let chain = told_first(forge, &forge.signer, b"more");
    forge.log(&chain, &forge.signer);
}

/// Tells that run by a key, with an output of these bytes.
fn told_first(forge: &Forge, signer: &Signer, more: &[u8]) -> BuiltChain {
    let plan = r#"{"id":"first","items":[{"id":"make","executor":"command","inputs":{"command":["make"]}},
        {"id":"other","executor":"command","inputs":{"command":["other"]}}]}"#;
    let mut chain_builder = ChainBuilder::submit(forge, plan);
    let Event::RunSubmitted(e) = &mut chain_builder.drafts[0].event else { panic!() };
    e.roles = every_role([signer.fingerprint()]);
    for item in ["make", "other"] {
        chain_builder.fire(item);
        chain_builder.done(item, &[("outputs/report", item.as_bytes()), ("outputs/more", more)]);
    }
    if let Event::ItemReconciled(reconciled) = &mut chain_builder.drafts.last_mut().unwrap().event {
        reconciled.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    }
    chain_builder.seal();
    chain_builder.write(signer)
}

fn proof(forge: &Forge, item: &str) -> Evidence {
    let proof = prove::item(&forge.store, "refs/handoff/runs/first", &item.parse().unwrap(), None).unwrap();
    Evidence::Proof(Box::new(proof))
}

fn product(forge: &Forge, bytes: &[u8]) -> Product {
    Product { sha256: Digest::compute(bytes), oid: forge.store.write_blob(bytes).unwrap(), size: bytes.len() as u64 }
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
pub(crate) fn of_red_item(forge: &Forge, s: &mut Story) {
    (s.item, s.name) = ("other", "@run/first/other:outputs/report".to_owned());
    (s.product, s.evidence) = (product(forge, b"other"), Some(proof(forge, "other").canonical()));
}

/// Has it take from a run `first` by another key.
pub(crate) fn by_another(forge: &Forge, s: &mut Story) {
    told_first(forge, &key(forge.path(), 2), b"more");
    s.evidence = Some(proof(forge, "make").canonical());
}

fn verify_story(forge: &Forge, bend: impl FnOnce(&Forge, &mut Story)) -> Report {
    forge.finish(taking(forge, bend));
    forge.verify()
}

/// A sealed run that takes `report` of `make` from the run `first`.
pub(crate) fn taking(forge: &Forge, bend: impl FnOnce(&Forge, &mut Story)) -> ChainBuilder<'_> {
    first(forge);
    let mut story = Story {
        need: None,
        run: "first",
        item: "make",
        name: "@run/first/make:outputs/report".to_owned(),
        product: product(forge, REPORT),
        evidence: Some(proof(forge, "make").canonical()),
        digest: None,
        copies: 0,
        consumed: None,
        open_ended: false,
    };
    bend(forge, &mut story);
    let of_item =
        format!(r#"{{"run":"{}","from":"{}","select":{{"kind":"output","path":"report"}}}}"#, story.run, story.item);
    let plan = format!(
        r#"{{"id":"handoff-dag-1",{}"items":[{{"id":"take","executor":"command","inputs":{{"command":["take"]}},
        "needs":{{"it":{}}}}}]}}"#,
        if story.open_ended { r#""openEnded":true,"# } else { "" },
        story.need.unwrap_or(&of_item)
    );
    let mut chain_builder = ChainBuilder::submit(forge, &plan);
    let bytes = story.evidence.clone().unwrap_or_default();
    let mut evidence = if story.evidence.is_some() {
        store_product(forge, &bytes)
    } else {
        forge.store.compute_product(b"lost").unwrap()
    };
    evidence.sha256 = story.digest.unwrap_or(evidence.sha256);
    let import = Import { product: story.product, evidence };
    for name in std::iter::once(story.name.clone()).chain((0..story.copies).map(|nth| format!("copy {nth}"))) {
        let imports = |e: &mut RunSubmitted| e.imports.insert(name.clone(), import).is_some();
        imports(&mut chain_builder.state.submitted);
        if let Event::RunSubmitted(e) = &mut chain_builder.drafts[0].event {
            imports(e);
        }
    }
    chain_builder.fire_with("take", |manifest| {
        if let (Some(digest), Some(input)) = (story.consumed, manifest.input_refs.values_mut().next()) {
            input.digest = digest;
        }
    });
    chain_builder.done("take", &[]);
    chain_builder.seal();
    chain_builder
}

#[test]
fn import_holds_with_the_proof_of_its_source() {
    for format in ["sha1", "sha256"] {
        let report = verify_story(&Forge::with_format(format), |_, _| {});
        assert_intact(&report);
        let row = &report.rows.handoff;
        assert_eq!(row.detail, "1 input ref accounted for, 1 product from elsewhere proven");
    }
}

#[test]
fn import_of_a_missing_product_fails() {
    type Bend = (&'static str, fn(&Forge, &mut Story), &'static str, &'static str);
    let bends: [Bend; 11] = [
        (
            "no evidence",
            |_, s| s.evidence = None,
            "handoff",
            "entry 0: @run/first/make:outputs/report: object … is not in the repository",
        ),
        (
            "none that can be read",
            |_, s| s.evidence = Some(b"{}".to_vec()),
            "handoff",
            "entry 0: @run/first/make:outputs/report does not hold: its evidence is not valid",
        ),
        (
            "other evidence",
            |_, s| s.digest = Some(Digest::compute(b"x")),
            "handoff",
            "entry 0: @run/first/make:outputs/report does not hold: its evidence is not the one that the entry names",
        ),
        (
            "other bytes",
            |forge, s| s.product = product(forge, b"else"),
            "handoff",
            "entry 0: @run/first/make:outputs/report does not hold: the item of that run does not have that \
             product",
        ),
        (
            "a size that is not theirs",
            |_, s| s.product.size = 7,
            "handoff",
            "entry 0: @run/first/make:outputs/report does not hold: the item of that run does not have that \
             product",
        ),
        (
            "another item's",
            |forge, s| s.evidence = Some(proof(forge, "other").canonical()),
            "handoff",
            "entry 0: @run/first/make:outputs/report does not hold: the proof is of another run or item",
        ),
        (
            "another run's",
            |_, s| (s.run, s.name) = ("second", "@run/second/make:outputs/report".to_owned()),
            "handoff",
            "entry 0: @run/second/make:outputs/report does not hold: the proof is of another run or item",
        ),
        (
            "a red item's",
            of_red_item,
            "handoff",
            "entry 0: @run/first/other:outputs/report does not hold: the item of that run is red",
        ),
        (
            "another product than the plan takes",
            |_, s| s.name = "@run/first/make:outputs/more".to_owned(),
            "plan",
            "entry 0: what was sealed from elsewhere is not what the plan takes",
        ),
        (
            "a name of nothing",
            |_, s| s.name = "make".to_owned(),
            "plan",
            "entry 0: what was sealed from elsewhere is not what the plan takes",
        ),
        (
            "something else consumed",
            |_, s| s.consumed = Some(Digest::compute(b"else")),
            "handoff",
            "item take, input it: … was consumed, but outputs/report of @run/first/make is …",
        ),
    ];
    for (what, bend, row, part) in bends {
        println!("{what}");
        assert_says(&verify_story(&Forge::new(), bend), row, part);
    }
}

#[test]
fn evidence_of_many_products_is_read_once() {
    let begun = Instant::now();
    let report = verify_story(&Forge::new(), |_, s| {
        s.evidence = Some(Evidence::Commits(vec!["x".repeat(8 << 20)]).canonical());
        s.copies = 3000;
    });
    assert_says(&report, "plan", "entry 0: what was sealed from elsewhere is not what the plan takes");
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
}

#[test]
fn a_long_name_is_cut() {
    let name = "x".repeat(1 << 20);
    let report = verify_story(&Forge::new(), |_, s| s.name = name);
    assert_fails(&report, "plan", "imports");
    let text = report.to_text(false);
    assert!(text.len() < 20_000, "{} bytes", text.len());
}

#[test]
fn a_signature_of_a_proof_that_was_changed_does_not_hold() {
    let report = verify_story(&Forge::new(), |forge, s| {
        let Evidence::Proof(mut proof) = proof(forge, "make") else { unreachable!() };
        proof.last.commit = proof.last.commit.replace("git-handoff", "git-handof");
        s.evidence = Some(Evidence::Proof(proof).canonical());
    });
    assert_says(
        &report,
        "handoff",
        "entry 0: @run/first/make:outputs/report does not hold: the last entry: the commit's bytes \
         differ from those that its entry determines",
    );
}

#[test]
fn a_checkpoint_is_no_item() {
    let report = verify_story(&Forge::new(), |forge, s| {
        let commit = forge.git(&["cat-file", "commit", "refs/handoff/runs/first"]);
        s.evidence = Some(Evidence::Commits(vec![commit]).canonical());
    });
    assert_says(
        &report,
        "handoff",
        "entry 0: @run/first/make:outputs/report does not hold: its evidence is of something else",
    );
    // And the seal of a run is no checkpoint.
    let forge = Forge::new();
    first(&forge);
    let commit = forge.git(&["cat-file", "commit", "refs/handoff/runs/first"]);
    assert!(Evidence::parse(&Evidence::Commits(vec![commit]).canonical()).is_some());
}

#[test]
fn copy_with_another_root_contradicts_the_import() {
    let forge = Forge::new();
    let report = verify_story(&forge, |_, _| {});
    assert_intact(&report);
    for spoil in [tell_first_otherwise, damage_first] {
        let second_forge = Forge::new();
        second_forge.finish(taking(&second_forge, |_, _| {}));
        spoil(&second_forge);
        assert_says(
            &second_forge.verify(),
            "handoff",
            "run first, a source of its imports, is here, but different: it has the same first entry, but \
             its seal says another root",
        );
    }
}

/// Replaces `first` by another valid run with the same entry 0 and another root.
pub(crate) fn tell_first_otherwise(forge: &Forge) {
    told_first(forge, &forge.signer, b"other");
}

/// Puts a copy of `first` in its place in which an entry was changed and nothing linked again.
pub(crate) fn damage_first(forge: &Forge) {
    let links: Vec<_> = {
        let (_, links) = git_handoff::ledger::chain::read(&forge.store, "refs/handoff/runs/first").unwrap().unwrap();
        links.into_iter().map(|link| (link.entry, link.tree)).collect()
    };
    let mut bent = links.clone();
    if let Event::ItemReconciled(e) = &mut bent[2].0.event {
        e.duration_ms = 99;
    }
    let tip = crate::common::forge::relink(forge, &bent);
    forge.git(&["update-ref", "refs/handoff/runs/first", &tip.to_string()]);
}

/// Tells a run that takes the state of the second of two checkpoints that key 1 made, whose entry
/// and tree are bent and signed by a key.
fn of_thread(by: u8, bend: impl Fn(&Forge, &mut Entry, &mut Oid)) -> Report {
    verify_story(&Forge::new(), |forge, s| {
        let mut head = Head::unborn("refs/handoff/threads/login".to_owned());
        let mut links = Vec::new();
        for state in ["one", "two"] {
            let content = Content {
                state: product(forge, state.as_bytes()),
                summary: None,
                packet: None,
                worktree: None,
                base: None,
            };
            let edits = vec![("state".to_owned(), Edit::Blob(content.state.oid))];
            let event = Event::ThreadCheckpointed(ThreadCheckpointed { content, origin: None });
            let draft = Draft { about: ThreadId::parse("login").unwrap().into(), event, bytes: Vec::new(), edits };
            let appended = forge.writer_with(&forge.signer).append(&head, vec![draft]).unwrap();
            let (next, written) = appended.publish().unwrap();
            head = next;
            links.extend(written);
        }
        let (mut entry, mut tree) = (links[1].entry.clone(), links[1].tree);
        bend(forge, &mut entry, &mut tree);
        let (signer, parents) = (key(forge.path(), by), [links[0].commit]);
        let signature = signer.sign(&codec::payload(&entry, tree, &parents)).unwrap();
        let raw = codec::signed(&entry, tree, &parents, &signature);
        s.evidence = Some(Evidence::Commits(vec![String::from_utf8(raw).unwrap()]).canonical());
        s.need = Some(r#"{"thread":"login","select":{"kind":"output","path":"state"}}"#);
        "@thread/login/latest:outputs/state".clone_into(&mut s.name);
        s.product = match &entry.event {
            Event::ThreadCheckpointed(e) => e.content.state,
            _ => product(forge, b"two"),
        };
    })
}

#[test]
fn import_of_a_foreign_checkpoint_fails() {
    assert_intact(&of_thread(1, |_, _, _| {}));
    let report = of_thread(1, |_, entry, _| entry.prev = None);
    assert_says(
        &report,
        "handoff",
        "entry 0: @thread/login/latest:outputs/state does not hold: its evidence is not an entry of a \
         thread",
    );
    let first_entry_report = of_thread(1, |_, entry, _| entry.seq = 0);
    assert_says(
        &first_entry_report,
        "handoff",
        "entry 0: @thread/login/latest:outputs/state does not hold: its evidence is not an entry of a \
         thread",
    );
    // The tree only keeps objects alive.
    assert_intact(&of_thread(1, |forge, _, tree| *tree = forge.git(&["write-tree"]).parse().unwrap()));
    let foreign_thread_report = of_thread(1, |_, entry, _| entry.about = ThreadId::parse("logon").unwrap().into());
    assert_says(
        &foreign_thread_report,
        "handoff",
        "entry 0: @thread/login/latest:outputs/state does not hold: the checkpoint is another one, or \
         another thread's",
    );
}

#[test]
fn an_entry_by_another_key_than_the_thread_that_is_here_speaks_against_itself() {
    let report = of_thread(2, |_, entry, _| entry.at = Moment::from_millis(entry.at.millis() + 1));
    assert_says(
        &report,
        "handoff",
        "thread login, a source of its imports, is here, but different: the import is signed by another \
         key than that thread",
    );
}
