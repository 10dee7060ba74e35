//! Logs that do not hold what a run says of itself, or speak of another run.

use git_handoff::git::refs;
use git_handoff::ledger::chain;
use git_handoff::model::entry::Event;
use git_handoff::model::format;

use super::broken::stranger as no_entry;
use super::{Vector, stranger};
use crate::common::lab::{Lab, PLAN};
use crate::common::teller::Teller;

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("log-without-the-seal", "the log holds the submission of the sealed run alone", |lab| {
        let told = lab.honest();
        let name = format::log_ref(&lab.signer.fingerprint());
        let (_, log) = chain::read(&lab.store, &name).unwrap().unwrap();
        refs::set(&lab.store, &name, log[0].commit).unwrap();
        assert_eq!(told.links.len(), 6);
    }),
    Vector::new("log-broken", "a commit that is no entry on top of the log", |lab| {
        lab.honest();
        let name = format::log_ref(&lab.signer.fingerprint());
        let (_, log) = chain::read(&lab.store, &name).unwrap().unwrap();
        let last = log.last().unwrap();
        refs::set(&lab.store, &name, no_entry(lab, last.commit, last.tree, 0)).unwrap();
    }),
    Vector::new("log-of-another-beginning", "the log of the same key names another first entry", |lab| {
        Teller::honest(lab).write(&lab.signer);
        let told = lab.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(lab, &lab.signer.clone());
        lab.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &told]);
    }),
    Vector::new("another-run-of-the-same-id", "a log of another known key names another run of this id", |lab| {
        lab.honest();
        let told = lab.git(&["rev-parse", "refs/handoff/runs/handoff-dag-1"]);
        otherwise(lab, &stranger(lab));
        lab.git(&["update-ref", "refs/handoff/runs/handoff-dag-1", &told]);
    })
    .asked(&["--signers", "signers-of-both"]),
];

/// Tells and logs another run of the same id by a key, which begins otherwise.
fn otherwise(lab: &Lab, signer: &git_handoff::ledger::sign::Signer) {
    let mut run = Teller::submit(lab, PLAN);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    (e.writers, e.queue) = (vec![signer.fingerprint()], "another".to_owned());
    let told = run.write(signer);
    lab.log(&told, signer);
}
