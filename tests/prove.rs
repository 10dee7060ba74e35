//! Proofs: checked with nothing else at hand, and worth nothing once a word of them is changed.

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Event;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::proof::Proof;
use git_handoff::prove::{self, Error};
use git_handoff::verify::{Options, Report, State, nobody, verify_proof};
use serde_json::Value;

use crate::common::Environment;
use crate::tamper::edits::{changed, taken_out};
use crate::tamper::run::{End, RUN, Scene};
use crate::verify::lab::{Lab, key};
use crate::verify::teller::Teller;

fn check(proof: &Proof) -> Report {
    verify_proof(proof, None, &Options::default(), &nobody)
}

#[test]
fn every_product_can_be_proven() {
    for format in ["sha1", "sha256"] {
        let lab = Lab::with_format(format);
        let told = lab.finish(Teller::honest(&lab));
        for (item, product, bytes) in [
            ("edit-a", "patch", &b"diff --git a/x b/x\n"[..]),
            ("edit-a", "outputs/we ird.bin", b"\0\x01\x02"),
            ("edit-b", "outputs/report.md", b"fine\n"),
        ] {
            let key: ProductKey = product.parse().unwrap();
            let proof = prove::item(&lab.store, RUN, &item.parse().unwrap(), Some(&key)).unwrap();
            let read: Proof = serde_json::from_str(&serde_json::to_string(&proof).unwrap()).unwrap();
            assert_eq!(read, proof);
            let report = verify_proof(&read, Some((Digest::of(bytes), bytes.len() as u64)), &lab.options(), &nobody);
            assert!(report.intact, "{}", report.to_text(false));
            for row in ["chain", "root", "signature", "content"] {
                assert_eq!(report.row(row).unwrap().state, State::Ok, "{}", report.to_text(false));
            }
            assert_eq!((report.headline, report.root), ("PROVEN", Some(proof.root)));
            let other = verify_proof(&read, Some((Digest::of(b"another"), 7)), &lab.options(), &nobody);
            assert!(!other.intact && other.row("content").unwrap().state == State::Failed);
            // What is signed is a commit that stock git names as the run does.
            let seal = told.links.last().unwrap().commit;
            let file = lab.path().join("seal");
            std::fs::write(&file, &proof.last.commit).unwrap();
            assert_eq!(lab.git(&["hash-object", "-t", "commit", "seal"]), seal.to_string());
        }
    }
}

#[test]
fn only_what_was_sealed_and_done_can_be_proven() {
    let scene = Scene::new(End::Closed);
    let item =
        |name: &str, key: &str| prove::item(&scene.lab.store, RUN, &name.parse().unwrap(), Some(&key.parse().unwrap()));
    assert!(matches!(item("break", "patch"), Err(Error::NotDone(_))));
    assert!(matches!(item("use", "patch"), Err(Error::NoProduct(..))));
    let lab = Lab::new();
    let mut open = Teller::submit(&lab, crate::verify::lab::PLAN);
    open.fire("edit-a");
    open.done("edit-a", &[("patch", b"diff\n")]);
    open.write(&lab.signer);
    let unsealed = prove::item(&lab.store, RUN, &"edit-a".parse().unwrap(), None);
    assert!(matches!(unsealed, Err(Error::NotSealed(_))), "{unsealed:?}");
}

#[test]
fn a_run_is_proven_to_have_gone_on_from_each_of_its_entries() {
    let lab = Lab::new();
    let mut open = Teller::submit(&lab, crate::verify::lab::PLAN);
    open.fire("edit-a");
    open.done("edit-a", &[("patch", b"diff\n")]);
    let told = open.write(&lab.signer);
    for sealed in [false, true] {
        if sealed {
            lab.honest();
        }
        let count = if sealed { 5 } else { told.links.len() as u64 };
        for since in 0..count {
            let proof = prove::growth(&lab.store, RUN, since).unwrap();
            assert_eq!((proof.entries, proof.since.as_ref().unwrap().entries), (count, since + 1));
            let report = verify_proof(&proof, None, &lab.options(), &nobody);
            assert!(report.intact && report.sealed == sealed, "{}", report.to_text(false));
        }
        assert!(matches!(prove::growth(&lab.store, RUN, count), Err(Error::NoEntry { .. })));
    }
}

#[test]
fn a_changed_proof_proves_nothing() {
    let scene = Scene::new(End::Closed);
    let key: ProductKey = "patch".parse().unwrap();
    let store = &scene.lab.store;
    for proof in
        [prove::item(store, RUN, &"make".parse().unwrap(), Some(&key)).unwrap(), prove::growth(store, RUN, 4).unwrap()]
    {
        assert!(check(&proof).intact);
        let honest = serde_json::to_value(&proof).unwrap();
        for path in leaves(&honest, "") {
            for bent in [changed(&honest, &path), taken_out(&honest, &path)] {
                let Ok(bent) = serde_json::from_value::<Proof>(bent) else { continue };
                // The product need not be named, and whoever changes what is asked changes nothing of what is shown.
                if bent.product.is_none() && proof.product.is_some() {
                    continue;
                }
                let report = check(&bent);
                assert!(!report.intact, "{path}\n{}", report.to_text(false));
            }
        }
        // Every byte of what is signed.
        for at in 0..proof.last.commit.len() {
            let mut bytes = proof.last.commit.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(commit) = String::from_utf8(bytes) else { continue };
            let mut bent = proof.clone();
            bent.last.commit = commit;
            assert!(!check(&bent).intact, "byte {at} of the last entry");
        }
    }
}

/// The JSON pointers of all values that hold no others; the elements of paths among them.
fn leaves(value: &Value, at: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        _ => Vec::new(),
    };
    if inside.is_empty() {
        return vec![at.to_owned()];
    }
    inside.into_iter().flat_map(|(key, value)| leaves(value, &format!("{at}/{key}"))).collect()
}

#[test]
fn a_proof_is_of_one_run_and_one_tree() {
    let (one, other) = (Scene::new(End::Closed), Scene::new(End::Cancelled));
    let patch: ProductKey = "patch".parse().unwrap();
    let prove =
        |scene: &Scene, item: &str| prove::item(&scene.lab.store, RUN, &item.parse().unwrap(), Some(&patch)).unwrap();
    let honest = prove(&one, "make");
    let mixed: [fn(&mut Proof, &Proof); 3] =
        [|p, q| p.last = q.last.clone(), |p, q| p.root = q.root, |p, q| (p.root, p.last) = (q.root, q.last.clone())];
    for mix in mixed {
        let mut proof = honest.clone();
        mix(&mut proof, &prove(&other, "make"));
        assert!(!check(&proof).intact, "{}", check(&proof).to_text(false));
    }
    let mut shown = honest.clone();
    shown.shown = prove(&one, "other").shown;
    assert!(!check(&shown).intact);
    // A forger's own run proves itself, by a key that nobody knows.
    let stranger = key(one.lab.path(), 9);
    let mut tale = one.tale();
    let Event::RunSubmitted(submitted) = &mut tale[0].0 else { panic!("a run begins with its submission") };
    submitted.writers = vec![stranger.fingerprint()];
    one.tell(tale, &stranger);
    let report = verify_proof(&prove(&one, "make"), None, &one.lab.options(), &nobody);
    assert!(report.intact && !report.signers[0].trusted, "{}", report.to_text(false));
    assert!(report.row("signature").unwrap().detail.contains("not known to you"));
}

#[test]
fn the_program_proves_and_checks() {
    let env = Environment::example("handoff-dag");
    let _ = env.handoff(["run", "plan.json"]).success();
    let proof = env.handoff(["prove", "handoff-dag-1/edit-a:patch"]).success();
    env.write("proof.json", &proof);
    let patch = env.handoff(["cat", "handoff-dag-1/edit-a:patch"]).success();
    env.write("patch", &patch);
    let report = env.handoff(["verify", "--proof", "../proof.json", "--file", "../patch"]).success();
    assert!(report.contains("✓ PROVEN") && report.contains("✓ content"), "{report}");
    // Nothing else is at hand where there is no repository, and our own key is not known there.
    let report = env.handoff_in("home", ["verify", "--proof", "../proof.json", "--file", "../patch"]).success();
    assert!(report.contains("✓ PROVEN"), "{report}");
    env.write("patch", "another\n");
    let report = env.handoff(["verify", "--proof", "../proof.json", "--file", "../patch"]).exit(3);
    assert!(report.stdout.contains("✗ NOT PROVEN"), "{report}");
    let grown = env.handoff(["prove", "handoff-dag-1", "--since", "2"]).success();
    env.write("grown.json", &grown);
    let _ = env.handoff(["verify", "--proof", "../grown.json"]).success();
    env.write("bad.json", "{}");
    assert!(env.handoff(["verify", "--proof", "../bad.json"]).exit(1).stderr.contains("holds no proof"));
    let _ = env.handoff(["prove", "handoff-dag-1/edit-a:nothing"]).exit(1);
    let _ = env.handoff(["prove", "handoff-dag-1"]).exit(2);
}
