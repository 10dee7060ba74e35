//! Keys, logs, and who may go on.

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, assert_fails, assert_intact, assert_says, key};
use git_handoff::model::role::every_role;

use git_handoff::ledger::sign;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, Role, RunAdmitted};
use git_handoff::verify::{Failure, Options, Refusal, Signers, SignersError, Skipped, State, continuable};

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

fn parse_signers(text: &str) -> Result<Signers, SignersError> {
    Signers::parse(text, &jiff::tz::TimeZone::UTC)
}

fn signers(forge: &Forge, options: &str) -> Signers {
    let line = sign::allowed_signers_line("ci@example.com", forge.signer.public()).unwrap();
    parse_signers(&line.replace("namespaces=\"git\"", options)).unwrap()
}

#[test]
fn an_unknown_key_is_neither_tampering_nor_trusted() {
    let forge = Forge::new();
    forge.honest();
    let report = forge.verify_with(&Options::default());
    let row = &report.rows.signature;
    assert_eq!(row.state, State::NotApplicable);
    assert_eq!(row.detail, format!("valid, key {} not known to you", forge.signer.fingerprint()));
    assert!(report.intact && !report.signers[0].trusted);
    assert_eq!(report.to_json()["checks"]["signature"]["ok"], "n/a");
}

#[test]
fn a_known_key_has_a_name() {
    let forge = Forge::new();
    forge.honest();
    let options = Options {
        signers: Some(signers(&forge, "namespaces=\"file,git\"")),
        strict_signers: true,
        ..Options::default()
    };
    let report = forge.verify_with(&options);
    assert_intact(&report);
    assert!(report.rows.signature.detail.ends_with("… · trusted as ci@example.com"));
    assert_eq!(report.to_json()["signers"][0]["principal"], "ci@example.com");
}

#[test]
fn strict_signers_refuse_an_unknown_key_and_our_own() {
    let forge = Forge::new();
    forge.honest();
    for signers in [None, Some(signers(&forge, "namespaces=\"file\""))] {
        let report = forge.verify_with(&Options { signers, strict_signers: true, ..forge.options() });
        assert_fails(&report, "signature", "key-unknown, entry 0");
        assert_eq!((report.failure, report.headline), (Some(Failure::Signature), "UNTRUSTED"));
    }
}

#[test]
fn a_revoked_or_expired_key_is_not_trusted() {
    let forge = Forge::new();
    forge.honest();
    let revoked = Options { revoked: [(forge.signer.fingerprint(), None)].into(), ..forge.options() };
    assert_fails(&forge.verify_with(&revoked), "signature", "key-revoked, entry 0");
    for (option, valid) in [
        ("valid-after=\"20260604\"", true),
        ("valid-after=\"20260604020000Z\"", true),
        ("valid-before=\"202606040200\"", true),
        ("valid-before=\"20260603\"", false),
        ("valid-after=\"20260604020001Z\"", false),
    ] {
        let report = forge.verify_with(&Options { signers: Some(signers(&forge, option)), ..forge.options() });
        assert_eq!(report.intact, valid, "{option}\n{}", report.to_text(false));
        assert_eq!(report.signers[0].trusted, valid);
    }
}

#[test]
fn only_a_writer_may_sign() {
    let forge = Forge::new();
    let chain = ChainBuilder::honest(&forge).write(&key(forge.path(), 2));
    forge.log(&chain, &forge.signer);
    let report = forge.verify();
    assert_says(&report, "signature", "entry 0 is signed by SHA256:…, which is not among the run's writers");
    assert_eq!(report.headline, "TAMPERED");
}

#[test]
fn signers_files_are_read_whole_or_not_at_all() {
    let forge = Forge::new();
    let key = forge.signer.public().to_openssh().unwrap();
    // Other lines can only be about keys that sign no entry.
    let certificate = "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t";
    let text = format!(
        "# team\n\n*@example.com cert-authority,namespaces=\"git\" {key}\nold@x ssh-dss AAAAB3NzaC1kc3MAAACBAP1==\nada {key}\nbob {certificate}\n"
    );
    let signers = parse_signers(&text).unwrap();
    let skipped = [(4, "ssh-dss"), (6, "ssh-ed25519-cert-v01@openssh.com")];
    let skipped = skipped.map(|(line, kind)| Skipped::KeyType(line, kind.to_owned()));
    assert_eq!(signers.skipped(), [&[Skipped::Authority(3)][..], &skipped].concat());
    assert!(matches!(parse_signers(&format!("ada CERT-AUTHORITY {key}")).unwrap().skipped(), [Skipped::Authority(1)]));
    assert!(matches!(parse_signers("ada"), Err(SignersError::Line(1))));
    assert!(matches!(parse_signers(&format!("ada valid-after=\"soon\" {key}")), Err(SignersError::Time(1))));
    assert!(matches!(parse_signers(&format!("ada touch-me {key}")), Err(SignersError::Option(1, _))));
    assert!(matches!(parse_signers("ada ssh-ed25519 AAAA"), Err(SignersError::Key(1, _))));
    parse_signers(&format!("\"ada, of course,bob\" namespaces=\"git\",valid-after=\"20200101\" {key} ada@host"))
        .unwrap();
}

#[test]
fn verify_names_the_admission_of_an_unknown_key() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
    for role in [Role::Approve, Role::Document] {
        chain_builder.add(Event::RunAdmitted(RunAdmitted::new(bob.fingerprint(), role)));
    }
    chain_builder.document("notes", None, b"text");
    chain_builder.by(&bob);
    forge.finish(chain_builder);
    let (ada, bob) = (forge.signer.fingerprint(), bob.fingerprint());
    let whose = |options: &Options| forge.verify_with(options).rows.signature.detail.clone();
    let admitted_by =
        |by: &str| format!("valid, key {bob} not known to you, admitted as approve, document in entry 1 by {by}");
    assert!(whose(&Options::default()).ends_with(&admitted_by(&ada)), "{}", whose(&Options::default()));
    assert!(whose(&forge.options()).ends_with(&admitted_by("this repository's key")));
    let trusting = Options { signers: Some(signers(&forge, "namespaces=\"git\"")), ..Options::default() };
    assert!(whose(&trusting).ends_with(&admitted_by("ci@example.com, whom you trust")), "{}", whose(&trusting));
    let report = forge.verify_with(&trusting).to_json();
    let admitted = serde_json::json!({ "by": ada, "entry": 1, "roles": ["approve", "document"] });
    assert_eq!((&report["signers"][1]["admitted"], report["signers"][0].get("admitted")), (&admitted, None));
}

#[test]
fn a_run_that_no_log_holds_is_not_anchored() {
    let forge = Forge::new();
    ChainBuilder::honest(&forge).write(&forge.signer);
    let report = forge.verify();
    assert_says(&report, "anchor", "no log at hand holds the run");
    assert_eq!((report.failure, report.headline), (Some(Failure::AnchorMissing), "NOT ANCHORED"));
}

#[test]
fn a_log_that_holds_something_else_fails_the_anchor() {
    type Bend = fn(&mut git_handoff::model::entry::LogRecorded);
    let bends: [(Bend, &str); 3] = [
        (|e| e.root = Some(Digest::compute(b"x")), "refs/handoff/logs/SHA256%3A… holds the root …, recomputed is …"),
        (|e| e.last_seq = 3, "refs/handoff/logs/SHA256%3A… holds 3 entries, there are 5"),
        (|e| e.last = Digest::compute(b"x"), "refs/handoff/logs/SHA256%3A… holds another seal"),
    ];
    for (bend, expected) in bends {
        let forge = Forge::new();
        let chain = ChainBuilder::honest(&forge).write(&forge.signer);
        forge.log_as(&chain, &forge.signer, bend);
        let report = forge.verify();
        assert_says(&report, "anchor", expected);
        assert_eq!(report.failure, Some(Failure::Root));
    }
}

#[test]
fn log_of_a_key_without_seal_role_contradicts_nothing() {
    let forge = Forge::new();
    let chain = forge.honest();
    let bob = key(forge.path(), 2);
    let line = |key: &ssh_key::PublicKey| format!("* {}\n", key.to_openssh().unwrap());
    let both = line(forge.signer.public()) + &line(bob.public());
    let signers = Some(Signers::parse(&both, &jiff::tz::TimeZone::UTC).unwrap());
    let options = Options { signers, strict_signers: true, ..forge.options() };
    // It names the run's own beginning, and a seal of its making.
    forge.log_as(&chain, &bob, |e| e.root = Some(Digest::compute(b"x")));
    let report = forge.verify_with(&options);
    assert!(report.intact, "{}", report.to_text(false));
    // Nor does a log of its that is broken.
    let log = git_handoff::model::format::log_ref(&bob.fingerprint());
    forge.git(&["update-ref", &log, "HEAD"]);
    let trusting_report = forge.verify_with(&options);
    assert!(trusting_report.intact, "{}", trusting_report.to_text(false));
    // In an unsealed copy, the key may have been admitted later.
    let second_forge = Forge::new();
    let open_chain = second_forge.honest();
    second_forge.log_as(&open_chain, &bob, |_| {});
    second_forge.git(&[
        "update-ref",
        "refs/handoff/runs/handoff-dag-1",
        &format!("{}^", open_chain.links.last().unwrap().commit),
    ]);
    let own = git_handoff::model::format::log_ref(&second_forge.signer.fingerprint());
    second_forge.git(&["update-ref", "-d", &own]);
    let other_report = second_forge.verify_with(&Options {
        signers: Some(Signers::parse(&both, &jiff::tz::TimeZone::UTC).unwrap()),
        ..second_forge.options()
    });
    assert_ne!(other_report.rows.anchor.state, State::Failed, "{}", other_report.to_text(false));
}

#[test]
fn a_run_that_was_created_again_is_not_the_one_in_the_log() {
    let forge = Forge::new();
    forge.honest();
    let stranger = key(forge.path(), 3);
    let mut again = ChainBuilder::honest(&forge);
    let Event::RunSubmitted(e) = &mut again.drafts[0].event else { panic!() };
    e.roles = every_role([stranger.fingerprint()]);
    let chain = again.write(&stranger);
    forge.log(&chain, &stranger);
    assert_fails(&forge.verify(), "anchor", "same-id");
}

#[test]
fn a_broken_log_anchors_nothing() {
    let forge = Forge::new();
    let chain = ChainBuilder::honest(&forge).write(&forge.signer);
    // A log at another key's place.
    forge.log(&chain, &forge.signer);
    let log = git_handoff::model::format::log_ref(&forge.signer.fingerprint());
    let other = git_handoff::model::format::log_ref(&key(forge.path(), 2).fingerprint());
    forge.git(&["update-ref", &other, &log]);
    let report = forge.verify();
    assert!(report.intact, "{}", report.to_text(false));
    insta::assert_snapshot!(report.rows.anchor.detail, @"local (detect); refs/handoff/logs/SHA256%3A4A9jyZBOhnKZvcGQ6TRFbf5Gymb41AfYvYaVmWHD%2BG4 is broken: entry 0 is signed by SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8");
    forge.git(&["update-ref", "-d", &log]);
    let second_report = forge.verify();
    assert_eq!(second_report.failure, Some(Failure::AnchorMissing), "{}", second_report.to_text(false));
    insta::assert_snapshot!(second_report.rows.anchor.detail, @"no log at hand holds the run; refs/handoff/logs/SHA256%3A4A9jyZBOhnKZvcGQ6TRFbf5Gymb41AfYvYaVmWHD%2BG4 is broken: entry 0 is signed by SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA8");
}

#[test]
fn a_fetched_log_of_a_writer_anchors_a_fetched_run() {
    let forge = Forge::new();
    forge.honest();
    let log = git_handoff::model::format::log_ref(&forge.signer.fingerprint());
    let there = log.replace("refs/handoff/", "refs/handoff/remotes/origin/");
    forge.git(&["update-ref", "refs/handoff/remotes/origin/runs/handoff-dag-1", RUN]);
    forge.git(&["update-ref", &there, &log]);
    forge.git(&["update-ref", "-d", &log]);
    let run = "handoff-dag-1".parse().unwrap();
    let name = "refs/handoff/remotes/origin/runs/handoff-dag-1";
    assert_intact(&git_handoff::verify::verify(&forge.store, &run, name, &forge.options()).unwrap());
    assert_intact(&forge.verify());
}

#[test]
fn an_open_run_that_verifies_may_go_on() {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire("edit-a");
    let chain = run.write(&forge.signer);
    let go = continuable(&forge.store, &chain.run, RUN, &forge.signer.fingerprint()).unwrap();
    assert_eq!((Some(go.commit), go.entries(), Some(go.last)), (chain.head.commit, 2, chain.head.last));
    assert_eq!(go.state.items.first().unwrap().attempts, 1);
    let other = continuable(&forge.store, &chain.run, RUN, "SHA256:somebody");
    assert!(matches!(other, Err(Refusal::NotAWriter { .. })), "{other:?}");
}

#[test]
fn a_sealed_or_broken_run_may_not_go_on() {
    let forge = Forge::new();
    let chain = forge.honest();
    let own = forge.signer.fingerprint();
    assert!(matches!(continuable(&forge.store, &chain.run, RUN, &own), Err(Refusal::Sealed(_))));
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire_with("edit-a", |manifest| manifest.argv = vec!["rm".to_owned()]);
    run.write(&forge.signer);
    let Err(Refusal::Broken(report)) = continuable(&forge.store, &chain.run, RUN, &own) else { panic!() };
    assert_says(&report, "manifest", "the manifest of edit-a #1: argv is not the plan's");
}

#[test]
fn a_stranger_who_names_our_key_has_not_recorded_our_run() {
    let forge = Forge::new();
    let stranger = key(forge.path(), 9);
    for sealed in [false, true] {
        let mut run = if sealed { ChainBuilder::honest(&forge) } else { ChainBuilder::submit(&forge, PLAN) };
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.roles = every_role([forge.signer.fingerprint(), stranger.fingerprint()]);
        let chain = run.write(&stranger);
        let refused = continuable(&forge.store, &chain.run, RUN, &forge.signer.fingerprint());
        assert!(matches!(refused, Err(Refusal::Foreign { .. })), "{refused:?}");
    }
}
