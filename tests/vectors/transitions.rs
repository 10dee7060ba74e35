//! Entries that are no legal transitions, for each condition of section 6 one.

use git_handoff::model::decision::About;
use git_handoff::model::entry::{
    Again, Cause, Decision, Event, Exit, Grade, ItemDecided, Outcome, Role, RunAdmitted, RunConcluded,
};
use git_handoff::model::plan::Item;

use super::Vector;
use super::keys::BOTH;
use super::others::gated;
use super::planned::rest;
use super::stranger;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN};
use crate::people::forged::{begun, decided};

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff\n")];

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("illegal-dispatch-behind-a-red-gate", "an item needs the patch of a red gate that blocks", |forge| {
        let need = r#"{"from":"check","select":{"kind":"patch"}}"#;
        forge.finish(gated(forge, &[(true, "first")], &[("patch", b"diff\n")], need));
    }),
    Vector::new("illegal-lock-held", "an item is dispatched while another one holds its lock", |forge| {
        let free = r#"{"id":"edit-c","executor":"command","inputs":{"command":["true"]},"resourceLocks":["build"]}"#;
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""items":["#, &format!(r#""items":[{free},"#), 1));
        run.fire("edit-a");
        run.fire("edit-c");
        run.done("edit-c", &[]);
        run.done("edit-a", PATCH);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new(
        "illegal-attempt-too-many",
        "an item is dispatched more often than its `maxAttempts` allows",
        |forge| {
            let one = r#""resourceLocks":["build"],"maxAttempts":1}"#;
            let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, one, 1));
            run.fire("edit-a");
            run.requeue("edit-a", Again::Failure);
            rest(&mut run);
            forge.finish(run);
        },
    ),
    Vector::new("illegal-attempt-after-a-crash", "a crash does not count, and gives no attempt besides", |forge| {
        let two = r#""resourceLocks":["build"],"maxAttempts":2}"#;
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, two, 1));
        for reason in [Again::Failure, Again::Crash, Again::Failure] {
            run.fire("edit-a");
            run.requeue("edit-a", reason);
        }
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-exit", "an item that is done although its process ended with 1", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        rest(&mut run);
        let Event::ItemReconciled(e) = &mut run.drafts[4].event else { panic!() };
        e.exit = Some(Exit { code: Some(1), signal: None });
        forge.finish(run);
    }),
    Vector::new("illegal-grade", "an item that a command did, recorded as a commit that was made before", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        rest(&mut run);
        let Event::ItemReconciled(e) = &mut run.drafts[4].event else { panic!() };
        e.grade = Some(Grade::Claimed);
        forge.finish(run);
    }),
    Vector::new(
        "illegal-claim-without-its-grade",
        "a commit that was made before, recorded as a command's work",
        |forge| {
            let mut run =
                ChainBuilder::submit(forge, &PLAN.replacen(r#""executor":"command""#, r#""executor":"claimed""#, 1));
            rest(&mut run);
            forge.finish(run);
        },
    ),
    Vector::new("illegal-reason", "an `item.requeued` with the reason of an `item.retried`", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.requeue("edit-a", Again::Crash);
        let Event::ItemRequeued(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.reason = Again::Failure;
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-document-of-an-item", "an item hands over a document that it does not declare", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n"), ("documents/notes", b"notes\n"), ("outputs/notes", b"notes\n")]);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-document-names", "two documents whose names differ by letter case alone", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.document("notes", None, b"one\n");
        run.document("Notes", None, b"two\n");
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-revision", "a document whose second revision has the number 3", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.document("notes", None, b"one\n");
        run.document_with("notes", b"two\n", |e| e.revision = 3);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-document-after-the-end", "a document is written after the run was closed", |forge| {
        let mut run = super::clean::failed(forge);
        let seal = run.drafts.pop().unwrap();
        run.document("notes", None, b"one\n");
        run.drafts.push(seal);
        forge.finish(run);
    }),
    Vector::new("illegal-again-after-the-end", "an operator asks for an item after the run was closed", |forge| {
        let mut run = super::clean::failed(forge);
        let seal = run.drafts.pop().unwrap();
        run.state.sealed = false;
        run.requeue("edit-a", Again::Operator);
        run.drafts.push(seal);
        forge.finish(run);
    }),
    Vector::new("illegal-admission-after-the-end", "a key is admitted after the run was closed", |forge| {
        let mut run = super::clean::failed(forge);
        let seal = run.drafts.pop().unwrap();
        let key = stranger(forge).fingerprint();
        run.add(Event::RunAdmitted(RunAdmitted::new(key, Role::Document)));
        run.drafts.push(seal);
        forge.finish(run);
    }),
    Vector::new("illegal-document-of-other-bytes", "an item hands over a document that is not its output", |forge| {
        let declared = r#""resourceLocks":["build"],"produces":[{"kind":"document","name":"notes","path":"n"}]}"#;
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, declared, 1));
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n"), ("documents/notes", b"two\n"), ("outputs/n", b"one\n")]);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-decision-too-early", "a decision before what it is about is done", |forge| {
        let mut run = ChainBuilder::submit(forge, crate::people::forged::PLAN);
        let event = decided(&run, &forge.signer);
        run.add(Event::ItemDecided(event));
        run.fire("build");
        run.done("build", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-end-twice", "a run that is closed twice", |forge| {
        let mut run = super::clean::failed(forge);
        let seal = run.drafts.pop().unwrap();
        run.close();
        run.drafts.push(seal);
        forge.finish(run);
    }),
    Vector::new("illegal-dispatch-of-an-approval", "an item that waits for people is dispatched", |forge| {
        let mut run = begun(forge, &stranger(forge), Role::Approve);
        run.fire("sign-off");
        run.done("sign-off", &[]);
        run.seal();
        forge.finish(run);
    })
    .with_arguments(BOTH),
    Vector::new("illegal-decision-of-a-command", "a decision about an item that does not wait for people", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        let decided = decision(forge, "edit-a", About::new());
        run.add(Event::ItemDecided(decided));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-decision-about-other-products", "a decision about nothing of what there is", |forge| {
        let mut run = begun(forge, &stranger(forge), Role::Approve);
        run.add(Event::ItemDecided(decision(forge, "sign-off", About::new())));
        run.seal();
        forge.finish(run);
    })
    .with_arguments(BOTH),
    Vector::new(
        "illegal-decision-with-another-status",
        "a decision that rejects an item and says that it is done",
        |forge| {
            let mut run = begun(forge, &stranger(forge), Role::Approve);
            let event = ItemDecided { decision: Decision::Rejected, ..decided(&run, &forge.signer) };
            run.add(Event::ItemDecided(event));
            run.seal();
            forge.finish(run);
        },
    )
    .with_arguments(BOTH),
    Vector::new("illegal-decision-by-no-approver", "a decision by a key that is none of the `approvers`", |forge| {
        let plan = r#"{"id":"handoff-dag-1","items":[
            {"id":"vote","executor":"approval","inputs":{"approvers":["SHA256:fe85JkIjo8VPe+XqXJGH5Mau1EMFdK1OdKvJUFicyA9"]}}]}"#;
        let mut run = ChainBuilder::submit(forge, plan);
        run.add(Event::ItemDecided(decision(forge, "vote", About::new())));
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-second-vote", "one key decides two votes about the same", |forge| {
        let plan = r#"{"id":"handoff-dag-1","items":[{"id":"one","executor":"approval"},{"id":"two","executor":"approval"}],
            "rules":[{"id":"first","gate":{"item":"one","votes":true}},{"id":"second","gate":{"item":"two","votes":true}}]}"#;
        let mut run = ChainBuilder::submit(forge, plan);
        for item in ["one", "two"] {
            run.add(Event::ItemDecided(decision(forge, item, About::new())));
        }
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-admission-twice", "a key is admitted with a role that it has", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        for _ in 0..2 {
            let key = stranger(forge).fingerprint();
            run.add(Event::RunAdmitted(RunAdmitted::new(key, Role::Document)));
        }
        rest(&mut run);
        forge.finish(run);
    })
    .with_arguments(BOTH),
    Vector::new("illegal-item-twice", "an actor adds an item with the id of another", |forge| {
        added(forge, r#"{"id":"edit-a","executor":"command","inputs":{"command":["true"]}}"#);
    }),
    Vector::new("illegal-item-on-nothing", "an actor adds an item that depends on one that is not there", |forge| {
        added(forge, r#"{"id":"more","executor":"command","inputs":{"command":["true"]},"depends_on":["none"]}"#);
    }),
    Vector::new("illegal-item-on-itself", "an actor adds an item that waits for itself", |forge| {
        added(forge, r#"{"id":"more","executor":"command","inputs":{"command":["true"]},"depends_on":["more"]}"#);
    }),
    Vector::new("illegal-item-in-the-place-of-another", "an actor adds an item that replaces another", |forge| {
        added(forge, r#"{"id":"more","executor":"command","inputs":{"command":["true"]},"replaces":"edit-a"}"#);
    }),
    Vector::new("illegal-item-of-no-rule", "an item by a rule that the run does not have", |forge| {
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen('{', r#"{"openEnded":true,"#, 1));
        run.extend(Cause::Rule("none".parse().unwrap()), &[item(MORE)]);
        rest(&mut run);
        run.drafts.pop();
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new("illegal-word-of-no-rule", "a word of a rule that the run does not have", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        let concluded = RunConcluded::new("none".parse().unwrap(), "broken");
        run.add(Event::RunConcluded(concluded));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("illegal-again-although-superseded", "an operator asks for an item that a copy replaced", |forge| {
        let rule =
            r#"{"id":"retry","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"create":[{"again":"edit-a"}]}"#;
        let mut run = ChainBuilder::submit(forge, &super::grown::plan(rule));
        run.fire("edit-a");
        run.fail("edit-a");
        run.skip("edit-b");
        super::others::created(&mut run);
        run.requeue("edit-a", Again::Operator);
        run.fire("edit-a~2");
        run.done("edit-a~2", PATCH);
        run.fire("edit-b~2");
        run.done("edit-b~2", &[]);
        run.seal();
        forge.finish(run);
    }),
];

const MORE: &str = r#"{"id":"more","executor":"command","inputs":{"command":["true"]}}"#;

fn item(text: &str) -> Item {
    git_handoff::plan::parse_item(text.as_bytes()).unwrap()
}

/// Tells a run that is open-ended, to which an actor adds an item, and which is closed when the
/// others are done.
fn added(forge: &Forge, text: &str) {
    let mut run = ChainBuilder::submit(forge, &PLAN.replacen('{', r#"{"openEnded":true,"#, 1));
    rest(&mut run);
    run.drafts.pop();
    run.state.sealed = false;
    run.extend(Cause::Actor, &[item(text)]);
    run.close();
    run.seal();
    forge.finish(run);
}

fn decision(forge: &Forge, item: &str, about: About) -> ItemDecided {
    ItemDecided::new(item.parse().unwrap(), Decision::Approved, Outcome::Done, about, forge.signer.fingerprint())
}
