//! Random schedules of drivers that share a run: what they write goes through the fold, and through
//! rules that share no code with it. After each step both must agree, and what must never happen
//! must not have happened.
//!
//! The drivers and the remote are made up here: a driver reads, decides and pushes as
//! `docs/explanation/machines.md` says. The entries and their fold are the library's.

mod rules;
mod world;

use world::{Design, Rule, World};

use crate::chaos::dice::Dice;

/// The number of schedules.
const ROUNDS: u64 = 400;

/// The most steps of a schedule with faults.
const FAULTY: u64 = 70;

/// The most steps until the run is sealed, without further faults.
const CALM: usize = 600;

/// Walks a schedule: first with faults, then until the run is sealed.
fn walk(design: Design, round: u64) -> World {
    let mut dice = Dice::new(16, round);
    let mut world = World::new(design, &mut dice);
    for _ in 0..dice.roll(10..FAULTY) {
        world.step(&mut dice, true);
    }
    for _ in 0..CALM {
        if world.is_over() {
            return world;
        }
        world.step(&mut dice, false);
    }
    world.bad.insert("no progress");
    world
}

#[test]
fn no_schedule_breaks_what_drivers_rely_on() {
    let mut steps = 0;
    for round in 0..ROUNDS {
        let world = walk(Design { without: None }, round);
        assert!(world.bad.is_empty(), "round {round}: {:?}:\n{}", world.bad, world.trace.join("\n"));
        steps += world.trace.len();
    }
    assert!(steps > 10_000, "only {steps} steps");
}

/// Each rule of the drivers is there for something: without it, the same schedules break.
#[test]
fn schedules_without_one_of_the_rules_break() {
    for (rule, bad) in [
        (Rule::StartsByHolder, "an attempt was run by two"),
        (Rule::Adopts, "no progress"),
        (Rule::Fences, "a living driver was robbed"),
        (Rule::CountsHealthyTime, "a living driver was robbed"),
        (Rule::SwitchesOff, "a lock was held by two"),
        (Rule::WaitsForCut, "a lock was held by two"),
    ] {
        let design = Design { without: Some(rule) };
        assert!((0..ROUNDS).any(|round| walk(design, round).bad.contains(bad)), "{rule:?}: {bad}");
    }
}
