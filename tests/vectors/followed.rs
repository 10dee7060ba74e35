//! A driver that follows a run refuses an entry exactly if `verify` finds a fault with it.
//! `HANDOFF_TAMPER_ALL` tries all vectors instead of a sample.

use std::collections::BTreeSet;

use git_handoff::git::refs;
use git_handoff::model::digest::Oid;
use git_handoff::model::name::RunId;
use git_handoff::run::query::{View, view};
use git_handoff::verify::{Options, State, check_applied, check_next, dispatchers, read_further, verify};

use super::{RUN, Vector, clean, forged};
use crate::common::forge::Forge;

/// A ref that ends before the run does.
const PART: &str = "refs/handoff/runs/handoff-dag-1";

/// The rows that are about each entry, and not about logs or keys that a verifier knows.
const ROWS: [&str; 6] = ["chain", "signature", "handoff", "plan", "manifest", "content"];

fn run() -> RunId {
    RunId::parse(RUN).unwrap()
}

/// Returns the commits of the run, oldest first.
fn commits(forge: &Forge) -> Vec<Oid> {
    let listed = forge.git(&["rev-list", "--first-parent", "--reverse", PART]);
    listed.lines().map(|line| line.parse().unwrap()).collect()
}

/// Returns the rows that fail for the run up to a commit.
fn failing(forge: &Forge, tip: Oid) -> BTreeSet<&'static str> {
    refs::set(&forge.store, PART, tip).unwrap();
    let report = verify(&forge.store, &run(), PART, &Options { alone: true, ..forge.options() }).unwrap();
    let sealed = report.rows.iter().any(|row| row.name == "root" && !row.detail.starts_with("not sealed"));
    let is_judged = |name: &str| ROWS.contains(&name) || (name == "root" && sealed);
    let failed = report.rows.iter().filter(|row| row.state == State::Failed && is_judged(row.name));
    failed.map(|row| row.name).collect()
}

/// Returns the state of the run at a commit, with the keys of its dispatches.
fn state(forge: &Forge, tip: Oid) -> Result<View, String> {
    refs::set(&forge.store, PART, tip).unwrap();
    let mut view = view(&forge.store, &run(), PART).map_err(|error| error.to_string())?.unwrap();
    let keys = dispatchers(&forge.store, &view.state.keys, tip)?;
    keys.into_iter().for_each(|(item, key)| view.state.keys.set_dispatcher(item, key));
    Ok(view)
}

/// Follows the run from one commit to the next.
fn follow(forge: &Forge, before: &View, known: Oid, next: Oid) -> Result<(), String> {
    let (store, run) = (&forge.store, run());
    let mut so_far = git_handoff::ledger::merkle::Frontier::default();
    before.links.iter().for_each(|link| so_far.push(link.hash));
    let further = read_further(store, &run, before.links[0].hash, &before.state.keys, known, next)?;
    for one in &further {
        check_next(store, &run, &before.state, &so_far, one)?;
        check_applied(store, &run, &state(forge, next)?.state, one)?;
    }
    Ok(())
}

/// Follows a run until an entry is refused, and compares that with `verify`. Returns the number of
/// entries that were followed.
fn compare(vector: &Vector) -> usize {
    let forge = Forge::with_format(vector.object_format);
    (vector.tell)(&forge);
    let commits = commits(&forge);
    let whole = failing(&forge, commits[commits.len() - 1]);
    if !whole.is_empty() && !failing(&forge, commits[0]).is_empty() {
        return 0;
    }
    for (at, pair) in commits.windows(2).enumerate() {
        let before = match state(&forge, pair[0]) {
            Ok(before) => before,
            Err(why) => panic!("{}: {why}", vector.name),
        };
        let Err(why) = follow(&forge, &before, pair[0], pair[1]) else { continue };
        let name = format!("{}, entry {}: {why}", vector.name, at + 1);
        assert_eq!(failing(&forge, pair[0]), BTreeSet::new(), "{name}");
        assert_ne!(failing(&forge, pair[1]), BTreeSet::new(), "{name}");
        return at + 1;
    }
    assert!(whole.is_empty(), "{}: {whole:?}, and nothing was refused", vector.name);
    commits.len() - 1
}

#[test]
fn an_entry_is_refused_exactly_if_verify_finds_a_fault_with_it() {
    let all = std::env::var_os("HANDOFF_TAMPER_ALL").is_some();
    let is_chosen = |(at, vector): &(usize, &Vector)| {
        let is_of_drivers = ["lost", "ended", "dismiss"].iter().any(|word| vector.name.contains(word));
        !vector.gaps && (all || is_of_drivers || at % 12 == 0)
    };
    let vectors = clean().chain(forged()).enumerate().filter(is_chosen);
    let followed: usize = vectors.map(|(_, vector)| compare(vector)).sum();
    assert!(followed > 100, "{followed}");
}
