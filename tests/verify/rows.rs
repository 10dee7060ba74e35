//! A fault fails its row, and the other rows are still checked.

use git_handoff::git::codec;
use git_handoff::model::entry::Event;
use git_handoff::verify::{Report, State};

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, blob};

/// The states of the rows in their order: `✓`, `✗` or `─`.
fn marks(report: &Report) -> String {
    let mark = |state: State| match state {
        State::Ok => '✓',
        State::Failed => '✗',
        State::NotApplicable => '─',
    };
    report.rows.iter().map(|row| mark(row.state)).collect()
}

/// Chain, root, signature, anchor, handoff, plan, manifest, content.
#[track_caller]
fn assert_marks(report: &Report, wanted: &str) {
    assert_eq!(marks(report), wanted, "\n{}", report.to_text(false));
}

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

#[test]
fn of_a_symbolic_ref_no_entry_is_read() {
    let forge = Forge::new();
    let told = forge.honest();
    forge.git(&["update-ref", "refs/handoff/runs/real", &told.head.commit.unwrap().to_string()]);
    forge.git(&["update-ref", "-d", RUN]);
    forge.git(&["symbolic-ref", RUN, "refs/handoff/runs/real"]);
    assert_marks(&forge.verify(), "✗✗─✗────");
    let log = git_handoff::model::format::log_ref(&forge.signer.fingerprint());
    forge.git(&["update-ref", "-d", &log]);
    assert_marks(&forge.verify(), "✗✗──────");
}

#[test]
fn a_first_entry_that_does_not_submit_leaves_the_plan_open() {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    run.drafts.remove(0);
    run.write(&forge.signer);
    assert_marks(&forge.verify(), "✗✓✗✗──✗✓");
}

#[test]
fn a_commit_that_is_no_entry_is_left_out_of_the_other_rows() {
    let forge = Forge::new();
    let told = forge.honest();
    // The dispatch of the second item, with an unknown field.
    let at = 3;
    let mut parent = told.links[at - 1].commit;
    for link in &told.links[at..] {
        let mut payload = String::from_utf8(codec::payload(&link.entry, link.tree, &[parent])).unwrap();
        if link.entry.seq == 3 {
            payload = payload.replace("{\"actor\":", "{\"aaa\":1,\"actor\":");
        }
        let signature = forge.signer.sign(payload.as_bytes()).unwrap().replace('\n', "\n ");
        let raw = payload.replacen(" +0000\n\n", &format!(" +0000\ngpgsig {signature}\n\n"), 1);
        parent = forge.store.write(gix::objs::Kind::Commit, raw.as_bytes()).unwrap();
    }
    forge.point_at(parent);
    let report = forge.verify();
    // The manifest of the first dispatch is held against the plan; the product of an item that was
    // never dispatched is there.
    assert_marks(&report, "✗✗✓✗✓✗✓✓");
    insta::assert_snapshot!(report.rows.plan.detail, @r#"entry 4: item "edit-b" has no running attempt (and 1 more)"#);
}

#[test]
fn an_entry_that_is_not_legal_changes_nothing() {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff\n")]);
    // An attempt too many: what it ends with is not legal either, and the second item still takes
    // the first product.
    let Event::ItemReconciled(done) = run.drafts[2].event.clone() else { panic!() };
    run.add(Event::ItemReconciled(done), Vec::new());
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.seal();
    forge.finish(run);
    let report = forge.verify();
    assert_marks(&report, "✓✓✓✓✓✗✓✓");
    insta::assert_snapshot!(report.rows.plan.detail, @r#"entry 3: item "edit-a" has no running attempt"#);
}

#[test]
fn a_plan_that_cannot_be_read_leaves_handoff_and_manifest_open() {
    let told = |bend: &dyn Fn(&Forge, &mut ChainBuilder<'_>)| {
        let forge = Forge::new();
        let mut run = ChainBuilder::honest(&forge);
        bend(&forge, &mut run);
        forge.finish(run);
        forge.verify()
    };
    assert_marks(&told(&|forge, run| run.drafts[0].edits[0].1 = blob(forge, b"[]")), "✓✓✓✓─✗─✓");
    assert_marks(&told(&|_, run| drop(run.drafts[0].edits.remove(0))), "✗✓✓✓─✗─✓");
    // Another plan than the entry's is used as it is.
    let other = PLAN.replace("\"true\"", "\"false\"");
    assert_marks(&told(&|forge, run| run.drafts[0].edits[0].1 = blob(forge, other.as_bytes())), "✓✓✓✓✓✗✗✓");
    let gone = |suffix: &'static str| told(&|_, run| run.drafts[1].edits.retain(|(path, _)| !path.ends_with(suffix)));
    assert_marks(&gone("manifest.json"), "✗✓✓✓✓✓✗✓");
    assert_marks(&gone("state.json"), "✗✓✓✓✓✗✓✓");
}
