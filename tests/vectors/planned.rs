//! Runs that are not what their plan says: the plan, its rules, transitions and manifests.

use std::collections::BTreeMap;

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Again, Event, InputRef, ItemFired};
use git_handoff::model::name::{FilePath, ItemId};
use git_handoff::model::plan::{Selector, Source};
use git_handoff::model::schema::Schema;

use super::forged::{bent, fired, put};
use super::{Vector, lose};
use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, gone, store_product};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("plan-that-is-none", "a plan without items, named by entry 0", |forge| {
        replanned(forge, r#"{"id":"handoff-dag-1","items":[]}"#);
    }),
    Vector::new("plan-with-schema-version-0", "a plan whose schema is `sc@0`, which is no version", |forge| {
        replanned(forge, &producing("sc@0"));
    }),
    Vector::new("plan-with-a-leading-zero", "a plan whose schema is `sc@01`, which is no version", |forge| {
        replanned(forge, &producing("sc@01"));
    }),
    Vector::new("plan-with-a-range", "a plan that wants `report@^1`, which is no schema", |forge| {
        let need = r#"{"from":"@documents","select":{"kind":"document","name":"notes","schema":"report@^1"}}"#;
        replanned(forge, &reading("", need));
    }),
    Vector::new("document-of-version-0", "a document whose schema has the version 0", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        let schema = Schema { id: "report".to_owned(), version: 0 };
        run.document_with("notes", b"one\n", |e| e.schema = Some(schema));
        forge.finish(run);
    }),
    Vector::new("plan-with-a-key-twice", "a plan that has the key `queue` twice", |forge| {
        replanned(forge, &PLAN.replacen('{', r#"{"queue":"other","queue":"default","#, 1));
    }),
    Vector::new("plan-too-deep", "a plan of 128 arrays and objects in one another", |forge| {
        let deep = format!(r#"{{"command":["true"],"deep":{}{}}}"#, "[".repeat(124), "]".repeat(124));
        replanned(forge, &PLAN.replacen(r#"{"command":["true"]}"#, &deep, 1));
    }),
    Vector::new("plan-with-an-item-twice", "a plan that has one item twice, named by entry 0", |forge| {
        replanned(forge, &PLAN.replace("edit-b", "edit-a"));
    }),
    Vector::new("plan-of-another-run", "a plan with the id of another run, named by entry 0", |forge| {
        replanned(forge, &PLAN.replace("handoff-dag-1", "handoff-dag-2"));
    }),
    Vector::new("rules-missing", "the `rules.json` that entry 0 names is not there", |forge| {
        ruled(forge, PLAN, RULES, |run| point_to(&mut run.drafts[0].event, "rules.json", gone(forge)));
    })
    .with_gaps(),
    Vector::new("rules-bytes", "a `rules.json` whose bytes are not those that entry 0 names", |forge| {
        ruled(forge, PLAN, RULES, |run| {
            put(forge, &mut run.drafts[0], "rules.json", &RULES.replace("broken", "failed"));
        });
    }),
    Vector::new("rules-that-are-none", "a `rules.json` that is no array of rules", |forge| {
        ruled(forge, PLAN, r#"{"id":"broke"}"#, |_| {});
    }),
    Vector::new("rules-empty", "a `rules.json` that is an empty array", |forge| ruled(forge, PLAN, "[]", |_| {})),
    Vector::new("rules-with-an-id-twice", "a `rules.json` with two rules of one id", |forge| {
        ruled(forge, PLAN, &format!("[{RULE},{RULE}]"), |_| {});
    }),
    Vector::new("rules-with-an-id-of-the-plan", "a `rules.json` with the id of a rule of the plan", |forge| {
        let plan = PLAN.replacen('{', &format!(r#"{{"rules":{},"#, RULES.replace("\"broke\"", "\"BROKE\"")), 1);
        ruled(forge, &plan, RULES, |_| {});
    }),
    Vector::new("item-that-the-run-has-not", "a dispatch, without inputs, of an item that the run has not", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        unknown(forge, &mut run);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("input-without-need", "an item that consumed more than it needs", |forge| {
        fired(forge, |run| {
            run.fire_with("edit-b", |manifest| {
                let more = InputRef {
                    from: Source::Item(id("edit-a")),
                    select: Selector::Patch,
                    digest: Digest::compute(b"diff --git a/x b/x\n"),
                };
                manifest.input_refs.insert(FilePath::parse("more").unwrap(), more);
            });
        });
    }),
    Vector::new("input-from-elsewhere", "an input that names another selector than the need", |forge| {
        fired(forge, |run| {
            run.fire_with("edit-b", |manifest| {
                let patch = manifest.input_refs.iter_mut().find(|(key, _)| key.as_str() == "patch").unwrap();
                patch.1.select = Selector::Output { path: FilePath::parse("patch").unwrap() };
            });
        });
    }),
    Vector::new("manifest-not-canonical", "a manifest with a blank too many, named by its entry", |forge| {
        bent(forge, |drafts| {
            let Event::ItemFired(e) = &mut drafts[1].event else { panic!() };
            let text = String::from_utf8(forge.store.read_blob(e.manifest.oid).unwrap()).unwrap();
            e.manifest = store_product(forge, text.replacen('{', "{ ", 1).as_bytes());
        });
    }),
    Vector::new("manifest-with-a-fraction", "a manifest with a number in its claims that is no integer", |forge| {
        bent(forge, |drafts| {
            let Event::ItemFired(e) = &mut drafts[1].event else { panic!() };
            let text = String::from_utf8(forge.store.read_blob(e.manifest.oid).unwrap()).unwrap();
            e.manifest = store_product(forge, text.replacen(r#""claims":{"#, r#""claims":{"a":1.5,"#, 1).as_bytes());
        });
    }),
    Vector::new("document-without-previous", "a second revision without `previous`", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.document("notes", None, b"one\n");
        run.document_with("notes", b"two\n", |e| e.previous = None);
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("document-with-previous-too-early", "a first revision with a `previous`", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.document_with("notes", b"one\n", |e| e.previous = Some(Digest::compute(b"none\n")));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("attempt-left-out", "the second attempt of an item that had no first", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire_with("edit-a", |manifest| manifest.attempt = 2);
        run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("skipped-for-nothing", "an item is skipped although nothing that it depends on is lost", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n")]);
        run.skip("edit-b");
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new("requeued-when-done", "an operator asks for an item again that is done", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n")]);
        run.requeue("edit-a", Again::Operator);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("fired-after-the-end", "an item is dispatched in a run that was closed", |forge| {
        let mut run = super::clean::failed(forge);
        let seal = run.drafts.pop().unwrap();
        run.fire("edit-a");
        run.drafts.push(seal);
        forge.finish(run);
    }),
    Vector::new("failed-with-products", "an item that failed and has products", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n")]);
        let Event::ItemReconciled(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.status = git_handoff::model::entry::Outcome::Failed;
        run.skip("edit-b");
        run.close();
        run.seal();
        forge.finish(run);
    }),
    Vector::new("done-without-its-promise", "an item that is done without the output that it declares", |forge| {
        let produces = r#""resourceLocks":["build"],"produces":[{"kind":"output","path":"x"}]}"#;
        let mut run = ChainBuilder::submit(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, produces, 1));
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("closed-too-early", "a run that is closed while an item waits", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.close();
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("input-of-another-schema", "an item consumed a document of another version than it wants", |forge| {
        let need = r#"{"from":"@documents","select":{"kind":"document","name":"notes","schema":"report@2"}}"#;
        let mut run = ChainBuilder::submit(forge, &reading("", need));
        run.document("notes", Some("report@1"), b"one\n");
        read(forge, run);
    }),
    Vector::new("input-of-an-item-of-another-schema", "the same, of a document that an item handed over", |forge| {
        let make = r#"{"id":"make","executor":"command","inputs":{"command":["make"]},
            "produces":[{"kind":"document","name":"notes","path":"n","schema":"report@1"}]},"#;
        let need = r#"{"from":"make","select":{"kind":"document","name":"notes","schema":"report@2"}}"#;
        let mut run = ChainBuilder::submit(forge, &reading(make, need));
        run.fire("make");
        run.done("make", &[("outputs/n", b"one\n"), ("documents/notes", b"one\n")]);
        read(forge, run);
    }),
    Vector::new("manifest-missing", "the blob of a manifest is missing, in a complete repository", |forge| {
        let chain = forge.honest();
        let path = format!("{}:manifest.json", chain.links[3].commit);
        lose(forge, forge.git(&["rev-parse", &path]).parse().unwrap());
    })
    .with_gaps(),
    Vector::new("plan-missing", "the blob of the plan is missing, in a complete repository", |forge| {
        let chain = forge.honest();
        let path = format!("{}:plan.json", chain.links[0].commit);
        lose(forge, forge.git(&["rev-parse", &path]).parse().unwrap());
    })
    .with_gaps(),
];

const RULE: &str = r#"{"id":"broke","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"outcome":"broken"}"#;
const RULES: &str = r#"[{"id":"broke","when":{"items":[{"items":["edit-a"],"are":"failed"}]},"outcome":"broken"}]"#;

fn id(text: &str) -> ItemId {
    ItemId::parse(text).unwrap()
}

/// Puts another plan into an honest run, and has entry 0 name it.
fn replanned(forge: &Forge, plan: &str) {
    bent(forge, |drafts| {
        let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
        e.plan = store_product(forge, plan.as_bytes());
    });
}

/// Tells a run with rules that the queue added, bent in the end.
pub(super) fn ruled(forge: &Forge, plan: &str, rules: &str, bend: impl FnOnce(&mut ChainBuilder<'_>)) {
    let mut run = ChainBuilder::submit(forge, plan);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    e.rules = Some(store_product(forge, rules.as_bytes()));
    run.state.submitted = e.clone();
    rest(&mut run);
    bend(&mut run);
    forge.finish(run);
}

/// Has both items happen, and seals.
pub(super) fn rest(run: &mut ChainBuilder<'_>) {
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
}

/// Dispatches an item that the run has not.
fn unknown(forge: &Forge, run: &mut ChainBuilder<'_>) {
    let mut bytes = Vec::new();
    run.fire_with("edit-a", |dispatch| bytes = dispatch.manifest.canonical());
    run.drafts.pop();
    let submitted = run.state.submitted.clone();
    run.state = git_handoff::model::state::RunState::new(submitted, &run.plan);
    run.add(Event::ItemFired(ItemFired::new(id("edit-z"), 1, store_product(forge, &bytes), BTreeMap::new())));
}

/// The plan, with an item that declares an output of this schema.
fn producing(schema: &str) -> String {
    let produces =
        format!(r#""resourceLocks":["build"],"produces":[{{"kind":"output","path":"x","schema":"{schema}"}}]}}"#);
    PLAN.replacen(r#""resourceLocks":["build"]}"#, &produces, 1)
}

/// A plan of these items and of one that needs something.
fn reading(before: &str, need: &str) -> String {
    format!(
        r#"{{"id":"handoff-dag-1","items":[{before}{{"id":"read","executor":"command","inputs":{{"command":["read"]}},
        "needs":{{"it":{need}}}}}]}}"#
    )
}

/// Has that item happen, and seals.
fn read(forge: &Forge, mut run: ChainBuilder<'_>) {
    run.fire("read");
    run.done("read", &[]);
    run.seal();
    forge.finish(run);
}
