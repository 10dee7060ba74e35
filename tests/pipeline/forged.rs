//! False results of blocks in properly linked, sealed and signed entries.

use git_handoff::engine::pipeline::load;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Again, Event, Exit, Verified, VerifiedBy};
use git_handoff::model::format;
use git_handoff::model::manifest::Manifest;
use git_handoff::model::pipeline::{BlockEnded, BlockKind, BlockStatus};
use git_handoff::model::state::RunState;
use git_handoff::verify::{Report, State};

use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, blob, store_product};

pub(crate) const SPEC: &[u8] =
    br#"{"schemaVersion":1,"id":"p.one","blocks":[{"kind":"agent"},{"kind":"script","command":"true"},
    {"kind":"script","command":"true","lens":"verify"},{"kind":"capture","what":"patch"}]}"#;

const PLAN: &str = r#"{"id":"handoff-dag-1","items":[{"id":"a","executor":"command","inputs":{"command":["true"],"pipeline":"p.one"}}]}"#;

/// A modification of a story.
pub(crate) type Bend = fn(&mut ChainBuilder<'_>, &Forge);

fn block(ordinal: u32, kind: BlockKind) -> BlockEnded {
    let exit = (kind != BlockKind::Capture).then_some(Exit { code: Some(0), signal: None });
    BlockEnded { ordinal, kind, status: BlockStatus::Done, exit, duration_ms: 1, verify: None }
}

/// The entries of an honest attempt.
fn honest() -> Vec<BlockEnded> {
    let kinds = [BlockKind::Agent, BlockKind::Script, BlockKind::Script, BlockKind::Capture];
    let mut blocks: Vec<BlockEnded> = kinds.into_iter().zip(0..).map(|(kind, at)| block(at, kind)).collect();
    blocks[2].verify = Some(Verified { passed: true, by: VerifiedBy::Command });
    blocks
}

fn failed(block: &mut BlockEnded) {
    block.status = BlockStatus::Failed;
    block.exit = Some(Exit { code: Some(1), signal: None });
}

/// Tells the story of one item that is done, bent, to its end.
fn verify_forged(bend: Bend) -> Report {
    let forge = Forge::new();
    forge.finish(run(&forge, bend));
    forge.verify()
}

/// A sealed run of one item with a pipeline.
pub(crate) fn run(forge: &Forge, bend: impl FnOnce(&mut ChainBuilder<'_>, &Forge)) -> ChainBuilder<'_> {
    let mut run = ChainBuilder::submit(forge, PLAN);
    let spec = store_product(forge, SPEC);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    e.pipelines.insert("p.one".to_owned(), spec);
    run.state.pipelines.insert("p.one".to_owned(), spec);
    run.fire_with("a", |manifest| manifest.pipeline = Some(spec.sha256));
    run.done("a", &[("patch", b"diff\n")]);
    let Event::ItemReconciled(reconciled) = &mut run.drafts[2].event else { panic!() };
    reconciled.blocks = honest();
    reconciled.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
    bend(&mut run, forge);
    run.seal();
    run
}

/// Bends the blocks of the attempt.
pub(crate) fn blocks(run: &mut ChainBuilder<'_>, bend: impl FnOnce(&mut Vec<BlockEnded>)) {
    let Event::ItemReconciled(e) = &mut run.drafts[2].event else { panic!() };
    bend(&mut e.blocks);
}

fn failing(report: &Report) -> Vec<&str> {
    report.rows.iter().filter(|row| row.state == State::Failed).map(|row| row.name).collect()
}

/// Returns what is done to an honest story, by what it says of it.
pub(crate) fn forged(what: &str) -> Bend {
    FORGED.iter().find(|(known, ..)| *known == what).unwrap().2
}

const FORGED: &[(&str, &str, Bend)] = &[
    ("a block more than the pipeline has", "plan", |run, _| {
        blocks(run, |blocks| blocks.push(block(4, BlockKind::Capture)));
    }),
    ("a block fewer", "plan", |run, _| blocks(run, |blocks| blocks.truncate(3))),
    ("no block at all", "plan", |run, _| blocks(run, Vec::clear)),
    ("a block of another kind", "plan", |run, _| blocks(run, |blocks| blocks[0] = block(0, BlockKind::Script))),
    ("blocks that changed places", "plan", |run, _| blocks(run, |blocks| blocks.swap(0, 1))),
    ("a gate that did not pass, of an item that is done", "plan", |run, _| {
        blocks(run, |blocks| failed(&mut blocks[1]));
    }),
    ("a gate that is said to have passed with 1", "plan", |run, _| {
        blocks(run, |blocks| blocks[1].exit = Some(Exit { code: Some(1), signal: None }));
    }),
    ("a gate that is said to have checked", "plan", |run, _| {
        blocks(run, |blocks| blocks[1].verify = Some(Verified { passed: true, by: VerifiedBy::Command }));
    }),
    ("a check that failed and is said to have passed", "plan", |run, _| blocks(run, |blocks| failed(&mut blocks[2]))),
    ("a check that failed, of an item that is green", "plan", |run, _| {
        blocks(run, |blocks| {
            failed(&mut blocks[2]);
            blocks[2].verify = Some(Verified { passed: false, by: VerifiedBy::Command });
        });
    }),
    ("a product that no block took", "plan", |run, _| {
        let Event::ItemReconciled(e) = &mut run.drafts[2].event else { panic!() };
        let product = *e.products.values().next().unwrap();
        e.products.insert("outputs/x".parse().unwrap(), product);
    }),
    ("the bytes of another spec", "plan", |run, forge| exchange(run, blob(forge, &SPEC.replace_first()))),
    ("a spec that is none", "plan", |run, forge| {
        seal_other(run, forge, "p.one", b"{}");
    }),
    ("the spec of another id", "plan", |run, forge| {
        seal_other(run, forge, "p.one", &String::from_utf8_lossy(SPEC).replace("p.one", "p.two").into_bytes());
    }),
    ("a pipeline that nobody names", "plan", |run, forge| {
        let other = String::from_utf8_lossy(SPEC).replace("p.one", "p.two").into_bytes();
        seal_other(run, forge, "p.two", &other);
    }),
    ("a dispatch without the pipeline", "manifest", |run, forge| {
        dispatched(run, forge, |manifest| manifest.pipeline = None);
    }),
    ("a dispatch with another pipeline", "manifest", |run, forge| {
        dispatched(run, forge, |manifest| manifest.pipeline = Some(Digest::compute(b"other")));
    }),
    ("a try that went on behind a gate that did not pass", "plan", |run, _| {
        again(run, |blocks| {
            blocks.truncate(3);
            failed(&mut blocks[1]);
        });
    }),
];

trait Replaced {
    fn replace_first(&self) -> Vec<u8>;
}

impl Replaced for [u8] {
    /// The same length, and another command.
    fn replace_first(&self) -> Vec<u8> {
        String::from_utf8_lossy(self).replacen("\"true\"", "\"TRUE\"", 1).into_bytes()
    }
}

/// Seals other bytes under a name.
pub(crate) fn seal_other(run: &mut ChainBuilder<'_>, forge: &Forge, name: &str, bytes: &[u8]) {
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    e.pipelines.insert(name.to_owned(), store_product(forge, bytes));
}

/// Points at another blob for the pipeline.
pub(crate) fn exchange(run: &mut ChainBuilder<'_>, oid: Oid) {
    point_to(&mut run.drafts[0].event, &format::pipeline_path(Digest::compute(SPEC)), oid);
}

/// Bends the manifest of the dispatch, which its entry goes on naming.
fn dispatched(run: &mut ChainBuilder<'_>, forge: &Forge, bend: impl FnOnce(&mut Manifest)) {
    let Event::ItemFired(e) = &mut run.drafts[1].event else { panic!() };
    let mut manifest = Manifest::parse(&forge.store.read_blob(e.manifest.oid).unwrap()).unwrap();
    bend(&mut manifest);
    e.manifest = store_product(forge, &manifest.canonical());
}

/// Inserts a failed attempt with modified blocks before the honest one.
fn again(run: &mut ChainBuilder<'_>, bend: impl FnOnce(&mut Vec<BlockEnded>)) {
    let ended = run.drafts.pop().unwrap();
    run.state = {
        let Event::RunSubmitted(e) = &run.drafts[0].event else { panic!() };
        let mut state = RunState::new(e.clone(), &run.plan);
        state.apply(&run.drafts[1].event).unwrap();
        state
    };
    run.requeue("a", Again::Failure);
    let Event::ItemRetried(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    e.blocks = honest();
    bend(&mut e.blocks);
    let digest = Digest::compute(SPEC);
    run.fire_with("a", |manifest| manifest.pipeline = Some(digest));
    let Event::ItemReconciled(old_end) = ended.event else { panic!() };
    let (blocks, verify) = (old_end.blocks, old_end.verify);
    run.done("a", &[("patch", b"diff\n")]);
    let Event::ItemReconciled(new_end) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    (new_end.blocks, new_end.verify) = (blocks, verify);
}

#[test]
fn an_honest_story_holds() {
    let report = verify_forged(|_, _| {});
    assert_eq!(failing(&report), Vec::<&str>::new(), "{}", report.to_text(false));
    assert!(report.intact);
    let second_report = verify_forged(|run, _| {
        again(run, |blocks| {
            blocks.truncate(2);
            failed(&mut blocks[1]);
        });
    });
    assert!(second_report.intact, "{}", second_report.to_text(false));
}

#[test]
fn verify_rejects_blocks_outside_the_pipeline() {
    let mut found = Vec::new();
    for (what, rows, bend) in FORGED {
        let report = verify_forged(*bend);
        let mut failing = failing(&report);
        failing.sort_unstable();
        if failing.join(" ") != *rows || report.headline != "TAMPERED" {
            found.push(format!("{what}: {} instead of {rows}", failing.join(" ")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_worker_runs_nothing_but_what_was_sealed() {
    let forge = Forge::with_format("sha256");
    let oid = forge.store.write_blob(SPEC).unwrap();
    assert_eq!(load(&forge.store, oid, Digest::compute(SPEC)).unwrap().bytes(), SPEC);
    let other = load(&forge.store, oid, Digest::compute(b"other")).unwrap_err().to_string();
    insta::assert_snapshot!(other, @"integrity: the pipeline sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa differs from the one sealed with the run: it hashes to sha256:1aa3f834e8e7b04b240697100dedbb6bfd6cc626a1d8f5873eacf334c83e209c");
    let none = forge.store.write_blob(b"{}").unwrap();
    let none = load(&forge.store, none, Digest::compute(b"{}")).unwrap_err().to_string();
    insta::assert_snapshot!(none, @"integrity: the sealed pipeline sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a is invalid: missing-field at schemaVersion: the field `schemaVersion` is missing");
    let missing = load(&forge.store, forge.base, Digest::compute(SPEC)).unwrap_err().to_string();
    assert!(missing.starts_with("integrity: ") && missing.ends_with("cannot be read"), "{missing}");
}
