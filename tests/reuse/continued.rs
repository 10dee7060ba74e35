//! False claims of continuing a run.

use git_handoff::ledger::merkle;
use git_handoff::model::continued::Continues;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemReconciled, Outcome};
use git_handoff::model::evidence::Evidence;
use git_handoff::model::name::RunId;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::reused::Reused;
use git_handoff::model::role::every_role;
use git_handoff::verify::Report;
use std::collections::BTreeMap;

use super::{id, plan};
use crate::common::chain_builder::{BuiltChain, ChainBuilder};
use crate::common::forge::{Forge, assert_intact, assert_says, key, store_product};
use crate::common::report::{find_line, find_row};

/// The run `first`, in which `make` is done, and which is not sealed.
pub(crate) fn first(forge: &Forge) -> BuiltChain {
    let mut chain_builder = ChainBuilder::submit(forge, &plan("first"));
    chain_builder.fire("make");
    chain_builder.done("make", &[("outputs/report", b"make")]);
    forge.finish(chain_builder)
}

/// The parts of a story of a run that continues another.
pub(crate) struct Story {
    pub(crate) commits: Vec<String>,
    continues: Continues,
    reused: Reused,
    item: &'static str,
    text: &'static [u8],
    timeout: u64,
    bytes: Option<Vec<u8>>,
}

/// Tells it in the run `handoff-dag-1`, and verifies that.
fn verify_story(forge: &Forge, first: &BuiltChain, bend: impl FnOnce(&mut Story)) -> Report {
    forge.finish(going_on(forge, first, bend));
    forge.verify()
}

/// A sealed run that continues `first`.
pub(crate) fn going_on<'a>(forge: &'a Forge, first: &BuiltChain, bend: impl FnOnce(&mut Story)) -> ChainBuilder<'a> {
    let read =
        |link: &git_handoff::ledger::chain::Link| String::from_utf8(forge.store.read(link.commit).unwrap().1).unwrap();
    let under: Vec<Digest> = first.links.iter().map(|link| link.hash).collect();
    let (run, root, none) = (first.run.clone(), merkle::root(under.iter().copied()), store_product(forge, b""));
    let mut story = Story {
        commits: first.links.iter().map(read).collect(),
        continues: Continues { run: run.clone(), entries: under.len() as u64, root, evidence: none },
        reused: Reused { run, item: id("make"), root, evidence: None },
        item: "make",
        text: b"make",
        timeout: 7200,
        bytes: None,
    };
    bend(&mut story);
    let sealed = story.bytes.unwrap_or_else(|| Evidence::Commits(story.commits).canonical());
    if story.continues.evidence == none {
        story.continues.evidence = store_product(forge, &sealed);
    }
    let mut chain_builder = ChainBuilder::submit(forge, &plan("handoff-dag-1"));
    let Event::RunSubmitted(submitted) = &mut chain_builder.drafts[0].event else { panic!() };
    submitted.continues = Some(story.continues);
    chain_builder.fire_with(story.item, |dispatch| dispatch.timeout = story.timeout);
    let made = ProductKey::from_name("outputs/report").unwrap();
    let event = ItemReconciled {
        products: BTreeMap::from([(made, store_product(forge, story.text))]),
        reused: Some(story.reused),
        ..ItemReconciled::new(id(story.item), 1, Outcome::Done)
    };
    chain_builder.add(Event::ItemReconciled(event));
    let left = if story.item == "make" { "other" } else { "make" };
    chain_builder.fire(left);
    chain_builder.done(left, &[]);
    chain_builder.seal();
    chain_builder
}

#[test]
fn a_run_continues_another_sealed_or_not() {
    for format in ["sha1", "sha256"] {
        let forge = Forge::with_format(format);
        let open = first(&forge);
        let report = verify_story(&forge, &open, |_| {});
        assert_intact(&report);
        let text = report.to_text(false);
        assert!(
            find_row(&text, "origin").starts_with("✓ origin     continues first (3 entries, root sha256:"),
            "{text}"
        );
        assert!(find_line(&text, "✓ taken from run first (root sha256:").ends_with("…): here, intact"), "{text}");
    }
    let forge = Forge::new();
    let mut chain_builder = ChainBuilder::submit(&forge, &plan("first"));
    chain_builder.fire("make");
    chain_builder.done("make", &[("outputs/report", b"make")]);
    chain_builder.fire("other");
    chain_builder.done("other", &[]);
    chain_builder.seal();
    let sealed = forge.finish(chain_builder);
    let report = verify_story(&forge, &sealed, |story| {
        let under: Vec<Digest> = sealed.links[..5].iter().map(|link| link.hash).collect();
        let root = merkle::root(under.iter().copied());
        (story.continues.entries, story.continues.root, story.reused.root) = (5, root, root);
    });
    assert_intact(&report);
}

#[test]
fn a_run_continues_another_from_the_same_base() {
    let forge = Forge::new();
    let open = first(&forge);
    let mut run = going_on(&forge, &open, |_| {});
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    e.base = "1".repeat(40).parse().unwrap();
    forge.finish(run);
    let part = "entry 2: the products that item make reuses does not hold: that run starts from another base";
    assert_says(&forge.verify(), "handoff", part);
}

#[test]
fn continuation_of_a_missing_item_fails() {
    type Bend = (&'static str, fn(&mut Story), &'static str);
    let bends: [Bend; 17] = [
        (
            "no evidence",
            |s| s.bytes = Some(b"{}".to_vec()),
            "0: the run first, which it continues does not hold: continues.json is not valid evidence",
        ),
        (
            "a field besides",
            |s| s.bytes = Some(b"{\"a\":1,\"commits\":[]}".to_vec()),
            "0: the run first, which it continues does not hold: continues.json is not valid evidence",
        ),
        (
            "no entry",
            |s| s.commits.clear(),
            "0: the run first, which it continues does not hold: continues.json holds no entry",
        ),
        (
            "another digest",
            |s| s.continues.evidence.sha256 = Digest::compute(b"x"),
            "0: the run first, which it continues does not hold: continues.json is not the one that the entry names",
        ),
        (
            "an entry less",
            |s| drop(s.commits.pop()),
            "0: the run first, which it continues does not hold: its entries are not those that the entry names",
        ),
        (
            "an entry left out",
            |s| drop(s.commits.remove(1)),
            "0: the run first, which it continues does not hold: its entry 1 does not follow the one before it",
        ),
        (
            "entries in another order",
            |s| s.commits.swap(1, 2),
            "0: the run first, which it continues does not hold: its entry 1 does not follow the one before it",
        ),
        (
            "no first entry",
            |s| drop(s.commits.remove(0)),
            "0: the run first, which it continues does not hold: its first entry is not run.submitted",
        ),
        (
            "an entry that was changed",
            |s| s.commits[2] = s.commits[2].replace("\"durationMs\": ", "\"durationMs\": 1"),
            "0: the run first, which it continues does not hold: its entry 2: the signature does not match",
        ),
        (
            "another run",
            |s| s.continues.run = "second".parse().unwrap(),
            "0: the run second, which it continues does not hold: its entry 0 is of something else",
        ),
        (
            "another root",
            |s| s.continues.root = Digest::compute(b"x"),
            "0: the run first, which it continues does not hold: its entries are not those that the entry names",
        ),
        (
            "another item",
            |s| s.reused.item = id("other"),
            "2: the products that item make reuses does not hold: the item is not done in the run that is continued",
        ),
        (
            "what another item was to do",
            |s| s.item = "other",
            "2: the products that item other reuses does not hold: its task differs from the task done there",
        ),
        (
            "other products",
            |s| s.text = b"fake",
            "2: the products that item make reuses does not hold: the item of that run has other products",
        ),
        (
            "another manifest",
            |s| s.timeout = 1,
            "2: the products that item make reuses does not hold: its task differs from the task done there",
        ),
        (
            "evidence of its own",
            |s| s.reused.evidence = Some(s.continues.evidence),
            "2: the products that item make reuses does not hold: reused.json is not valid evidence",
        ),
        (
            "another root of the item",
            |s| s.reused.root = Digest::compute(b"x"),
            "2: the products that item make reuses does not hold: it is of another run or root than the one that is continued",
        ),
    ];
    for (what, bend, why) in bends {
        let forge = Forge::new();
        let first = first(&forge);
        println!("{what}");
        assert_says(&verify_story(&forge, &first, bend), "handoff", &format!("entry {why}"));
    }
}

#[test]
fn an_entry_by_no_writer_of_the_other_run_shows_nothing() {
    let forge = Forge::new();
    let eve = key(forge.path(), 3);
    let mut chain_builder = ChainBuilder::submit(&forge, &plan("first"));
    chain_builder.fire("make");
    chain_builder.done("make", &[("outputs/report", b"make")]);
    chain_builder.by(&eve);
    let first = forge.finish(chain_builder);
    assert_says(
        &verify_story(&forge, &first, |_| {}),
        "handoff",
        "entry 0: the run first, which it continues does not hold: its entry 2 is signed by SHA256:…, \
         which is not among the run's writers",
    );
}

#[test]
fn the_keys_of_the_other_run_are_judged() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let mut chain_builder = ChainBuilder::submit(&forge, &plan("first"));
    let Event::RunSubmitted(submitted) = &mut chain_builder.drafts[0].event else { panic!() };
    submitted.roles.extend(every_role([bob.fingerprint()]));
    chain_builder.fire("make");
    chain_builder.done("make", &[("outputs/report", b"make")]);
    chain_builder.by(&bob);
    let first = forge.finish(chain_builder);
    let report = verify_story(&forge, &first, |_| {});
    assert_eq!(report.headline, "INTACT · unknown key");
    assert!(report.signers.iter().any(|signer| signer.fingerprint == bob.fingerprint()));
    let mut options = forge.options();
    options.revoked = [(bob.fingerprint(), None)].into_iter().collect();
    assert_eq!(forge.verify_with(&options).headline, "UNTRUSTED");
}

#[test]
fn diverged_copy_of_the_source_is_reported() {
    let forge = Forge::new();
    let continued = first(&forge);
    verify_story(&forge, &continued, |_| {});
    // The same beginning, and another second entry.
    let mut chain_builder = ChainBuilder::submit(&forge, &plan("first"));
    chain_builder.fire("other");
    chain_builder.fail("other");
    let other = chain_builder.write(&forge.signer);
    assert_eq!(other.links[0].hash, continued.links[0].hash);
    let report = forge.verify();
    assert_eq!(report.headline, "MISMATCH", "{}", report.to_text(false));
    insta::assert_snapshot!(find_row(&report.to_text(false), "handoff"), @"✗ handoff    run first, a source of its imports, is here, but different: it has the same first entry, but other entries follow");
    // A longer version of it is not another run.
    let _: RunId = continued.run.clone();
    forge.git(&["update-ref", "refs/handoff/runs/first", &continued.head.commit.unwrap().to_string()]);
    assert_intact(&forge.verify());
}

#[test]
fn evidence_is_read_back_as_it_was_written() {
    let all = vec!["one\n".to_owned(), "two".to_owned()];
    let read = |bytes: &[u8]| Evidence::parse(bytes).and_then(Evidence::commits);
    assert_eq!(read(&Evidence::Commits(all.clone()).canonical()), Some(all));
    for bad in [&b"[]"[..], b"{\"commits\":[1]}", b"{\"commits\": []}", b"{\"commits\":[],\"x\":0}"] {
        assert_eq!(read(bad), None);
    }
}
