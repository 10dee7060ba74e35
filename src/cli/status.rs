//! `git handoff status`

use git_handoff::git::store::Store;
use git_handoff::model::hints;
use git_handoff::model::item_index::ItemIndex;
use git_handoff::model::name::ItemId;
use git_handoff::model::outcomes::{self, Outcomes};
use git_handoff::model::printable::Color;
use git_handoff::model::protected::{allowed_in_words, judged_in_words};
use git_handoff::model::time::Moment;
use git_handoff::report::graph::ItemStatus as ShownStatus;
use git_handoff::repository::Repository;
use git_handoff::run::query::estimate::Estimate;
use git_handoff::run::query::list::{Awaited, Driver, ItemStatus, Status};
use git_handoff::run::query::remote_read::RemoteRead;
use git_handoff::run::query::sharing::Sharing;
use git_handoff::run::query::times::between;
use git_handoff::run::query::{Target, View};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, lost, remote_read, saved, shade, usage};

/// The status text of a done item whose check failed.
pub(crate) const RED: &str = ShownStatus::Red.word();

/// The status word of a run that a rule ended, as in `verify`.
pub(crate) const PARTIAL: &str = "PARTIAL";

/// The status text of an item with products from another run.
pub(crate) const REUSED: &str = "done, reused";

/// The end of the status text of a done item without products although it could have some.
pub(crate) const EMPTY: &str = ", nothing handed over";

/// The status text of an item that takes a commit that was made before.
pub(crate) const CLAIMED: &str = ShownStatus::Claimed.word();

/// The status text of an item that a driver claimed and did not start yet.
pub(crate) const UNSTARTED: &str = "claimed";

/// The status text of an item that waits for a decision.
pub(crate) const AWAITED: &str = "awaits approval";

/// Show the status of each item of a run, since when, and the run's driver
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Show only waiting items with their reasons, and the failed or red items that block them
    #[arg(long)]
    blocked: bool,
    /// Show the tokens and prices that the workers report, and their sums
    #[arg(long, conflicts_with = "blocked")]
    usage: bool,
    /// Read the remote of a shared run once, and show its drivers
    #[arg(long, conflicts_with_all = ["blocked", "usage"])]
    drivers: bool,
    #[command(flatten)]
    pub(crate) offline: remote_read::Offline,
}

/// Prints the table of items.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    if arguments.drivers {
        return lost::print_drivers(&target, repository, output);
    }
    let remote = remote_read::read(&target, repository, output)?;
    let view = target.view(&repository.store)?;
    let mut status = repository.driven_status(&target, &view).with_saved(&repository.store, &view)?;
    let is_read = remote.as_ref().is_some_and(|read| read.failure.is_none());
    status = status.with_remote(remote);
    if is_read {
        status = repository.with_beats(status, &view)?;
    }
    status.pace = Estimate::from_view(&view, repository.environment.clock.now());
    if arguments.blocked {
        status = status.blocked();
    }
    if arguments.usage {
        status = status.with_usage(&view);
    }
    if output.answers(&status) {
        return Ok(Ending::Done);
    }
    if arguments.usage {
        usage::print(&status, output);
        return Ok(Ending::Done);
    }
    if arguments.blocked {
        table::print(&status.items.iter().map(row).collect::<Vec<_>>(), output);
        if status.items.is_empty() {
            output.note("nothing waits, and nothing is in the way");
        }
    } else {
        let now = repository.environment.clock.now();
        // A running item may have ended since the remote was last read.
        let now = status.remote.as_ref().and_then(RemoteRead::stale_since).unwrap_or(now);
        let rows: Vec<_> = status.items.iter().filter_map(|item| timed_row(&view, item, now)).collect();
        table::print(&rows, output);
        if let (Some(at), Some(author)) = (status.submitted_at, &status.author) {
            output.line(&format!("submitted {} by {author}", table::minute(at)));
        }
    }
    saved::print(&status.saved, output);
    let age = remote_read::age(status.remote.as_ref(), repository.environment.clock.now());
    age.into_iter().for_each(|age| output.line(&age));
    print_driver(&status, output);
    if target.is_own() && status.driver.is_none() && view.state.shared.is_some() && !status.sealed {
        print_sharing(Sharing::read(&repository.store, &status.run), &status, output);
    }
    if !arguments.blocked {
        output.line(total(&view).painted(output.color));
        status.pace.iter().for_each(|pace| output.line(&in_words(*pace)));
        view.check_remarks(&repository.store, None).iter().for_each(|words| output.line(words));
    }
    status.declined.iter().for_each(|declined| output.line(&declined.in_words()));
    if status.items.iter().any(|item| item.awaits_approval) {
        output.hint(&hints::awaiting());
    }
    Ok(Ending::Done)
}

/// Formats when the run ends at a pace.
fn in_words(pace: Estimate) -> String {
    let Estimate { items, within_ms, left_ms } = pace;
    let (left, within) = (table::duration(left_ms), table::duration(within_ms));
    format!("about {left} left, as the last {items} items took {within}")
}

/// Formats the run's driver, or that it died.
fn print_driver(status: &Status, output: &mut Output) {
    match &status.driver {
        Some(Driver { alive: true, process }) => {
            output.line(&format!("driven by {}", process.as_deref().unwrap_or("another process")));
        }
        Some(Driver { alive: false, .. }) => {
            output.line("its driver died, so that nothing runs");
            output.hint(&hints::run(&status.run));
        }
        None => {}
    }
}

/// Says that the run is driven through a remote, and how to list its drivers.
fn print_sharing(sharing: Option<Sharing>, status: &Status, output: &mut Output) {
    match sharing {
        Some(sharing) => {
            output.line(&format!("driven through {}, by no driver of this repository", sharing.remote));
            output.hint(&hints::drivers(&status.run));
        }
        None => output.line("driven through a remote, by no driver of this repository"),
    }
}

/// Formats an item with its times and what it waits for.
fn timed_row(view: &View, item: &ItemStatus, now: Moment) -> Option<Vec<Cell>> {
    let at = view.state.graph.position(&item.id)?;
    let mut row = table_row(view, at);
    let took = match (item.times.started_at, item.times.ended_at, item.times.duration_ms) {
        (_, _, Some(took)) => table::duration(took),
        (Some(since), None, None) => table::duration(between(since, now)),
        _ => String::new(),
    };
    let began = item.times.started_at.or(item.times.ended_at).map(table::minute).unwrap_or_default();
    if item.status == UNSTARTED {
        row[1] = Cell::default().and(UNSTARTED, shade::for_word(UNSTARTED));
    }
    drop(row.splice(3..3, [began.into(), took.into()]));
    if let Some(awaited) = &item.waits_for {
        row.pop();
        row.push(waits(awaited).into());
    }
    Some(row)
}

/// Formats the lock or queue slot that an item waits for, and its holder.
fn waits(awaited: &Awaited) -> String {
    let holders = awaited.holders.join(", ");
    match awaited.kind {
        "queue" => format!("waits for a place in the queue {}, held by {holders}", awaited.name),
        _ => format!("waits for the lock {}, held by {holders}", awaited.name),
    }
}

/// Formats an item that waits or blocks others.
fn row(item: &ItemStatus) -> Vec<Cell> {
    let waits = match (item.blocked_by.is_empty(), &item.waits_for, &item.reason) {
        (false, ..) => {
            let on: Vec<&str> = item.blocked_by.iter().map(ItemId::as_str).collect();
            format!("waits for {}", on.join(", "))
        }
        (true, Some(awaited), _) => waits(awaited),
        (true, None, Some(reason)) => reason.clone(),
        (true, None, None) => String::new(),
    };
    let status = match item.red {
        true => ended(RED, item.handed_over == Some(false)),
        false if item.awaits_approval => AWAITED.to_owned(),
        false => item.status.to_owned(),
    };
    let shade = shade::for_word(&status);
    vec![item.id.as_str().into(), Cell::default().and(status, shade), waits.into()]
}

/// Prints one line for each item, then one for the run.
pub(crate) fn print_table(view: &View, store: &Store, output: &mut Output) {
    let rows: Vec<_> = view.state.listed().into_iter().map(|at| table_row(view, at)).collect();
    table::print(&rows, output);
    let total = total(view).painted(output.color);
    output.line(total);
    view.check_remarks(store, None).iter().for_each(|words| output.line(words));
}

/// Returns the mark of an item's status.
pub(crate) fn mark(view: &View, at: ItemIndex) -> &'static str {
    match view.state.status(at) {
        "done" if view.state.items[at].red => "!",
        "done" => "✓",
        "failed" => "✗",
        "running" => "▶",
        "skipped" | "cancelled" => "─",
        _ => "·",
    }
}

/// Formats an item: mark, name, status, attempts and notes.
fn table_row(view: &View, at: ItemIndex) -> Vec<Cell> {
    let state = &view.state.items[at];
    let mark = mark(view, at);
    let mut attempts = count_words(state.attempts, "attempt", "attempts");
    if state.crashes > 0 {
        attempts = format!("{attempts}, {}", count_words(state.crashes, "crash", "crashes"));
    }
    let result = match (&state.reason, &state.holder) {
        (Some(reason), _) => reason.clone(),
        (None, Some(holder)) => holder.to_string(),
        (None, None) => state.products.keys().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut notes = Vec::new();
    notes.extend(view.state.replaced_by(at).map(|by| format!("superseded by {by}")));
    notes.extend(state.reused.iter().map(|(run, item)| format!("from {run}/{item}")));
    notes.extend(state.judged.then(|| format!("! {}", judged_in_words(state.protected.len()))));
    notes.extend(Some(result).filter(|result| !result.is_empty()));
    notes.extend(state.approved_by.iter().map(|key| format!("approved by {key}")));
    let allowed = state.allowed_by.iter();
    notes.extend(allowed.map(|key| format!("protected files changed, {}", allowed_in_words(key))));
    let (word, shade) = shaded(view, at);
    let name = Cell::default().and(mark, shade).and(format!(" {}", view.state.graph.item(at).id), None);
    vec![name, Cell::default().and(word, shade), attempts.into(), notes.join("; ").into()]
}

fn count_words(count: u32, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Formats the run.
pub(crate) fn total(view: &View) -> Cell {
    let outcomes = view.state.outcomes();
    let awaiting = view.state.waiting_for_people().count() as u64;
    let line = came_out(format!("{}: ", view.run).into(), &outcomes, awaiting);
    let line = line.and(if view.state.sealed { ", sealed" } else { "" }, None);
    if outcomes.stopped.is_some() { line.and(", ", None).and(PARTIAL, shade::SAID) } else { line }
}

/// Adds the number of items by status, in the words of `verify`.
///
/// `awaiting` of the pending ones wait for an approval.
pub(crate) fn came_out(line: Cell, outcomes: &Outcomes, awaiting: u64) -> Cell {
    let green = shade::for_word("done").filter(|_| outcomes.is_green());
    let line = line.and(format!("{} of {} done", outcomes.done, outcomes.total), green);
    let others = outcomes
        .others()
        .map(|(n, what)| if what == "pending" { (n.saturating_sub(awaiting), what) } else { (n, what) });
    let others = others.chain([(awaiting, AWAITED)]).filter(|(count, _)| *count > 0);
    let others = others.map(|(count, what)| (format!("{count} {what}"), shade::for_word(what)));
    let claimed = (outcomes.claimed > 0).then(|| (format!("{} {}", outcomes.claimed, outcomes::CLAIMED), None));
    let conclusions = outcomes.by_rules().map(|words| (words, shade::SAID));
    others.chain(claimed).chain(conclusions).fold(line, |line, (words, shade)| line.and(", ", None).and(words, shade))
}

/// Returns the displayed status and its colour; replaced items are not highlighted.
pub(crate) fn shaded(view: &View, at: ItemIndex) -> (String, Option<Color>) {
    let word = word(view, at);
    let shade = shade::for_word(if view.state.is_superseded(at) { "superseded" } else { &word });
    (word, shade)
}

/// Adds to the words of an end that the item handed nothing over.
pub(crate) fn ended(words: &str, with_nothing: bool) -> String {
    format!("{words}{}", if with_nothing { EMPTY } else { "" })
}

/// Returns the displayed status: a red item is never just done.
pub(crate) fn word(view: &View, at: ItemIndex) -> String {
    let word = match view.state.status(at) {
        _ if view.state.items[at].red => RED,
        _ if view.state.items[at].reused.is_some() => REUSED,
        "done" if view.state.graph.item(at).is_claimed() => return CLAIMED.to_owned(),
        "ready" if view.state.waits_for_people(at) => AWAITED,
        status => status,
    };
    ended(word, view.state.handed_over_nothing(at))
}

#[cfg(test)]
mod tests {
    use git_handoff::model::name::ItemId;
    use git_handoff::model::outcomes::Stopped;

    use super::*;

    #[test]
    fn all_done_is_green_only_where_no_rule_had_the_run_say_otherwise() {
        let line = |conclusions: &[&str]| {
            let conclusions = conclusions.iter().map(ToString::to_string).collect();
            let outcomes = Outcomes { total: 2, done: 2, said: conclusions, ..Outcomes::default() };
            came_out(Cell::default(), &outcomes, 0).painted(true).as_str().to_owned()
        };
        assert_eq!(line(&[]), "\u{1b}[32m2 of 2 done\u{1b}[0m");
        assert_eq!(line(&["rejected"]), "2 of 2 done, \u{1b}[31mrejected\u{1b}[0m");
        let rule = ItemId::parse("polish").unwrap();
        let stopped = Some(Stopped { rule, reason: "it created 2 of at most 2".into() });
        let outcomes = Outcomes { total: 2, done: 2, stopped, ..Outcomes::default() };
        let printed = came_out(Cell::default(), &outcomes, 0).painted(true).as_str().to_owned();
        assert_eq!(printed, "2 of 2 done, \u{1b}[31mrule polish stopped: it created 2 of at most 2\u{1b}[0m");
    }
}
