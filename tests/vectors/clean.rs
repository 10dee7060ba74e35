//! Runs that happened.

use git_handoff::model::entry::{Again, Event, ItemDropped, RunEnded};
use git_handoff::model::name::ItemId;
use git_handoff::model::protect_rule::ProtectRule;
use git_handoff::model::protected::ChangeKind;

use super::Vector;
use super::forged::{MODIFIED, except, protecting, protecting_by};
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN};
use crate::tamper::run::{End, story};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("clean-done", "two items, the second of which takes the first one's patch and an artifact", |forge| {
        forge.honest();
    }),
    Vector::new("clean-done-sha256", "the same in a repository of object format sha256", |forge| {
        forge.honest();
    })
    .sha256(),
    Vector::new("clean-failed", "the first item failed, the second was skipped, the run closed", |forge| {
        forge.finish(failed(forge));
    }),
    Vector::new(
        "clean-retried",
        "the first item failed, was tried again, and then crashed and was asked for by an operator",
        |forge| {
            let mut run = ChainBuilder::submit(forge, PLAN);
            run.fire("edit-a");
            run.requeue("edit-a", Again::Failure);
            run.fire("edit-a");
            run.requeue("edit-a", Again::Crash);
            run.fire("edit-a");
            run.fail("edit-a");
            run.requeue("edit-a", Again::Operator);
            rest(&mut run);
            forge.finish(run);
        },
    ),
    Vector::new("clean-cancelled", "a running item and a waiting one were cancelled, and the run with them", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        for (item, attempt) in [("edit-a", 1), ("edit-b", 0)] {
            let dropped = ItemDropped::new(ItemId::parse(item).unwrap(), attempt, "no need");
            run.add(Event::ItemCancelled(dropped));
        }
        run.add(Event::RunCancelled(RunEnded::new("no need")));
        run.seal();
        forge.finish(run);
    }),
    Vector::new(
        "clean-everything",
        "every kind of entry: documents with revisions, an item that a rule added, every way in which an item ends, closed",
        |forge| {
            forge.finish(story(forge, End::Closed));
        },
    ),
    Vector::new("clean-everything-sha256", "the same in a repository of object format sha256", |forge| {
        forge.finish(story(forge, End::Closed));
    })
    .sha256(),
    Vector::new("clean-everything-cancelled", "the same, cancelled at the end", |forge| {
        forge.finish(story(forge, End::Cancelled));
    }),
    Vector::new("clean-open-ended", "a plan that is open-ended, with an item that the actor added", |forge| {
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen('{', r#"{"openEnded":true,"#, 1));
        rest(&mut run);
        let more = br#"{"id":"more","executor":"command","inputs":{"command":["true"]},"depends_on":["edit-b"]}"#;
        let more = git_handoff::plan::parse_item(more).unwrap();
        run.extend(git_handoff::model::entry::Cause::Actor, &[more]);
        run.fire("more");
        run.done("more", &[]);
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new("clean-protected", "a change to a protected file, as the entry records it", |forge| {
        protecting(forge, MODIFIED, &[("src/x", ChangeKind::Modified)]);
    }),
    Vector::new(
        "clean-protected-except",
        "rules with exceptions that the plan writes in no order, and a change within all of them",
        |forge| {
            let rules = [ProtectRule::Pathspec("doc".to_owned()), except(&["doc", "src"]), except(&["src", "test"])];
            let written = r#"["doc",{"except":["test","src","test"]},{"except":["src","doc"]}]"#;
            protecting_by(forge, written, &rules, &[]);
        },
    ),
    Vector::new("clean-protected-except-all", "a rule without exceptions, and the change that it finds", |forge| {
        let recorded = [("src/x", ChangeKind::Modified)];
        protecting_by(forge, r#"{"except":[]}"#, &[except(&[])], &recorded);
    }),
    Vector::new("clean-open", "a run that goes on: the first item is done", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
        forge.finish(run);
    }),
    Vector::new(
        "clean-stopped",
        "a rule finds nothing where it looks; the run was closed, and the seal names the rule",
        |forge| {
            forge.finish(stopped(forge, "/grade", &[("again", "nothing there")]));
        },
    ),
    Vector::new(
        "clean-number-of-400000-digits",
        "a number of 400,000 digits in a document that a rule reads, which is no stop",
        |forge| {
            let document = format!("{{\"score\":7{}}}\n", "0".repeat(400_000));
            forge.finish(ruled(forge, &[("again", "/score")], document.as_bytes()));
        },
    ),
    Vector::new("clean-forty-rules", "forty rules that read the same document of 400 kB", |forge| {
        let ids: Vec<String> = (0..40).map(|at| format!("again-{at}")).collect();
        let rules: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "/score")).collect();
        let document = format!("{{\"filler\":[{}0],\"score\":7}}\n", "0,".repeat(200_000));
        forge.finish(ruled(forge, &rules, document.as_bytes()));
    }),
    Vector::new("clean-object-format-named", "a bundle of version 3 that names its object format `sha1`", |forge| {
        forge.honest();
    })
    .capable("@object-format=sha1\n"),
    Vector::new("clean-object-format-twice", "the same, with the capability twice", |forge| {
        forge.honest();
    })
    .capable("@object-format=sha1\n@object-format=sha1\n"),
    Vector::new("clean-filtered-nothing", "a bundle with a filter of blobs that leaves nothing out", |forge| {
        forge.honest();
    })
    .capable("@object-format=sha1\n@filter=blob:limit=32769\n"),
    Vector::new("clean-without-log", "a sealed run without the log that anchors it", |forge| {
        ChainBuilder::honest(forge).write(&forge.signer);
    }),
];

/// Both items are done, a rule looks into a document, and the run was closed; the seal says which
/// rules stopped.
pub(super) fn stopped<'a>(forge: &'a Forge, pointer: &str, reasons: &[(&str, &str)]) -> ChainBuilder<'a> {
    let mut run = ruled(forge, &[("again", pointer)], b"{\"score\":7}\n");
    let Event::RunSealed(seal) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    seal.stopped = reasons.iter().map(|(rule, why)| (ItemId::parse(rule).unwrap(), (*why).to_owned())).collect();
    run
}

/// Both items are done after some rules, each with a pointer, looked into a document, and the run
/// was closed.
fn ruled<'a>(forge: &'a Forge, rules: &[(&str, &str)], document: &[u8]) -> ChainBuilder<'a> {
    let rule = |(id, pointer): &(&str, &str)| {
        format!(
            r#"{{"id":"{id}","when":{{"if":[{{"document":"score","pointer":"{pointer}","op":"<","value":5}}]}},"create":{{"executor":"command","inputs":{{"command":["true"]}}}}}}"#
        )
    };
    let rules = rules.iter().map(rule).collect::<Vec<_>>().join(",");
    let mut run = ChainBuilder::submit(forge, &PLAN.replacen('{', &format!("{{\"rules\":[{rules}],"), 1));
    run.document("score", None, document);
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.close();
    run.seal();
    run
}

/// The first item failed, the second was skipped, the run was closed.
pub(super) fn failed(forge: &Forge) -> ChainBuilder<'_> {
    let mut run = ChainBuilder::submit(forge, PLAN);
    run.fire("edit-a");
    run.fail("edit-a");
    run.skip("edit-b");
    run.close();
    run.seal();
    run
}

/// Dispatches both items, both are done.
fn rest(run: &mut ChainBuilder<'_>) {
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    if !run.plan.open_ended {
        run.seal();
    }
}
