//! Random tales: several bends at once, by several keys, which both implementations must judge the
//! same.

use git_handoff::model::entry::{Entry, Event};
use git_handoff::model::format;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::both::Both;
use super::edits::{changed, leaves, taken_out};
use super::everything;
use super::run::{End, Scene};
use super::stories::Tale;
use crate::common::forge::key;

#[derive(Clone, Debug)]
enum Bend {
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
    /// A field of an entry is changed, or taken out.
    Field(Index, Index, bool),
}

fn bend() -> impl Strategy<Value = Bend> {
    prop_oneof![
        any::<Index>().prop_map(Bend::Drop),
        any::<Index>().prop_map(Bend::Double),
        any::<(Index, Index)>().prop_map(|(one, other)| Bend::Swap(one, other)),
        any::<(Index, Index, bool)>().prop_map(|(entry, field, is_out)| Bend::Field(entry, field, is_out)),
    ]
}

/// Bends a tale; `honest` are its entries as they were written.
fn apply(tale: &mut Tale, honest: &[Entry], bend: &Bend) {
    match bend {
        Bend::Drop(at) => drop(tale.remove(at.index(tale.len()))),
        Bend::Double(at) => {
            let at = at.index(tale.len());
            tale.insert(at, tale[at].clone());
        }
        Bend::Swap(one, other) => {
            let (one, other) = (one.index(tale.len()), other.index(tale.len()));
            tale.swap(one, other);
        }
        Bend::Field(at, field, is_out) => {
            let at = at.index(tale.len());
            let Some(entry) = honest.iter().find(|entry| entry.event == tale[at]) else { return };
            let written: Value = serde_json::from_slice(&entry.canonical()).unwrap();
            let fields = leaves(&written);
            if fields.is_empty() {
                return;
            }
            let path = &fields[field.index(fields.len())];
            let bent = if *is_out { taken_out(&written, path) } else { changed(&written, path) };
            if let Ok(second_entry) = Entry::parse(&format::entry_text(&bent)) {
                tale[at] = second_entry.event;
            }
        }
    }
}

#[test]
fn both_implementations_find_the_same_in_random_tales() {
    let scene = Scene::new(End::Closed);
    let honest: Vec<Entry> = scene.chain.links.iter().map(|link| link.entry.clone()).collect();
    let keys = [1, 1, 1, 4, 9].map(|number| key(scene.forge.path(), number));
    let mut runner = TestRunner::deterministic();
    let mut both = Both::default();
    for number in 0..if everything() { 400 } else { 40 } {
        let (bends, by) = (vec(bend(), 1..4), any::<Index>()).new_tree(&mut runner).unwrap().current();
        let mut tale = scene.tale();
        bends.iter().for_each(|bend| apply(&mut tale, &honest, bend));
        if !tale.iter().any(|event| matches!(event, Event::RunSubmitted(_))) {
            continue;
        }
        let signer = if number % 2 == 0 { &scene.forge.signer } else { by.get(&keys) };
        let chain = scene.tell(tale, signer);
        if number % 3 == 0 {
            scene.rewrite_log(&chain, signer);
        } else {
            scene.keep_log();
        }
        both.note(&scene.forge, &format!("{number}: {bends:?}"));
    }
    both.compare();
}
