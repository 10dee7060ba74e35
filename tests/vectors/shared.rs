//! Runs that several drivers drive: who holds an attempt, who may end it and who may take it.

use std::collections::{BTreeMap, BTreeSet};

use git_handoff::ledger::sign::Signer;
use git_handoff::model::driver::{Because, DriverId, RunShared};
use git_handoff::model::entry::{Again, Event, ItemEnded, Role, RunAdmitted, RunDismissed};
use git_handoff::verify::{Chain, check_incoming};

use super::keys::BOTH;
use super::planned::rest;
use super::{Vector, stranger};
use crate::common::lab::{Lab, PLAN, key};
use crate::common::teller::{Teller, Told};
use crate::people::seals::admission;

/// Runs of several drivers that happened.
pub(super) const CLEAN: &[Vector] = &[
    Vector::new(
        "clean-shared",
        "a shared run of two drivers: attempts taken by another driver, by word and by an owner, a crash, a failure, and a key dismissed",
        |lab| {
            lab.finish(taken_over(lab));
        },
    )
    .asked(BOTH),
    Vector::new(
        "clean-shared-admitted-again",
        "an attempt that was taken does not count, and a key works after it was dismissed and admitted again",
        |lab| {
            lab.finish(admitted_again(lab));
        },
    )
    .asked(BOTH),
];

/// Runs of several drivers with one entry that must not be.
pub(super) const FORGED: &[Vector] = &[
    illegal("illegal-end-by-another-driver", "an attempt ended in the name of a driver that does not hold it", |lab| {
        bent(lab, |run| driver_of(run, 4, Some(two())));
    }),
    illegal("illegal-end-without-driver", "an attempt ended by an entry without the driver that holds it", |lab| {
        bent(lab, |run| driver_of(run, 4, None));
    }),
    illegal("illegal-end-after-a-take-over", "a driver ends an attempt that was taken from it", |lab| {
        let bob = stranger(lab);
        let mut run = begun(lab);
        run.take("edit-a", Some(two()), Some(Because::Silent));
        run.driver = Some(one());
        run.done("edit-a", PATCH);
        run.by(&bob);
        run.driver = Some(two());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-retry-without-driver", "a failed attempt without the driver that holds it", |lab| {
        let mut run = begun(lab);
        run.driver = None;
        run.requeue("edit-a", Again::Failure);
        run.driver = Some(two());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-crash-with-a-cause", "an attempt that crashed, with the reason of a take-over", |lab| {
        let mut run = begun(lab);
        run.requeue("edit-a", Again::Crash);
        let Event::ItemRequeued(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.because = Some(Because::Silent);
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("ended-by-another-key", "an attempt ended by a key with `work` that did not dispatch it", |lab| {
        ended_by_another_key(lab);
    }),
    illegal(
        "asked-again-without-own",
        "a key without `own` takes a running attempt without naming its driver",
        |lab| {
            let mut run = begun(lab);
            run.driver = None;
            run.requeue("edit-a", Again::Operator);
            run.by(&stranger(lab));
            run.driver = Some(two());
            rest(&mut run);
            lab.finish(run);
        },
    ),
    illegal("illegal-lost-attempt", "another attempt than the running one is taken from its driver", |lab| {
        lost(lab, |e| e.attempt = 2);
    }),
    illegal("illegal-lost-to-itself", "a driver takes an attempt from itself", |lab| {
        lost(lab, |e| e.taker = Some(one()));
    }),
    illegal("illegal-lost-without-a-cause", "an attempt is taken from its driver without `because`", |lab| {
        lost(lab, |e| e.because = None);
    }),
    illegal("lost-as-dismissed", "an attempt is taken as that of a dismissed key, which has its role", |lab| {
        let bob = stranger(lab);
        let mut run = begun(lab);
        run.take("edit-a", Some(two()), Some(Because::Dismissed));
        run.by(&bob);
        run.driver = Some(two());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal(
        "lost-as-dismissed-before",
        "an attempt is taken as that of a dismissed key, which was admitted again and dispatched it after that",
        |lab| {
            let bob = stranger(lab);
            let mut run = shared(lab, PLAN);
            run.add(dismissal(&bob), Vec::new());
            run.add(admission(&bob, Role::Work, None), Vec::new());
            run.driver = Some(two());
            run.fire("edit-a");
            run.by(&bob);
            run.take("edit-a", Some(one()), Some(Because::Dismissed));
            run.driver = Some(one());
            rest(&mut run);
            lab.finish(run);
        },
    ),
    illegal("illegal-lost-by-another-driver", "an attempt is taken from a driver that does not hold it", |lab| {
        lost(lab, |e| (e.driver, e.taker) = (Some(two()), None));
    }),
    illegal("illegal-attempt-after-a-take-over", "a take-over does not count, and gives no attempt besides", |lab| {
        let two_attempts = r#""resourceLocks":["build"],"maxAttempts":2}"#;
        let mut run = shared(lab, &PLAN.replacen(r#""resourceLocks":["build"]}"#, two_attempts, 1));
        run.driver = Some(one());
        run.fire("edit-a");
        run.requeue("edit-a", Again::Failure);
        run.fire("edit-a");
        run.take("edit-a", Some(two()), Some(Because::Told));
        run.fire("edit-a");
        run.requeue("edit-a", Again::Failure);
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-dispatch-without-driver", "an item of a shared run is dispatched by no driver", |lab| {
        let mut run = shared(lab, PLAN);
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-dispatch-beyond-concurrency", "more items run than the `concurrency` of the plan", |lab| {
        let mut run = shared(
            lab,
            r#"{"id":"handoff-dag-1","concurrency":1,"items":[
            {"id":"left","executor":"command","inputs":{"command":["true"]}},
            {"id":"right","executor":"command","inputs":{"command":["true"]}}]}"#,
        );
        for (item, driver) in [("left", one()), ("right", two())] {
            run.driver = Some(driver);
            run.fire(item);
        }
        run.done("right", &[]);
        run.driver = Some(one());
        run.done("left", &[]);
        run.seal();
        lab.finish(run);
    }),
    illegal("entry-0-says-another-concurrency", "entry 0 allows more running items than the plan", |lab| {
        let mut run = Teller::submit(lab, &PLAN.replacen('{', r#"{"concurrency":1,"#, 1));
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.concurrency = Some(2);
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-twice", "a run is shared a second time", |lab| {
        let mut run = shared(lab, PLAN);
        run.add(sharing(2000, 8000), Vec::new());
        run.driver = Some(one());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-too-short", "a run is shared with a `lostAfter` of less than four beats", |lab| {
        let mut run = Teller::submit(lab, PLAN);
        run.add(sharing(1000, 3999), Vec::new());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-too-often", "a run is shared with a `heartbeat` of less than 100", |lab| {
        let mut run = Teller::submit(lab, PLAN);
        run.add(sharing(99, 4000), Vec::new());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-too-rarely", "a run is shared with a `heartbeat` of more than an hour", |lab| {
        let mut run = Teller::submit(lab, PLAN);
        run.add(sharing(3_600_001, 20_000_000), Vec::new());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-too-long", "a run is shared with a `lostAfter` of more than 30 days", |lab| {
        let mut run = Teller::submit(lab, PLAN);
        run.add(sharing(1000, 30 * 86_400_000 + 1), Vec::new());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("illegal-sharing-after-the-end", "a run is shared after it was closed", |lab| {
        let mut run = Teller::submit(lab, PLAN);
        rest(&mut run);
        run.drafts.pop();
        run.state.sealed = false;
        run.close();
        run.add(sharing(1000, 4000), Vec::new());
        run.seal();
        lab.finish(run);
    }),
    illegal("illegal-dismissal-of-a-writer", "a key that entry 0 names is dismissed", |lab| {
        dismissed(lab, &stranger(lab), |run, bob| {
            let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
            e.writers.push(bob.fingerprint());
            let document = BTreeSet::from([Role::Document]);
            let roles = [(lab.signer.fingerprint(), BTreeSet::from(Role::ALL)), (bob.fingerprint(), document)];
            e.roles = Some(BTreeMap::from(roles));
        });
    }),
    illegal("illegal-dismissal-of-a-sealer", "a key with the role `seal` is dismissed", |lab| {
        let first = Teller::submit(lab, PLAN).write(&lab.signer).links[0].hash;
        dismissed(lab, &stranger(lab), |run, bob| run.add(admission(bob, Role::Seal, Some(first)), Vec::new()));
    }),
    illegal("illegal-dismissal-of-a-stranger", "a key that never had a role is dismissed", |lab| {
        dismissed(lab, &stranger(lab), |_, _| {});
    }),
    illegal("dismissed-without-own", "a key with `work` dismisses another key", |lab| {
        let (bob, eve) = (stranger(lab), key(lab.path(), 3));
        let mut run = shared(lab, PLAN);
        run.add(admission(&eve, Role::Document, None), Vec::new());
        run.add(dismissal(&eve), Vec::new());
        run.by(&bob);
        run.driver = Some(one());
        rest(&mut run);
        lab.finish(run);
    }),
    illegal("signature-by-a-dismissed-key", "a key does an item after it was dismissed", |lab| {
        let bob = stranger(lab);
        let mut run = shared(lab, PLAN);
        run.add(dismissal(&bob), Vec::new());
        run.driver = Some(one());
        run.fire("edit-a");
        run.by(&bob);
        run.done("edit-a", PATCH);
        run.by(&bob);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        lab.finish(run);
    }),
    illegal("driver-of-31-digits", "a dispatch whose driver has 31 hex digits", |lab| {
        resigned(lab, |text| text.replacen(one().as_str(), &one().as_str()[1..], 1));
    }),
    illegal("driver-in-capitals", "a dispatch whose driver has capital hex digits", |lab| {
        resigned(lab, |text| text.replacen(one().as_str(), &one().as_str().to_uppercase(), 1));
    }),
    illegal("host-too-long", "a dispatch whose host has 256 bytes", |lab| {
        resigned(lab, |text| text.replacen(r#""host":"node7""#, &format!(r#""host":"{}""#, "é".repeat(128)), 1));
    }),
];

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff\n")];

const fn illegal(name: &'static str, what: &'static str, tell: fn(&Lab)) -> Vector {
    Vector::new(name, what, tell).asked(BOTH)
}

fn one() -> DriverId {
    DriverId::of([0xd1; 16])
}

fn two() -> DriverId {
    DriverId::of([0xd2; 16])
}

fn sharing(heartbeat: u64, lost_after: u64) -> Event {
    Event::RunShared(RunShared { heartbeat, lost_after })
}

fn dismissal(key: &Signer) -> Event {
    Event::RunDismissed(RunDismissed { key: key.fingerprint() })
}

/// A shared run in which Bob's key works, besides the key that submitted it.
fn shared<'a>(lab: &'a Lab, plan: &str) -> Teller<'a> {
    let mut run = Teller::submit(lab, plan);
    let role = RunAdmitted { key: stranger(lab).fingerprint(), role: Role::Work, first: None };
    run.add(Event::RunAdmitted(role), Vec::new());
    run.add(sharing(1000, 4000), Vec::new());
    run
}

/// The same, and the driver that dispatched the first item with the key that submitted the run.
fn begun(lab: &Lab) -> Teller<'_> {
    let mut run = shared(lab, PLAN);
    run.driver = Some(one());
    run.fire("edit-a");
    about(&mut run, "node7", Some("4711"));
    run
}

/// Tells a run in which a driver with Bob's key does the first item, and one with the other key the
/// second; `bend` changes its entries before they are written.
fn bent(lab: &Lab, bend: impl FnOnce(&mut Teller<'_>)) -> Told {
    let bob = stranger(lab);
    let mut run = shared(lab, PLAN);
    run.driver = Some(one());
    run.fire("edit-a");
    run.by(&bob);
    run.done("edit-a", PATCH);
    run.by(&bob);
    run.driver = Some(two());
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.seal();
    bend(&mut run);
    lab.finish(run)
}

/// Tells it with the end of the first item signed by the key that did not dispatch it.
fn ended_by_another_key(lab: &Lab) -> Told {
    bent(lab, |run| drop(run.signers.remove(&4)))
}

/// Exchanges the driver in the end of an attempt.
fn driver_of(run: &mut Teller<'_>, at: usize, driver: Option<DriverId>) {
    let Event::ItemReconciled(e) = &mut run.drafts[at].event else { panic!() };
    e.driver = driver;
}

/// Adds what the driver of the latest entry, a dispatch, says about itself.
fn about(run: &mut Teller<'_>, host: &str, job: Option<&str>) {
    let Event::ItemFired(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    (e.host, e.job) = (Some(host.to_owned()), job.map(str::to_owned));
}

/// Tells a run in which the first item is taken from its driver by an entry that is bent.
fn lost(lab: &Lab, bend: impl FnOnce(&mut ItemEnded)) {
    let mut run = begun(lab);
    run.take("edit-a", Some(two()), Some(Because::Silent));
    let Event::ItemRequeued(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    bend(e);
    run.by(&stranger(lab));
    run.driver = Some(two());
    rest(&mut run);
    lab.finish(run);
}

/// Tells a run in which a key is dismissed, after what `before` adds.
fn dismissed<'a>(lab: &'a Lab, key: &Signer, before: impl FnOnce(&mut Teller<'a>, &Signer)) {
    let mut run = Teller::submit(lab, PLAN);
    before(&mut run, key);
    run.add(dismissal(key), Vec::new());
    rest(&mut run);
    lab.finish(run);
}

/// Tells a run whose last entry is a dispatch, and signs that commit again with another text.
fn resigned(lab: &Lab, bend: impl FnOnce(String) -> String) {
    let told = begun(lab).write(&lab.signer);
    let raw = String::from_utf8(lab.store.read(told.head.commit.unwrap()).unwrap().1).unwrap();
    let (head, rest) = raw.split_once("gpgsig ").unwrap();
    let (_, rest) = rest.split_once("-----END SSH SIGNATURE-----\n").unwrap();
    let payload = bend(format!("{head}{rest}"));
    let signature = lab.signer.sign(payload.as_bytes()).unwrap().replace('\n', "\n ");
    let (head, rest) = payload.split_once("\n\n").unwrap();
    let forged = format!("{head}\ngpgsig {signature}\n\n{rest}");
    lab.point_at(lab.store.write(gix::objs::Kind::Commit, forged.as_bytes()).unwrap());
}

/// Every way in which an attempt that a driver holds can end.
fn taken_over(lab: &Lab) -> Teller<'_> {
    let bob = stranger(lab);
    let mut run = begun(lab);
    let fire = |run: &mut Teller<'_>, item: &str| {
        run.driver = Some(two());
        run.fire(item);
        about(run, "node8", None);
        run.by(&bob);
    };
    run.take("edit-a", Some(two()), Some(Because::Silent));
    run.by(&bob);
    fire(&mut run, "edit-a");
    run.take("edit-a", None, Some(Because::Told));
    fire(&mut run, "edit-a");
    run.done("edit-a", PATCH);
    run.by(&bob);
    run.driver = Some(one());
    run.fire("edit-b");
    run.requeue("edit-b", Again::Operator);
    for reason in [Again::Crash, Again::Failure, Again::Operator] {
        fire(&mut run, "edit-b");
        run.requeue("edit-b", reason);
        run.by(&bob);
    }
    fire(&mut run, "edit-b");
    run.driver = None;
    run.requeue("edit-b", Again::Operator);
    fire(&mut run, "edit-b");
    run.add(dismissal(&bob), Vec::new());
    run.take("edit-b", Some(one()), Some(Because::Dismissed));
    run.driver = Some(one());
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    run
}

/// A run whose first item may be tried once, and is, after its attempt was taken from its driver.
fn admitted_again(lab: &Lab) -> Teller<'_> {
    let bob = stranger(lab);
    let once = r#""resourceLocks":["build"],"maxAttempts":1}"#;
    let mut run = shared(lab, &PLAN.replacen(r#""resourceLocks":["build"]}"#, once, 1));
    run.driver = Some(one());
    run.fire("edit-a");
    run.by(&bob);
    run.take("edit-a", Some(two()), Some(Because::Lock));
    run.add(dismissal(&bob), Vec::new());
    run.add(admission(&bob, Role::Work, None), Vec::new());
    run.fire("edit-a");
    run.by(&bob);
    run.done("edit-a", PATCH);
    run.by(&bob);
    run.driver = Some(two());
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.seal();
    run
}

#[test]
fn a_fetch_holds_the_key_of_a_dispatch_that_it_knew_before() {
    let lab = Lab::new();
    let told = ended_by_another_key(&lab);
    let head = told.head.commit.unwrap();
    for known in [None, Some(told.links[2].commit), Some(told.links[3].commit)] {
        let why = check_incoming(&lab.store, Chain::Run(&told.run), known, head).unwrap_err();
        assert!(
            why.starts_with("entry 4 is signed by ") && why.ends_with("which did not dispatch the attempt"),
            "{why}"
        );
    }
    let lab = Lab::new();
    let told = taken_over(&lab).write(&lab.signer);
    for known in &told.links {
        check_incoming(&lab.store, Chain::Run(&told.run), Some(known.commit), told.head.commit.unwrap()).unwrap();
    }
}
