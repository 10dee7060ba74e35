//! Keys that may not sign what they signed, or are not trusted, and what people did not say.

use git_handoff::git::codec::{self, Decoded};
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{self, Draft};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemDecided, LogWritten, Role, RunAdmitted};
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::role::every_role;

use super::planned::rest;
use super::{Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, key, store_product};
use crate::people::forged::{begun, decided, first, write_statement};
use crate::people::seals::{admission, sealed_by};

pub(super) const VECTORS: &[Vector] =
    &[
        Vector::new("key-without-the-role", "a key that may only write documents dispatches an item", |forge| {
            let bob = stranger(forge);
            let mut run = ChainBuilder::submit(forge, PLAN);
            let role = RunAdmitted::new(bob.fingerprint(), Role::Document);
            run.add(Event::RunAdmitted(role));
            run.fire("edit-a");
            run.by(&bob);
            run.done("edit-a", &[("patch", b"diff\n")]);
            run.fire("edit-b");
            run.done("edit-b", &[]);
            run.seal();
            forge.finish(run);
        })
        .with_arguments(BOTH),
        Vector::new("sealed-by-an-unadmitted-key", "the seal is by a key that was never admitted", |forge| {
            sealed_by(forge, &stranger(forge), |_, _| {});
        })
        .with_arguments(BOTH),
        Vector::new("admitted-to-seal-by-a-later-owner", "an owner that came later gives the role `seal`", |forge| {
            let eve = key(forge.path(), 3);
            sealed_by(forge, &stranger(forge), |chain_builder, first| {
                chain_builder.add(admission(&eve, Role::Own, None));
                chain_builder.add(admission(&stranger(forge), Role::Seal, Some(first)));
                chain_builder.by(&eve);
            });
        })
        .with_arguments(BOTH),
        Vector::new("admitted-to-seal-another-run", "a key is admitted to seal a run with another entry 0", |forge| {
            sealed_by(forge, &stranger(forge), |chain_builder, _| {
                let role = admission(&stranger(forge), Role::Seal, Some(Digest::compute(b"another")));
                chain_builder.add(role);
            });
        })
        .with_arguments(BOTH),
        Vector::new("decided-by-another", "a decision names another key than the one that signed it", |forge| {
            let bob = stranger(forge);
            let mut run = begun(forge, &bob, Role::Approve);
            let event = decided(&run, &bob);
            run.add(Event::ItemDecided(event));
            run.seal();
            forge.finish(run);
        })
        .with_arguments(BOTH),
        Vector::new("statement-of-something-else", "a statement about other products than its entry", |forge| {
            let bob = stranger(forge);
            let honest = decided(&begun(forge, &bob, Role::Approve), &bob);
            let other = ItemDecided { message: Some("only the draft".to_owned()), ..honest.clone() };
            let statement = write_statement(forge, &bob, first(forge, &bob), &other);
            let mut run = begun(forge, &bob, Role::Approve);
            run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..honest }));
            run.seal();
            forge.finish(run);
        })
        .with_arguments(BOTH),
        Vector::new("statement-without-the-role", "a statement by a key that has not the role `approve`", |forge| {
            let bob = stranger(forge);
            let honest = decided(&begun(forge, &bob, Role::Document), &bob);
            let statement = write_statement(
                forge,
                &bob,
                begun(forge, &bob, Role::Document).write(&forge.signer).links[0].hash,
                &honest,
            );
            let mut run = begun(forge, &bob, Role::Document);
            run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..honest }));
            run.seal();
            forge.finish(run);
        })
        .with_arguments(BOTH),
        Vector::new(
            "statement-without-its-parent",
            "a statement with the `seq` 5 and a `prev`, and no parent",
            |forge| {
                let bob = stranger(forge);
                let honest = decided(&begun(forge, &bob, Role::Approve), &bob);
                let statement = write_statement(forge, &bob, first(forge, &bob), &honest);
                let Decoded { mut entry, tree, .. } = codec::decode(statement.as_bytes()).unwrap();
                (entry.seq, entry.prev) = (5, Some(Digest::compute(b"before")));
                let signature = bob.sign(&codec::payload(&entry, tree, &[])).unwrap();
                let second_statement = String::from_utf8(codec::signed(&entry, tree, &[], &signature)).unwrap();
                let mut run = begun(forge, &bob, Role::Approve);
                run.add(Event::ItemDecided(ItemDecided { said: Some(second_statement), ..honest }));
                run.seal();
                forge.finish(run);
            },
        )
        .with_arguments(BOTH),
        Vector::new(
            "statement-about-another-run",
            "a statement about a run of this id with another entry 0",
            |forge| {
                let bob = stranger(forge);
                let honest = decided(&begun(forge, &bob, Role::Approve), &bob);
                let statement = write_statement(forge, &bob, Digest::compute(b"another run"), &honest);
                let mut run = begun(forge, &bob, Role::Approve);
                run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..honest }));
                run.seal();
                forge.finish(run);
            },
        )
        .with_arguments(BOTH),
        Vector::new("statement-recorded-twice", "two revisions of a document that hold one statement", |forge| {
            let bob = stranger(forge);
            let first = ChainBuilder::submit(forge, PLAN).write(&forge.signer).links[0].hash;
            let statement = wrote(forge, &bob, super::RUN, first);
            let mut run = ChainBuilder::submit(forge, PLAN);
            let role = RunAdmitted::new(bob.fingerprint(), Role::Document);
            run.add(Event::RunAdmitted(role));
            for _ in 0..2 {
                run.document_with("notes", NOTES, |e| e.said = Some(statement.clone()));
            }
            rest(&mut run);
            forge.finish(run);
        })
        .with_arguments(BOTH),
        Vector::new(
            "signature-of-small-order",
            "a run by a key of small order, whose signature fits every message",
            |forge| {
                let (public, armour) = crate::verify::eddsa::small_order();
                let mut run = ChainBuilder::honest(forge);
                let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
                e.roles = every_role([git_handoff::ledger::sign::fingerprint(&public)]);
                let mut parents = Vec::new();
                for link in run.write(&forge.signer).links {
                    let raw = codec::signed(&link.entry, link.tree, &parents, &armour);
                    parents = vec![forge.store.write(gix::objs::Kind::Commit, &raw).unwrap()];
                }
                forge.point_at(parents[0]);
            },
        ),
        Vector::new("key-revoked", "an honest run by a key that is revoked", honest).with_arguments(&[
            "--signers",
            "signers",
            "--revoked",
            "revoked",
        ]),
        Vector::new("key-not-valid", "an honest run by a key that was valid until 2025", honest)
            .with_arguments(&["--signers", "signers-until-2025"]),
        Vector::new("key-not-asked-for", "an honest run; the verifier asks for another signer", honest)
            .with_arguments(&["--signers", "signers-of-both", "--signer", "bob@example.com"]),
        Vector::new("plan-not-asked-for", "an honest run; the verifier asks for another plan", honest)
            .with_arguments(&["--signers", "signers", "--plan", "another-plan.json"]),
        Vector::new("base-not-asked-for", "an honest run; the verifier asks for another base", honest)
            .with_arguments(&["--signers", "signers", "--base", "1111111111111111111111111111111111111111"]),
    ];

pub(super) const BOTH: &[&str] = &["--signers", "signers-of-both"];

fn honest(forge: &Forge) {
    forge.honest();
}

pub(super) const NOTES: &[u8] = b"notes\n";

/// Has a key write the document `notes` in its log, and returns the commit.
pub(super) fn wrote(forge: &Forge, by: &Signer, run: &str, first: Digest) -> String {
    let (run, log) = (RunId::parse(run).unwrap(), by.fingerprint());
    let product = store_product(forge, NOTES);
    let written = LogWritten::new(log.clone(), first, "notes".parse().unwrap(), product);
    let head = chain::tip(&forge.store, &format::log_ref(&log)).unwrap();
    let edits = vec![(format::written_path(&run, &written.name), Edit::Blob(written.oid))];
    let draft = Draft { about: run.into(), event: Event::LogWritten(written), bytes: Vec::new(), edits };
    let (_, links) = forge.writer_with(by).append(&head, vec![draft]).unwrap().publish().unwrap();
    String::from_utf8(forge.store.read(links[0].commit).unwrap().1).unwrap()
}
