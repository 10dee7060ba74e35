//! Stories that are linked, sealed and signed with the right key, and yet cannot have happened.

use crate::common::chain_builder::{ChainBuilder, draft, point_to};
use crate::common::forge::{
    Forge, PLAN, assert_fails, assert_intact, assert_says, blob, gone, path, relink, store_product,
};

use git_handoff::git::store::Edit;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Again, Event, InputRef, Product};
use git_handoff::model::name::RunId;
use git_handoff::model::plan::Selector;
use git_handoff::verify::{Chain, Failure, Report, State, check_incoming};

/// Writes a bent story and reports on it.
fn tell(bend: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> git_handoff::verify::Report {
    let forge = Forge::new();
    let mut chain_builder = ChainBuilder::submit(&forge, PLAN);
    bend(&forge, &mut chain_builder);
    forge.finish(chain_builder);
    forge.verify()
}

/// An honest run in which one entry is bent before it is written.
fn bent(bend: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> git_handoff::verify::Report {
    let forge = Forge::new();
    let mut chain_builder = ChainBuilder::honest(&forge);
    bend(&forge, &mut chain_builder);
    forge.finish(chain_builder);
    forge.verify()
}

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff\n")];

#[test]
fn an_honest_run_is_intact() {
    let report = bent(|_, _| {});
    assert_intact(&report);
    let text = report.to_text(false);
    let expected = [
        "git handoff verify · handoff-dag-1                              ✓ INTACT · tamper-detecting",
        "✓ chain      6 entries, hash-linked, no gaps",
        "✓ anchor     local (detect)",
        "✓ handoff    2 input refs accounted for",
        "✓ plan       2 of 2 items accounted for, every transition legal",
        "✓ manifest   2 manifests bound to their entries",
        "✓ content    3 products and 1 artifact, 34 B re-hashed",
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let last = text.lines().last().unwrap();
    assert!(last.ends_with("  by human:ada  sandbox none: 2 (not confined)  clock pinned"), "{last}");
    let json = report.to_json();
    assert_eq!(json["checks"]["root"]["ok"], true);
    assert_eq!(json["failure"], serde_json::Value::Null);
    assert_eq!(json["sandbox"]["none"], 2);
}

#[test]
fn failures_retries_skips_and_a_close_are_a_story_too() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.requeue("edit-a", Again::Crash);
        run.fire("edit-a");
        run.requeue("edit-a", Again::Failure);
        run.fire("edit-a");
        run.fail("edit-a");
        run.skip("edit-b");
        run.close();
        run.seal();
    });
    assert_intact(&report);
}

#[test]
fn an_open_run_is_not_sealed_and_nothing_worse() {
    let report = tell(|_, run| run.fire("edit-a"));
    assert_eq!(report.failure, Some(Failure::NotSealed), "{}", report.to_text(false));
    assert_eq!(report.headline, "NOT SEALED");
    assert!(report.rows.plan.detail.starts_with("0 of 2 items"));
}

#[test]
fn a_settled_run_without_a_seal_is_not_sealed() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.fail("edit-a");
        run.skip("edit-b");
    });
    assert_eq!(report.failure, Some(Failure::NotSealed));
}

#[test]
fn a_product_of_another_item_is_not_the_one_that_was_bound() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n"), ("outputs/other", b"other\n")]);
        run.fire_with("edit-b", |manifest| {
            manifest.input_refs.get_mut(&path("patch")).unwrap().digest = Digest::compute(b"other\n");
        });
        run.done("edit-b", &[]);
        run.seal();
    });
    assert_says(&report, "handoff", "item edit-b, input patch: … was consumed, but patch of edit-a is …");
    assert_eq!(report.failure, Some(Failure::Handoff));
}

#[test]
fn a_product_must_come_before_its_consumer() {
    let report = tell(|_, run| {
        run.fire_with("edit-b", |manifest| {
            manifest.input_refs.get_mut(&path("patch")).unwrap().digest = Digest::compute(b"diff\n");
        });
        run.done("edit-b", &[]);
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.seal();
    });
    assert_says(&report, "handoff", "item edit-b, input patch: … was consumed, but edit-a was not done");
    assert_says(&report, "plan", "entry 1: item \"edit-b\" was dispatched before \"edit-a\" was done");
}

#[test]
fn no_item_consumes_a_product_of_its_own() {
    let forge = Forge::new();
    let plan = r#"{"id":"handoff-dag-1","items":[{"id":"edit-a","executor":"command","inputs":{"command":["true"]}}]}"#;
    let mut run = ChainBuilder::submit(&forge, plan);
    run.fire_with("edit-a", |manifest| {
        let (from, select) = ("edit-a".parse().unwrap(), Selector::Patch);
        manifest.input_refs.insert(path("own"), InputRef { from, select, digest: Digest::compute(b"diff\n") });
    });
    run.done("edit-a", PATCH);
    run.seal();
    forge.finish(run);
    assert_says(&forge.verify(), "handoff", "item edit-a, input own: … was consumed, but own belongs to no need");
}

#[test]
fn needs_must_be_consumed_and_nothing_else() {
    let missing = tell(|_, run| {
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.fire_with("edit-b", |manifest| drop(manifest.input_refs.remove(&path("spec"))));
        run.done("edit-b", &[]);
        run.seal();
    });
    assert_fails(&missing, "handoff", "need, entry 3, item edit-b, path spec");
    assert_eq!(missing.rows.manifest.state, State::Ok, "which says what the entry says");
    let more = tell(|_, run| {
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.fire_with("edit-b", |manifest| {
            let extra = manifest.input_refs[&path("patch")].clone();
            manifest.input_refs.insert(path("more"), extra);
        });
        run.done("edit-b", &[]);
        run.seal();
    });
    assert_says(&more, "handoff", "item edit-b, input more: … was consumed, but more belongs to no need");
}

#[test]
fn an_artifact_is_the_one_that_was_sealed() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.fire_with("edit-b", |manifest| {
            manifest.input_refs.get_mut(&path("spec")).unwrap().digest = Digest::compute(b"# Another spec\n");
        });
        run.done("edit-b", &[]);
        run.seal();
    });
    assert_says(
        &report,
        "handoff",
        "item edit-b, input spec: … was consumed, but outputs/docs/spec.md of @artifacts is …",
    );
}

#[test]
fn two_items_cannot_hold_one_lock() {
    let plan = r#"{"id":"handoff-dag-1","items":[
      {"id":"a","executor":"command","inputs":{"command":["true"]},"resourceLocks":["k"]},
      {"id":"b","executor":"command","inputs":{"command":["true"]},"resourceLocks":["k"]}]}"#;
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, plan);
    run.fire("a");
    run.fire("b");
    run.done("a", &[]);
    run.done("b", &[]);
    run.seal();
    forge.finish(run);
    assert_says(&forge.verify(), "plan", "entry 2: item \"b\" was dispatched while another item held the lock \"k\"");
}

#[test]
fn an_item_without_an_end_cannot_be_sealed() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.done("edit-a", PATCH);
        run.seal();
    });
    assert_says(&report, "plan", "entry 3: the run was sealed before every item had ended");
    assert_eq!(report.failure, Some(Failure::Plan));
}

#[test]
fn an_attempt_cannot_come_twice() {
    let report = tell(|_, run| {
        run.fire("edit-a");
        run.requeue("edit-a", Again::Crash);
        run.fire_with("edit-a", |manifest| manifest.attempt = 1);
        run.done("edit-a", PATCH);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
    });
    assert_says(&report, "plan", "entry 3: item \"edit-a\": attempt 1 is out of order");
}

#[test]
fn manifest_must_match_the_plan() {
    type Bend = fn(&mut git_handoff::model::manifest::Manifest);
    let bends: [(Bend, &str); 4] = [
        (|m| m.argv = vec!["rm".to_owned()], "the manifest of edit-a #1: argv is not the plan's"),
        (|m| m.executor = "dispatch".to_owned(), "the manifest of edit-a #1: executor is not the plan's"),
        (|m| m.inputs = Digest::compute(b"{}"), "the manifest of edit-a #1: inputs is not the plan's"),
        (|m| m.subagent = Some("x".to_owned()), "the manifest of edit-a #1: subagent is not the plan's"),
    ];
    for (bend, expected) in bends {
        let report = tell(|_, run| {
            run.fire_with("edit-a", |dispatch| bend(&mut dispatch.manifest));
            run.done("edit-a", PATCH);
            run.fire("edit-b");
            run.done("edit-b", &[]);
            run.seal();
        });
        assert_says(&report, "manifest", expected);
    }
}

/// Points at other bytes in an entry of an honest run.
fn pointing(at: usize, path: &str, bytes: impl Fn(&Forge) -> Oid) -> Report {
    bent(|forge, run| point_to(&mut run.drafts[at].event, path, bytes(forge)))
}

#[test]
fn a_dispatch_needs_its_manifest() {
    let none = pointing(1, "manifest.json", gone);
    assert_fails(&none, "manifest", "manifest-invalid, entry 1, item edit-a");
    let other = pointing(1, "manifest.json", |forge| blob(forge, b"{}"));
    assert_fails(&other, "manifest", "manifest-invalid, entry 1, item edit-a");
}

#[test]
fn the_plan_is_the_one_that_was_submitted() {
    let other = PLAN.replace("true", "false");
    let report = pointing(0, "plan.json", |forge| blob(forge, other.as_bytes()));
    assert_fails(&report, "plan", "bytes, entry 0");
    assert_fails(&pointing(0, "plan.json", gone), "plan", "bytes-missing, entry 0");
    let replanned = |plan: &str| {
        bent(|forge, run| {
            let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
            e.plan = store_product(forge, plan.as_bytes());
        })
    };
    let renamed = replanned(&PLAN.replace("handoff-dag-1", "another"));
    assert_says(&renamed, "plan", "entry 0: the plan is of another run");
    let no_plan = replanned("{}");
    assert_fails(&no_plan, "plan", "plan-invalid");
    assert_eq!(no_plan.rows.handoff.state, State::NotApplicable);
}

#[test]
fn verify_refuses_a_base_of_another_object_format() {
    let report = bent(|_, run| {
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.base = "0".repeat(64).parse().unwrap();
    });
    assert_says(&report, "plan", "entry 0: the base does not have the repository's object format");
}

#[test]
fn run_may_use_another_queue_than_its_plan() {
    let report = bent(|_, run| {
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.queue = "fast".to_owned();
    });
    assert_intact(&report);
}

#[test]
fn verify_takes_a_tree_with_other_files_and_fetch_does_not() {
    let forge = Forge::new();
    let honest_chain = forge.honest();
    let mut entries: Vec<_> = honest_chain.links.iter().map(|link| (link.entry.clone(), link.tree)).collect();
    let more = [("README".to_owned(), Edit::Bytes(b"smuggled".to_vec()))];
    let mut batch = forge.store.batch();
    entries[2].1 = batch.edit_tree(Some(entries[2].1), &more).unwrap();
    drop(batch.keep().unwrap());
    let tip = relink(&forge, &entries);
    forge.point_at(tip);
    assert!(forge.verify().intact, "logs and roots are about entries alone");
    let chain = Chain::Run(&honest_chain.run);
    let refused = check_incoming(&forge.store, chain, None, tip).unwrap_err();
    assert_eq!(refused, "the tree of entry 2 does not have exactly what the entry names");
    check_incoming(&forge.store, chain, None, honest_chain.links.last().unwrap().commit).unwrap();
}

#[test]
fn entry_with_too_many_folders_is_rejected() {
    let forge = Forge::new();
    let chain = forge.honest();
    let mut entries: Vec<_> = chain.links[..1].iter().map(|link| (link.entry.clone(), link.tree)).collect();
    let Event::RunSubmitted(e) = &mut entries[0].0.event else { panic!() };
    let product = *e.artifacts.values().next().unwrap();
    e.artifacts = (0..200).map(|at| (path(&format!("a{at}/{}f", "d/".repeat(400))), product)).collect();
    let refused = check_incoming(&forge.store, Chain::Run(&chain.run), None, relink(&forge, &entries)).unwrap_err();
    assert_eq!(refused, "the files lie in 80201 folders; at most 65536 are possible");
}

#[test]
fn a_product_hashes_to_its_ref() {
    let bends: [fn(&mut Product); 2] =
        [|product| product.sha256 = Digest::compute(b"better"), |product| product.size += 1];
    for bend in bends {
        let report = bent(|_, run| {
            let Event::ItemReconciled(e) = &mut run.drafts[4].event else { panic!() };
            bend(e.products.values_mut().next().unwrap());
        });
        assert_says(&report, "content", "outputs/report.md of edit-b hashes to …, not to …");
    }
    let artifact = pointing(0, "artifacts/docs/spec.md", |forge| blob(forge, b"# Another spec\n"));
    assert_says(&artifact, "content", "artifact docs/spec.md hashes to …, not to …");
}

#[test]
fn seal_must_match_the_entries_before_it() {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    run.true_seal = false;
    let Event::RunSealed(seal) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    seal.root = Digest::compute(b"x");
    forge.finish(run);
    let report = forge.verify();
    assert_fails(&report, "root", "seal-root, entry 5");
    assert_eq!(report.failure, Some(Failure::Root));
}

#[test]
fn nothing_follows_a_seal() {
    let report = bent(|_, run| run.close());
    assert_fails(&report, "chain", "misplaced, entry 6");
}

#[test]
fn every_entry_is_of_the_run() {
    let one = bent(|_, run| run.drafts[3].about = "another".parse::<RunId>().unwrap().into());
    assert_fails(&one, "chain", "misplaced, entry 3");
    let forge = Forge::new();
    let chain = forge.honest();
    let other = "other".parse().unwrap();
    git_handoff::git::refs::set(&forge.store, "refs/handoff/runs/other", chain.head.commit.unwrap()).unwrap();
    let report =
        git_handoff::verify::verify(&forge.store, &other, "refs/handoff/runs/other", &forge.options()).unwrap();
    assert_fails(&report, "chain", "misplaced, entry 0");
}

#[test]
fn the_first_entry_submits_and_no_other_does() {
    let second = bent(|_, run| {
        let again = run.drafts[0].event.clone();
        run.drafts.insert(3, draft(&run.plan.id, again));
    });
    assert_fails(&second, "chain", "misplaced, entry 3");
    let none = bent(|_, run| drop(run.drafts.remove(0)));
    assert_fails(&none, "chain", "misplaced, entry 0");
}
