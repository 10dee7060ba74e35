//! Proofs of decisions: a key that signed nothing never counts as the author of one.

use std::collections::BTreeMap;

use git_handoff::git::codec::Decoded;
use git_handoff::ledger::prove;
use git_handoff::ledger::sign::{Signer, allowed_signers_line};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemDecided, Role};
use git_handoff::model::proof::Proof;
use git_handoff::verify::{
    AtHand, Beside, Logs, Options, Report, Signers, State, Voucher, read_statement, verify_proof,
};
use serde_json::json;

use super::forged::{begun, decided, first, write_statement};
use super::{as_person, person, signer, waiting};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_fails, assert_says, key};
use crate::common::report::{find_row, verdict};

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

/// A verifier who knows both keys by name.
fn knowing(ada: &Signer, bob: &Signer) -> Options {
    let line = |name: &str, signer: &Signer| allowed_signers_line(name, signer.public()).unwrap();
    let text = format!("{}\n{}\n", line("ada@example.com", ada).trim(), line("bob@example.com", bob).trim());
    let signers = Signers::parse(&text, &jiff::tz::TimeZone::UTC).unwrap();
    Options { signers: Some(signers), strict_signers: true, ..Options::default() }
}

/// Proves the decision of a finished run.
fn proof(forge: &Forge, chain_builder: ChainBuilder<'_>) -> Proof {
    forge.finish(chain_builder);
    prove::item(&forge.store, RUN, &"sign-off".parse().unwrap(), None).unwrap()
}

fn check(proof: &Proof, options: &Options) -> Report {
    verify_proof(proof, Beside::default(), options, &AtHand::logs(&Logs::default()))
}

/// A run in which Bob decided, by an entry that is bent before its conductor seals it.
fn sealed(forge: &Forge, bob: &Signer, bend: impl FnOnce(&mut ItemDecided)) -> Proof {
    let honest = decided(&begun(forge, bob, Role::Approve), bob);
    let statement = write_statement(forge, bob, first(forge, bob), &honest);
    let mut event = ItemDecided { said: Some(statement), ..honest };
    bend(&mut event);
    let mut chain_builder = begun(forge, bob, Role::Approve);
    chain_builder.add(Event::ItemDecided(event));
    chain_builder.seal();
    proof(forge, chain_builder)
}

#[test]
fn a_decision_with_its_statement_is_that_of_the_key_that_made_it() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let proof = sealed(&forge, &bob, |_| {});
    let report = check(&proof, &knowing(&forge.signer, &bob));
    assert!(report.intact && report.headline == "PROVEN", "{}", report.to_text(false));
    assert_eq!(report.decisions[0].voucher, Voucher::Decider);
    let text = report.to_text(false);
    insta::assert_snapshot!(find_row(&text, "decided"), @"─ decided    sign-off approved by bob@example.com; that this key may decide is not shown");
    assert_eq!(
        report.to_json()["decisions"],
        json!([{ "item": "sign-off", "decision": "approved", "by": bob.fingerprint(), "signed": true, "roleShown": false }])
    );
}

#[test]
fn a_decision_without_its_statement_is_by_the_word_of_who_sealed() {
    let forge = Forge::new();
    let (ada, bob) = (forge.signer.fingerprint(), key(forge.path(), 2));
    let options = knowing(&forge.signer, &bob);
    let proof = sealed(&forge, &bob, |e| e.said = None);
    let report = check(&proof, &options);
    assert!(report.intact, "{}", report.to_text(false));
    let by = bob.fingerprint();
    assert_eq!(report.decisions[0].voucher, Voucher::Sealer(ada.clone()));
    assert!(report.signers.iter().all(|signer| signer.fingerprint == ada), "{:?}", report.signers);
    let text = report.to_text(false);
    let line = format!(
        "─ decided    sign-off approved according to the key that sealed, ada@example.com: nothing here is signed by {by}\n"
    );
    assert!(text.contains(&line) && !text.contains("bob@example.com"), "{text}");
    let row = format!("; that sign-off was approved is a claim of the key that sealed: nothing here is signed by {by}");
    assert!(report.rows.signature.detail.ends_with(&row), "{text}");
    let expected = json!([{ "item": "sign-off", "decision": "approved", "by": by, "signed": false, "onWordOf": ada, "roleShown": false }]);
    assert_eq!(report.to_json()["decisions"], expected);
    // A key that is revoked or not known fails by being named, so that it is no use to leave its
    // statement out.
    let revoked = Options { revoked: [(by.clone(), None)].into(), ..options.clone() };
    assert_says(&check(&proof, &revoked), "signature", "entry 4: the decision: the key SHA256:… is revoked");
    assert_eq!(check(&proof, &revoked).headline, "UNTRUSTED");
    let strangers = knowing(&forge.signer, &key(forge.path(), 3));
    assert_says(
        &check(&proof, &strangers),
        "signature",
        "entry 4: the decision: the key SHA256:… is not known to the signers",
    );
    // The run itself says that the entry is by another key.
    let second_report = forge.verify_with(&options);
    assert_fails(&second_report, "signature", "role, entry 4");
    assert_eq!(second_report.decisions[0].voucher, Voucher::Writer(ada));
    let second_text = second_report.to_text(false);
    insta::assert_snapshot!(find_row(&second_text, "decided"), @"─ decided    sign-off approved according to the key that wrote the entry, ada@example.com: SHA256:4A9jyZBOhnKZvcGQ6TRFbf5Gymb41AfYvYaVmWHD+G4 did not sign it");
}

#[test]
fn decision_of_the_sealing_key_needs_no_statement() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let proof = sealed(&forge, &bob, |e| (e.by, e.said) = (forge.signer.fingerprint(), None));
    let report = check(&proof, &knowing(&forge.signer, &bob));
    insta::assert_snapshot!(find_row(&report.to_text(false), "decided"), @"✓ decided    sign-off approved by ada@example.com");
    assert_eq!(report.to_json()["decisions"][0]["signed"], true);
}

#[test]
fn a_statement_that_is_not_the_decision_proves_nothing() {
    type Bend = (&'static str, fn(&Forge, &Signer, &mut ItemDecided));
    let bends: [Bend; 5] = [
        ("another key's statement", |forge, _, e| {
            let eve = key(forge.path(), 3);
            let own = ItemDecided { by: eve.fingerprint(), said: None, ..e.clone() };
            e.said = Some(write_statement(forge, &eve, first(forge, &key(forge.path(), 2)), &own));
        }),
        ("a statement about another item", |forge, bob, e| {
            let other = ItemDecided { item: "build".parse().unwrap(), said: None, ..e.clone() };
            e.said = Some(write_statement(forge, bob, first(forge, bob), &other));
        }),
        ("a statement about another run of this name", |forge, bob, e| {
            e.said = Some(write_statement(forge, bob, Digest::compute(b"another run"), &e.clone()));
        }),
        ("a statement about other products", |forge, bob, e| {
            let other = ItemDecided { about: BTreeMap::default(), said: None, ..e.clone() };
            e.said = Some(write_statement(forge, bob, first(forge, bob), &other));
        }),
        ("a statement whose signature does not match", |_, _, e| {
            e.said = Some(e.said.take().unwrap().replace("\"actor\": \"", "\"actor\": \"x"));
        }),
    ];
    for (what, bend) in bends {
        let forge = Forge::new();
        let bob = key(forge.path(), 2);
        let proof = sealed(&forge, &bob, |e| bend(&forge, &bob, e));
        let report = check(&proof, &knowing(&forge.signer, &bob));
        let text = report.to_text(false);
        assert_eq!(report.headline, "NOT PROVEN", "{what}\n{text}");
        assert!(!text.contains("bob@example.com") && report.signers.len() == 1, "{what}\n{text}");
        assert_eq!(report.to_json()["decisions"][0]["signed"], false, "{what}");
    }
}

#[test]
fn a_statement_from_one_proof_is_of_no_use_in_another() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let honest = sealed(&forge, &bob, |_| {});
    let statement = honest.shown[0].entry["said"].clone();
    let other = Forge::new();
    // The same run by another key begins with another entry 0.
    let run = begun(&other, &bob, Role::Approve);
    let mut event = decided(&run, &bob);
    event.said = Some(statement.as_str().unwrap().to_owned());
    let mut chain_builder = ChainBuilder::submit(&other, &super::forged::PLAN.replace("[\"true\"]", "[\"false\"]"));
    chain_builder
        .add(Event::RunAdmitted(git_handoff::model::entry::RunAdmitted::new(bob.fingerprint(), Role::Approve)));
    chain_builder.fire("build");
    chain_builder.done("build", &[("outputs/report", b"fine\n")]);
    chain_builder.add(Event::ItemDecided(event));
    chain_builder.seal();
    let report = check(&proof(&other, chain_builder), &knowing(&other.signer, &bob));
    assert_eq!(report.headline, "NOT PROVEN", "{}", report.to_text(false));
    assert!(!report.to_text(false).contains("bob@example.com"));
    // Later additions and removals are not under the root.
    for given in [None, Some(statement)] {
        let mut bent = sealed(&Forge::new(), &bob, |e| e.said = None);
        match given {
            Some(value) => bent.shown[0].entry["said"] = value,
            None => drop(bent.shown[0].entry.as_object_mut().unwrap().remove("by")),
        }
        assert_eq!(check(&bent, &knowing(&forge.signer, &bob)).headline, "NOT PROVEN");
    }
}

#[test]
fn a_statement_with_a_place_in_its_log_names_the_entry_before_it() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let event = decided(&begun(&forge, &bob, Role::Approve), &bob);
    let _first = write_statement(&forge, &bob, first(&forge, &bob), &event);
    let second = write_statement(&forge, &bob, first(&forge, &bob), &event);
    let (Decoded { entry, parents, .. }, by) = read_statement(second.as_bytes()).unwrap();
    assert_eq!((entry.seq, parents.len(), by), (1, 1, bob.fingerprint()));
    // The key itself signs an entry 1 whose commit has no parent.
    let lines: Vec<&str> = second.lines().filter(|line| !line.starts_with("parent ")).collect();
    let (head, body) = lines.join("\n").split_once("gpgsig ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let body = body.split_once("-----END SSH SIGNATURE-----\n").unwrap().1;
    let payload = format!("{head}{body}\n");
    let signature = bob.sign(payload.as_bytes()).unwrap();
    let folded = signature.trim_end().replace('\n', "\n ");
    let orphan = format!("{head}gpgsig {folded}\n{body}\n");
    let why = read_statement(orphan.as_bytes()).unwrap_err();
    assert_eq!(why, "it is entry 1 of its log, and does not follow the entry before that");
    let proof = sealed(&forge, &bob, |e| e.said = Some(orphan.clone()));
    let report = check(&proof, &knowing(&forge.signer, &bob));
    assert!(report.headline == "NOT PROVEN" && report.signers.len() == 1, "{}", report.to_text(false));
    assert_says(
        &forge.verify_with(&forge.options()),
        "signature",
        "entry 4: its statement is not valid: it is entry 1 of its log, and does not follow the entry \
         before that",
    );
}

#[test]
fn the_program_names_no_key_that_signed_nothing() {
    let repo = waiting("approve");
    person(&repo.env, "bob");
    as_person(&repo.env, "repo", "bob", &["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    let bob = signer(&repo.env, "bob");
    repo.env.write("proof.json", &repo.env.handoff(["prove", "r/sign-off"]).success());
    let report: serde_json::Value =
        serde_json::from_str(&repo.env.handoff(["verify", "--json", "--proof", "../proof.json"]).success()).unwrap();
    let decided = &report["decisions"][0];
    assert_eq!((&decided["by"], &decided["signed"]), (&bob.fingerprint().into(), &false.into()));
    // In the run Bob's entry stands with its signature.
    let verify_report: serde_json::Value =
        serde_json::from_str(&repo.env.handoff(["verify", "--json", "r"]).success()).unwrap();
    assert_eq!(verify_report["decisions"][0]["signed"], true);
    assert_eq!(verify_report["signers"][1]["admitted"]["roles"], json!(["approve"]));
    let output = repo.env.handoff(["verify", "r"]).exit(0);
    let admitted = format!(
        "valid, key {} not known to you, admitted as approve in entry 0 by this repository's key",
        bob.fingerprint()
    );
    assert!(output.stdout.contains(&admitted), "{output}");
    assert_eq!(verdict(&output.stdout), "─ INTACT · unknown key");
    insta::assert_snapshot!(output.stderr, @"hint: if you trust the owner of that key: add the line that `git handoff key` prints there to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE");
    // Snapshots of a run approved by Bob and of one approved by its author differ.
    let file = repo.plan("own", &super::items());
    repo.env.handoff(["run", &file]).ends(4);
    repo.env.handoff(["approve", "own/sign-off"]).success();
    repo.env.handoff(["run", "own"]).success();
    let snapshot = |run: &str| repo.env.handoff(["verify", "--format", "snapshot", run]).success();
    let line = "✓ decided: sign-off approved by";
    assert!(snapshot("r").contains(&format!("{line} a key not known to you\n")), "{}", snapshot("r"));
    assert!(snapshot("own").contains(&format!("{line} this repository's key, who began the run\n")));
    assert_eq!(State::Ok.mark(), "✓");
}
