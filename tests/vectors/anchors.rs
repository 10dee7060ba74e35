//! Logs that do not hold what a run says of itself, or speak of another run.

use git_handoff::git::refs;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{self, Draft};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, LogRecorded};
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::role::every_role;

use super::broken::stranger as no_entry;
use super::{RUN, Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, blob};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("log-without-the-seal", "the log holds the submission of the sealed run alone", |forge| {
        let chain = forge.honest();
        let name = format::log_ref(&forge.signer.fingerprint());
        let (_, log) = chain::read(&forge.store, &name).unwrap().unwrap();
        refs::set(&forge.store, &name, log[0].commit).unwrap();
        assert_eq!(chain.links.len(), 6);
    }),
    Vector::new("log-broken", "a commit that is no entry on top of the log", |forge| {
        forge.honest();
        let name = format::log_ref(&forge.signer.fingerprint());
        let (_, log) = chain::read(&forge.store, &name).unwrap().unwrap();
        let last = log.last().unwrap();
        refs::set(&forge.store, &name, no_entry(forge, last.commit, last.tree, 0)).unwrap();
    }),
    Vector::new("log-of-two-seals", "the log says a second root of the run it said one of", |forge| {
        let chain = forge.honest();
        let (first, last) = (chain.links[0].hash, chain.links[5].hash);
        append(forge, &forge.signer.fingerprint(), first, 5, last, Some(Digest::compute(b"another")));
    }),
    Vector::new("log-of-a-later-seal", "the log says that the run went on after the seal it said", |forge| {
        let chain = forge.honest();
        let last = Digest::compute(b"later");
        append(forge, &forge.signer.fingerprint(), chain.links[0].hash, 7, last, Some(last));
    }),
    Vector::new("log-of-a-beginning-after-the-seal", "the log says the beginning again behind the seal", |forge| {
        let chain = forge.honest();
        let first = chain.links[0].hash;
        append(forge, &forge.signer.fingerprint(), first, 0, first, None);
    }),
    Vector::new("log-of-two-beginnings", "the log says another first entry of the run it said one of", |forge| {
        let chain = ChainBuilder::honest(forge).write(&forge.signer);
        let (log, seal) = (forge.signer.fingerprint(), &chain.links[5]);
        let Event::RunSealed(sealed) = &seal.entry.event else { panic!() };
        append(forge, &log, chain.links[0].hash, 5, seal.hash, Some(sealed.root));
        let other = Digest::compute(b"another");
        append(forge, &log, other, 6, other, Some(other));
    }),
    Vector::new("log-of-an-end-without-root", "the log says an end of the run and no root", |forge| {
        let chain = ChainBuilder::honest(forge).write(&forge.signer);
        append(forge, &forge.signer.fingerprint(), chain.links[0].hash, 5, chain.links[5].hash, None);
    }),
    Vector::new("log-of-a-root-at-the-beginning", "the log says a root at entry 0 of the run", |forge| {
        let chain = ChainBuilder::honest(forge).write(&forge.signer);
        let first = chain.links[0].hash;
        append(forge, &forge.signer.fingerprint(), first, 0, first, Some(first));
    }),
    Vector::new("log-of-a-last-that-is-not-first", "the log says another hash at entry 0 than the first", |forge| {
        let chain = ChainBuilder::honest(forge).write(&forge.signer);
        let first = chain.links[0].hash;
        append(forge, &forge.signer.fingerprint(), first, 0, Digest::compute(b"another"), None);
    }),
    Vector::new("log-with-another-seal", "a second log of the key says another end of the run", |forge| {
        let run = forge.honest();
        with_another_log(forge, run.links[0].hash);
    }),
    Vector::new("log-with-another-seal-alone", "a log of the key says another end, and none says this one", |forge| {
        let run = forge.honest();
        let earlier = with_another_log(forge, run.links[0].hash);
        forge.git(&["update-ref", "-d", &earlier]);
    }),
    Vector::new("log-with-other-digits", "a log whose name has digits that none of its entries has", |forge| {
        forge.honest();
        let key = forge.signer.fingerprint();
        let tip = forge.git(&["rev-parse", &format::log_ref(&key)]);
        forge.git(&["update-ref", &format::log_ref(&format!("{key}.0123456789ab")), &tip]);
    }),
    Vector::new("log-of-another-beginning", "the log of the same key names another first entry", |forge| {
        ChainBuilder::honest(forge).write(&forge.signer);
        let head = forge.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(forge, &forge.signer.clone());
        forge.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &head]);
    }),
    Vector::new("another-run-of-the-same-id", "a log of another known key names another run of this id", |forge| {
        forge.honest();
        let head = forge.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(forge, &stranger(forge));
        forge.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &head]);
    })
    .with_arguments(&["--signers", "signers-of-both"]),
];

/// Tells and logs another run of the same id by a key, which begins otherwise.
fn otherwise(forge: &Forge, signer: &git_handoff::ledger::sign::Signer) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    (e.roles, e.queue) = (every_role([signer.fingerprint()]), "another".to_owned());
    let chain = run.write(signer);
    forge.log(&chain, signer);
}

/// Gives the log the name that the log of another repository has, and writes another log with
/// another end of the run. Returns the ref of the first.
fn with_another_log(forge: &Forge, first: Digest) -> String {
    let key = forge.signer.fingerprint();
    let (_, log) = chain::read(&forge.store, &format::log_ref(&key)).unwrap().unwrap();
    let digits = log[0].hash.to_string().trim_start_matches("sha256:")[..12].to_owned();
    let earlier = format::log_ref(&format!("{key}.{digits}"));
    forge.git(&["update-ref", &earlier, &log.last().unwrap().commit.to_string()]);
    forge.git(&["update-ref", "-d", &format::log_ref(&key)]);
    append(forge, &key, first, 0, first, None);
    let other = Digest::compute(b"another");
    append(forge, &key, first, 3, other, Some(other));
    earlier
}

/// Appends to the log of the key a statement about the run, with a file that nothing asks for.
fn append(forge: &Forge, log: &str, first: Digest, last_seq: u64, last: Digest, root: Option<Digest>) {
    let head = chain::tip(&forge.store, &format::log_ref(log)).unwrap();
    let event = Event::LogRecorded(LogRecorded { root, ..LogRecorded::new(log.to_owned(), first, last_seq, last) });
    let edits = vec![("zz/more".to_owned(), Edit::Blob(blob(forge, b"more\n")))];
    let draft = Draft { about: RunId::parse(RUN).unwrap().into(), event, bytes: Vec::new(), edits };
    let _ = forge.writer_with(&forge.signer).append(&head, vec![draft]).unwrap().publish().unwrap();
}
