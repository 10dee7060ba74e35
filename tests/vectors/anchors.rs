//! Logs that do not hold what a run says of itself, or speak of another run.

use git_handoff::git::refs;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{self, Draft};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, LogSealed, LogSubmitted};
use git_handoff::model::format;
use git_handoff::model::log_record::Record;
use git_handoff::model::name::RunId;
use git_handoff::model::role::every_role;

use super::broken::stranger as no_entry;
use super::{Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, blob};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("log-without-the-seal", "the log holds the submission of the sealed run alone", |forge| {
        let told = forge.honest();
        let name = format::log_ref(&forge.signer.fingerprint());
        let (_, log) = chain::read(&forge.store, &name).unwrap().unwrap();
        refs::set(&forge.store, &name, log[0].commit).unwrap();
        assert_eq!(told.links.len(), 6);
    }),
    Vector::new("log-broken", "a commit that is no entry on top of the log", |forge| {
        forge.honest();
        let name = format::log_ref(&forge.signer.fingerprint());
        let (_, log) = chain::read(&forge.store, &name).unwrap().unwrap();
        let last = log.last().unwrap();
        refs::set(&forge.store, &name, no_entry(forge, last.commit, last.tree, 0)).unwrap();
    }),
    Vector::new("log-of-two-seals", "the log says a second root of the run it said one of", |forge| {
        let told = forge.honest();
        let (log, root) = (forge.signer.fingerprint(), Digest::of(b"another"));
        let (commit, first) = (told.links[5].commit, told.links[5].hash);
        let sealed = LogSealed { log, root, entries: 5, seal: first, commit };
        append(forge, &told.run, Event::LogSealed(sealed), &[]);
    }),
    Vector::new("log-with-another-seal", "a second log of the key says another end of the run", |forge| {
        let run = forge.honest();
        with_another_log(forge, &run.run, run.links[0].hash);
    }),
    Vector::new("log-with-another-seal-alone", "a log of the key says another end, and none says this one", |forge| {
        let run = forge.honest();
        let earlier = with_another_log(forge, &run.run, run.links[0].hash);
        forge.git(&["update-ref", "-d", &earlier]);
    }),
    Vector::new("log-with-a-change-besides", "an entry of the log changes a file that is not its own", |forge| {
        forge.honest();
        let submitted = LogSubmitted { log: forge.signer.fingerprint(), first: Digest::of(b"first") };
        append(forge, &RunId::parse("another").unwrap(), Event::LogSubmitted(submitted), &[("zz/more", b"more\n")]);
    }),
    Vector::new("log-with-other-digits", "a log whose name has digits that none of its entries has", |forge| {
        forge.honest();
        let key = forge.signer.fingerprint();
        let tip = forge.git(&["rev-parse", &format::log_ref(&key)]);
        forge.git(&["update-ref", &format::log_ref(&format!("{key}.0123456789ab")), &tip]);
    }),
    Vector::new("log-of-another-beginning", "the log of the same key names another first entry", |forge| {
        ChainBuilder::honest(forge).write(&forge.signer);
        let told = forge.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(forge, &forge.signer.clone());
        forge.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &told]);
    }),
    Vector::new("another-run-of-the-same-id", "a log of another known key names another run of this id", |forge| {
        forge.honest();
        let told = forge.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(forge, &stranger(forge));
        forge.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &told]);
    })
    .asked(&["--signers", "signers-of-both"]),
];

/// Tells and logs another run of the same id by a key, which begins otherwise.
fn otherwise(forge: &Forge, signer: &git_handoff::ledger::sign::Signer) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    (e.roles, e.queue) = (every_role([signer.fingerprint()]), "another".to_owned());
    let told = run.write(signer);
    forge.log(&told, signer);
}

/// Gives the log the name that the log of another repository has, and writes another log with
/// another end of the run. Returns the ref of the first.
fn with_another_log(forge: &Forge, run: &RunId, first: Digest) -> String {
    let key = forge.signer.fingerprint();
    let (_, log) = chain::read(&forge.store, &format::log_ref(&key)).unwrap().unwrap();
    let digits = log[0].hash.to_string().trim_start_matches("sha256:")[..12].to_owned();
    let earlier = format::log_ref(&format!("{key}.{digits}"));
    forge.git(&["update-ref", &earlier, &log.last().unwrap().commit.to_string()]);
    forge.git(&["update-ref", "-d", &format::log_ref(&key)]);
    append(forge, run, Event::LogSubmitted(LogSubmitted { log: key.clone(), first }), &[]);
    let root = Digest::of(b"another");
    let sealed = LogSealed { log: key, root, entries: 3, seal: root, commit: log[0].commit };
    append(forge, run, Event::LogSealed(sealed), &[]);
    earlier
}

/// Appends to the log an entry about a run, with its record and more files.
fn append(forge: &Forge, run: &RunId, event: Event, more: &[(&str, &[u8])]) {
    let head = chain::tip(&forge.store, &format::log_ref(&forge.signer.fingerprint())).unwrap();
    let record = Record::of_event(&run.clone().into(), &event).unwrap();
    let mut edits = vec![(format::log_path(run), Edit::Blob(blob(forge, &record.canonical())))];
    edits.extend(more.iter().map(|(path, bytes)| ((*path).to_owned(), Edit::Blob(blob(forge, bytes)))));
    let draft = Draft { about: run.clone().into(), event, bytes: Vec::new(), edits };
    let _ = forge.writer_with(&forge.signer).append(&head, vec![draft]).unwrap().publish().unwrap();
}
