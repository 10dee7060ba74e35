//! Chains that are none: commits and trees that are not what their entries make.

use git_handoff::git::refs;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::Event;
use git_handoff::model::name::RunId;

use super::forged::{again, bent, linked};
use super::shared::resigned;
use super::{Vector, lose};
use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, blob, gone};

/// One more than a verifier passes over.
const STRANGERS: usize = 101;

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("ref-to-a-blob", "the run's ref points at a blob", |forge| {
        forge.honest();
        forge.point_at(blob(forge, b"no run\n"));
    })
    .with_gaps(),
    Vector::new("commit-missing", "the commit of an entry is missing, in a complete repository", |forge| {
        let chain = forge.honest();
        lose(forge, chain.links[2].commit);
    })
    .with_gaps(),
    Vector::new("commits-of-strangers", "more than 100 commits that are no entries, on top of a run", |forge| {
        let chain = forge.honest();
        forge.point_at(strangers(forge, chain.links[5].commit, chain.links[5].tree));
    }),
    Vector::new("first-entry-missing", "the run begins with its second entry", |forge| {
        linked(forge, |entries| drop(entries.remove(0)));
    }),
    Vector::new("submitted-twice", "a second `run.submitted` in the middle", |forge| {
        bent(forge, |drafts| {
            let first = again(&drafts[0]);
            drafts.insert(3, first);
        });
    }),
    Vector::new("log-entry-in-the-run", "an entry of a log behind the seal of a run", |forge| {
        let chain = forge.honest();
        let name = git_handoff::model::format::log_ref(&forge.signer.fingerprint());
        let (_, log) = git_handoff::ledger::chain::read(&forge.store, &name).unwrap().unwrap();
        refs::delete(&forge.store, &name, log[1].commit).unwrap();
        let mut entries: Vec<_> = chain.links.iter().map(|link| (link.entry.clone(), link.tree)).collect();
        let mut strange = log[0].entry.clone();
        (strange.seq, strange.prev) = (6, Some(chain.links[5].hash));
        entries.push((strange, chain.links[5].tree));
        forge.point_at(crate::common::forge::relink(forge, &entries));
    }),
    Vector::new("entry-of-another-run", "an entry that names another run", |forge| {
        bent(forge, |drafts| drafts[2].about = RunId::parse("handoff-dag-2").unwrap().into());
    }),
    Vector::new("document-of-another-author", "a document that names an author without a statement", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.document("notes", None, b"notes\n");
        resigned(forge, run, |text| text.replacen("\n \"kind\"", "\n \"author\": \"human:eve\",\n \"kind\"", 1));
    }),
    Vector::new("outputs-side-by-side", "two outputs of one entry that differ by letter case alone", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n"), ("outputs/a", b"1\n"), ("outputs/A", b"2\n")]);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("product-missing", "the blob of a product is missing, in a complete repository", |forge| {
        let chain = forge.honest();
        lose(forge, find_blob(forge, chain.links[4].commit, "outputs/report.md"));
    })
    .with_gaps(),
    Vector::new("product-name-of-another-format", "a product whose object name has 64 digits, with SHA-1", |forge| {
        bent(forge, |drafts| {
            let Event::ItemReconciled(e) = &mut drafts[4].event else { panic!() };
            e.products.values_mut().for_each(|product| product.oid = "1".repeat(64).parse().unwrap());
        });
    }),
    Vector::new("base-of-another-format", "a base whose object name has 64 digits, with SHA-1", |forge| {
        bent(forge, |drafts| {
            let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
            e.base = "1".repeat(64).parse().unwrap();
        });
    }),
    Vector::new("artifact-missing", "an artifact that entry 0 names is not there", |forge| {
        bent(forge, |drafts| point_to(&mut drafts[0].event, "artifacts/docs/spec.md", gone(forge)));
    })
    .with_gaps(),
];

/// The object at a path of a commit's tree.
fn find_blob(forge: &Forge, commit: Oid, path: &str) -> Oid {
    forge.git(&["rev-parse", &format!("{commit}:{path}")]).parse().unwrap()
}

/// Puts commits that are no entries on top of one.
pub(super) fn strangers(forge: &Forge, on: Oid, tree: Oid) -> Oid {
    (0..STRANGERS).fold(on, |parent, at| stranger(forge, parent, tree, at))
}

/// Appends a commit that is not an entry, as anyone without a key can.
pub(super) fn stranger(forge: &Forge, parent: Oid, tree: Oid, at: usize) -> Oid {
    let who = "mallory <mallory@example.com> 1780538400 +0000";
    let raw = format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nno entry {at}\n");
    forge.store.write(gix::objs::Kind::Commit, raw.as_bytes()).unwrap()
}
