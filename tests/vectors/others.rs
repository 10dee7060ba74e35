//! Runs that happened with other keys, other runs, pipelines and rules.

use git_handoff::model::document::Revision;
use git_handoff::model::entry::{Cause, Decision, Event, ItemDecided, Outcome, Role};
use git_handoff::model::judge::{self, Act};
use git_handoff::model::name::FilePath;

use super::keys::BOTH;
use super::planned::ruled;
use super::taken::rest;
use super::{Vector, stranger};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN};
use crate::elsewhere::forged as imports;
use crate::people::forged::{begun, decided, first, write_statement};
use crate::people::seals::{admission, sealed_by};
use crate::pipeline::forged as pipelines;
use crate::reuse::{continued, forged as reuse};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("clean-two-gates", "two rules make one item a gate; the later one does not block", |forge| {
        forge.finish(gated(forge, &[(true, "first"), (false, "second")], &[("patch", b"diff\n")], PATCH_NEED));
    }),
    Vector::new("clean-gate-with-a-report", "an item needs an output of a red gate that blocks", |forge| {
        forge.finish(gated(forge, &[(true, "first")], &[("outputs/why", b"red\n")], OUTPUT_NEED));
    }),
    Vector::new("clean-decision-about-nothing", "a decision about an item that handed over nothing", |forge| {
        let mut run = ChainBuilder::submit(forge, crate::people::forged::PLAN);
        run.fire("build");
        run.done("build", &[]);
        let event = decided(&run, &forge.signer);
        assert_eq!(event.about.len(), 1, "the item is there, with nothing");
        run.add(Event::ItemDecided(event));
        run.seal();
        forge.finish(run);
    }),
    Vector::new("clean-beside-a-broken-log", "a broken log of a known key that is no writer of the run", |forge| {
        forge.honest();
        let log = git_handoff::model::format::log_ref(&stranger(forge).fingerprint());
        forge.git(&["update-ref", &log, &forge.base.to_string()]);
    })
    .with_arguments(BOTH),
    Vector::new("clean-beside-a-broken-archive", "an archive that cannot be read, and a run that has a ref", |forge| {
        forge.honest();
        let key = git_handoff::model::format::log_ref(&forge.signer.fingerprint()).replace("/logs/", "/archives/");
        forge.git(&["update-ref", &format!("{key}.0123456789ab"), &forge.base.to_string()]);
    }),
    Vector::new(
        "clean-sealed-by-an-admitted-key",
        "a key that an owner admitted with the role `seal` seals",
        |forge| {
            sealed_by(forge, &stranger(forge), |run, first| {
                run.add(admission(&stranger(forge), Role::Seal, Some(first)));
            });
        },
    )
    .with_arguments(BOTH),
    Vector::new(
        "clean-continues",
        "a run that continues another, which was not sealed, and reuses its item",
        |forge| {
            let first = continued::first(forge);
            forge.finish(continued::going_on(forge, &first, |_| {}));
        },
    ),
    Vector::new("clean-reused", "an item whose products are those of a sealed run, with its proof", |forge| {
        let mut run = reuse::taking(forge, |_| {});
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("clean-imported", "a product of a sealed run that an item needs, with its proof", |forge| {
        forge.finish(imports::taking(forge, |_, _| {}));
    }),
    Vector::new("clean-pipeline", "an item with a pipeline of four blocks", |forge| {
        forge.finish(pipelines::run(forge, |_, _| {}));
    }),
    Vector::new("clean-rules", "rules that the queue added, which have nothing to do", |forge| {
        let rules = r#"[{"id":"broke","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"outcome":"broken"}]"#;
        ruled(forge, PLAN, rules, |_| {});
    }),
    Vector::new("clean-statement", "a decision that another key made in its log, taken in", |forge| {
        let bob = stranger(forge);
        let event = decided(&begun(forge, &bob, Role::Approve), &bob);
        let statement = write_statement(forge, &bob, first(forge, &bob), &event);
        let mut run = begun(forge, &bob, Role::Approve);
        run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..event }));
        run.seal();
        forge.finish(run);
    })
    .with_arguments(BOTH),
    Vector::new("clean-red-vote", "an approval that a rule with `votes` counts, and that was rejected", |forge| {
        let plan = r#"{"id":"handoff-dag-1","items":[{"id":"vote","executor":"approval"}],
            "rules":[{"id":"count","gate":{"item":"vote","votes":true}}]}"#;
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
    Vector::new(
        "clean-superseded",
        "an item that failed, and the copy that a rule with `again` put in its place",
        |forge| {
            let rule = r#"{"id":"retry","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"create":[{"again":"edit-a"}]}"#;
            let mut run = ChainBuilder::submit(forge, &super::grown::plan(rule));
            run.fire("edit-a");
            run.fail("edit-a");
            run.skip("edit-b");
            created(&mut run);
            run.fire("edit-a~2");
            run.done("edit-a~2", &[("patch", b"diff --git a/x b/x\n")]);
            run.fire("edit-b~2");
            run.done("edit-b~2", &[("outputs/report.md", b"fine\n")]);
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new(
        "clean-failed-for-no-reason",
        "an item failed without a reason, which `reasons` then leaves out",
        |forge| {
            let rule = r#"{"id":"tell","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"create":[
            {"item":{"id":"report","executor":"command","inputs":{"command":["tell"]}},"reasons":{"why":"edit-a"}}]}"#;
            let mut run = ChainBuilder::submit(forge, &super::grown::plan(rule));
            run.fire("edit-a");
            run.fail_for("edit-a", None);
            run.skip("edit-b");
            created(&mut run);
            run.fire("report");
            run.done("report", &[("outputs/report.md", b"no reason\n")]);
            run.close();
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new(
        "clean-templates",
        "templates with `forEach`, `each`, and `reasons` of an item that did not fail",
        |forge| {
            let mut run = ChainBuilder::submit(forge, TEMPLATES);
            run.fire("split");
            run.done("split", &[("outputs/a", b"a\n"), ("outputs/b", b"b\n")]);
            created(&mut run);
            for item in ["fix-a", "fix-b", "join-a", "join-b"] {
                run.fire(item);
                run.done(item, &[("outputs/fixed", b"fixed\n")]);
            }
            run.seal();
            forge.finish(run);
        },
    ),
];

/// For each output, an item and another that takes every output; the key within `each` is that of
/// `each`.
const TEMPLATES: &str = r#"{"id":"handoff-dag-1","items":[{"id":"split","executor":"command","inputs":{"command":["split"]}}],
    "rules":[{"id":"map","when":{"items":[{"items":["split"],"are":"done"}]},"forEach":{"outputsOf":"split"},"create":[
        {"item":{"id":"fix-{{key}}","executor":"command","inputs":{"command":["fix"],"of":"{{key}}"}},
         "reasons":{"why":"split"}},
        {"item":{"id":"join-{{key}}","executor":"command","inputs":{"command":["join"],"of":"{{key}}"},
                 "depends_on":["fix-{{key}}"]},
         "each":{"outputsOf":"split","key":"in/{{key}}","from":"split",
                 "select":{"kind":"output","path":"{{key}}"}}}]}]}"#;

const PATCH_NEED: &str = r#"{"from":"check","select":{"kind":"patch"}}"#;
const OUTPUT_NEED: &str = r#"{"from":"check","select":{"kind":"output","path":"why"}}"#;

/// A run whose item `check` is a red gate, by rules that block or not, and hands something over
/// that `use` needs.
pub(super) fn gated<'a>(
    forge: &'a Forge,
    gates: &[(bool, &str)],
    products: &[(&str, &[u8])],
    need: &str,
) -> ChainBuilder<'a> {
    let rule = |(blocks, id): &(bool, &str)| format!(r#"{{"id":"{id}","gate":{{"item":"check","blocks":{blocks}}}}}"#);
    let rules: Vec<String> = gates.iter().map(rule).collect();
    let plan = format!(
        r#"{{"id":"handoff-dag-1","items":[{{"id":"check","executor":"command","inputs":{{"command":["check"]}}}},
        {{"id":"use","executor":"command","inputs":{{"command":["use"]}},"needs":{{"it":{need}}}}}],"rules":[{}]}}"#,
        rules.join(",")
    );
    let mut run = ChainBuilder::submit(forge, &plan);
    run.fire("check");
    run.red_with("check", products);
    run.fire("use");
    run.done("use", &[("outputs/x", b"x\n")]);
    run.seal();
    run
}

/// Adds what the only rule creates as things stand.
pub(super) fn created(run: &mut ChainBuilder<'_>) {
    let rule = run.state.rules[0].clone();
    let read = |_: &FilePath, _: &Revision| Err::<Vec<u8>, _>("no document is looked into");
    let Some(Act::Create(items)) = judge::acts(&run.state, &rule, read).unwrap() else { panic!("it creates nothing") };
    run.extend(Cause::Rule(rule.id().clone()), &items);
}
