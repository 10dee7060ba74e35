//! `git handoff cancel`, `retry` and `close`: what an operator decides about a run, also while it is being driven.

use git_handoff::engine::decide;
use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::ledger::chain;
use git_handoff::model::entry::{Again, Event, ItemDropped, ItemEnded, RunEnded};
use git_handoff::model::name::RunId;
use git_handoff::model::quote::quoted;
use git_handoff::model::state::Phase;
use git_handoff::run::{Error, NewEntry, OpenRun, View, closed};
use serde_json::json;

use super::{Ending, Failure, Output, run};
use git_handoff::repository::Repository;
use git_handoff::run::{Target, target};

/// Cancel a run, or one item of it with all that waits for it
///
/// Cancelling a whole run seals it. An item that is running is ended by whoever drives the run.
#[derive(clap::Args)]
pub(crate) struct Cancel {
    /// The run, or RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// Why
    #[arg(long, default_value = "cancelled by the operator")]
    reason: String,
}

/// Give an item that failed, was skipped or was cancelled another round of attempts
///
/// What was skipped because of it waits for it again.
#[derive(clap::Args)]
pub(crate) struct Retry {
    /// The item
    #[arg(value_name = "RUN/ITEM")]
    target: String,
}

/// Seal a run that has settled as it is
#[derive(clap::Args)]
pub(crate) struct Close {
    /// The run
    run: String,
    /// Why
    #[arg(long, default_value = "closed by the operator")]
    reason: String,
}

/// Cancels.
pub(crate) fn cancel(arguments: &Cancel, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (mut open, item) = open(&arguments.target, repository)?;
    let Some(item) = item else { return cancel_run(&mut open, &arguments.reason, output) };
    let at = position(&open, &item)?;
    loop {
        if open.state.items[at].phase.is_terminal() {
            return Err(Failure::refused("not-cancellable", format!("{item:?} is {} already", open.state.status(at))));
        }
        let mut entries = vec![cancelled(&open, at, &arguments.reason)];
        for lost in decide::lost_with(&open.state, at) {
            entries.push(NewEntry::Plain(Event::ItemSkipped(ItemDropped {
                item: open.state.graph.item(lost).id.clone(),
                attempt: open.state.items[lost].attempts,
                reason: format!("it depends on {item:?}, which was cancelled"),
            })));
        }
        let links = open.record(&entries)?;
        // Whoever drives the run may have dispatched or ended the item in between: then it is looked at anew.
        if !links.is_empty() && open.state.items[at].phase == Phase::Cancelled {
            tell(&open, links.len(), output);
            return Ok(Ending::Done);
        }
    }
}

fn cancel_run(open: &mut OpenRun, reason: &str, output: &mut Output) -> Result<Ending, Failure> {
    let before = open.head().entries;
    // Whoever drives the run may end items in between: what is still open is looked at anew until nothing is.
    loop {
        while !open.state.is_settled() {
            let waiting: Vec<NewEntry> = (0..open.state.items.len())
                .filter(|at| !open.state.items[*at].phase.is_terminal())
                .map(|at| cancelled(open, at, reason))
                .collect();
            open.record(&waiting)?;
        }
        let ended = open.state.is_ended();
        let event = Event::RunCancelled(RunEnded { reason: reason.to_owned() });
        match open.seal((!ended).then_some(event)) {
            // An item was asked for again in between.
            Err(Error::Illegal(_)) if !open.state.is_settled() => {}
            other => {
                other?;
                break;
            }
        }
    }
    if open.state.cancelled.is_none() {
        return Err(sealed(open.id()));
    }
    tell(open, usize::try_from(open.head().entries - before).unwrap_or(usize::MAX), output);
    Ok(Ending::Done)
}

/// Asks for an item again.
pub(crate) fn retry(arguments: &Retry, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (mut open, item) = open(&arguments.target, repository)?;
    let item = item.ok_or_else(|| Failure::usage("say which item: RUN/ITEM".into()))?;
    let at = position(&open, &item)?;
    loop {
        let entries = asked_again(&open, &item, at)?;
        let links = open.record(&entries)?;
        // Otherwise somebody else asked for it, or ended the run, in between: then that is what is to be told.
        if !links.is_empty() {
            tell(&open, links.len(), output);
            break;
        }
    }
    if !output.json {
        output.hint(&format!("git handoff run {}", quoted(open.id().as_str())));
    }
    Ok(Ending::Done)
}

/// Returns the entries that ask for an item again, or says why it cannot be.
fn asked_again(open: &OpenRun, item: &str, at: usize) -> Result<Vec<NewEntry>, Failure> {
    if open.state.sealed {
        return Err(sealed(open.id()));
    }
    let phase = open.state.items[at].phase;
    if !matches!(phase, Phase::Failed | Phase::Skipped | Phase::Cancelled) {
        let message = format!(
            "{item:?} is {}; only what failed, was skipped or was cancelled can be retried",
            open.state.status(at)
        );
        return Err(Failure::refused("not-retriable", message));
    }
    if let Some(lost) = open.state.blocked_by(at).find(|on| open.state.items[*on].phase.is_terminal()) {
        let on = &open.state.graph.item(lost).id;
        let message = format!("{item:?} depends on {on:?}, which is {}", open.state.status(lost));
        return Err(Failure::refused("not-retriable", message)
            .hint(format!("git handoff retry {}", quoted(&format!("{}/{on}", open.id())))));
    }
    let entries = again_with(open, at)
        .into_iter()
        .map(|at| {
            NewEntry::Plain(Event::ItemRequeued(ItemEnded {
                item: open.state.graph.item(at).id.clone(),
                attempt: open.state.items[at].attempts,
                reason: Again::Operator,
                detail: None,
                exit: None,
                duration_ms: None,
                transcript: None,
                not_before: None,
            }))
        })
        .collect();
    Ok(entries)
}

/// Returns an item and everything that was skipped because of it and of nothing else, in the order in which it can wait.
fn again_with(open: &OpenRun, at: usize) -> Vec<usize> {
    let state = &open.state;
    let mut again = vec![at];
    let mut next = 0;
    while let Some(&on) = again.get(next) {
        next += 1;
        for &dependent in state.graph.dependents(on) {
            let still_lost = state
                .blocked_by(dependent)
                .any(|other| state.items[other].phase.is_terminal() && !again.contains(&other));
            if state.items[dependent].phase == Phase::Skipped && !still_lost && !again.contains(&dependent) {
                again.push(dependent);
            }
        }
    }
    again
}

/// Closes and seals.
pub(crate) fn close(arguments: &Close, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (mut open, item) = open(&arguments.run, repository)?;
    if item.is_some() {
        return Err(Failure::usage("only a whole run can be closed".into()));
    }
    if !open.state.is_settled() {
        let left = open.state.items.iter().filter(|item| !item.phase.is_terminal()).count();
        let message = format!(
            "the run {:?} has {left} item{} that did not end yet",
            open.id().as_str(),
            if left == 1 { "" } else { "s" }
        );
        return Err(Failure::refused("not-settled", message)
            .hint(format!("git handoff run --close {}", quoted(open.id().as_str()))));
    }
    let before = open.head().entries;
    // A run that can still grow does not end because it is done, but because somebody says so.
    let by_itself = open.state.seals_itself() && open.state.rules.is_empty();
    let ended = open.state.is_ended() || by_itself;
    open.seal((!ended).then(|| closed(&arguments.reason)))?;
    tell(&open, usize::try_from(open.head().entries - before).unwrap_or(usize::MAX), output);
    Ok(Ending::Done)
}

/// Opens a run of this repository that can be changed, and says which item a text names.
pub(super) fn open(text: &str, repository: &Repository) -> Result<(OpenRun, Option<String>), Failure> {
    let (target, rest) = Target::with_rest(&repository.store, text)?;
    refuse_foreign(&target)?;
    if is_sealed(&repository.store, &target.reference) {
        return Err(sealed(&target.run));
    }
    let open = run::open(&target.run, repository)?;
    if open.state.sealed {
        return Err(sealed(&target.run));
    }
    let item = rest.map(|rest| target::item_of(open.id(), &open.state, rest)).transpose()?;
    let item = item.map(|at| open.state.graph.item(at).id.to_string());
    Ok((open, item))
}

/// Returns whether a chain ends with a seal. What cannot be read is for others to find fault with.
fn is_sealed(store: &Store, reference: &str) -> bool {
    let tip = refs::read(store, reference).ok().flatten();
    let entry = tip.and_then(|tip| chain::decode(store, tip).ok());
    entry.is_some_and(|decoded| matches!(decoded.entry.event, Event::RunSealed(_)))
}

/// Refuses a run that was fetched, and one that is sealed.
pub(crate) fn refuse_unless_open(target: &Target, view: &View) -> Result<(), Failure> {
    refuse_foreign(target)?;
    if view.state.sealed { Err(sealed(&target.run)) } else { Ok(()) }
}

fn refuse_foreign(target: &Target) -> Result<(), Failure> {
    if target.is_own() {
        return Ok(());
    }
    let message = format!("the run {:?} was fetched; it can only be changed where it is driven", target.run.as_str());
    Err(Failure::refused("not-ours", message))
}

fn sealed(run: &RunId) -> Failure {
    let message = format!("the run {:?} is sealed; nothing can follow", run.as_str());
    Failure::refused("sealed", message).hint(format!("git handoff verify {}", quoted(run.as_str())))
}

fn position(open: &OpenRun, item: &str) -> Result<usize, Failure> {
    let found = open.state.graph.items().iter().position(|known| known.id.as_str() == item);
    found.ok_or_else(|| Failure::from(chain::Error::LostRace(open.head().name.clone())))
}

fn cancelled(open: &OpenRun, at: usize, reason: &str) -> NewEntry {
    NewEntry::Plain(Event::ItemCancelled(ItemDropped {
        item: open.state.graph.item(at).id.clone(),
        attempt: open.state.items[at].attempts,
        reason: reason.to_owned(),
    }))
}

fn tell(open: &OpenRun, entries: usize, output: &mut Output) {
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.steer/1", "run": open.id(), "entries": entries, "sealed": open.state.sealed,
        }));
    } else {
        let sealed = if open.state.sealed { ", sealed" } else { "" };
        output.line(&format!("{}: {entries} entr{}{sealed}", open.id(), if entries == 1 { "y" } else { "ies" }));
    }
}
