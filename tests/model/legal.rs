//! Legality of events: for every kind, the states that refuse it and the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use git_handoff::model::digest::Digest;
use git_handoff::model::driver::RunShared;
use git_handoff::model::entry::{Again, Cause, Event, Outcome, RunConcluded, RunEnded, RunExtended, RunSealed};
use git_handoff::model::entry::{Decision, ItemDecided, Role, RunAdmitted, RunDismissed};
use git_handoff::model::entry::{DocumentWritten, LogRecorded, Product};
use git_handoff::model::name::FilePath;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::state::{Illegal, RunState};

use super::{base, dropped, ended, fired, name, reconciled, submitted};

/// The runs: i0 and i2 want one lock, i1 waits for i0.
fn states() -> Vec<(&'static str, RunState)> {
    let done = |at| [fired(at, 1), reconciled(at, 1, Outcome::Done)];
    let failed = [fired(0, 1), reconciled(0, 1, Outcome::Failed)];
    let lost = [&failed[..], &[Event::ItemSkipped(dropped(1, 0))], &done(2)[..]].concat();
    let cancelled = [Event::ItemCancelled(dropped(0, 0)), Event::ItemSkipped(dropped(1, 0))];
    let all_done = [&done(0)[..], &done(1)[..], &done(2)[..]].concat();
    let cases: Vec<(&str, Vec<Event>)> = vec![
        ("fresh", vec![]),
        ("i0 runs", vec![fired(0, 1)]),
        ("i0 again", vec![fired(0, 1), Event::ItemRetried(ended(0, 1, Again::Failure, None))]),
        ("i0 done", done(0).to_vec()),
        ("i0 failed", failed.to_vec()),
        ("i0 cancelled", cancelled.to_vec()),
        ("lost", lost.clone()),
        ("closed", [&lost[..], &[closed()]].concat()),
        ("written", vec![written("notes", 1, None)]),
        ("all done", all_done.clone()),
        ("sealed", [&all_done[..], &[sealed()]].concat()),
    ];
    let tell = |(name, events): (&'static str, Vec<Event>)| {
        let mut state = submitted(&[(vec![], vec![0]), (vec![0], vec![]), (vec![], vec![0])]);
        events.iter().for_each(|event| state.apply(event).unwrap());
        (name, state)
    };
    cases.into_iter().map(tell).collect()
}

fn written(name: &str, revision: u64, previous: Option<&[u8]>) -> Event {
    let product = Product { sha256: Digest::compute(b"one"), oid: base(), size: 3 };
    let first = DocumentWritten::new(FilePath::parse(name).unwrap(), revision, product, "human:ada".into());
    Event::DocumentWritten(DocumentWritten { previous: previous.map(Digest::compute), ..first })
}

fn handed_over_unasked() -> Event {
    let Event::ItemReconciled(mut event) = reconciled(0, 1, Outcome::Done) else { unreachable!() };
    let product = Product { sha256: Digest::compute(b""), oid: base(), size: 0 };
    event.products.insert(ProductKey::Document(FilePath::parse("notes").unwrap()), product);
    Event::ItemReconciled(event)
}

fn of_documents() -> Vec<(&'static str, Event)> {
    vec![
        ("i0 #1 done with a document", handed_over_unasked()),
        ("notes, revision 1", written("notes", 1, None)),
        ("notes, revision 1 after another", written("notes", 1, Some(b"one"))),
        ("notes, revision 2", written("notes", 2, Some(b"one"))),
        ("notes, revision 2 after another", written("notes", 2, Some(b"two"))),
        ("notes, revision 3", written("notes", 3, Some(b"one"))),
        ("Notes", written("Notes", 1, None)),
        ("notes/more", written("notes/more", 1, None)),
    ]
}

fn decided(at: usize) -> Event {
    Event::ItemDecided(ItemDecided::new(
        name(at),
        Decision::Approved,
        Outcome::Done,
        BTreeMap::new(),
        "SHA256:x".to_owned(),
    ))
}

fn closed() -> Event {
    Event::RunClosed(RunEnded::new("closed"))
}

fn sealed() -> Event {
    Event::RunSealed(RunSealed::new(Digest::compute(b"root")))
}

fn failed_with_products() -> Event {
    let Event::ItemReconciled(mut event) = reconciled(0, 1, Outcome::Failed) else { unreachable!() };
    event.products.insert(ProductKey::Patch, Product { sha256: Digest::compute(b""), oid: base(), size: 0 });
    Event::ItemReconciled(event)
}

/// The word for an answer, as short as the table needs it.
fn word(answer: &Result<(), Illegal>) -> &'static str {
    match answer {
        Ok(()) => "ok",
        Err(Illegal::AfterSeal) => "sealed",
        Err(Illegal::Misplaced(_)) => "misplaced",
        Err(Illegal::UnknownItem(_)) => "unknown",
        Err(Illegal::NotRunning(_)) => "not-running",
        Err(Illegal::NotWaiting(_)) => "not-waiting",
        Err(Illegal::WrongAttempt(..)) => "attempt",
        Err(Illegal::WrongReason(_)) => "reason",
        Err(Illegal::NoAttemptLeft(..)) => "no-attempt-left",
        Err(Illegal::NotProduced(..)) => "not-produced",
        Err(Illegal::WrongExit(_)) => "exit",
        Err(Illegal::BeforeDependency(..)) => "dependency",
        Err(Illegal::LockHeld(..)) => "lock",
        Err(Illegal::SkippedForNothing(_)) => "for-nothing",
        Err(Illegal::RanAndReused(_)) => "reused",
        Err(Illegal::WrongGrade(_)) => "grade",
        Err(Illegal::ProductsOfFailed(_)) => "products",
        Err(Illegal::AfterEnd(_) | Illegal::WrittenAfterEnd(_)) => "ended",
        Err(Illegal::DocumentOfItem(..)) => "document",
        Err(Illegal::WrongRevision(..)) => "revision",
        Err(Illegal::WrongPrevious(..)) => "previous",
        Err(Illegal::NoPlace(..)) => "no-place",
        Err(
            Illegal::ExtendedAfterEnd
            | Illegal::OtherItems
            | Illegal::NotImported(..)
            | Illegal::OtherPipelines
            | Illegal::NotOpenEnded
            | Illegal::UnknownRule(_)
            | Illegal::TooManyByRule(_)
            | Illegal::DuplicateItem(_)
            | Illegal::UnknownDependency(..)
            | Illegal::CannotStandFor(..)
            | Illegal::Superseded(_)
            | Illegal::WrongConclusion(_)
            | Illegal::WrongStop(_)
            | Illegal::Circle(_),
        ) => "growth",
        Err(
            Illegal::ForPeople(_)
            | Illegal::NotForPeople(_)
            | Illegal::OtherProducts(_)
            | Illegal::NotApprover(..)
            | Illegal::WrongStatus(_)
            | Illegal::SecondVote(..)
            | Illegal::SaidBefore
            | Illegal::AdmittedBefore(_)
            | Illegal::AdmittedAfterEnd,
        ) => "people",
        Err(Illegal::EndedUnsettled | Illegal::SealedUnsettled) => "unsettled",
        Err(
            Illegal::WrongSharing
            | Illegal::NoDriver(_)
            | Illegal::TooManyRunning(..)
            | Illegal::NotHolder(..)
            | Illegal::NotHeld(_)
            | Illegal::OwnTaker(_)
            | Illegal::NotDismissable(_),
        ) => "drivers",
    }
}

/// Returns the answer to each event in each state, as a table with states of this width. Fails if a
/// refused event changed a state.
pub(super) fn table(
    events: &[(&str, Event)],
    states: &dyn Fn() -> Vec<(&'static str, RunState)>,
    width: usize,
    word: &dyn Fn(&Result<(), Illegal>) -> String,
) -> String {
    let mut table = String::new();
    for (name, event) in events {
        writeln!(table, "{name}").unwrap();
        for (state_name, mut state) in states() {
            let before = format!("{state:?}");
            let answer = state.apply(event);
            if answer.is_err() {
                assert_eq!(format!("{state:?}"), before, "{name} was refused after {state_name} and changed the state");
            }
            writeln!(table, "    {state_name:<width$}{}", word(&answer)).unwrap();
        }
    }
    table
}

#[test]
fn every_kind_of_entry_is_refused_where_it_does_not_belong_and_changes_nothing() {
    let log = || "SHA256:x".to_owned();
    let submitted = submitted(&[]).submitted;
    let mut events = vec![
        ("fire i0 #1", fired(0, 1)),
        ("fire i0 #2", fired(0, 2)),
        ("fire i1 #1", fired(1, 1)),
        ("fire i2 #1", fired(2, 1)),
        ("fire i9 #1", fired(9, 1)),
        ("i0 #1 done", reconciled(0, 1, Outcome::Done)),
        ("i0 #0 done", reconciled(0, 0, Outcome::Done)),
        ("i0 #1 failed", reconciled(0, 1, Outcome::Failed)),
        ("i0 #0 failed", reconciled(0, 0, Outcome::Failed)),
        ("i0 #2 failed", reconciled(0, 2, Outcome::Failed)),
        ("i0 #1 failed with products", failed_with_products()),
        ("i0 #1 retried", Event::ItemRetried(ended(0, 1, Again::Failure, None))),
        ("i0 #1 retried by an operator", Event::ItemRetried(ended(0, 1, Again::Operator, None))),
        ("i0 #1 requeued", Event::ItemRequeued(ended(0, 1, Again::Crash, None))),
        ("i0 #1 requeued for failure", Event::ItemRequeued(ended(0, 1, Again::Failure, None))),
        ("i0 #1 asked for again", Event::ItemRequeued(ended(0, 1, Again::Operator, None))),
        ("i1 skipped", Event::ItemSkipped(dropped(1, 0))),
        ("i2 skipped", Event::ItemSkipped(dropped(2, 0))),
        ("i0 #0 cancelled", Event::ItemCancelled(dropped(0, 0))),
        ("i0 #1 cancelled", Event::ItemCancelled(dropped(0, 1))),
        ("closed", closed()),
        ("cancelled", Event::RunCancelled(RunEnded::new("cancelled"))),
        ("sealed", sealed()),
        ("submitted", Event::RunSubmitted(submitted)),
        (
            "extended by nothing that is said",
            Event::RunExtended(RunExtended::new(Cause::Actor, &[], gix::hash::Kind::Sha1).unwrap()),
        ),
        ("concluded by a rule that there is not", Event::RunConcluded(RunConcluded::new(name(0), "so"))),
        ("i0 approved, which is for a command", decided(0)),
        ("admitted, who may do it", Event::RunAdmitted(RunAdmitted::new(log(), Role::Work))),
        ("dismissed, who has no role", Event::RunDismissed(RunDismissed::new("SHA256:y".to_owned()))),
        ("shared", Event::RunShared(RunShared::new(1000, 4000))),
        ("log: recorded", Event::LogRecorded(LogRecorded::begin(log(), Digest::compute(b"")))),
    ];
    events.extend(of_documents());
    let kinds: BTreeSet<&str> = events.iter().map(|(_, event)| event.kind()).collect();
    assert!(kinds.is_superset(&super::kinds_of_runs()), "only of {kinds:?} it is asked where they belong");
    let table = table(&events, &states, 13, &|answer| word(answer).to_owned());
    crate::common::assert_output!("legal_transitions", table);
}
