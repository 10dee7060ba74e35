//! A fault fails its row, and rows of later stages are not judged.

use git_handoff::git::codec;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::Event;
use git_handoff::verify::{Report, State};

use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, blob, gone};

/// Compares the states of the rows in their order, each `✓`, `✗` or `─`, and then the first
/// finding: its stage, code and entry.
#[track_caller]
fn assert_first(report: &Report, expected: &str) {
    let mark = |state: State| match state {
        State::Ok => '✓',
        State::Failed => '✗',
        State::NotApplicable => '─',
    };
    let marks: String = report.rows.iter().map(|row| mark(row.state)).collect();
    let first = report.finding.expect("there is a finding");
    let code = first.code.expect("it has a code").word();
    let entry = first.entry().map_or_else(String::new, |entry| format!(" {entry}"));
    let found = format!("{marks} {} {code}{entry}", first.stage.word());
    assert_eq!(found, expected, "\n{}", report.to_text(false));
}

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

/// Returns the report on an honest run that is bent before it is written.
fn bent(bend: impl Fn(&Forge, &mut ChainBuilder<'_>)) -> Report {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    bend(&forge, &mut run);
    forge.finish(run);
    forge.verify()
}

#[test]
fn verify_reads_no_entry_of_a_symbolic_ref() {
    let forge = Forge::new();
    let chain = forge.honest();
    forge.git(&["update-ref", "refs/handoff/runs/real", &chain.head.commit.unwrap().to_string()]);
    forge.git(&["update-ref", "-d", RUN]);
    forge.git(&["symbolic-ref", RUN, "refs/handoff/runs/real"]);
    assert_first(&forge.verify(), "✗─────── chain ref 0");
}

#[test]
fn verify_judges_no_plan_when_the_first_entry_submits_none() {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    run.drafts.remove(0);
    run.write(&forge.signer);
    assert_first(&forge.verify(), "✗✓✗───── chain misplaced 0");
}

#[test]
fn verify_judges_no_plan_when_a_commit_is_no_entry() {
    let forge = Forge::new();
    let chain = forge.honest();
    // The dispatch of the second item, with an unknown field.
    let at = 3;
    let mut parent = chain.links[at - 1].commit;
    for link in &chain.links[at..] {
        let mut payload = String::from_utf8(codec::payload(&link.entry, link.tree, &[parent])).unwrap();
        if link.entry.seq == 3 {
            payload = payload.replace("{\n \"actor\":", "{\n \"aaa\": 1,\n \"actor\":");
        }
        let signature = forge.signer.sign(payload.as_bytes()).unwrap().replace('\n', "\n ");
        let raw = payload.replacen(" +0000\n\n", &format!(" +0000\ngpgsig {signature}\n\n"), 1);
        parent = forge.store.write(gix::objs::Kind::Commit, raw.as_bytes()).unwrap();
    }
    forge.point_at(parent);
    assert_first(&forge.verify(), "✗✗✓───── chain entry 0");
}

#[test]
fn verify_names_the_first_of_two_illegal_entries() {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff\n")]);
    let Event::ItemReconciled(done) = run.drafts[2].event.clone() else { panic!() };
    run.add(Event::ItemReconciled(done.clone()));
    run.add(Event::ItemReconciled(done));
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.seal();
    forge.finish(run);
    assert_first(&forge.verify(), "✓✓✓─✓✗✓─ plan transition 3");
}

#[test]
fn verify_judges_later_rows_only_when_the_plan_holds() {
    let point = |at: usize, path: &str, oid: fn(&Forge) -> Oid| {
        bent(|forge, run| point_to(&mut run.drafts[at].event, path, oid(forge)))
    };
    assert_first(&point(0, "plan.json", |forge| blob(forge, b"[]")), "✓✓✓──✗── plan bytes 0");
    assert_first(&point(0, "plan.json", gone), "✓✓✓──✗── plan bytes-missing 0");
    assert_first(&point(1, "manifest.json", gone), "✓✓✓─✓✓✗─ plan manifest-invalid 1");
}

#[test]
fn verify_asks_no_log_when_a_product_has_other_bytes() {
    let bend = |forge: &Forge, run: &mut ChainBuilder<'_>| {
        point_to(&mut run.drafts[0].event, "artifacts/docs/spec.md", blob(forge, b"# Another spec\n"));
    };
    assert_first(&bent(bend), "✓✓✓─✓✓✓✗ content content-bytes 0");
}
