//! A red item stays red in all evidence: proofs, bundles, exports, and a chain that records it
//! plainly.

use git_handoff::ledger::prove;
use git_handoff::model::entry::{Event, Verified, VerifiedBy};
use git_handoff::verify::{AtHand, Beside, Logs, verify_proof};
use serde_json::{Value, json};

use super::{answer, outcome, red};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_intact};
use crate::common::report::{find_row, verdict};
use crate::tamper::run::RUN;

/// Makes an honest run in which a check of the first item did not pass.
fn forge_with_check(by: VerifiedBy) -> Forge {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    let first = run.drafts.iter_mut().find_map(|draft| match &mut draft.event {
        Event::ItemReconciled(e) => Some(e),
        _ => None,
    });
    first.unwrap().verify = Some(Verified { passed: false, by });
    forge.finish(run);
    forge
}

#[test]
fn red_chain_is_red_to_every_verifier() {
    for by in [VerifiedBy::Command, VerifiedBy::Itself] {
        let forge = forge_with_check(by);
        let report = forge.verify();
        assert_intact(&report);
        let outcome = report.outcome.clone().unwrap();
        assert_eq!((outcome.red, outcome.is_green(), report.is_partial()), (1, false, true));
        assert!(report.to_text(false).lines().next().unwrap().ends_with(" PARTIAL"), "{}", report.to_text(false));
    }
    let forge = Forge::new();
    forge.honest();
    let report = forge.verify();
    assert!(!report.is_partial(), "{}", report.to_text(false));
    insta::assert_snapshot!(verdict(&report.to_text(false)), @"✓ INTACT · tamper-detecting");
}

#[test]
fn proof_marks_a_red_item() {
    let forge = forge_with_check(VerifiedBy::Command);
    let red = prove::item(&forge.store, RUN, &"edit-a".parse().unwrap(), None).unwrap();
    let green = prove::item(&forge.store, RUN, &"edit-b".parse().unwrap(), None).unwrap();
    let check = |proof| verify_proof(proof, Beside::default(), &forge.options(), &AtHand::logs(&Logs::default()));
    let (red, green) = (check(&red), check(&green));
    assert!(red.intact && red.is_partial() && green.intact && !green.is_partial());
    let text = red.to_text(false);
    assert_eq!(verdict(&text), "─ PROVEN PARTIAL");
    insta::assert_snapshot!(find_row(&text, "outcome"), @"✗ outcome    0 of 1 done, 1 red");
    insta::assert_snapshot!(find_row(&green.to_text(false), "outcome"), @"✓ outcome    1 of 1 done");
}

#[test]
fn files_that_hold_a_red_run_say_so_to_who_has_nothing_else() {
    let repo = red();
    let save = |name: &str, bytes: &str| repo.env.write(name, bytes);
    save("a.proof", &repo.env.handoff(["prove", "r/a"]).success());
    save("free.proof", &repo.env.handoff(["prove", "r/free"]).success());
    repo.env.handoff(["verify", "--proof", "../free.proof"]).ends(0);
    repo.env.handoff(["verify", "--proof", "../a.proof", "--allow-partial"]).ends(0);
    assert_eq!(outcome(&answer(&repo, &["verify", "--proof", "../a.proof"], 4))["red"], 1);
    repo.env.handoff(["bundle", "r", "--output", "../r.bundle"]).success();
    assert_eq!(outcome(&answer(&repo, &["verify", "--bundle", "../r.bundle"], 4))["red"], 1);
    repo.env.handoff(["verify", "--bundle", "../r.bundle", "--allow-partial"]).ends(0);

    save("r.json", &repo.env.handoff(["export", "r", "--format", "bundle-json"]).success());
    let report = answer(&repo, &["verify", "--bundle-json", "../r.json"], 4);
    let uncovered: Vec<&str> =
        report["uncovered"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(outcome(&report)["red"], 1, "{report}");
    assert!(uncovered.contains(&"items[].verify"), "{report}");
    let envelopes = repo.env.handoff(["export", "r/a", "--format", "in-toto"]).success();
    let envelope: Value = serde_json::from_str(envelopes.lines().next().unwrap()).unwrap();
    let payload = base64(envelope["payload"].as_str().unwrap());
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    let annotations = &statement["predicate"]["runDetails"]["byproducts"][1]["annotations"];
    assert_eq!(*annotations, json!({ "red": true, "verify": { "passed": false, "by": "command" } }), "{statement}");
}

fn base64(text: &str) -> Vec<u8> {
    use base64ct::Encoding as _;
    base64ct::Base64::decode_vec(text).unwrap()
}
