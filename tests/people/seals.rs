//! Forged authorizations to seal, in runs and proofs.

use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Entry, Event, Role, RunAdmitted};
use git_handoff::model::format;
use git_handoff::model::proof::{Proof, Signed};
use git_handoff::verify::{AtHand, Beside, Chain, Logs, Options, Report, State, check_incoming, verify_proof};

use crate::common::lab::{Lab, assert_fails, key};
use crate::common::teller::{Teller, Told};

const PLAN: &str =
    r#"{"id":"handoff-dag-1","items":[{"id":"build","executor":"command","inputs":{"command":["true"]}}]}"#;

/// The leaf hash of the run's entry 0.
fn first(lab: &Lab) -> Digest {
    Teller::submit(lab, PLAN).write(&lab.signer).links[0].hash
}

pub(crate) fn admission(key: &Signer, role: Role, first: Option<Digest>) -> Event {
    Event::RunAdmitted(RunAdmitted { key: key.fingerprint(), role, first })
}

/// A run that `bob` seals, after what `admit` adds.
pub(crate) fn sealed_by<'a>(lab: &'a Lab, bob: &Signer, admit: impl FnOnce(&mut Teller<'a>, Digest)) -> Told {
    let first = first(lab);
    let mut teller = Teller::submit(lab, PLAN);
    admit(&mut teller, first);
    teller.fire("build");
    teller.done("build", &[("outputs/report", b"fine\n")]);
    teller.seal();
    teller.by(bob);
    lab.finish(teller)
}

/// A run to which its owner admitted `bob`, who sealed it.
fn rotated(lab: &Lab, bob: &Signer) -> Told {
    sealed_by(lab, bob, |teller, first| teller.add(admission(bob, Role::Seal, Some(first)), Vec::new()))
}

fn proof(lab: &Lab) -> Proof {
    prove::item(&lab.store, "refs/handoff/runs/handoff-dag-1", &"build".parse().unwrap(), None).unwrap()
}

fn check(proof: &Proof, options: &Options) -> Report {
    verify_proof(proof, Beside::default(), options, &AtHand::logs(&Logs::default()))
}

#[test]
fn a_key_seals_that_an_owner_of_entry_0_admitted() {
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    let told = rotated(&lab, &bob);
    let report = lab.verify();
    assert!(report.intact, "{}", report.to_text(false));
    check_incoming(&lab.store, Chain::Run(&told.run), None, told.head.commit.unwrap()).unwrap();
    let proof = proof(&lab);
    let report = check(&proof, &lab.options());
    assert!(report.intact && report.headline.starts_with("PROVEN"), "{}", report.to_text(false));
    let keys: Vec<_> = report.signers.iter().map(|signer| signer.fingerprint.clone()).collect();
    assert_eq!(keys, [lab.signer.fingerprint(), bob.fingerprint()]);
    assert_eq!(Proof::parse(&format::canonical(&proof)).unwrap(), proof);
}

#[test]
fn a_log_of_the_key_that_was_admitted_to_seal_anchors_the_run() {
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    let first = first(&lab);
    let mut teller = Teller::submit(&lab, PLAN);
    teller.add(admission(&bob, Role::Seal, Some(first)), Vec::new());
    teller.fire("build");
    teller.done("build", &[]);
    teller.seal();
    teller.by(&bob);
    let told = teller.write(&lab.signer);
    assert_eq!(lab.verify().headline, "NOT ANCHORED");
    // It speaks against the run as that of any writer does.
    lab.log_as(&told, &bob, |sealed| sealed.root = Digest::of(b"another"));
    assert_fails(&lab.verify(), "anchor", "holds the root");
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    let told = rotated(&lab, &bob);
    lab.git(&["update-ref", "-d", &format::log_ref(&lab.signer.fingerprint())]);
    lab.log(&told, &bob);
    let report = lab.verify();
    assert!(report.intact, "{}", report.to_text(false));
}

/// Adds the admission of a key to a story: the leaf hash of entry 0, the key, and a stranger's.
type Admits = fn(&mut Teller<'_>, Digest, [&Signer; 2]);

#[test]
fn nobody_else_lets_a_key_seal() {
    let lab = Lab::new();
    let (bob, eve) = (key(lab.path(), 2), key(lab.path(), 3));
    let stories: [(&str, Admits, &str); 5] = [
        ("nobody did", |_, _, _| {}, "is not among the run's writers"),
        (
            "it did so itself",
            |teller, first, [bob, _]| {
                teller.add(admission(bob, Role::Seal, Some(first)), Vec::new());
                teller.by(bob);
            },
            "is not among the run's writers",
        ),
        (
            "an owner did that came later",
            |teller, first, [bob, eve]| {
                teller.add(admission(eve, Role::Own, None), Vec::new());
                teller.add(admission(bob, Role::Seal, Some(first)), Vec::new());
                teller.by(eve);
            },
            "cannot give the role seal",
        ),
        (
            "it may only seal another run",
            |teller, _, [bob, _]| {
                teller.add(admission(bob, Role::Seal, Some(Digest::of(b"another"))), Vec::new());
            },
            "to a run with another entry 0",
        ),
        (
            "it was given all else",
            |teller, _, [bob, _]| {
                for role in Role::SUBMITTER {
                    teller.add(admission(bob, role, None), Vec::new());
                }
            },
            "does not have the role seal",
        ),
    ];
    for (what, admit, why) in stories {
        let lab = Lab::new();
        let told = sealed_by(&lab, &bob, |teller, first| admit(teller, first, [&bob, &eve]));
        println!("{what}");
        assert_fails(&lab.verify(), "signature", why);
        check_incoming(&lab.store, Chain::Run(&told.run), None, told.head.commit.unwrap()).unwrap_err();
        let report = check(&proof(&lab), &lab.options());
        let row = report.row("signature").unwrap();
        assert_eq!(row.state, State::Failed, "{what}: {}", row.detail);
    }
}

#[test]
fn a_seal_before_the_admission_is_none() {
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    let first = first(&lab);
    let mut teller = Teller::submit(&lab, PLAN);
    teller.fire("build");
    teller.done("build", &[]);
    teller.seal();
    teller.by(&bob);
    teller.add(admission(&bob, Role::Seal, Some(first)), Vec::new());
    lab.finish(teller);
    let report = lab.verify();
    assert_fails(&report, "signature", "is not among the run's writers");
    assert_fails(&report, "chain", "seal");
}

#[test]
fn an_admission_names_entry_0_where_it_is_one_to_seal_and_nowhere_else() {
    for (role, first) in [(Role::Seal, None), (Role::Work, Some(Digest::of(b"x")))] {
        let lab = Lab::new();
        let bob = key(lab.path(), 2);
        let mut teller = Teller::submit(&lab, PLAN);
        teller.add(admission(&bob, role, first), Vec::new());
        let told = teller.write(&lab.signer);
        assert_fails(&lab.verify(), "chain", "`first` belongs to an admission with the role seal");
        let bytes = told.links[1].entry.canonical();
        assert_eq!(
            Entry::parse(&bytes).unwrap_err().to_string(),
            "`first` belongs to an admission with the role seal, and to no other"
        );
    }
}

#[test]
fn a_revoked_owner_and_a_revoked_sealer_are_not_trusted() {
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    rotated(&lab, &bob);
    let proof = proof(&lab);
    for revoked in [&lab.signer, &bob] {
        let mut options = lab.options();
        options.revoked = [(revoked.fingerprint(), None)].into_iter().collect();
        for report in [lab.verify_with(&options), check(&proof, &options)] {
            assert_eq!(report.headline, "UNTRUSTED", "{}", report.to_text(false));
            assert!(report.row("signature").unwrap().detail.contains("is revoked"));
        }
    }
}

/// A proof with an invented root and a modified admission.
fn bent(bend: impl FnOnce(&Lab, &Signer, &mut Proof)) -> Report {
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    rotated(&lab, &bob);
    let mut forged = proof(&lab);
    bend(&lab, &bob, &mut forged);
    check(&forged, &lab.options())
}

#[test]
fn a_proof_shows_the_admission_that_its_seal_rests_on() {
    let commit = |lab: &Lab, told: &Told, at: usize| {
        String::from_utf8(lab.store.read(told.links[at].commit).unwrap().1).unwrap()
    };
    // Without an admission.
    let report = bent(|_, _, proof| proof.admitted = None);
    assert_fails(&report, "signature", "is not among the run's writers");
    // One that stands in no place.
    let report = bent(|_, _, proof| proof.admitted.as_mut().unwrap().path = None);
    assert_fails(&report, "root", "entry 1 is not under the root");
    // Another entry of the run.
    let report = bent(|_, _, proof| {
        proof.admitted = Some(Signed { commit: proof.first.commit.clone(), path: proof.first.path.clone() });
    });
    assert_fails(&report, "chain", "the admission has 0 parents");
    // With another key's.
    let report = bent(|_, bob, proof| {
        let other = Lab::new();
        let eve = key(other.path(), 3);
        let first = first(&other);
        let told = sealed_by(&other, bob, |teller, _| teller.add(admission(&eve, Role::Seal, Some(first)), Vec::new()));
        proof.admitted.as_mut().unwrap().commit = commit(&other, &told, 1);
    });
    assert_fails(&report, "chain", "the admission is not one of the key that sealed");
    // With the admission to another run of this name by the same owner.
    let report = bent(|_, bob, proof| {
        let other = Lab::new();
        let told = sealed_by(&other, bob, |teller, _| {
            teller.add(admission(bob, Role::Seal, Some(Digest::of(b"another entry 0"))), Vec::new());
        });
        proof.admitted.as_mut().unwrap().commit = commit(&other, &told, 1);
    });
    assert_fails(&report, "signature", "to a run with another entry 0");
    // One that the key signed itself.
    let report = bent(|lab, bob, proof| {
        let other = Lab::new();
        let first = first(lab);
        let told = sealed_by(&other, bob, |teller, _| {
            teller.add(admission(bob, Role::Seal, Some(first)), Vec::new());
            teller.by(bob);
        });
        proof.admitted.as_mut().unwrap().commit = commit(&other, &told, 1);
    });
    assert_fails(&report, "signature", "is not among the run's writers");
    // One that is shown where entry 0 names the key that sealed.
    let lab = Lab::new();
    let bob = key(lab.path(), 2);
    let told = sealed_by(&lab, &lab.signer.clone(), |teller, first| {
        teller.add(admission(&bob, Role::Seal, Some(first)), Vec::new());
    });
    let mut proof = proof(&lab);
    assert!(proof.admitted.is_none());
    proof.admitted = Some(Signed { commit: commit(&lab, &told, 1), path: proof.first.path.clone() });
    assert_fails(&check(&proof, &lab.options()), "chain", "the admission is not one");
}
