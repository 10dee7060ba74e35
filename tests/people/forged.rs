//! Forgeries in another person's name.

use std::collections::BTreeSet;

use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{self, Draft, Link};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::decision::About;
use git_handoff::model::entry::{Decision, Event, ItemDecided, LogDecided, Outcome, Role, RunAdmitted};
use git_handoff::model::format;
use git_handoff::model::name::ItemId;
use git_handoff::model::time::Moment;
use git_handoff::verify::{Chain, Options, State, check_incoming};

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_fails, assert_says, key};

pub(crate) const PLAN: &str = r#"{"id":"handoff-dag-1","items":[
  {"id":"build","executor":"command","inputs":{"command":["true"]}},
  {"id":"sign-off","executor":"approval","depends_on":["build"]}]}"#;

fn item(text: &str) -> ItemId {
    text.parse().unwrap()
}

/// A run in which `build` is done, and to which `bob` was admitted.
pub(crate) fn begun<'a>(forge: &'a Forge, bob: &Signer, role: Role) -> ChainBuilder<'a> {
    let mut chain_builder = ChainBuilder::submit(forge, PLAN);
    chain_builder.add(Event::RunAdmitted(RunAdmitted::new(bob.fingerprint(), role)));
    chain_builder.fire("build");
    chain_builder.done("build", &[("outputs/report", b"fine\n")]);
    chain_builder
}

pub(crate) fn decided(chain_builder: &ChainBuilder<'_>, by: &Signer) -> ItemDecided {
    let at = chain_builder.state.graph.position(&item("sign-off")).unwrap();
    ItemDecided::new(
        item("sign-off"),
        Decision::Approved,
        Outcome::Done,
        chain_builder.state.decided_about(at),
        by.fingerprint(),
    )
}

/// Writes a decision into the log of a key, for an entry to record, and returns the statement.
pub(crate) fn write_statement(
    forge: &Forge,
    by: &Signer,
    first: git_handoff::model::digest::Digest,
    e: &ItemDecided,
) -> String {
    write_statement_at(forge, by, first, e, None)
}

/// Writes it with another time than that of its entry.
pub(crate) fn write_statement_at(
    forge: &Forge,
    by: &Signer,
    first: git_handoff::model::digest::Digest,
    e: &ItemDecided,
    made: Option<Moment>,
) -> String {
    let ItemDecided { item, decision, about, message, .. } = e.clone();
    let event = LogDecided { message, made, ..LogDecided::new(by.fingerprint(), first, item, decision, about) };
    let head = chain::tip(&forge.store, &format::log_ref(&by.fingerprint())).unwrap();
    let run: git_handoff::model::name::RunId = "handoff-dag-1".parse().unwrap();
    let blob = forge.store.write_blob(&event.canonical()).unwrap();
    let edits = vec![(format::decided_path(&run, &event.item), Edit::Blob(blob))];
    let draft = Draft { about: run.into(), event: Event::LogDecided(event), bytes: Vec::new(), edits };
    let (_, links): (_, Vec<Link>) = forge.writer_with(by).append(&head, vec![draft]).unwrap().publish().unwrap();
    String::from_utf8(forge.store.read(links[0].commit).unwrap().1).unwrap()
}

/// The leaf hash of the first entry that a chain builder will write.
pub(crate) fn first(forge: &Forge, bob: &Signer) -> git_handoff::model::digest::Digest {
    begun(forge, bob, Role::Approve).write(&forge.signer).links[0].hash
}

/// Verifies with both keys known.
fn options(forge: &Forge) -> Options {
    forge.options()
}

#[test]
fn a_decision_holds_with_the_signature_of_the_key_that_made_it() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    // Signed into the run.
    let mut chain_builder = begun(&forge, &bob, Role::Approve);
    let event = decided(&chain_builder, &bob);
    chain_builder.add(Event::ItemDecided(event.clone()));
    chain_builder.by(&bob);
    chain_builder.seal();
    forge.finish(chain_builder);
    let report = forge.verify_with(&options(&forge));
    assert!(report.intact && report.rows.plan.state == State::Ok, "{}", report.to_text(false));
    // Taken in.
    let second_forge = Forge::new();
    let second_bob = key(second_forge.path(), 2);
    let statement = write_statement(&second_forge, &second_bob, first(&second_forge, &second_bob), &event);
    let mut second_chain_builder = begun(&second_forge, &second_bob, Role::Approve);
    second_chain_builder.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..event }));
    second_chain_builder.seal();
    second_forge.finish(second_chain_builder);
    let second_report = second_forge.verify_with(&options(&second_forge));
    assert!(second_report.intact, "{}", second_report.to_text(false));
    assert!(second_report.signers.iter().any(|signer| signer.fingerprint == second_bob.fingerprint()));
}

#[test]
fn no_key_decides_in_the_name_of_another() {
    type Bend = (&'static str, fn(&mut ItemDecided), &'static str);
    let bends: [Bend; 5] = [
        (
            "another word",
            |e| e.decision = Decision::Rejected,
            "entry 4: its statement is not valid: it differs from the entry",
        ),
        (
            "another message",
            |e| e.message = Some("fine".into()),
            "entry 4: its statement is not valid: it differs from the entry",
        ),
        (
            "nothing that is about it",
            |e| e.about = About::new(),
            "entry 4: its statement is not valid: it differs from the entry",
        ),
        (
            "another key",
            |e| e.by = Forge::new().signer.fingerprint(),
            "entry 4: its statement is not valid: it differs from the entry",
        ),
        (
            "a signature that does not match",
            |e| {
                let old_statement = e.said.take().unwrap();
                e.said = Some(old_statement.replace("\"decision\": \"approved\"", "\"decision\": \"rejected\""));
                e.decision = Decision::Rejected;
            },
            "entry 4: its statement is not valid: the signature does not match",
        ),
    ];
    for (what, bend, part) in bends {
        let forge = Forge::new();
        let bob = key(forge.path(), 2);
        let honest = decided(&begun(&forge, &bob, Role::Approve), &bob);
        let statement = write_statement(&forge, &bob, first(&forge, &bob), &honest);
        let mut event = ItemDecided { said: Some(statement), ..honest };
        bend(&mut event);
        let mut chain_builder = begun(&forge, &bob, Role::Approve);
        chain_builder.add(Event::ItemDecided(event));
        chain_builder.seal();
        forge.finish(chain_builder);
        let report = forge.verify_with(&options(&forge));
        println!("{what}");
        assert_says(&report, "signature", part);
    }
    // Without any statement, it is who signs that decided.
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let mut chain_builder = begun(&forge, &bob, Role::Approve);
    let event = decided(&chain_builder, &bob);
    chain_builder.add(Event::ItemDecided(event));
    chain_builder.seal();
    forge.finish(chain_builder);
    assert_fails(&forge.verify_with(&options(&forge)), "signature", "role, entry 4");
}

#[test]
fn a_statement_about_another_run_or_a_second_time_is_none() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let honest = decided(&begun(&forge, &bob, Role::Approve), &bob);
    let other = write_statement(&forge, &bob, git_handoff::model::digest::Digest::compute(b"another run"), &honest);
    let mut chain_builder = begun(&forge, &bob, Role::Approve);
    chain_builder.add(Event::ItemDecided(ItemDecided { said: Some(other), ..honest }));
    chain_builder.seal();
    forge.finish(chain_builder);
    assert_says(
        &forge.verify_with(&options(&forge)),
        "signature",
        "entry 4: its statement is not valid: it differs from the entry",
    );

    let second_forge = Forge::new();
    let second_bob = key(second_forge.path(), 2);
    let mut rejected = decided(&begun(&second_forge, &second_bob, Role::Approve), &second_bob);
    (rejected.decision, rejected.status) = (Decision::Rejected, Outcome::Failed);
    rejected.said = Some(write_statement(&second_forge, &second_bob, first(&second_forge, &second_bob), &rejected));
    let mut second_chain_builder = begun(&second_forge, &second_bob, Role::Approve);
    second_chain_builder.add(Event::ItemDecided(rejected.clone()));
    second_chain_builder.requeue("sign-off", git_handoff::model::entry::Again::Operator);
    second_chain_builder.add(Event::ItemDecided(rejected));
    second_chain_builder.close();
    second_chain_builder.seal();
    second_forge.finish(second_chain_builder);
    assert_says(&second_forge.verify_with(&options(&second_forge)), "plan", "entry 6: a statement was recorded twice");
}

#[test]
fn a_key_does_what_its_role_is_and_no_more() {
    type Adds = fn(&mut ChainBuilder<'_>, &Signer);
    let acts: [(Role, Adds); 4] = [
        (Role::Approve, |chain_builder, bob| {
            let event = decided(chain_builder, bob);
            chain_builder.add(Event::ItemDecided(event));
        }),
        (Role::Document, |chain_builder, _| chain_builder.document("notes", None, b"text")),
        (Role::Own, |chain_builder, bob| {
            chain_builder.add(Event::RunAdmitted(RunAdmitted::new(bob.fingerprint(), Role::Own)));
        }),
        (Role::Work, |chain_builder, _| chain_builder.fail("sign-off")),
    ];
    for role in Role::SUBMITTER {
        for (required, act) in acts {
            let forge = Forge::new();
            let bob = key(forge.path(), 2);
            let mut chain_builder = begun(&forge, &bob, role);
            act(&mut chain_builder, &bob);
            chain_builder.by(&bob);
            forge.finish(chain_builder);
            let report = forge.verify_with(&options(&forge));
            let row = &report.rows.signature;
            let refused =
                row.state == State::Failed && row.detail.contains(&format!("does not have the role {required}"));
            assert_eq!(refused, role != required, "{role}, {required}: {}", row.detail);
        }
        // These roles do not include the role `seal` of entry 0.
        let forge = Forge::new();
        let bob = key(forge.path(), 2);
        let mut chain_builder = begun(&forge, &bob, role);
        chain_builder.skip("sign-off");
        chain_builder.seal();
        chain_builder.by(&bob);
        forge.finish(chain_builder);
        let report = forge.verify_with(&options(&forge));
        let detail = &report.rows.signature.detail;
        assert_eq!(
            detail,
            "entry 5 is signed by SHA256:4A9jyZBOhnKZvcGQ6TRFbf5Gymb41AfYvYaVmWHD+G4, which does not have the role seal"
        );
    }
}

#[test]
fn admission_needs_an_owner() {
    let forge = Forge::new();
    let (bob, eve) = (key(forge.path(), 2), key(forge.path(), 3));
    let mut chain_builder = begun(&forge, &bob, Role::Approve);
    chain_builder.add(Event::RunAdmitted(RunAdmitted::new(eve.fingerprint(), Role::Approve)));
    chain_builder.by(&bob);
    let event = decided(&chain_builder, &eve);
    chain_builder.add(Event::ItemDecided(event));
    chain_builder.by(&eve);
    chain_builder.seal();
    forge.finish(chain_builder);
    let report = forge.verify_with(&options(&forge));
    assert_says(&report, "signature", "entry 4 is signed by SHA256:…, which does not have the role own");
    assert_eq!(report.rows.signature.findings.len(), 2, "{}", report.to_text(false));
}

#[test]
fn approvals_are_not_dispatched_and_commands_not_decided() {
    let forge = Forge::new();
    let bob = key(forge.path(), 2);
    let mut chain_builder = begun(&forge, &bob, Role::Approve);
    chain_builder.add(Event::ItemReconciled(git_handoff::model::entry::ItemReconciled::new(
        item("sign-off"),
        0,
        Outcome::Done,
    )));
    chain_builder.seal();
    forge.finish(chain_builder);
    assert_says(&forge.verify_with(&options(&forge)), "plan", "entry 4: item \"sign-off\" has no running attempt");
}

#[test]
fn entry_0_gives_each_key_at_least_one_role() {
    let forge = Forge::new();
    let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
    let Event::RunSubmitted(submitted) = &mut chain_builder.drafts[0].event else { panic!() };
    submitted.roles.values_mut().for_each(BTreeSet::clear);
    let chain = chain_builder.write(&forge.signer);
    let why = "commit …: the fields of the run.submitted entry are wrong: the key SHA256:… has no role";
    assert_says(&forge.verify_with(&options(&forge)), "chain", why);
    check_incoming(&forge.store, Chain::Run(&chain.run), None, chain.head.commit.unwrap()).unwrap_err();
}
