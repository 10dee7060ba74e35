//! Foreign archives, and what of them may be stored at a ref.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use git_handoff::git::archives;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head, Link};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::archive::{ArchiveAdded, ArchivedRun};
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Event, Subject};
use git_handoff::model::log_name::LogName;
use git_handoff::model::name::RunId;
use git_handoff::verify::{Chain, check_incoming};

use crate::common::forge::{Forge, key};

const RUN: &str = "handoff-dag-1";

/// The entries of an archive as they are written, and the name that goes with them.
struct Forged {
    forge: Forge,
    links: Vec<Link>,
}

impl Forged {
    /// Writes an archive with these runs an entry, the first of which should be empty.
    fn new(forge: Forge, signer: &Signer, entries: &[BTreeMap<RunId, ArchivedRun>]) -> Self {
        let draft = |runs: &BTreeMap<RunId, ArchivedRun>| Draft {
            about: Subject::Archive(signer.fingerprint()),
            event: Event::ArchiveAdded(ArchiveAdded { runs: runs.clone() }),
            bytes: Vec::new(),
            edits: Vec::<(String, Edit)>::new(),
        };
        let head = Head::unborn(String::new());
        let appended = forge.writer_with(signer).append(&head, entries.iter().map(draft).collect()).unwrap();
        let (guard, links) = appended.place().unwrap();
        // Nothing here prunes.
        drop(guard);
        Self { forge, links }
    }

    fn tip(&self) -> Oid {
        self.links.last().unwrap().commit
    }

    /// Says why it may not stand under the name of a key and of one of its entries.
    fn refused(&self, key: &Signer, entry: Digest) -> String {
        let name = LogName::with_entry(&key.fingerprint(), entry);
        check_incoming(&self.forge.store, Chain::Archive(&name), None, self.tip()).err().unwrap_or_default()
    }

    /// Says why it may not stand under its own name.
    fn why(&self) -> String {
        self.refused(&self.forge.signer, self.links[0].hash)
    }
}

/// An honest run, and what an archive says of it.
fn honest() -> (Forge, ArchivedRun, ArchivedRun) {
    let forge = Forge::new();
    let chain = forge.honest();
    let last = chain.links.last().unwrap();
    let sealed = ArchivedRun { commit: last.commit, seal: last.hash, stamps: None };
    let before = &chain.links[chain.links.len() - 2];
    let open = ArchivedRun { commit: before.commit, seal: before.hash, stamps: None };
    (forge, sealed, open)
}

fn archive_at(run: &str, archive: ArchivedRun) -> BTreeMap<RunId, ArchivedRun> {
    [(RunId::parse(run).unwrap(), archive)].into()
}

fn story(entries: impl FnOnce(ArchivedRun, ArchivedRun) -> Vec<BTreeMap<RunId, ArchivedRun>>) -> Forged {
    let (forge, sealed, open) = honest();
    let signer = forge.signer.clone();
    Forged::new(forge, &signer, &entries(sealed, open))
}

#[test]
fn archive_of_a_sealed_run_is_accepted_under_its_name() {
    let forged = story(|sealed, _| vec![BTreeMap::new(), archive_at(RUN, sealed)]);
    assert_eq!(forged.why(), "");
    assert_eq!(forged.refused(&forged.forge.signer, forged.links[1].hash), "");
    let contents = archives::contents(&forged.forge.store, forged.tip()).unwrap();
    assert_eq!(contents.len(), 1);
    // Earlier verified entries are not verified again, and still must be continued.
    let name = LogName::with_entry(&forged.forge.signer.fingerprint(), forged.links[0].hash);
    let known = Some(forged.links[0].commit);
    check_incoming(&forged.forge.store, Chain::Archive(&name), known, forged.tip()).unwrap();
}

#[test]
fn archive_rejects_other_content() {
    let mut digest = None;
    let other_seal = story(|sealed, open| {
        digest = Some(open.seal);
        vec![BTreeMap::new(), archive_at(RUN, ArchivedRun { seal: open.seal, ..sealed })]
    });
    insta::assert_snapshot!(other_seal.why(), @r#"run "handoff-dag-1", which it holds: its seal differs"#);
    for (forged, word) in [
        (
            story(|_, open| vec![BTreeMap::new(), archive_at(RUN, open)]),
            "run \"handoff-dag-1\", which it holds: it is not sealed",
        ),
        (
            story(|sealed, _| vec![BTreeMap::new(), archive_at("another", sealed)]),
            "run \"another\", which it holds: entry 0 belongs to \"handoff-dag-1\"",
        ),
        (story(|sealed, _| vec![archive_at(RUN, sealed)]), "entry 0 is archive.added, which has no place there"),
        (story(|_, _| vec![BTreeMap::new(), BTreeMap::new()]), "entry 1 is archive.added, which has no place there"),
        (
            story(|sealed, _| {
                let changed = ArchivedRun { seal: Digest::compute(b"x"), ..sealed };
                vec![BTreeMap::new(), archive_at(RUN, sealed), archive_at(RUN, changed)]
            }),
            "entry 2 says otherwise of run \"handoff-dag-1\" than before",
        ),
    ] {
        assert_eq!(forged.why(), word);
    }
}

#[test]
fn an_archive_belongs_to_the_key_and_the_entry_of_its_name() {
    let forged = story(|sealed, _| vec![BTreeMap::new(), archive_at(RUN, sealed)]);
    let other = key(forged.forge.path(), 2);
    insta::assert_snapshot!(forged.refused(&other, forged.links[0].hash), @r#"entry 0 belongs to "SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8""#);
    insta::assert_snapshot!(forged.refused(&forged.forge.signer, Digest::compute(b"x")), @"it does not contain the entry in its name");
    // Signed by another key, despite its content.
    let (forge, sealed, _) = honest();
    let owner = forge.signer.clone();
    let second_other = key(forge.path(), 2);
    let drafts = [BTreeMap::new(), archive_at(RUN, sealed)].map(|runs| Draft {
        about: Subject::Archive(owner.fingerprint()),
        event: Event::ArchiveAdded(ArchiveAdded { runs }),
        bytes: Vec::new(),
        edits: Vec::new(),
    });
    let appended = forge.writer_with(&second_other).append(&Head::unborn(String::new()), drafts.into()).unwrap();
    let (_, links) = appended.place().unwrap();
    let stolen = Forged { forge, links };
    assert!(!stolen.why().is_empty(), "nobody else signs for a key");
}
