//! Forged authorizations to seal, in runs and proofs.

use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Entry, Event, Role, RunAdmitted};
use git_handoff::model::format;
use git_handoff::model::proof::{Proof, Signed};
use git_handoff::verify::{AtHand, Beside, Chain, Code, Logs, Options, Report, State, check_incoming, verify_proof};

use crate::common::chain_builder::{BuiltChain, ChainBuilder};
use crate::common::forge::{Forge, assert_fails, assert_says, key};

const PLAN: &str =
    r#"{"id":"handoff-dag-1","items":[{"id":"build","executor":"command","inputs":{"command":["true"]}}]}"#;

/// The leaf hash of the run's entry 0.
fn first(forge: &Forge) -> Digest {
    ChainBuilder::submit(forge, PLAN).write(&forge.signer).links[0].hash
}

pub(crate) fn admission(key: &Signer, role: Role, first: Option<Digest>) -> Event {
    Event::RunAdmitted(RunAdmitted { first, ..RunAdmitted::new(key.fingerprint(), role) })
}

/// A run that `bob` seals, after what `admit` adds.
pub(crate) fn sealed_by<'a>(
    forge: &'a Forge,
    bob: &Signer,
    admit: impl FnOnce(&mut ChainBuilder<'a>, Digest),
) -> BuiltChain {
    let first = first(forge);
    let mut chain_builder = ChainBuilder::submit(forge, PLAN);
    admit(&mut chain_builder, first);
    chain_builder.fire("build");
    chain_builder.done("build", &[("outputs/report", b"fine\n")]);
    chain_builder.seal();
    chain_builder.by(bob);
    forge.finish(chain_builder)
}

/// A run to which its owner admitted `bob`, who sealed it.
fn rotated(forge: &Forge, bob: &Signer) -> BuiltChain {
    sealed_by(forge, bob, |chain_builder, first| chain_builder.add(admission(bob, Role::Seal, Some(first))))
}

fn proof(forge: &Forge) -> Proof {
    prove::item(&forge.store, "refs/handoff/runs/handoff-dag-1", &"build".parse().unwrap(), None).unwrap()
}

fn check(proof: &Proof, options: &Options) -> Report {
    verify_proof(proof, Beside::default(), options, &AtHand::logs(&Logs::default()))
}

#[test]
fn a_key_seals_that_an_owner_of_entry_0_admitted() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let chain = rotated(&forge, &bob);
    let report = forge.verify();
    assert!(report.intact, "{}", report.to_text(false));
    check_incoming(&forge.store, Chain::Run(&chain.run), None, chain.head.commit.unwrap()).unwrap();
    let proof = proof(&forge);
    let second_report = check(&proof, &forge.options());
    assert!(second_report.intact && second_report.headline.starts_with("PROVEN"), "{}", second_report.to_text(false));
    let keys: Vec<_> = second_report.signers.iter().map(|signer| signer.fingerprint.clone()).collect();
    assert_eq!(keys, [forge.signer.fingerprint(), bob.fingerprint()]);
    assert_eq!(Proof::parse(&format::canonical(&proof)).unwrap(), proof);
}

#[test]
fn a_log_of_the_key_that_was_admitted_to_seal_anchors_the_run() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let first = first(&forge);
    let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
    chain_builder.add(admission(&bob, Role::Seal, Some(first)));
    chain_builder.fire("build");
    chain_builder.done("build", &[]);
    chain_builder.seal();
    chain_builder.by(&bob);
    let chain = chain_builder.write(&forge.signer);
    assert_eq!(forge.verify().headline, "NOT ANCHORED");
    // It speaks against the run as that of any writer does.
    forge.log_as(&chain, &bob, |sealed| sealed.root = Some(Digest::compute(b"another")));
    assert_says(&forge.verify(), "anchor", "refs/handoff/logs/SHA256%3A… holds the root …, recomputed is …");
    let second_forge = Forge::new();
    let second_bob = key(second_forge.path(), 2);
    let rotated_chain = rotated(&second_forge, &second_bob);
    second_forge.git(&["update-ref", "-d", &format::log_ref(&second_forge.signer.fingerprint())]);
    second_forge.log(&rotated_chain, &second_bob);
    let report = second_forge.verify();
    assert!(report.intact, "{}", report.to_text(false));
}

/// Adds the admission of a key to a story: the leaf hash of entry 0, the key, and a stranger's.
type Admits = fn(&mut ChainBuilder<'_>, Digest, [&Signer; 2]);

#[test]
fn no_other_key_lets_a_key_seal() {
    let forge = Forge::new();
    let (bob, eve) = (key(forge.path(), 2), key(forge.path(), 3));
    let stories: [(&str, Admits, &str); 5] = [
        ("no key did", |_, _, _| {}, "entry 3 is signed by SHA256:…, which is not among the run's writers"),
        (
            "it did so itself",
            |chain_builder, first, [approver, _]| {
                chain_builder.add(admission(approver, Role::Seal, Some(first)));
                chain_builder.by(approver);
            },
            "entry 1 is signed by SHA256:…, which is not among the run's writers",
        ),
        (
            "an owner did that came later",
            |chain_builder, first, [approver, stranger]| {
                chain_builder.add(admission(stranger, Role::Own, None));
                chain_builder.add(admission(approver, Role::Seal, Some(first)));
                chain_builder.by(stranger);
            },
            "entry 2 is signed by SHA256:…, which entry 0 does not name as an owner, and so cannot give the \
             role seal",
        ),
        (
            "it may only seal another run",
            |chain_builder, _, [approver, _]| {
                chain_builder.add(admission(approver, Role::Seal, Some(Digest::compute(b"another"))));
            },
            "entry 1 is signed by SHA256:…, but admits a sealing key to a run with another entry 0",
        ),
        (
            "it was given all else",
            |chain_builder, _, [approver, _]| {
                for role in Role::SUBMITTER {
                    chain_builder.add(admission(approver, role, None));
                }
            },
            "entry 7 is signed by SHA256:…, which does not have the role seal",
        ),
    ];
    for (what, admit, why) in stories {
        let second_forge = Forge::new();
        let chain = sealed_by(&second_forge, &bob, |chain_builder, first| admit(chain_builder, first, [&bob, &eve]));
        println!("{what}");
        assert_says(&second_forge.verify(), "signature", why);
        check_incoming(&second_forge.store, Chain::Run(&chain.run), None, chain.head.commit.unwrap()).unwrap_err();
        let report = check(&proof(&second_forge), &second_forge.options());
        let row = &report.rows.signature;
        assert_eq!(row.state, State::Failed, "{what}: {}", row.detail);
    }
}

#[test]
fn a_seal_before_the_admission_is_none() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let first = first(&forge);
    let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
    chain_builder.fire("build");
    chain_builder.done("build", &[]);
    chain_builder.seal();
    chain_builder.by(&bob);
    chain_builder.add(admission(&bob, Role::Seal, Some(first)));
    forge.finish(chain_builder);
    let report = forge.verify();
    assert_says(&report, "signature", "entry 3 is signed by SHA256:…, which is not among the run's writers");
    assert_fails(&report, "chain", "misplaced, entry 4");
}

#[test]
fn an_admission_names_entry_0_where_it_is_one_to_seal_and_nowhere_else() {
    for (role, first) in [(Role::Seal, None), (Role::Work, Some(Digest::compute(b"x")))] {
        let forge = Forge::new();
        let bob = key(forge.path(), 2);
        let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
        chain_builder.add(admission(&bob, role, first));
        let chain = chain_builder.write(&forge.signer);
        assert_says(
            &forge.verify(),
            "chain",
            "commit …: `first` belongs to an admission with the role seal, and to no other",
        );
        let bytes = chain.links[1].entry.canonical();
        assert_eq!(
            Entry::parse(&bytes).unwrap_err().to_string(),
            "`first` belongs to an admission with the role seal, and to no other"
        );
    }
}

#[test]
fn a_revoked_owner_and_a_revoked_sealer_are_not_trusted() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    rotated(&forge, &bob);
    let proof = proof(&forge);
    for revoked in [&forge.signer, &bob] {
        let mut options = forge.options();
        options.revoked = [(revoked.fingerprint(), None)].into_iter().collect();
        for report in [forge.verify_with(&options), check(&proof, &options)] {
            assert_eq!(report.headline, "UNTRUSTED", "{}", report.to_text(false));
            assert_eq!(report.rows.signature.codes, [Code::KeyRevoked]);
        }
    }
}

/// A proof with an invented root and a modified admission.
fn bent(bend: impl FnOnce(&Forge, &Signer, &mut Proof)) -> Report {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    rotated(&forge, &bob);
    let mut forged = proof(&forge);
    bend(&forge, &bob, &mut forged);
    check(&forged, &forge.options())
}

#[test]
fn a_proof_shows_the_admission_that_its_seal_rests_on() {
    let commit = |forge: &Forge, chain: &BuiltChain, at: usize| {
        String::from_utf8(forge.store.read(chain.links[at].commit).unwrap().1).unwrap()
    };
    // Without an admission.
    let report = bent(|_, _, proof| proof.admitted = None);
    assert_says(&report, "signature", "entry 4 is signed by SHA256:…, which is not among the run's writers");
    // One that stands in no place.
    let no_path_report = bent(|_, _, proof| proof.admitted.as_mut().unwrap().path = None);
    assert_says(&no_path_report, "root", "entry 1 is not under the root …");
    // Another entry of the run.
    let other_entry_report = bent(|_, _, proof| {
        proof.admitted = Some(Signed { commit: proof.first.commit.clone(), path: proof.first.path.clone() });
    });
    assert_says(&other_entry_report, "chain", "the admission has 0 parents");
    // With another key's.
    let other_key_report = bent(|_, bob, proof| {
        let other = Forge::new();
        let eve = key(other.path(), 3);
        let first = first(&other);
        let other_chain = sealed_by(&other, bob, |chain_builder, _| {
            chain_builder.add(admission(&eve, Role::Seal, Some(first)));
        });
        proof.admitted.as_mut().unwrap().commit = commit(&other, &other_chain, 1);
    });
    assert_says(&other_key_report, "chain", "the admission is not one of the key that sealed");
    // With the admission to another run of this name by the same owner.
    let unlinked_report = bent(|_, bob, proof| {
        let other = Forge::new();
        let unlinked_chain = sealed_by(&other, bob, |chain_builder, _| {
            chain_builder.add(admission(bob, Role::Seal, Some(Digest::compute(b"another entry 0"))));
        });
        proof.admitted.as_mut().unwrap().commit = commit(&other, &unlinked_chain, 1);
    });
    assert_says(
        &unlinked_report,
        "signature",
        "entry 1 is signed by SHA256:…, but admits a sealing key to a run with another entry 0",
    );
    // One that the key signed itself.
    let unsealed_report = bent(|forge, bob, proof| {
        let other = Forge::new();
        let first = first(forge);
        let unsealed_chain = sealed_by(&other, bob, |chain_builder, _| {
            chain_builder.add(admission(bob, Role::Seal, Some(first)));
            chain_builder.by(bob);
        });
        proof.admitted.as_mut().unwrap().commit = commit(&other, &unsealed_chain, 1);
    });
    assert_says(&unsealed_report, "signature", "entry 1 is signed by SHA256:…, which is not among the run's writers");
    // One that is shown where entry 0 names the key that sealed.
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let signers_chain = sealed_by(&forge, &forge.signer.clone(), |chain_builder, first| {
        chain_builder.add(admission(&bob, Role::Seal, Some(first)));
    });
    let mut proof = proof(&forge);
    assert!(proof.admitted.is_none());
    proof.admitted = Some(Signed { commit: commit(&forge, &signers_chain, 1), path: proof.first.path.clone() });
    assert_says(&check(&proof, &forge.options()), "chain", "the admission is not one of the key that sealed");
}
