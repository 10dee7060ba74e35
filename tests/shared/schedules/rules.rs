//! Which entries may follow which: a small state machine that shares no code with the fold, after
//! the table in `docs/reference/format.md`.
//!
//! Three items: `i0`, `i1` that needs it, and `i2`. `i0` and `i2` hold the same lock.

use std::collections::{BTreeMap, BTreeSet};

use git_handoff::model::digest::Digest;
use git_handoff::model::driver::{Because, DriverId, RunShared};
use git_handoff::model::entry::{Again, Event, ItemDropped, ItemEnded, ItemFired, Outcome};
use git_handoff::model::entry::{Role, RunAdmitted, RunDismissed, RunEnded, RunSealed};
use git_handoff::model::state::{Phase, RunState};

use crate::model::{name, reconciled, submitted};

pub(super) const ITEMS: usize = 3;

/// The items that each item needs.
const NEEDS: [&[usize]; ITEMS] = [&[], &[0], &[]];

/// The items that hold the lock.
const LOCKED: [bool; ITEMS] = [true, false, true];

/// The key that submitted the run and may do everything.
pub(super) const OWNER: &str = "SHA256:x";

/// The keys that only work.
pub(super) const WORKERS: [&str; 2] = ["SHA256:y", "SHA256:z"];

pub(super) fn is_locked(item: usize) -> bool {
    LOCKED[item]
}

/// How the holder of an attempt ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Done,
    Failed,
    Retried,
    Crashed,
    HandedBack,
}

impl End {
    pub(super) const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Retried, Self::Crashed, Self::HandedBack];
}

/// An attempt of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    pub(super) item: usize,
    pub(super) number: u32,
}

/// The number of a driver, of which its id is made.
pub(super) type Id = u8;

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Share,
    Admit(&'static str),
    Dismiss(&'static str),
    Fire(Attempt, Option<Id>),
    End(Attempt, Option<Id>, End),
    Lose { attempt: Attempt, victim: Option<Id>, taker: Option<Id>, because: Because },
    Skip(Attempt),
    Cancel(Attempt),
    Close,
    Seal,
}

/// An entry with the key that signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) act: Act,
    pub(super) key: &'static str,
}

impl Entry {
    /// Returns true if the fold accepts the entry.
    pub(super) fn fits(&self, state: &mut RunState) -> bool {
        let event = self.act.event();
        state.keys.refuse(self.key, &event).is_none() && state.apply_signed(&event, Some(self.key)).is_ok()
    }
}

fn driver(id: Option<Id>) -> Option<DriverId> {
    id.map(|id| DriverId::from_random([id; 16]))
}

impl Act {
    /// Returns the event of the library.
    fn event(&self) -> Event {
        let end = |attempt: &Attempt, by: Option<Id>, reason| {
            let end = ItemEnded::new(name(attempt.item), attempt.number, reason);
            ItemEnded { driver: driver(by), ..end }
        };
        let reconcile = |attempt: &Attempt, by: Option<Id>, outcome| {
            let Event::ItemReconciled(mut e) = reconciled(attempt.item, attempt.number, outcome) else {
                unreachable!("it is one")
            };
            e.driver = driver(by);
            Event::ItemReconciled(e)
        };
        let drop = |attempt: &Attempt| {
            let (item, attempt) = (name(attempt.item), attempt.number);
            ItemDropped::new(item, attempt, "because")
        };
        match self {
            Self::Share => Event::RunShared(RunShared::new(1000, 4000)),
            Self::Admit(key) => Event::RunAdmitted(RunAdmitted::new((*key).to_owned(), Role::Work)),
            Self::Dismiss(key) => Event::RunDismissed(RunDismissed::new((*key).to_owned())),
            Self::Fire(attempt, by) => {
                let manifest = git_handoff::model::entry::Product::from_bytes(b"{}", gix::hash::Kind::Sha1).unwrap();
                let fired = ItemFired::new(name(attempt.item), attempt.number, manifest, BTreeMap::new());
                Event::ItemFired(ItemFired { driver: driver(*by), ..fired })
            }
            Self::End(attempt, by, End::Done) => reconcile(attempt, *by, Outcome::Done),
            Self::End(attempt, by, End::Failed) => reconcile(attempt, *by, Outcome::Failed),
            Self::End(attempt, by, End::Retried) => Event::ItemRetried(end(attempt, *by, Again::Failure)),
            Self::End(attempt, by, End::Crashed) => Event::ItemRequeued(end(attempt, *by, Again::Crash)),
            Self::End(attempt, by, End::HandedBack) => Event::ItemRequeued(end(attempt, *by, Again::Operator)),
            Self::Lose { attempt, victim, taker, because } => Event::ItemRequeued(ItemEnded {
                taker: driver(*taker),
                because: Some(*because),
                ..end(attempt, *victim, Again::Lost)
            }),
            Self::Skip(attempt) => Event::ItemSkipped(drop(attempt)),
            Self::Cancel(attempt) => Event::ItemCancelled(drop(attempt)),
            Self::Close => Event::RunClosed(RunEnded::new("closed")),
            Self::Seal => Event::RunSealed(RunSealed::new(Digest::compute(b"root"))),
        }
    }
}

/// One item, as the entries give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) phase: Phase,
    pub(super) attempts: u32,
    /// The driver that holds the running attempt, and the key of its dispatch.
    pub(super) holder: Option<(Id, &'static str)>,
}

/// The run, as the entries give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) items: [Item; ITEMS],
    pub(super) workers: BTreeSet<&'static str>,
    most_running: Option<usize>,
    is_shared: bool,
    is_closed: bool,
    pub(super) is_sealed: bool,
}

/// Returns a run that was just submitted, for the fold and for the rules.
pub(super) fn begin(most_running: Option<u32>) -> (RunState, Rules) {
    let items: Vec<_> = (0..ITEMS).map(|at| (NEEDS[at].to_vec(), vec![0; usize::from(LOCKED[at])])).collect();
    let mut state = submitted(&items);
    state.concurrency = most_running;
    let waiting = || Item { phase: Phase::Waiting, attempts: 0, holder: None };
    let rules = Rules {
        items: [waiting(), waiting(), waiting()],
        workers: BTreeSet::new(),
        most_running: most_running.map(|most| usize::try_from(most).expect("it is small")),
        is_shared: false,
        is_closed: false,
        is_sealed: false,
    };
    (state, rules)
}

impl Rules {
    fn is_over(&self, item: usize) -> bool {
        !matches!(self.items[item].phase, Phase::Waiting | Phase::Running)
    }

    pub(super) fn is_settled(&self) -> bool {
        (0..ITEMS).all(|item| self.is_over(item))
    }

    pub(super) fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.phase == Phase::Done)
    }

    pub(super) fn running(&self) -> usize {
        self.items.iter().filter(|item| item.phase == Phase::Running).count()
    }

    fn runs(&self, attempt: Attempt) -> bool {
        let item = &self.items[attempt.item];
        item.phase == Phase::Running && item.attempts == attempt.number
    }

    /// Returns true if an entry may end the attempt in the name of `by`, signed by `key`.
    fn is_by_holder(&self, attempt: Attempt, by: Option<Id>, key: &str) -> bool {
        match (self.items[attempt.item].holder, by) {
            (Some((holder, dispatcher)), Some(by)) => holder == by && dispatcher == key,
            (None, None) => true,
            _ => false,
        }
    }

    /// Applies an entry, or returns false and changes nothing.
    pub(super) fn apply(&mut self, Entry { act, key }: &Entry) -> bool {
        if self.is_sealed || !self.allows(act, key) {
            return false;
        }
        match act {
            Act::Share => self.is_shared = true,
            Act::Admit(signer) => drop(self.workers.insert(signer)),
            Act::Dismiss(dismissed) => drop(self.workers.remove(dismissed)),
            Act::Fire(attempt, by) => {
                let holder = by.map(|by| (by, *key));
                self.items[attempt.item] = Item { phase: Phase::Running, attempts: attempt.number, holder };
            }
            Act::End(attempt, _, End::Done) => self.settle(*attempt, Phase::Done),
            Act::End(attempt, _, End::Failed) => self.settle(*attempt, Phase::Failed),
            Act::End(attempt, ..) | Act::Lose { attempt, .. } => self.settle(*attempt, Phase::Waiting),
            Act::Skip(attempt) => self.settle(*attempt, Phase::Skipped),
            Act::Cancel(attempt) => self.settle(*attempt, Phase::Cancelled),
            Act::Close => self.is_closed = true,
            Act::Seal => self.is_sealed = true,
        }
        true
    }

    fn settle(&mut self, attempt: Attempt, phase: Phase) {
        let item = &mut self.items[attempt.item];
        (item.phase, item.holder) = (phase, None);
    }

    fn allows(&self, act: &Act, key: &'static str) -> bool {
        let (owns, works) = (key == OWNER, key == OWNER || self.workers.contains(key));
        match act {
            Act::Share => works && !self.is_shared && !self.is_closed,
            Act::Admit(signer) => owns && !self.is_closed && *signer != OWNER && !self.workers.contains(signer),
            Act::Dismiss(dismissed_key) => owns && self.workers.contains(dismissed_key),
            Act::Fire(attempt, by) => works && self.may_fire(*attempt, *by),
            Act::End(attempt, by, End::HandedBack) => self.may_hand_back(*attempt, *by, key),
            Act::End(attempt, by, end) if attempt.number == 0 => {
                // An item that waits fails without an attempt.
                let waits = self.items[attempt.item].phase == Phase::Waiting;
                works && *end == End::Failed && waits && by.is_none()
            }
            Act::End(attempt, by, _) => works && self.runs(*attempt) && self.is_by_holder(*attempt, *by, key),
            Act::Lose { attempt, victim, taker, because } => {
                let claim = self.items[attempt.item].holder.filter(|_| self.runs(*attempt));
                let is_dismissed = |other_key: &str| other_key != OWNER && !self.workers.contains(other_key);
                works
                    && claim.is_some_and(|(holder, dispatcher)| {
                        let is_true = *because != Because::Dismissed || is_dismissed(dispatcher);
                        Some(holder) == *victim && taker != victim && is_true
                    })
            }
            Act::Skip(attempt) => {
                let item = &self.items[attempt.item];
                let is_lost = |on: &usize| self.is_over(*on) && self.items[*on].phase != Phase::Done;
                let waits = item.phase == Phase::Waiting && item.attempts == attempt.number;
                works && waits && NEEDS[attempt.item].iter().any(is_lost)
            }
            Act::Cancel(attempt) => {
                owns && !self.is_over(attempt.item) && self.items[attempt.item].attempts == attempt.number
            }
            Act::Close => works && self.is_settled() && !self.is_closed,
            Act::Seal => owns && self.is_settled() && (self.is_closed || self.is_done()),
        }
    }

    fn may_fire(&self, attempt: Attempt, by: Option<Id>) -> bool {
        let item = &self.items[attempt.item];
        let is_free = |other: usize| !LOCKED[other] || self.items[other].phase != Phase::Running;
        !self.is_closed
            && item.phase == Phase::Waiting
            && attempt.number == item.attempts + 1
            && (by.is_some() || !self.is_shared)
            && self.most_running.is_none_or(|most| self.running() < most)
            && NEEDS[attempt.item].iter().all(|on| self.items[*on].phase == Phase::Done)
            && (!LOCKED[attempt.item] || (0..ITEMS).all(is_free))
    }

    /// The holder hands an attempt back; an owner takes it without a name. An item that came to
    /// nothing is tried again by anyone who works.
    fn may_hand_back(&self, attempt: Attempt, by: Option<Id>, key: &str) -> bool {
        let item = &self.items[attempt.item];
        let (owns, works) = (key == OWNER, key == OWNER || self.workers.contains(key));
        let is_lost = self.is_over(attempt.item) && item.phase != Phase::Done;
        let begun = (is_lost || item.phase == Phase::Running) && item.attempts == attempt.number && !self.is_closed;
        begun
            && match (by, item.holder) {
                (Some(_), _) => works && self.is_by_holder(attempt, by, key),
                (None, Some(_)) => owns,
                (None, None) => works,
            }
    }
}
