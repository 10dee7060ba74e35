//! Changes that an operator makes to a run, even while it is driven: cancel, retry, close.

use std::collections::{BTreeSet, VecDeque};

use serde::Serialize;

use crate::model::any_error::AnyError;
use crate::model::entry::{Again, Event, ItemDropped, ItemEnded, RunEnded};
use crate::model::item_index::ItemIndex;
use crate::model::name::{ItemId, RunId};
use crate::model::outcomes::Stopped;
use crate::model::plan::ProductKey;
use crate::model::role::Role;
use crate::model::state::{Phase, RunState};
use crate::repository::Repository;
use crate::run::query::View;
use crate::run::query::target::{self, Target};
use crate::run::query::view::is_sealed;

use super::{NewEntry, OpenRun, closed};

/// The name of the reason in an error about secrets.
const REASON: &str = "reason";

/// A recorded change, as `cancel`, `retry`, `close` and `abandon` print it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.steer/1")]
pub struct Steered {
    /// The run.
    pub run: RunId,
    /// The number of recorded entries.
    pub entries: u64,
    /// Whether the run is sealed now.
    pub sealed: bool,
    /// The first rule that ended the run before it was done, with the reason; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Our key, if the run has ended and this key cannot seal it.
    #[serde(skip)]
    pub cannot_seal: Option<String>,
}

impl Steered {
    fn new(open: &OpenRun, entries: u64) -> Self {
        let (run, sealed, stopped) = (open.id().clone(), open.state.sealed, open.state.outcomes().stopped);
        let cannot_seal = (!sealed && open.state.is_ended()).then(|| open.writer().signer.fingerprint());
        Self { run, entries, sealed, stopped, cannot_seal }
    }

    fn sealed_before(run: RunId) -> Self {
        Self { run, entries: 0, sealed: true, stopped: None, cannot_seal: None }
    }
}

impl Repository {
    /// Opens a run of this repository that a key with one of these roles can change. Also returns
    /// the position of the item, if the text names one.
    pub fn open_run(&self, text: &str, roles: &'static [Role]) -> Result<(OpenRun, Option<ItemIndex>), AnyError> {
        let (target, rest) = Target::with_rest(&self.store, text)?;
        refuse_foreign(&target)?;
        if is_sealed(&self.store, &target.reference) {
            return Err(Error::Sealed(target.run).into());
        }
        let open = self.opened(&target.run).map_err(|denied| denied.lacking(roles))?;
        if open.state.sealed {
            return Err(Error::Sealed(target.run).into());
        }
        let item = rest.map(|rest| target::item_of(open.id(), &open.state, rest)).transpose()?;
        Ok((open, item))
    }

    /// Cancels and seals a run, or cancels one item and skips its dependents.
    pub fn cancel(&self, text: &str, reason: &str) -> Result<Steered, AnyError> {
        self.free_of_secrets(REASON, reason)?;
        let (mut open, item) = self.open_run(text, &[Role::Own])?;
        let Some(at) = item else { return cancel_run(&mut open, reason) };
        loop {
            let id = open.state.graph.item(at).id.clone();
            if open.state.items[at].phase.is_terminal() {
                return Err(Error::Ended { item: id, status: open.state.status(at) }.into());
            }
            let mut entries = vec![cancelled(&open, at, reason)];
            for lost in lost_with(&open.state, at) {
                let cause = format!("it depends on {:?}, which was cancelled", id.as_str());
                entries.push(NewEntry::plain(Event::ItemSkipped(dropped(&open.state, lost, &cause))));
            }
            let links = open.record(&entries)?;
            // The driver may have dispatched or ended the item in between.
            if !links.is_empty() && open.state.items[at].phase == Phase::Cancelled {
                return Ok(Steered::new(&open, links.len() as u64));
            }
        }
    }

    /// Cancels and seals a run in any state.
    pub fn abandon(&self, run: &str, reason: &str) -> Result<Steered, AnyError> {
        self.free_of_secrets(REASON, reason)?;
        match self.open_run(run, &[Role::Own])? {
            (mut open, None) => cancel_run(&mut open, reason),
            (_, Some(_)) => Err(Error::WholeRun.into()),
        }
    }

    /// Gives another round of attempts to an item that failed, was skipped or was cancelled.
    pub fn retry(&self, text: &str) -> Result<Steered, AnyError> {
        let (mut open, item) = self.open_run(text, &[Role::Own, Role::Work])?;
        let at = item.ok_or(Error::NoItem)?;
        loop {
            let entries = asked_again(&open, at, None)?;
            let links = open.record(&entries)?;
            // If nothing was recorded, another writer retried the item or ended the run, and the
            // next round returns the error for that.
            if !links.is_empty() {
                return Ok(Steered::new(&open, links.len() as u64));
            }
        }
    }

    /// Gives an item another round of attempts like [`Self::retry`], and records why.
    pub(crate) fn retry_because(&self, text: &str, reason: &str) -> Result<(), AnyError> {
        let (mut open, item) = self.open_run(text, &[Role::Own, Role::Work])?;
        let entries = asked_again(&open, item.ok_or(Error::NoItem)?, Some(reason))?;
        open.record(&entries)?;
        Ok(())
    }

    /// Seals a settled run as it is. Records nothing if it is sealed already.
    pub fn close(&self, run: &str, reason: &str) -> Result<Steered, AnyError> {
        self.free_of_secrets(REASON, reason)?;
        let opened = self.open_run(run, &[Role::Own, Role::Work]);
        if let Err(error) = &opened
            && let Some(Error::Sealed(sealed)) = error.downcast_ref()
            && !run.contains('/')
        {
            // A run that a stranger sealed is refused as before.
            self.opened(sealed).map_err(|denied| denied.lacking(&[Role::Own, Role::Work]))?;
            return Ok(Steered::sealed_before(sealed.clone()));
        }
        let (mut open, item) = opened?;
        if item.is_some() {
            return Err(Error::WholeRun.into());
        }
        if !open.state.is_settled() {
            let left = open.state.items.iter().filter(|unfinished| !unfinished.phase.is_terminal()).count();
            return Err(Error::NotSettled { run: open.id().clone(), left }.into());
        }
        let before = open.head().entries;
        // A run with rules can still grow, so it needs an explicit end.
        let by_itself = open.state.seals_itself() && open.state.rules.is_empty();
        let ended = open.state.is_ended() || by_itself;
        end(&mut open, (!ended).then(|| closed(reason)))?;
        Ok(Steered::new(&open, open.head().entries - before))
    }
}

fn cancel_run(open: &mut OpenRun, reason: &str) -> Result<Steered, AnyError> {
    let before = open.head().entries;
    // The driver may end items in between, so this repeats until no item is open.
    loop {
        while !open.state.is_settled() {
            let items = open.state.items.indexed().filter(|(_, item)| !item.phase.is_terminal());
            let waiting: Vec<NewEntry> = items.map(|(at, _)| cancelled(open, at, reason)).collect();
            open.record(&waiting)?;
        }
        let ended = open.state.is_ended();
        let event = Event::RunCancelled(RunEnded::new(reason));
        match end(open, (!ended).then_some(event)) {
            // An item was retried in between.
            Err(super::Error::Illegal(_)) if !open.state.is_settled() => {}
            Ok(()) if !open.state.is_ended() && !open.state.sealed => {}
            other => {
                other?;
                break;
            }
        }
    }
    if open.state.cancelled.is_none() {
        return Err(Error::Sealed(open.id().clone()).into());
    }
    Ok(Steered::new(open, open.head().entries - before))
}

/// Records the end of a run and seals it. A key without the role `seal` records only the end.
fn end(open: &mut OpenRun, event: Option<Event>) -> Result<(), super::Error> {
    let may_seal = open.state.keys.has(&open.writer().signer.fingerprint(), Role::Seal);
    match event {
        Some(event) if !may_seal => open.record(&[NewEntry::plain(event)]).map(drop),
        event => open.seal(event).map(drop),
    }
}

/// Returns the entries that retry an item, or an error if it cannot be retried.
fn asked_again(open: &OpenRun, at: ItemIndex, reason: Option<&str>) -> Result<Vec<NewEntry>, AnyError> {
    if open.state.sealed {
        return Err(Error::Sealed(open.id().clone()).into());
    }
    let item = || open.state.graph.item(at).id.clone();
    if let Some(by) = open.state.replaced_by(at) {
        return Err(Error::Superseded { item: item(), by: by.clone() }.into());
    }
    let phase = open.state.items[at].phase;
    if open.state.items[at].red {
        return Err(Error::Red { run: open.id().clone(), item: item() }.into());
    }
    if !matches!(phase, Phase::Failed | Phase::Skipped | Phase::Cancelled) {
        return Err(Error::NotLost { item: item(), status: open.state.status(at) }.into());
    }
    if let Some(lost) = open.state.blocked_by(at).find(|on| open.state.items[*on].phase.is_terminal()) {
        let (run, on) = (open.id().clone(), open.state.graph.item(lost).id.clone());
        return Err(Error::Blocked { run, item: item(), on, status: open.state.status(lost) }.into());
    }
    if let Some((on, product)) = open.state.lacks(at) {
        return Err(Error::Lacking { run: open.id().clone(), item: item(), on: on.clone(), product }.into());
    }
    Ok(again_with(open, at)
        .into_iter()
        .map(|at| {
            let detail = reason.map(str::to_owned);
            NewEntry::plain(Event::ItemRequeued(ItemEnded { detail, ..requeued(&open.state, at, Again::Operator) }))
        })
        .collect())
}

/// Returns an item and all items that were skipped only because of it, dependencies first.
fn again_with(open: &OpenRun, at: ItemIndex) -> Vec<ItemIndex> {
    let state = &open.state;
    let mut again = vec![at];
    let mut next = 0;
    while let Some(&on) = again.get(next) {
        next += 1;
        for &dependent in state.graph.dependents(on) {
            let still_lost = state
                .blocked_by(dependent)
                .any(|other| state.items[other].phase.is_terminal() && !again.contains(&other));
            let comes_back = state.items[dependent].phase == Phase::Skipped && !state.is_superseded(dependent);
            if comes_back && !still_lost && !again.contains(&dependent) {
                again.push(dependent);
            }
        }
    }
    again
}

/// Returns the waiting items that depend on an item, directly or not, dependencies first.
pub fn lost_with(state: &RunState, at: ItemIndex) -> Vec<ItemIndex> {
    let mut lost = Vec::new();
    let mut visited = BTreeSet::from([at]);
    let mut next = VecDeque::from([at]);
    while let Some(on) = next.pop_front() {
        for &dependent in state.graph.dependents(on) {
            if state.items[dependent].phase == Phase::Waiting && visited.insert(dependent) {
                lost.push(dependent);
                next.push_back(dependent);
            }
        }
    }
    lost
}

fn cancelled(open: &OpenRun, at: ItemIndex, reason: &str) -> NewEntry {
    NewEntry::plain(Event::ItemCancelled(dropped(&open.state, at, reason)))
}

/// Returns the end of an item that was skipped or cancelled.
pub(crate) fn dropped(state: &RunState, at: ItemIndex, reason: &str) -> ItemDropped {
    let (item, attempt) = (state.graph.item(at).id.clone(), state.items[at].attempts);
    ItemDropped::new(item, attempt, reason)
}

/// Returns the entry that gives an item another attempt, with nothing but the cause.
pub(crate) fn requeued(state: &RunState, at: ItemIndex, reason: Again) -> ItemEnded {
    ItemEnded::new(state.graph.item(at).id.clone(), state.items[at].attempts, reason)
}

/// Returns an error if the run was fetched or is sealed.
pub(super) fn refuse_unless_open(target: &Target, view: &View) -> Result<(), AnyError> {
    refuse_foreign(target)?;
    if view.state.sealed { Err(Error::Sealed(target.run.clone()).into()) } else { Ok(()) }
}

pub(super) fn refuse_foreign(target: &Target) -> Result<(), AnyError> {
    if target.is_own() { Ok(()) } else { Err(Error::Foreign(target.run.clone()).into()) }
}

errors! {
    /// Failures to change a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Foreign(RunId) "not-ours": "the run {:?} was fetched; it can only be changed where it is driven" [.0.as_str()];
    Sealed(RunId) "sealed": "the run {:?} is sealed; nothing can follow" [.0.as_str()];
    Ended { item: ItemId, status: &'static str } "not-cancellable": "{item:?} is {status} already";
    Superseded { item: ItemId, by: ItemId } "not-retriable": "{:?} was superseded by {:?}" [item.as_str(), by.as_str()];
    NotLost { item: ItemId, status: &'static str } "not-retriable":
        "{item:?} is {status}; only items that failed, were skipped or were cancelled can be retried";
    Red { run: RunId, item: ItemId } "not-retriable":
        "{:?} is done, although red: only items that failed, were skipped or were cancelled can be retried"
        [item.as_str()];
    Blocked { run: RunId, item: ItemId, on: ItemId, status: &'static str } "not-retriable":
        "{item:?} depends on {on:?}, which is {status}";
    Lacking { run: RunId, item: ItemId, on: ItemId, product: ProductKey } "not-retriable":
        "{:?} needs {product} of {:?}, which is done without it" [item.as_str(), on.as_str()];
    NotSettled { run: RunId, left: usize } "not-settled":
        "the run {:?} has {left} item{} that did not end yet" [run.as_str(), if *left == 1 { "" } else { "s" }];
    NoItem "usage" 2: "say which item: RUN/ITEM";
    WholeRun "usage" 2: "only a whole run can be closed";
}
