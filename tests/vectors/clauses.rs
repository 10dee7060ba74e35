//! Clauses of the format that no other vector shows, each with a run that obeys it and one that
//! does not.

use git_handoff::model::entry::{Cause, Claims, Event, ItemDecided, Role};
use git_handoff::model::protected::{ChangeKind, OnProtectedChange};
use git_handoff::model::time::Moment;
use serde_json::json;

use super::forged::{MODIFIED, bent, fired, protect, renamed};
use super::grown::plan;
use super::keys::BOTH;
use super::planned::rest;
use super::{Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, store_product};
use crate::people::forged::{begun, decided, first, write_statement_at};

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff --git a/x b/x\n")];

pub(super) const CLEAN: &[Vector] = &[
    Vector::new("clean-ordered", "a rule gives two items an order, and they run in it", |forge| {
        both(forge, ["edit-a", "edit-b"]);
    }),
    Vector::new("clean-absent", "a rule acts as long as a document is absent", |forge| {
        absent(forge, false);
    }),
    Vector::new("clean-applied", "an item begins on the patch of another, and its manifest has `start`", |forge| {
        applied(forge, true);
    }),
    Vector::new("clean-protected-approved", "a person approved the changes to a protected file", |forge| {
        approved(forge, r#""depends_on":["edit-a"]"#);
    }),
    Vector::new(
        "clean-protected-approved-elsewhere",
        "the approval does not depend on the item, which stays red",
        |forge| {
            approved(forge, r#""depends_on":["edit-b"]"#);
        },
    ),
    Vector::new("clean-name-composed", "an output whose name has an accent, in form C", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.fire("edit-b");
        run.done("edit-b", &[("outputs/r\u{e9}port.md", b"fine\n")]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("clean-plan-of-much-weight", "a plan that weighs a little less than it may", |forge| {
        let mut run = ChainBuilder::submit(forge, &heavy(200_000));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("clean-excluded-of-101", "an end that says that 101 paths were left out of its patch", |forge| {
        bent(forge, |drafts| {
            let Event::ItemReconciled(e) = &mut drafts[2].event else { panic!() };
            let excluded = (0..101).map(|number| format!("left/{number}")).collect();
            e.claims = Claims { excluded, ..Claims::default() }.stated();
        });
    }),
    Vector::new("clean-claims-of-any-form", "claims with fields of other forms than programs show", |forge| {
        bent(forge, |drafts| {
            let Event::ItemReconciled(e) = &mut drafts[2].event else { panic!() };
            let others = json!({"model": 3, "excluded": "a", "host": "é".repeat(128), "more": {"of": [null, {}]}});
            let others = others.as_object().unwrap().clone();
            e.claims = Claims { others, ..Claims::default() }.stated();
        });
    }),
    Vector::new("clean-decided-without-a-document", "an approval needs a patch of the documents", |forge| {
        let needs = r#""depends_on":["edit-a"],"needs":{"it":{"from":"@documents","select":{"kind":"patch"}}}"#;
        let mut run = ChainBuilder::submit(forge, &approval(needs));
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.fire("edit-b");
        run.done("edit-b", PATCH);
        run.add(Event::ItemDecided(decided(&run, &forge.signer)));
        run.seal();
        forge.finish(run);
    }),
    Vector::new("clean-statement-before-its-entry", "a statement that was made before its entry", |forge| {
        stated(forge, Moment::from_millis(0));
    })
    .with_arguments(BOTH),
];

pub(super) const FORGED: &[Vector] = &[
    Vector::new("illegal-dispatch-against-an-order", "an item is dispatched before one that a rule orders", |forge| {
        both(forge, ["edit-b", "edit-a"]);
    }),
    Vector::new("rule-although-present", "a rule creates an item although a document is not absent", |forge| {
        absent(forge, true);
    }),
    Vector::new("start-left-out", "an item begins on the patch of another, and its manifest has no `start`", |forge| {
        applied(forge, false);
    }),
    Vector::new("start-without-apply", "a manifest with a `start` although its item applies nothing", |forge| {
        fired(forge, |run| run.fire_with("edit-b", |manifest| manifest.start = Some(forge.store.empty_tree())));
    }),
    Vector::new("name-decomposed", "an output whose name is not in form C", |forge| {
        renamed(forge, "re\u{301}port.md");
    }),
    Vector::new("plan-too-heavy", "a plan that weighs more than it may", |forge| {
        bent(forge, |drafts| {
            let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
            e.plan = store_product(forge, heavy(230_000).as_bytes());
        });
    }),
    Vector::new("plan-with-an-item-that-replaces", "a plan with an item that replaces another", |forge| {
        planned(forge, r#""id":"edit-b","#, r#""id":"edit-b","replaces":"edit-a","#);
    }),
    Vector::new("plan-with-a-pathspec-with-nul", "a plan that protects a pathspec with NUL", |forge| {
        planned(forge, r#""id":"edit-b","#, r#""id":"edit-b","protect":["a\u0000b"],"#);
    }),
    Vector::new("plan-with-an-item-that-continues", "a plan with an item that continues another", |forge| {
        planned(forge, r#""id":"edit-b","#, r#""id":"edit-b","continues":"edit-a","#);
    }),
    Vector::new("plan-with-a-rule-that-replaces-and-continues", "a rule whose item does both", |forge| {
        let rule = r#""rules":[{"id":"again","when":{"items":[{"items":["edit-a"],"are":"done"}]},"create":[
            {"item":{"id":"again","replaces":"edit-a","continues":"edit-a","executor":"command",
                     "inputs":{"command":["true"]}}}]}],"#;
        planned(forge, r#""items":"#, &format!(r#"{rule}"items":"#));
    }),
    Vector::new(
        "plan-with-each-from-artifacts",
        "a rule whose template takes each output from the artifacts",
        |forge| {
            let rule = r#""rules":[{"id":"join","when":{"items":[{"items":["edit-a"],"are":"done"}]},"create":[
            {"item":{"id":"join","executor":"command","inputs":{"command":["true"]}},
             "each":{"outputsOf":"edit-a","key":"in/{{key}}","from":"@artifacts","select":{"kind":"patch"}}}]}],"#;
            planned(forge, r#""items":"#, &format!(r#"{rule}"items":"#));
        },
    ),
    Vector::new("statement-after-its-entry", "a statement that says that it was made after its entry", |forge| {
        stated(forge, Moment::from_millis(1 << 45));
    })
    .with_arguments(BOTH),
];

/// A run of two items that a rule orders, in the order in which they are dispatched.
fn both(forge: &Forge, order: [&str; 2]) {
    let mut run = ChainBuilder::submit(
        forge,
        r#"{"id":"handoff-dag-1","items":[
            {"id":"edit-a","executor":"command","inputs":{"command":["true"]}},
            {"id":"edit-b","executor":"command","inputs":{"command":["true"]}}],
            "rules":[{"id":"first","order":{"edit-b":["edit-a"]}}]}"#,
    );
    for item in order {
        run.fire(item);
        run.done(item, PATCH);
    }
    run.seal();
    forge.finish(run);
}

/// A run whose rule creates an item as long as there is no document, with or without the document.
fn absent(forge: &Forge, is_there: bool) {
    let rule =
        r#"{"id":"again","when":{"absent":["score"]},"create":{"executor":"command","inputs":{"command":["true"]}}}"#;
    let mut run = ChainBuilder::submit(forge, &plan(rule));
    let made = run.of_rule(0);
    if is_there {
        run.document("score", None, b"{}\n");
    }
    run.extend(Cause::Rule("again".parse().unwrap()), std::slice::from_ref(&made));
    run.fire(made.id.as_str());
    run.done(made.id.as_str(), PATCH);
    rest(&mut run);
    forge.finish(run);
}

/// A run whose second item begins on the patch of the first.
fn applied(forge: &Forge, has_start: bool) {
    let plan = PLAN.replacen(r#""select":{"kind":"patch"}"#, r#""select":{"kind":"patch"},"apply":true"#, 1);
    let mut run = ChainBuilder::submit(forge, &plan);
    run.fire("edit-a");
    run.done("edit-a", PATCH);
    run.fire_with("edit-b", |manifest| manifest.start = has_start.then(|| forge.store.empty_tree()));
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    forge.finish(run);
}

/// A run whose first item changes a protected file, and in which an approval was given.
fn approved(forge: &Forge, depends: &str) {
    let mut run = ChainBuilder::submit(forge, &approval(depends));
    protect(forge, &mut run, MODIFIED, &[("src/x", ChangeKind::Modified)], OnProtectedChange::Red);
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.add(Event::ItemDecided(decided(&run, &forge.signer)));
    run.seal();
    forge.finish(run);
}

/// A plan with an approval that has these fields.
fn approval(fields: &str) -> String {
    format!(
        r#"{{"id":"handoff-dag-1","items":[
        {{"id":"edit-a","executor":"command","inputs":{{"command":["true"]}}}},
        {{"id":"edit-b","executor":"command","inputs":{{"command":["true"]}}}},
        {{"id":"sign-off","executor":"approval",{fields}}}]}}"#
    )
}

/// A run whose entry 0 names a plan with another text in the place of one.
fn planned(forge: &Forge, text: &str, other: &str) {
    bent(forge, |drafts| {
        let plan = PLAN.replacen(text, other, 1);
        assert_ne!(plan, PLAN);
        let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
        e.plan = store_product(forge, plan.as_bytes());
    });
}

/// A plan with this many small objects.
fn heavy(objects: usize) -> String {
    let many = vec![r#"{"":0}"#; objects].join(",");
    PLAN.replacen(r#"["true"]}"#, &format!(r#"["true"],"many":[{many}]}}"#), 1)
}

/// A run with a decision that its key stated in its own log, at this time.
fn stated(forge: &Forge, made: Moment) {
    let bob = stranger(forge);
    let honest = decided(&begun(forge, &bob, Role::Approve), &bob);
    let statement = write_statement_at(forge, &bob, first(forge, &bob), &honest, Some(made));
    let mut run = begun(forge, &bob, Role::Approve);
    run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..honest }));
    run.seal();
    forge.finish(run);
}
