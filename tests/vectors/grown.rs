//! Items that were added and should not have been, and rules that did something else.

use git_handoff::model::entry::{Cause, Event, RunConcluded};
use git_handoff::model::extension::{RunExtended, definition};
use git_handoff::model::plan::Item;

use super::Vector;
use super::planned::rest;
use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, blob, gone, store_product};

const MORE: &str = r#"{"id":"more","executor":"command","inputs":{"command":["true"]},"depends_on":["edit-b"]}"#;

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("item-missing", "the `item.json` of an item that was added is not there", |forge| {
        extended(forge, MORE, |run| point_to(&mut run.drafts[5].event, "items/more.json", gone(forge)));
    })
    .with_gaps(),
    Vector::new("item-bytes", "an `item.json` whose bytes are not those that its entry names", |forge| {
        extended(forge, MORE, |run| {
            let other = item(&MORE.replace("true", "evil"));
            point_to(&mut run.drafts[5].event, "items/more.json", blob(forge, &definition(&other)));
        });
    }),
    Vector::new("item-that-is-none", "an `item.json` that is no item, named by its entry", |forge| {
        extended(forge, MORE, |run| renamed(forge, run, b"{}"));
    }),
    Vector::new("item-not-normalised", "an `item.json` that is not normalised, named by its entry", |forge| {
        extended(forge, MORE, |run| renamed(forge, run, MORE.as_bytes()));
    }),
    Vector::new("item-with-a-need-from-another-run", "an actor adds an item that needs a product of a run", |forge| {
        let need = r#"{"id":"more","executor":"command","inputs":{"command":["true"]},
            "needs":{"x":{"run":"first","from":"make","select":{"kind":"patch"}}}}"#;
        extended(forge, need, |_| {});
    }),
    Vector::new("item-added-to-a-fixed-plan", "an actor adds an item to a run that is not open-ended", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.extend(Cause::Actor, &[item(&MORE.replace("edit-b", "edit-a"))]);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("rule-without-its-document", "an item by a rule that sees no document, and is dispatched", |forge| {
        of_rule(forge, ChainBuilder::submit(forge, &plan(RULE)));
    }),
    Vector::new("rule-that-made-another-item", "an item by a rule that creates another one", |forge| {
        let mut run = ChainBuilder::submit(forge, &plan(RULE));
        run.document("score", None, b"{\"score\":3}\n");
        let mut made = run.of_rule(0);
        made.inputs.insert("command".to_owned(), serde_json::json!(["evil"]));
        run.extend(Cause::Rule("again".parse().unwrap()), &[made]);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("rule-that-says-something-else", "a rule has the run say a word although nothing failed", |forge| {
        let broke = r#"{"id":"broke","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"outcome":"broken"}"#;
        let mut run = ChainBuilder::submit(forge, &plan(broke));
        let concluded = RunConcluded::new("broke".parse().unwrap(), "broken");
        run.add(Event::RunConcluded(concluded));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new(
        "rule-with-an-unreadable-document",
        "a rule looks into a document whose bytes are not its own",
        |forge| {
            let mut run = ChainBuilder::submit(forge, &plan(RULE));
            let other = blob(forge, b"{\"score\":9}\n");
            run.document_with("score", b"{\"score\":3}\n", |e| e.oid = other);
            of_rule(forge, run);
        },
    ),
    Vector::new("rule-that-was-left-out", "a run sealed before its rule had created what it creates", |forge| {
        let mut run = ChainBuilder::submit(forge, &plan(RULE));
        run.document("score", None, b"{\"score\":3}\n");
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("rule-that-stopped-short", "a run sealed although its rule finds nothing where it looks", |forge| {
        let mut run = ChainBuilder::submit(forge, &plan(RULE));
        run.document("score", None, b"{}\n");
        rest(&mut run);
        forge.finish(run);
    }),
];

pub(super) const RULE: &str = r#"{"id":"again","when":{"if":[{"document":"score","pointer":"/score","op":"<","value":5}]},"create":{"executor":"command","inputs":{"command":["true"]}}}"#;

/// Goes on with the item that the rule creates, which is done, and ends the run.
pub(super) fn of_rule(forge: &Forge, mut run: ChainBuilder<'_>) {
    let made = run.of_rule(0);
    run.extend(Cause::Rule("again".parse().unwrap()), std::slice::from_ref(&made));
    run.fire(made.id.as_str());
    run.done(made.id.as_str(), &[]);
    rest(&mut run);
    forge.finish(run);
}

/// The plan with a rule.
pub(super) fn plan(rule: &str) -> String {
    PLAN.replacen('{', &format!(r#"{{"rules":[{rule}],"#), 1)
}

fn item(text: &str) -> Item {
    git_handoff::plan::parse_item(text.as_bytes()).unwrap()
}

/// Tells a run to which an actor adds an item with these bytes, bent before the item is cancelled
/// and the run sealed.
fn extended(forge: &Forge, text: &str, bend: impl FnOnce(&mut ChainBuilder<'_>)) {
    let mut run = ChainBuilder::submit(forge, &PLAN.replacen('{', r#"{"openEnded":true,"#, 1));
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.extend(Cause::Actor, &[item(text)]);
    bend(&mut run);
    run.close();
    run.seal();
    forge.finish(run);
}

/// Has the entry that added an item name other bytes of it.
fn renamed(forge: &Forge, run: &mut ChainBuilder<'_>, bytes: &[u8]) {
    let Event::RunExtended(RunExtended { items, .. }) = &mut run.drafts[5].event else { panic!() };
    items.values_mut().for_each(|item| *item = store_product(forge, bytes));
}
