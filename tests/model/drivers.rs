//! Legality of entries about attempts that drivers of a shared run hold, and the keys that may
//! write them.

use git_handoff::model::driver::{Because, DriverId, RunShared};
use git_handoff::model::entry::{Again, Event, ItemEnded, Outcome, Role, RunAdmitted, RunDismissed};
use git_handoff::model::state::{Illegal, Phase, RunState};

use super::legal::table;
use super::{ended, fired, name, reconciled, submitted};

const ADA: &str = "SHA256:x";
const BOB: &str = "SHA256:y";

fn driver(digit: u8) -> DriverId {
    DriverId::from_random([digit; 16])
}

fn shared(heartbeat: u64, lost_after: u64) -> Event {
    Event::RunShared(RunShared::new(heartbeat, lost_after))
}

fn fired_by(at: usize, by: Option<DriverId>) -> Event {
    let Event::ItemFired(mut e) = fired(at, 1) else { unreachable!() };
    e.driver = by;
    Event::ItemFired(e)
}

fn reconciled_by(attempt: u32, by: Option<DriverId>) -> Event {
    let Event::ItemReconciled(mut e) = reconciled(0, attempt, Outcome::Failed) else { unreachable!() };
    e.driver = by;
    Event::ItemReconciled(e)
}

fn end(reason: Again, by: Option<DriverId>) -> ItemEnded {
    ItemEnded { driver: by, ..ended(0, 1, reason, None) }
}

fn lost(by: Option<DriverId>, taker: Option<DriverId>, because: Option<Because>) -> ItemEnded {
    ItemEnded { taker, because, ..end(Again::Lost, by) }
}

fn states() -> Vec<(&'static str, RunState)> {
    let cases: Vec<(&str, Option<u32>, Vec<Event>)> = vec![
        ("fresh", None, vec![]),
        ("runs, not held", None, vec![fired(0, 1)]),
        ("shared", None, vec![shared(1000, 4000)]),
        ("held by 1", None, vec![shared(1000, 4000), fired_by(0, Some(driver(1)))]),
        ("held, 1 may run", Some(1), vec![shared(1000, 4000), fired_by(0, Some(driver(1)))]),
        ("held, 2 may run", Some(2), vec![shared(1000, 4000), fired_by(0, Some(driver(1)))]),
        ("failed", None, vec![shared(1000, 4000), fired_by(0, Some(driver(1))), reconciled_by(1, Some(driver(1)))]),
    ];
    let tell = |(name, concurrency, events): (&'static str, Option<u32>, Vec<Event>)| {
        let mut state = submitted(&[(vec![], vec![]), (vec![], vec![])]);
        state.concurrency = concurrency;
        events.iter().for_each(|event| state.apply(event).unwrap());
        (name, state)
    };
    cases.into_iter().map(tell).collect()
}

#[test]
fn misplaced_entries_about_claimed_attempts_are_rejected() {
    let (one, two) = (|| Some(driver(1)), || Some(driver(2)));
    let requeued = Event::ItemRequeued;
    let silent = Some(Because::Silent);
    let events = vec![
        ("shared", shared(100, 400)),
        ("shared, beats too often", shared(99, 4000)),
        ("shared, beats too rarely", shared(3_600_001, 20_000_000)),
        ("shared, lost too late", shared(1000, 2_592_000_001)),
        ("shared, lost too early", shared(100, 399)),
        ("i1 fired by no driver", fired_by(1, None)),
        ("i1 fired by 2", fired_by(1, two())),
        ("i0 failed, by no driver", reconciled_by(1, None)),
        ("i0 failed, by 1", reconciled_by(1, one())),
        ("i0 failed, by 2", reconciled_by(1, two())),
        ("i0 #0 failed, by no driver", reconciled_by(0, None)),
        ("i0 #0 failed, by 1", reconciled_by(0, one())),
        ("i0 retried, by no driver", Event::ItemRetried(end(Again::Failure, None))),
        ("i0 retried, by 1", Event::ItemRetried(end(Again::Failure, one()))),
        (
            "i0 retried, by 1, with a taker",
            Event::ItemRetried(ItemEnded { taker: two(), ..end(Again::Failure, one()) }),
        ),
        ("i0 crashed, by no driver", requeued(end(Again::Crash, None))),
        ("i0 crashed, by 1", requeued(end(Again::Crash, one()))),
        ("i0 crashed, by 2", requeued(end(Again::Crash, two()))),
        ("i0 crashed, by 1, silent", requeued(ItemEnded { because: silent, ..end(Again::Crash, one()) })),
        ("i0 asked for again, by no driver", requeued(end(Again::Operator, None))),
        ("i0 asked for again, by 1", requeued(end(Again::Operator, one()))),
        ("i0 asked for again, by 2", requeued(end(Again::Operator, two()))),
        ("i0 lost by 1, taken by 2", requeued(lost(one(), two(), silent))),
        ("i0 lost by 1, taken by no driver", requeued(lost(one(), None, silent))),
        ("i0 lost by 1, taken by 1", requeued(lost(one(), one(), silent))),
        ("i0 lost by 2, taken by 1", requeued(lost(two(), one(), silent))),
        ("i0 lost by no driver", requeued(lost(None, two(), silent))),
        ("i0 lost by 1, and not why", requeued(lost(one(), two(), None))),
        ("i0 #2 lost by 1", requeued(ItemEnded { attempt: 2, ..lost(one(), two(), silent) })),
    ];
    let word = |answer: &Result<(), Illegal>| answer.as_ref().map_or_else(ToString::to_string, |()| "ok".to_owned());
    let table = table(&events, &states, 16, &word);
    crate::common::assert_output!("legal_drivers", table);
}

#[test]
fn a_lost_attempt_counts_like_a_crash_and_frees_its_place() {
    let (_, mut state) = states().swap_remove(4);
    assert_eq!(state.running(), 1);
    state.apply(&Event::ItemRequeued(lost(Some(driver(1)), Some(driver(2)), Some(Because::Silent)))).unwrap();
    let item = state.items.iter().next().unwrap();
    assert_eq!((item.phase, item.crashes, item.granted_at, state.running()), (Phase::Waiting, 1, 1, 0));
    assert!(item.holder.is_none());
    state.apply(&fired_by(1, Some(driver(2)))).unwrap();
}

/// A run of Ada's in which Bob, who works, dispatched an attempt with a driver of his.
fn held_by_bob() -> RunState {
    let mut state = submitted(&[(vec![], vec![]), (vec![], vec![])]);
    let admitted = RunAdmitted::new(BOB.to_owned(), Role::Work);
    for event in [Event::RunAdmitted(admitted), shared(1000, 4000)] {
        state.apply_signed(&event, Some(ADA)).unwrap();
    }
    state.apply_signed(&fired_by(0, Some(driver(1))), Some(BOB)).unwrap();
    state
}

#[test]
fn only_the_key_of_the_dispatch_ends_an_attempt_in_the_name_of_its_driver() {
    let state = held_by_bob();
    assert_eq!(state.keys.dispatcher(&name(0)), Some(BOB));
    let why = |key: &str, event: &Event| state.keys.refuse(key, event).map(|why| why.to_string());
    let (one, requeued) = (|| Some(driver(1)), Event::ItemRequeued);
    let other = Some("which did not dispatch the attempt".to_owned());
    let by_holder = [
        reconciled_by(1, one()),
        Event::ItemRetried(end(Again::Failure, one())),
        requeued(end(Again::Crash, one())),
        requeued(end(Again::Operator, one())),
    ];
    for event in &by_holder {
        assert_eq!((why(ADA, event), why(BOB, event)), (other.clone(), None), "{event:?}");
    }
    let own = Some("which does not have the role own".to_owned());
    let rerun = requeued(end(Again::Operator, None));
    assert_eq!((why(ADA, &rerun), why(BOB, &rerun)), (None, own), "only an owner takes a running attempt away");
    let takeover = requeued(lost(one(), Some(driver(2)), Some(Because::Told)));
    assert_eq!((why(ADA, &takeover), why(BOB, &takeover)), (None, None));
    let as_dismissed = requeued(lost(one(), Some(driver(2)), Some(Because::Dismissed)));
    let false_word = "which takes an attempt as that of a dismissed key, and the key that dispatched it has a role";
    assert_eq!(why(ADA, &as_dismissed).as_deref(), Some(false_word));
    let mut later = state.clone();
    later.apply_signed(&Event::RunDismissed(RunDismissed::new(BOB.to_owned())), Some(ADA)).unwrap();
    assert_eq!(later.keys.refuse(ADA, &as_dismissed), None, "the key has no role any more");
    let mut state = state;
    state.apply_signed(&takeover, Some(ADA)).unwrap();
    assert_eq!(state.keys.dispatcher(&name(0)), None);
    assert_eq!(state.keys.refuse(BOB, &rerun), None, "an attempt that no driver holds is everyone's who works");
}

#[test]
fn only_a_key_that_came_later_and_does_not_seal_can_be_dismissed() {
    let mut state = held_by_bob();
    let dismissed = |key: &str| Event::RunDismissed(RunDismissed::new(key.to_owned()));
    let admitted = |key: &str, role| Event::RunAdmitted(RunAdmitted::new(key.to_owned(), role));
    assert!(state.apply(&dismissed(ADA)).is_err(), "entry 0 names it");
    assert!(state.apply(&dismissed("SHA256:z")).is_err(), "it has no role");
    state.apply(&admitted("SHA256:z", Role::Work)).unwrap();
    state.apply(&admitted("SHA256:z", Role::Seal)).unwrap();
    assert!(state.apply(&dismissed("SHA256:z")).is_err(), "it seals");
    assert!(state.keys.refuse(BOB, &dismissed("SHA256:z")).is_some(), "only an owner dismisses");
    state.apply(&dismissed(BOB)).unwrap();
    let result = reconciled_by(1, Some(driver(1)));
    assert_eq!(state.keys.refuse(BOB, &result).unwrap().to_string(), "which is not among the run's writers");
    assert!(state.apply(&dismissed(BOB)).is_err(), "it has no role any more");
    state.apply(&admitted(BOB, Role::Work)).unwrap();
    assert_eq!(state.keys.refuse(BOB, &result), None, "it may end what it dispatched before");
}
