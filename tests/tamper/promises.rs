//! Violations of the plan in properly linked, sealed and signed runs, beside honest ones.

use git_handoff::model::entry::{Again, Event, Exit};

use super::run::failing;
use super::table;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::Forge;

/// A modification of a run's story.
type Story = fn(&mut ChainBuilder<'_>);

/// A plan of one item, which promises what the text says.
fn plan(more: &str) -> String {
    format!(
        r#"{{"id":"handoff-dag-1","items":[{{"id":"a","executor":"command","inputs":{{"command":["true"]}}{more}}}]}}"#
    )
}

/// Tells a story to its end and returns the rows that fail, with a log that agrees with it.
fn verify_rows(promise: &str, story: Story) -> String {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, &plan(promise));
    story(&mut run);
    if !run.state.is_done() {
        run.close();
    }
    run.seal();
    forge.finish(run);
    let report = forge.verify();
    assert_eq!(report.intact, failing(&report).is_empty(), "{}", report.to_text(false));
    failing(&report)
}

fn failed(run: &mut ChainBuilder<'_>, times: u32) {
    for _ in 0..times {
        run.fire("a");
        run.requeue("a", Again::Failure);
    }
}

fn done(run: &mut ChainBuilder<'_>, products: &[(&str, &[u8])]) {
    run.fire("a");
    run.done("a", products);
}

/// Changes the recorded exit status of the attempt in the entry before the last.
fn ended(run: &mut ChainBuilder<'_>, code: Option<i32>, signal: Option<i32>) {
    let exit = Some(Exit { code, signal });
    match &mut run.drafts.last_mut().unwrap().event {
        Event::ItemReconciled(e) => e.exit = exit,
        Event::ItemRetried(e) | Event::ItemRequeued(e) => e.exit = exit,
        other => panic!("{}", other.kind()),
    }
}

const ONE: &str = r#","maxAttempts":1"#;
const TWO: &str = r#","maxAttempts":2"#;
const PATCH: &str = r#","produces":[{"kind":"patch"}]"#;
const OUTPUTS: &str = r#","produces":[{"kind":"output","path":"x"},{"kind":"output","path":"deep/y","type":"text"}]"#;
const DOCUMENT: &str = r#","produces":[{"kind":"document","name":"d","path":"d.md"}]"#;
const X: (&str, &[u8]) = ("outputs/x", b"x");

/// The forgeries: description, plan, and story.
const BROKEN: &[(&str, &str, Story)] = &[
    ("six attempts where the plan allows one", ONE, |run| {
        failed(run, 5);
        done(run, &[]);
    }),
    ("one attempt more than the plan allows", TWO, |run| {
        failed(run, 2);
        done(run, &[]);
    }),
    ("the same, one more lost to a crash", TWO, |run| {
        run.fire("a");
        run.requeue("a", Again::Crash);
        failed(run, 2);
        done(run, &[]);
    }),
    ("the same, after an operator asked again", ONE, |run| {
        run.fire("a");
        run.fail("a");
        run.requeue("a", Again::Operator);
        failed(run, 1);
        done(run, &[]);
    }),
    ("done without the declared patch", PATCH, |run| done(run, &[X])),
    ("done without any declared output", OUTPUTS, |run| done(run, &[])),
    ("done without one of two declared outputs", OUTPUTS, |run| done(run, &[X])),
    ("done with an output of a name that is near the declared one", OUTPUTS, |run| {
        done(run, &[X, ("outputs/deep/Y", b"y")]);
    }),
    ("done without the declared document", DOCUMENT, |run| done(run, &[("outputs/d.md", b"d")])),
    ("done, and its process ended with a code and by a signal", "", |run| {
        done(run, &[]);
        ended(run, Some(0), Some(9));
    }),
    ("done, and its process ended in no way", "", |run| {
        done(run, &[]);
        ended(run, None, None);
    }),
    ("done, and its process ended with 1", "", |run| {
        done(run, &[]);
        ended(run, Some(1), None);
    }),
    ("done, and a signal ended its process", "", |run| {
        done(run, &[]);
        ended(run, None, Some(9));
    }),
    ("failed, and its process ended with a code and by a signal", "", |run| {
        run.fire("a");
        run.fail("a");
        ended(run, Some(1), Some(9));
    }),
    ("tried again, and its process ended in no way", "", |run| {
        failed(run, 1);
        ended(run, None, None);
        done(run, &[]);
    }),
    ("requeued, and its process ended with a code and by a signal", "", |run| {
        run.fire("a");
        run.requeue("a", Again::Crash);
        ended(run, Some(1), Some(9));
        done(run, &[]);
    }),
    ("a manifest with another timeout than the plan's", r#","timeout":5"#, |run| {
        run.fire_with("a", |manifest| manifest.timeout = 6);
        run.done("a", &[]);
    }),
];

/// Allowed stories.
const KEPT: &[(&str, &str, Story)] = &[
    ("as many attempts as the plan allows", TWO, |run| {
        failed(run, 1);
        done(run, &[]);
    }),
    ("attempts lost to crashes, more than the plan allows", ONE, |run| {
        for _ in 0..3 {
            run.fire("a");
            run.requeue("a", Again::Crash);
        }
        done(run, &[]);
    }),
    ("a crash and a failure, and the last attempt fails", r#","maxAttempts":3"#, |run| {
        failed(run, 1);
        run.fire("a");
        run.requeue("a", Again::Crash);
        run.fire("a");
        run.fail("a");
    }),
    ("an operator who asks again, twice, after what the plan allows", ONE, |run| {
        for _ in 0..2 {
            run.fire("a");
            run.fail("a");
            run.requeue("a", Again::Operator);
        }
        done(run, &[]);
    }),
    ("interruptions by an operator, more than the plan allows attempts", ONE, |run| {
        for _ in 0..3 {
            run.fire("a");
            run.requeue("a", Again::Operator);
        }
        done(run, &[]);
    }),
    ("many attempts where the plan says nothing", "", |run| {
        failed(run, 9);
        done(run, &[]);
    }),
    ("more products than declared", PATCH, |run| done(run, &[("patch", b"diff\n"), X])),
    ("all that was declared", OUTPUTS, |run| done(run, &[X, ("outputs/deep/y", b"y")])),
    ("failed without what it declares", OUTPUTS, |run| {
        run.fire("a");
        run.fail("a");
    }),
    ("failed, though its process ended with 0", "", |run| {
        run.fire("a");
        run.fail("a");
        ended(run, Some(0), None);
    }),
    ("failed, and a signal ended its process", "", |run| {
        run.fire("a");
        run.fail("a");
        ended(run, None, Some(9));
    }),
    ("an `exit` beyond what a byte holds", "", |run| {
        run.fire("a");
        run.fail("a");
        ended(run, Some(i32::MIN), None);
    }),
];

#[test]
fn no_promise_of_the_plan_is_broken_unnoticed() {
    let rows = BROKEN.iter().map(|(what, promise, story)| {
        let rows = verify_rows(promise, *story);
        assert!(!rows.is_empty(), "{what}");
        vec![(*what).to_owned(), rows]
    });
    table::check(
        "tamper_promises",
        &["told, linked, sealed and logged by the right key", "rows that fail"],
        &rows.collect::<Vec<_>>(),
    );
}

#[test]
fn honest_runs_break_no_promise() {
    for (what, promise, story) in KEPT {
        assert_eq!(verify_rows(promise, *story), "", "{what}");
    }
}
