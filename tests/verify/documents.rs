//! Stories about documents that cannot have happened.

use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, assert_fails, assert_intact, assert_says, path};

use crate::common::report::find_row;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Event;
use git_handoff::model::plan::ProductKey;
use git_handoff::verify::Report;

const PLAN: &str = r#"{"id":"handoff-dag-1","items":[
  {"id":"make","executor":"command","inputs":{"command":["true"]},
   "produces":[{"kind":"document","name":"score","schema":"score@1","path":"out/score.json"}]},
  {"id":"use","executor":"command","inputs":{"command":["true"]},"needs":{
   "score":{"from":"make","select":{"kind":"document","name":"score","schema":"score@1"}},
   "notes":{"from":"@documents","select":{"kind":"document","name":"notes","schema":"notes@2"}}}}]}"#;

const SCORE: &[(&str, &[u8])] = &[("outputs/out/score.json", b"7\n"), ("documents/score", b"7\n")];

fn tell(bend: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> Report {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    bend(&forge, &mut run);
    forge.finish(run);
    forge.verify()
}

/// Tells the whole story; `bend` has its say after the first revision of the notes.
fn tell_with(bend: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> Report {
    tell(|forge, run| {
        run.document("notes", Some("notes@1"), b"one\n");
        bend(forge, run);
        run.document("notes", Some("notes@2"), b"two\n");
        run.fire("make");
        run.done("make", SCORE);
        run.document("score", None, b"8\n");
        run.fire("use");
        run.done("use", &[]);
        run.document("notes", None, b"three\n");
        run.seal();
    })
}

#[test]
fn honest_revisions_are_intact() {
    let report = tell_with(|_, _| {});
    assert_intact(&report);
    let text = report.to_text(false);
    insta::assert_snapshot!(find_row(&text, "handoff"), @"✓ handoff    2 input refs accounted for");
    insta::assert_snapshot!(find_row(&text, "content"), @"✓ content    6 products, 20 B re-hashed");
}

#[test]
fn revisions_are_numbered_and_linked() {
    let number = tell_with(|_, run| run.document_with("other", b"x", |e| e.revision = 2));
    assert_says(&number, "plan", "entry 2: document \"other\": revision 2 is out of order");
    let again = tell_with(|_, run| run.document_with("notes", b"x", |e| e.revision = 1));
    assert_says(&again, "plan", "entry 2: document \"notes\": revision 1 is out of order");
    let bends = [Some(Digest::compute(b"another")), None];
    for bend in bends {
        let previous = tell_with(|_, run| run.document_with("notes", b"x", |e| e.previous = bend));
        assert_says(&previous, "plan", "entry 2: document \"notes\": revision 2 does not name the one before it");
    }
    let first = tell_with(|_, run| run.document_with("other", b"x", |e| e.previous = Some(Digest::compute(b"one\n"))));
    assert_says(&first, "plan", "entry 2: document \"other\": revision 1 does not name the one before it");
}

#[test]
fn names_stand_side_by_side_with_all_others_of_the_run() {
    let clashing = [("notes/more", "notes"), ("score/x", "score"), ("Notes", "notes"), ("SCORE", "score")];
    for (name, other) in clashing {
        let report = tell_with(|_, run| run.document(name, None, b"x"));
        let why = format!("entry 2: the documents {name:?} and {other:?} cannot stand side by side");
        assert_says(&report, "plan", &why);
    }
}

#[test]
fn nothing_is_written_on_a_run_that_has_ended() {
    let report_after = |end: fn(&mut ChainBuilder<'_>)| {
        tell(|_, run| {
            run.fire("make");
            run.fail("make");
            run.skip("use");
            end(run);
        })
    };
    let closed = report_after(|run| {
        run.close();
        run.document("late", None, b"x");
        run.seal();
    });
    assert_says(&closed, "plan", "entry 5: document \"late\" was written after the run was closed or cancelled");
    let sealed = report_after(|run| {
        run.close();
        run.seal();
        run.document("late", None, b"x");
    });
    assert_fails(&sealed, "chain", "misplaced, entry 6");
}

#[test]
fn an_item_hands_over_the_documents_of_its_plan_and_no_others() {
    let done = |products: &[(&str, &[u8])]| {
        tell(|_, run| {
            run.fire("make");
            run.done("make", products);
        })
    };
    let none = done(&[("outputs/out/score.json", b"7\n")]);
    assert_says(&none, "plan", "entry 2: item \"make\" does not hand over the document \"score\" as the plan says");
    let other_bytes = done(&[("outputs/out/score.json", b"7\n"), ("documents/score", b"9\n")]);
    assert_says(
        &other_bytes,
        "plan",
        "entry 2: item \"make\" does not hand over the document \"score\" as the plan says",
    );
    let no_output = done(&[("documents/score", b"7\n")]);
    assert_says(
        &no_output,
        "plan",
        "entry 2: item \"make\" does not hand over the document \"score\" as the plan says",
    );
    let more = done(&[SCORE[0], SCORE[1], ("documents/more", b"7\n")]);
    assert_says(&more, "plan", "entry 2: item \"make\" does not hand over the document \"more\" as the plan says");
}

#[test]
fn consumed_document_is_the_highest_earlier_revision() {
    let fired = |key: &'static str, digest: Digest| {
        tell(move |_, run| {
            run.document("notes", Some("notes@2"), b"one\n");
            run.document("notes", Some("notes@2"), b"two\n");
            run.fire("make");
            run.done("make", SCORE);
            run.document("score", Some("score@1"), b"8\n");
            run.fire_with("use", |manifest| manifest.input_refs.get_mut(&path(key)).unwrap().digest = digest);
            run.document("notes", Some("notes@2"), b"three\n");
        })
    };
    for bytes in [b"one\n".as_slice(), b"three\n"] {
        assert_says(
            &fired("notes", Digest::compute(bytes)),
            "handoff",
            "item use, input notes: … was consumed, but documents/notes of @documents is …",
        );
    }
    // From an item: its own, whatever was written later.
    let later = fired("score", Digest::compute(b"8\n"));
    assert_says(&later, "handoff", "item use, input score: … was consumed, but documents/score of make is …");
    insta::assert_snapshot!(fired("score", Digest::compute(b"7\n")).rows.handoff.detail, @"2 input refs accounted for");
}

#[test]
fn consumed_document_matches_the_expected_schema() {
    let story = |schema: Option<&'static str>| {
        tell(move |_, run| {
            if let Some(schema) = schema {
                run.document("notes", Some(schema), b"one\n");
            }
            run.fire("make");
            run.done("make", SCORE);
            run.fire_with("use", |manifest| {
                manifest.input_refs.get_mut(&path("notes")).unwrap().digest = Digest::compute(b"one\n");
            });
        })
    };
    for schema in ["notes@1", "other@2", "notes@3"] {
        assert_says(
            &story(Some(schema)),
            "handoff",
            "item use, input notes: … was consumed, but revision 1 of document notes is not notes@2",
        );
    }
    let missing = "item use, input notes: … was consumed, but there was no document notes yet";
    assert_says(&story(None), "handoff", missing);
    insta::assert_snapshot!(story(Some("notes@2")).rows.handoff.detail, @"2 input refs accounted for");
}

#[test]
fn revision_hash_matches_its_entry() {
    let report = tell_with(|forge, run| {
        let Event::DocumentWritten(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.oid = forge.store.write_blob(b"evil\n").unwrap();
    });
    assert_says(&report, "content", "revision 1 of document notes hashes to …, not to …");
}

#[test]
fn a_key_of_products_is_the_documents_own() {
    assert_eq!("documents/a/b".parse(), Ok(ProductKey::Document(path("a/b"))));
    assert!(format!("documents/{}", "x".repeat(129)).parse::<ProductKey>().is_err());
}
