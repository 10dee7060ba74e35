//! Rules that did what they say, and people, attempts and ends that count: each clause by itself.

use git_handoff::ledger::chain::Draft;
use git_handoff::model::entry::{Again, Cause, Decision, Event, ItemDecided, Outcome, Role, RunConcluded};

use super::grown::{RULE, of_rule, plan};
use super::keys::BOTH;
use super::others::created;
use super::planned::rest;
use super::{Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, store_product};
use crate::people::forged::decided;
use crate::people::seals::{admission, sealed_by};

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff\n")];

pub(super) const CLEAN: &[Vector] = &[
    Vector::new(
        "clean-templates-that-replace",
        "a template with `{{n}}`, `replaces`, `reasons` and `optional`, and one with `each` and `survivors`",
        |forge| {
            let mut run = ChainBuilder::submit(forge, REPLACING);
            run.fire("split");
            run.done("split", &[("outputs/a", b"a\n"), ("outputs/b", b"b\n")]);
            run.fire("make-a");
            run.done("make-a", &[("outputs/made", b"made\n")]);
            run.fire("make-b");
            run.fail("make-b");
            created(&mut run);
            run.fire("join-1");
            run.done("join-1", &[("outputs/x", b"x\n")]);
            run.fire("redo-1");
            run.done("redo-1", PATCH);
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new(
        "clean-name-clash",
        "a rule would create two items of one name, and says so in words of its own",
        |forge| {
            clash(forge, Some("in words of its own"));
        },
    ),
    Vector::new("clean-closed-early", "a run closed although a rule still creates an item", |forge| {
        let rule = r#"{"id":"more","when":{"items":[{"items":["edit-b"],"are":"green"}]},"create":[{"item":{"id":"review","executor":"command","inputs":{"command":["true"]}}}]}"#;
        closed(forge, rule, &[]);
    }),
    Vector::new(
        "clean-stopped-by-closing",
        "a run closed although a rule that looks at a document still acts",
        |forge| {
            closed(forge, RULE, &[b"{\"score\":3}\n"]);
        },
    ),
    Vector::new("clean-stopped-by-no-number", "a rule compares what is no number; the run was closed", |forge| {
        closed(forge, RULE, &[b"{\"score\":\"bad\"}\n"]);
    }),
    Vector::new(
        "clean-stopped-by-rounds",
        "a rule created as much as it may, and acts again; the run was closed",
        |forge| {
            let mut run = exhausted(forge);
            run.close();
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new("clean-word-taken-back", "a rule had the run say a word, and its item was done later", |forge| {
        let rule = r#"{"id":"broke","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"outcome":"broken"}"#;
        let mut run = ChainBuilder::submit(forge, &plan(rule));
        run.fire("edit-a");
        run.fail("edit-a");
        let concluded = RunConcluded::new("broke".parse().unwrap(), "broken");
        run.add(Event::RunConcluded(concluded));
        run.requeue("edit-a", Again::Operator);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new(
        "clean-attempts",
        "`maxAttempts` is 1: a crash does not count, and an operator restarts the count",
        |forge| {
            let one = r#""resourceLocks":["build"],"maxAttempts":1}"#;
            let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, one, 1));
            run.fire("edit-a");
            run.requeue("edit-a", Again::Crash);
            run.fire("edit-a");
            run.fail("edit-a");
            run.requeue("edit-a", Again::Operator);
            rest(&mut run);
            forge.finish(run);
        },
    ),
    Vector::new("clean-rejected", "a decision that rejects an item with a message", |forge| {
        let mut run = ChainBuilder::submit(forge, crate::people::forged::PLAN);
        run.fire("build");
        run.done("build", &[("outputs/report", b"fine\n")]);
        let (decision, status) = (Decision::Rejected, Outcome::Failed);
        let message = Some("not yet".to_owned());
        let event = ItemDecided { decision, status, message, ..decided(&run, &forge.signer) };
        run.add(Event::ItemDecided(event));
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new(
        "clean-nothing-handed-over",
        "items without products: one silent, one that declares none, and a gate",
        |forge| {
            let item = |id: &str, more: &str| {
                format!(r#"{{"id":"{id}","executor":"command","inputs":{{"command":["true"]}}{more}}}"#)
            };
            let items = [item("silent", ""), item("none", r#","produces":[]"#), item("gate", "")].join(",");
            let rule = r#"{"id":"g","gate":{"item":"gate"}}"#;
            let mut run =
                ChainBuilder::submit(forge, &format!(r#"{{"id":"handoff-dag-1","items":[{items}],"rules":[{rule}]}}"#));
            for name in ["silent", "none", "gate"] {
                run.fire(name);
                run.done(name, &[]);
            }
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new("clean-plan-in-another-form", "the verifier asks for the same plan in another form", |forge| {
        forge.honest();
    })
    .with_arguments(&["--signers", "signers", "--plan", "same-plan.json"]),
    Vector::new(
        "clean-beside-a-log-of-a-stranger",
        "a log of a key that the signers do not name names the run",
        |forge| {
            let chain = ChainBuilder::honest(forge).write(&forge.signer);
            forge.log(&chain, &stranger(forge));
        },
    ),
    Vector::new(
        "clean-anchored-by-an-admitted-key",
        "the log of the key that was admitted to seal anchors the run",
        |forge| {
            let bob = stranger(forge);
            let chain = sealed_by(forge, &bob, |run, first| {
                run.add(admission(&bob, Role::Seal, Some(first)));
            });
            let own = git_handoff::model::format::log_ref(&forge.signer.fingerprint());
            forge.git(&["update-ref", "-d", &own]);
            forge.log(&chain, &bob);
        },
    )
    .with_arguments(BOTH),
];

pub(super) const FORGED: &[Vector] = &[
    Vector::new("rule-at-its-limit", "a run sealed although its rule acts again and may create no more", |forge| {
        let mut run = exhausted(forge);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("rule-about-a-red-vote", "a run sealed although a rule says a word once a vote is red", |forge| {
        let plan = r#"{"id":"handoff-dag-1","items":[{"id":"vote","executor":"approval"}],
            "rules":[{"id":"count","gate":{"item":"vote","votes":true}},
                     {"id":"veto","when":{"items":[{"items":["vote"],"are":"red"}]},"outcome":"vetoed"}]}"#;
        let mut run = ChainBuilder::submit(forge, plan);
        let event = ItemDecided::new(
            "vote".parse().unwrap(),
            Decision::Rejected,
            Outcome::Done,
            run.state.decided_about(run.state.items.indices().next().unwrap()),
            forge.signer.fingerprint(),
        );
        run.add(Event::ItemDecided(event));
        run.seal();
        forge.finish(run);
    }),
    Vector::new("rule-that-clashes-without-a-detail", "a rule says `name-clash` without a detail", |forge| {
        clash(forge, None);
    }),
    Vector::new("rule-with-pipelines", "an item by a rule, whose entry brings a pipeline", |forge| {
        let mut run = ChainBuilder::submit(forge, &plan(RULE));
        run.document("score", None, b"{\"score\":3}\n");
        let made = run.of_rule(0);
        run.extend(Cause::Rule("again".parse().unwrap()), &[made]);
        let spec = crate::pipeline::forged::SPEC;
        let Draft { event: Event::RunExtended(e), .. } = run.drafts.last_mut().unwrap() else { panic!() };
        e.pipelines.insert("p.one".to_owned(), store_product(forge, spec));
        both(&mut run);
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new("rule-over-a-key-twice", "an item by a rule whose document has a key twice", |forge| {
        let mut run = ChainBuilder::submit(forge, &plan(RULE));
        run.document("score", None, b"{\"score\":9,\"score\":3}\n");
        of_rule(forge, run);
    }),
    Vector::new(
        "illegal-dispatch-behind-a-red-copy",
        "an item needs the patch of the copy of a gate, which is red",
        |forge| {
            let mut run = ChainBuilder::submit(forge, COPIED);
            run.fire("check");
            run.fail("check");
            run.skip("use");
            created(&mut run);
            run.fire("check~2");
            run.red_with("check~2", PATCH);
            run.fire("use~2");
            run.done("use~2", &[]);
            run.seal();
            forge.finish(run);
        },
    ),
];

const REPLACING: &str = r#"{"id":"handoff-dag-1","items":[
    {"id":"split","executor":"command","inputs":{"command":["split"]}},
    {"id":"make-a","executor":"command","inputs":{"command":["make"]}},
    {"id":"make-b","executor":"command","inputs":{"command":["make"]}}],
    "rules":[{"id":"mend","when":{"items":[{"items":["make-b"],"are":["failed"]},
        {"items":["split","make-a","make-b"],"are":"done","op":">=","value":2},
        {"items":["make-a","make-b"],"have":"made","op":"<","value":2},
        {"items":["split"],"count":"outputs","op":"==","value":2},
        {"createdBy":"mend","count":"rounds","op":"!=","value":1}]},"create":[
        {"item":{"id":"redo-{{n}}","executor":"command","inputs":{"command":["redo"]},"replaces":"make-b",
                 "needs":{"a":{"from":"split","select":{"kind":"output","path":"a"}},
                          "log":{"from":"split","select":{"kind":"output","path":"log"}}}},
         "optional":["log"],"reasons":{"why":"make-b"}},
        {"item":{"id":"join-{{n}}","executor":"command","inputs":{"command":["join"]}},
         "each":{"outputsOf":"split","key":"in/{{key}}","from":"make-{{key}}",
                 "select":{"kind":"output","path":"made"},"survivors":true}}]}]}"#;

const COPIED: &str = r#"{"id":"handoff-dag-1","items":[
    {"id":"check","executor":"command","inputs":{"command":["check"]}},
    {"id":"use","executor":"command","inputs":{"command":["use"]},"needs":{"it":{"from":"check","select":{"kind":"patch"}}}}],
    "rules":[{"id":"retry","when":{"items":[{"items":["check"],"are":"failed"}]},"create":[{"again":"check"}]},
             {"id":"gate","gate":{"item":"check","blocks":true}}]}"#;

/// A run whose rule created as much as it may, and acts again.
fn exhausted(forge: &Forge) -> ChainBuilder<'_> {
    let mut run = ChainBuilder::submit(forge, &plan(RULE));
    run.document("score", None, b"{\"score\":3}\n");
    let made = run.of_rule(0);
    run.extend(Cause::Rule("again".parse().unwrap()), std::slice::from_ref(&made));
    run.fire(made.id.as_str());
    run.done(made.id.as_str(), PATCH);
    run.document("score", None, b"{\"score\":2}\n");
    both(&mut run);
    run
}

/// Has both items of the plan happen.
fn both(run: &mut ChainBuilder<'_>) {
    run.fire("edit-a");
    run.done("edit-a", PATCH);
    run.fire("edit-b");
    run.done("edit-b", PATCH);
}

/// A run with a rule and revisions of the document `score`, which was closed when both items were
/// done.
fn closed(forge: &Forge, rule: &str, scores: &[&[u8]]) {
    let mut run = ChainBuilder::submit(forge, &plan(rule));
    scores.iter().for_each(|score| run.document("score", None, score));
    both(&mut run);
    run.close();
    run.seal();
    forge.finish(run);
}

/// A run whose rule would create two items of one name.
fn clash(forge: &Forge, detail: Option<&str>) {
    let item = r#"{"item":{"id":"twice","executor":"command","inputs":{"command":["true"]}}}"#;
    let rule =
        format!(r#"{{"id":"two","when":{{"items":[{{"items":["edit-a"],"are":"done"}}]}},"create":[{item},{item}]}}"#);
    let mut run = ChainBuilder::submit(forge, &plan(&rule));
    both(&mut run);
    let detail = detail.map(str::to_owned);
    let concluded = RunConcluded { detail, ..RunConcluded::new("two".parse().unwrap(), "name-clash") };
    run.add(Event::RunConcluded(concluded));
    run.seal();
    forge.finish(run);
}
