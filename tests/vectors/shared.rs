//! Runs that several drivers drive: who holds an attempt, who may end it and who may take it.

use std::collections::{BTreeMap, BTreeSet};

use git_handoff::ledger::sign::Signer;
use git_handoff::model::driver::{Because, DriverId, RunShared};
use git_handoff::model::entry::{Again, Claims, Event, ItemEnded, Role, RunAdmitted, RunDismissed};
use git_handoff::verify::{Chain, check_incoming};

use super::keys::BOTH;
use super::planned::rest;
use super::{Vector, stranger};
use crate::common::chain_builder::{BuiltChain, ChainBuilder};
use crate::common::forge::{Forge, PLAN, key};
use crate::people::seals::admission;

/// Runs of several drivers that happened.
pub(super) const CLEAN: &[Vector] = &[
    Vector::new(
        "clean-shared",
        "a shared run of two drivers: attempts taken by another driver, by word and by an owner, a crash, a failure, and a key dismissed",
        |forge| {
            forge.finish(taken_over(forge));
        },
    )
    .with_arguments(BOTH),
    Vector::new(
        "clean-shared-admitted-again",
        "an attempt that was taken does not count, and a key works after it was dismissed and admitted again",
        |forge| {
            forge.finish(admitted_again(forge));
        },
    )
    .with_arguments(BOTH),
];

/// Runs of several drivers with one entry that must not be.
pub(super) const FORGED: &[Vector] = &[
    illegal(
        "illegal-end-by-another-driver",
        "an attempt ended in the name of a driver that does not hold it",
        |forge| {
            bent(forge, |run| driver_of(run, 4, Some(two())));
        },
    ),
    illegal("illegal-end-without-driver", "an attempt ended by an entry without the driver that holds it", |forge| {
        bent(forge, |run| driver_of(run, 4, None));
    }),
    illegal("illegal-end-after-a-take-over", "a driver ends an attempt that was taken from it", |forge| {
        let bob = stranger(forge);
        let mut run = begun(forge);
        run.take("edit-a", Some(two()), Some(Because::Silent));
        run.driver = Some(one());
        run.done("edit-a", PATCH);
        run.by(&bob);
        run.driver = Some(two());
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-retry-without-driver", "a failed attempt without the driver that holds it", |forge| {
        let mut run = begun(forge);
        run.driver = None;
        run.requeue("edit-a", Again::Failure);
        run.driver = Some(two());
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-crash-with-a-cause", "an attempt that crashed, with the reason of a take-over", |forge| {
        let mut run = begun(forge);
        run.requeue("edit-a", Again::Crash);
        let Event::ItemRequeued(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.because = Some(Because::Silent);
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("ended-by-another-key", "an attempt ended by a key with `work` that did not dispatch it", |forge| {
        ended_by_another_key(forge);
    }),
    illegal(
        "asked-again-without-own",
        "a key without `own` takes a running attempt without naming its driver",
        |forge| {
            let mut run = begun(forge);
            run.driver = None;
            run.requeue("edit-a", Again::Operator);
            run.by(&stranger(forge));
            run.driver = Some(two());
            rest(&mut run);
            forge.finish(run);
        },
    ),
    illegal("illegal-lost-attempt", "another attempt than the running one is taken from its driver", |forge| {
        lost(forge, |e| e.attempt = 2);
    }),
    illegal("illegal-lost-to-itself", "a driver takes an attempt from itself", |forge| {
        lost(forge, |e| e.taker = Some(one()));
    }),
    illegal("illegal-lost-without-a-cause", "an attempt is taken from its driver without `because`", |forge| {
        lost(forge, |e| e.because = None);
    }),
    illegal("lost-as-dismissed", "an attempt is taken as that of a dismissed key, which has its role", |forge| {
        let bob = stranger(forge);
        let mut run = begun(forge);
        run.take("edit-a", Some(two()), Some(Because::Dismissed));
        run.by(&bob);
        run.driver = Some(two());
        rest(&mut run);
        forge.finish(run);
    }),
    illegal(
        "lost-as-dismissed-before",
        "an attempt is taken as that of a dismissed key, which was admitted again and dispatched it after that",
        |forge| {
            let bob = stranger(forge);
            let mut run = shared(forge, PLAN);
            run.add(dismissal(&bob));
            run.add(admission(&bob, Role::Work, None));
            run.driver = Some(two());
            run.fire("edit-a");
            run.by(&bob);
            run.take("edit-a", Some(one()), Some(Because::Dismissed));
            run.driver = Some(one());
            rest(&mut run);
            forge.finish(run);
        },
    ),
    illegal("illegal-lost-by-another-driver", "an attempt is taken from a driver that does not hold it", |forge| {
        lost(forge, |e| (e.driver, e.taker) = (Some(two()), None));
    }),
    illegal("illegal-attempt-after-a-take-over", "a take-over does not count, and gives no attempt besides", |forge| {
        let two_attempts = r#""resourceLocks":["build"],"maxAttempts":2}"#;
        let mut run = shared(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, two_attempts, 1));
        run.driver = Some(one());
        run.fire("edit-a");
        run.requeue("edit-a", Again::Failure);
        run.fire("edit-a");
        run.take("edit-a", Some(two()), Some(Because::Told));
        run.fire("edit-a");
        run.requeue("edit-a", Again::Failure);
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-dispatch-without-driver", "an item of a shared run is dispatched by no driver", |forge| {
        let mut run = shared(forge, PLAN);
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-dispatch-beyond-concurrency", "more items run than the `concurrency` of the plan", |forge| {
        let mut run = shared(
            forge,
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
        forge.finish(run);
    }),
    illegal("illegal-sharing-twice", "a run is shared a second time", |forge| {
        let mut run = shared(forge, PLAN);
        run.add(sharing(2000, 8000));
        run.driver = Some(one());
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-sharing-too-short", "a run is shared with a `lostAfter` of less than four beats", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.add(sharing(1000, 3999));
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-sharing-too-often", "a run is shared with a `heartbeat` of less than 100", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.add(sharing(99, 4000));
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-sharing-too-rarely", "a run is shared with a `heartbeat` of more than an hour", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.add(sharing(3_600_001, 20_000_000));
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-sharing-too-long", "a run is shared with a `lostAfter` of more than 30 days", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.add(sharing(1000, 30 * 86_400_000 + 1));
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("illegal-sharing-after-the-end", "a run is shared after it was closed", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        rest(&mut run);
        run.drafts.pop();
        run.state.sealed = false;
        run.close();
        run.add(sharing(1000, 4000));
        run.seal();
        forge.finish(run);
    }),
    illegal("illegal-dismissal-of-a-writer", "a key that entry 0 names is dismissed", |forge| {
        dismissed(forge, &stranger(forge), |run, bob| {
            let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
            let document = BTreeSet::from([Role::Document]);
            let roles = [(forge.signer.fingerprint(), BTreeSet::from(Role::ALL)), (bob.fingerprint(), document)];
            e.roles = BTreeMap::from(roles);
        });
    }),
    illegal("illegal-dismissal-of-a-sealer", "a key with the role `seal` is dismissed", |forge| {
        let first = ChainBuilder::submit(forge, PLAN).write(&forge.signer).links[0].hash;
        dismissed(forge, &stranger(forge), |run, bob| run.add(admission(bob, Role::Seal, Some(first))));
    }),
    illegal("illegal-dismissal-of-a-stranger", "a key that never had a role is dismissed", |forge| {
        dismissed(forge, &stranger(forge), |_, _| {});
    }),
    illegal("dismissed-without-own", "a key with `work` dismisses another key", |forge| {
        let (bob, eve) = (stranger(forge), key(forge.path(), 3));
        let mut run = shared(forge, PLAN);
        run.add(admission(&eve, Role::Document, None));
        run.add(dismissal(&eve));
        run.by(&bob);
        run.driver = Some(one());
        rest(&mut run);
        forge.finish(run);
    }),
    illegal("signature-by-a-dismissed-key", "a key does an item after it was dismissed", |forge| {
        let bob = stranger(forge);
        let mut run = shared(forge, PLAN);
        run.add(dismissal(&bob));
        run.driver = Some(one());
        run.fire("edit-a");
        run.by(&bob);
        run.done("edit-a", PATCH);
        run.by(&bob);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
    }),
    illegal("driver-of-31-digits", "a dispatch whose driver has 31 hex digits", |forge| {
        resigned(forge, begun(forge), |text| text.replacen(one().as_str(), &one().as_str()[1..], 1));
    }),
    illegal("driver-in-capitals", "a dispatch whose driver has capital hex digits", |forge| {
        resigned(forge, begun(forge), |text| text.replacen(one().as_str(), &one().as_str().to_uppercase(), 1));
    }),
    illegal("claims-empty", "an end with claims that hold nothing", |forge| {
        resigned(forge, ended(forge), |text| text.replacen(r#""attempt": 1,"#, "\"attempt\": 1,\n \"claims\": {},", 1));
    }),
    illegal("usage-empty", "an end with a use that says nothing", |forge| {
        resigned(forge, ended(forge), |text| text.replacen("\n \"v\": 2", "\n \"usage\": {},\n \"v\": 2", 1));
    }),
];

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff\n")];

const fn illegal(name: &'static str, what: &'static str, tell: fn(&Forge)) -> Vector {
    Vector::new(name, what, tell).with_arguments(BOTH)
}

fn one() -> DriverId {
    DriverId::from_random([0xd1; 16])
}

fn two() -> DriverId {
    DriverId::from_random([0xd2; 16])
}

fn sharing(heartbeat: u64, lost_after: u64) -> Event {
    Event::RunShared(RunShared::new(heartbeat, lost_after))
}

fn dismissal(key: &Signer) -> Event {
    Event::RunDismissed(RunDismissed::new(key.fingerprint()))
}

/// A shared run in which Bob's key works, besides the key that submitted it.
fn shared<'a>(forge: &'a Forge, plan: &str) -> ChainBuilder<'a> {
    let mut run = ChainBuilder::submit(forge, plan);
    let role = RunAdmitted::new(stranger(forge).fingerprint(), Role::Work);
    run.add(Event::RunAdmitted(role));
    run.add(sharing(1000, 4000));
    run
}

/// The same, and the driver that dispatched the first item with the key that submitted the run.
fn begun(forge: &Forge) -> ChainBuilder<'_> {
    let mut run = shared(forge, PLAN);
    run.driver = Some(one());
    run.fire("edit-a");
    about(&mut run, "node7", Some("4711"));
    run
}

/// The same, and the attempt is done.
fn ended(forge: &Forge) -> ChainBuilder<'_> {
    let mut run = begun(forge);
    run.done("edit-a", PATCH);
    run
}

/// Tells a run in which a driver with Bob's key does the first item, and one with the other key the
/// second; `bend` changes its entries before they are written.
fn bent(forge: &Forge, bend: impl FnOnce(&mut ChainBuilder<'_>)) -> BuiltChain {
    let bob = stranger(forge);
    let mut run = shared(forge, PLAN);
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
    forge.finish(run)
}

/// Tells it with the end of the first item signed by the key that did not dispatch it.
fn ended_by_another_key(forge: &Forge) -> BuiltChain {
    bent(forge, |run| drop(run.signers.remove(&4)))
}

/// Exchanges the driver in the end of an attempt.
fn driver_of(run: &mut ChainBuilder<'_>, at: usize, driver: Option<DriverId>) {
    let Event::ItemReconciled(e) = &mut run.drafts[at].event else { panic!() };
    e.driver = driver;
}

/// Adds what the driver of the latest entry, a dispatch, says about itself.
fn about(run: &mut ChainBuilder<'_>, host: &str, job: Option<&str>) {
    let Event::ItemFired(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    e.claims = Claims { host: Some(host.to_owned()), job: job.map(str::to_owned), ..Claims::default() }.stated();
}

/// Tells a run in which the first item is taken from its driver by an entry that is bent.
fn lost(forge: &Forge, bend: impl FnOnce(&mut ItemEnded)) {
    let mut run = begun(forge);
    run.take("edit-a", Some(two()), Some(Because::Silent));
    let Event::ItemRequeued(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
    bend(e);
    run.by(&stranger(forge));
    run.driver = Some(two());
    rest(&mut run);
    forge.finish(run);
}

/// Tells a run in which a key is dismissed, after what `before` adds.
fn dismissed<'a>(forge: &'a Forge, key: &Signer, before: impl FnOnce(&mut ChainBuilder<'a>, &Signer)) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    before(&mut run, key);
    run.add(dismissal(key));
    rest(&mut run);
    forge.finish(run);
}

/// Writes a run, and signs its last commit again with another text.
pub(super) fn resigned(forge: &Forge, run: ChainBuilder<'_>, bend: impl FnOnce(String) -> String) {
    let chain = run.write(&forge.signer);
    let raw = String::from_utf8(forge.store.read(chain.head.commit.unwrap()).unwrap().1).unwrap();
    let (head, rest) = raw.split_once("gpgsig ").unwrap();
    let (_, rest) = rest.split_once("-----END SSH SIGNATURE-----\n").unwrap();
    let whole = format!("{head}{rest}");
    let payload = bend(whole.clone());
    assert_ne!(payload, whole, "the story changes nothing");
    let signature = forge.signer.sign(payload.as_bytes()).unwrap().replace('\n', "\n ");
    let (second_head, second_rest) = payload.split_once("\n\n").unwrap();
    let forged = format!("{second_head}\ngpgsig {signature}\n\n{second_rest}");
    forge.point_at(forge.store.write(gix::objs::Kind::Commit, forged.as_bytes()).unwrap());
}

/// Every way in which an attempt that a driver holds can end.
fn taken_over(forge: &Forge) -> ChainBuilder<'_> {
    let bob = stranger(forge);
    let mut run = begun(forge);
    let fire = |builder: &mut ChainBuilder<'_>, item: &str| {
        builder.driver = Some(two());
        builder.fire(item);
        about(builder, "node8", None);
        builder.by(&bob);
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
    run.add(dismissal(&bob));
    run.take("edit-b", Some(one()), Some(Because::Dismissed));
    run.driver = Some(one());
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    run
}

/// A run whose first item may be tried once, and is, after its attempt was taken from its driver.
fn admitted_again(forge: &Forge) -> ChainBuilder<'_> {
    let bob = stranger(forge);
    let once = r#""resourceLocks":["build"],"maxAttempts":1}"#;
    let mut run = shared(forge, &PLAN.replacen(r#""resourceLocks":["build"]}"#, once, 1));
    run.driver = Some(one());
    run.fire("edit-a");
    run.by(&bob);
    run.take("edit-a", Some(two()), Some(Because::Lock));
    run.add(dismissal(&bob));
    run.add(admission(&bob, Role::Work, None));
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
    let forge = Forge::new();
    let chain = ended_by_another_key(&forge);
    let head = chain.head.commit.unwrap();
    for known in [None, Some(chain.links[2].commit), Some(chain.links[3].commit)] {
        let why = check_incoming(&forge.store, Chain::Run(&chain.run), known, head).unwrap_err();
        assert!(
            why.starts_with("entry 4 is signed by ") && why.ends_with("which did not dispatch the attempt"),
            "{why}"
        );
    }
    let second_forge = Forge::new();
    let taken_over_chain = taken_over(&second_forge).write(&second_forge.signer);
    for known in &taken_over_chain.links {
        check_incoming(
            &second_forge.store,
            Chain::Run(&taken_over_chain.run),
            Some(known.commit),
            taken_over_chain.head.commit.unwrap(),
        )
        .unwrap();
    }
}
