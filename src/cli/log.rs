//! `git handoff log`

use clap::ValueEnum;
use git_handoff::model::entry::{Entry, Event};
use git_handoff::model::outcomes::NOTHING;
use git_handoff::model::pipeline::BlockEnded;
use git_handoff::model::state::{Holder, RunState};
use git_handoff::model::takeover::Takeover;
use git_handoff::repository::Repository;
use git_handoff::run::query::follow::Follower;
use git_handoff::run::query::log_entry::entry_shown;
use git_handoff::run::query::saved::Saved;
use git_handoff::run::query::{Target, View, trace_event};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, progress, shade};

/// Show a run's entries, oldest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Wait for further entries and print them, until the run is finished
    #[arg(short, long)]
    follow: bool,
    /// The format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each entry
    Text,
    /// One JSON object in Chrome's trace event format, for Perfetto or speedscope
    TraceEvent,
}

impl Arguments {
    /// Returns true if the whole output is available at once.
    pub(crate) fn is_read_in_pages(&self) -> bool {
        !self.follow && self.format == Format::Text
    }
}

/// Prints one line for each entry, or a trace.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let is_trace = arguments.format == Format::TraceEvent;
    if is_trace && (arguments.follow || output.json) {
        let option = if output.json { "--json" } else { "--follow" };
        return Err(Failure::usage(format!("{option} cannot be used with --format trace-event")));
    }
    let target = Target::find(&repository.store, &arguments.run)?;
    if is_trace {
        let view = target.view(&repository.store)?;
        output.value(&trace_event::trace(&repository.store, &view, repository.environment.clock.now())?);
        return Ok(Ending::Done);
    }
    let (mut following, mut view) = Follower::begin(&repository.store, target)?;
    let saved = Saved::all(&repository.store, &view)?;
    print(&view, 0, &saved, output);
    while arguments.follow
        && let Some(next) = following.next(&view, &mut || ())?
    {
        let newly_saved = Saved::all(&repository.store, &next)?;
        print(&next, view.links.len(), &newly_saved, output);
        view = next;
    }
    Ok(Ending::Done)
}

/// Prints the entries of a run from a position on.
fn print(view: &View, from: usize, saved: &[Saved], output: &mut Output) {
    let (links, state) = (view.links.get(from..).unwrap_or_default(), &view.state);
    if output.json {
        for link in links {
            output.value(&entry_shown(link, state));
        }
        return;
    }
    let takeovers = Takeover::all(view.links.iter().map(|link| &link.entry));
    table::print(
        &links
            .iter()
            .map(|link| {
                let entry = &link.entry;
                let (seq, at) = (entry.seq.to_string(), entry.at.to_string());
                let takeover = takeovers.iter().find(|takeover| takeover.entry == entry.seq);
                let about = takeover.map_or_else(
                    || about(entry, state),
                    |it| format!("{} {it}{}", entry.event.kind(), details_of(&entry.event)).into(),
                );
                let about =
                    if has_saved_work(&entry.event, saved) { about.and("; its work is saved", None) } else { about };
                vec![seq.into(), link.hash.short().into(), at.into(), entry.actor.as_str().into(), about]
            })
            .collect::<Vec<_>>(),
        output,
    );
}

/// Returns true if an entry ends an attempt whose work is saved beside the run.
fn has_saved_work(event: &Event, saved: &[Saved]) -> bool {
    let is_end = !matches!(event, Event::ItemFired(_) | Event::ItemDecided(_));
    let ended = event.item().filter(|_| is_end);
    ended.is_some_and(|(item, attempt)| saved.iter().any(|saved| saved.item == *item && saved.attempt == attempt))
}

/// Returns the subject of an entry, with the status word coloured, and its details.
fn about(entry: &Entry, state: &RunState) -> Cell {
    let (event, subject) = (&entry.event, entry.subject());
    let stands = match event {
        Event::RunExtended(e) => return format!("{} {}", event.kind(), progress::added(e, &entry.actor)).into(),
        Event::RunConcluded(e) => Some(e.outcome.as_str()),
        event => event.shown_status(),
    };
    let red = match event {
        Event::ItemReconciled(e) if e.is_red() => ", red",
        Event::ItemReconciled(e) if e.grade.is_some() => ", claimed",
        _ => "",
    };
    let red = if is_empty(event, state) { format!("{red}, {NOTHING}") } else { red.to_owned() };
    let cell = match stands.and_then(|word| Some((subject.strip_suffix(word)?, word))) {
        Some((before, word)) => Cell::from(before).and(format!("{word}{red}"), shade::of_event(event)),
        None => Cell::from(format!("{subject}{red}")),
    };
    cell.and(format!("{}{}{}{}", details_of(event), source_of_reused(event), blocks(event), shared(event)), None)
}

/// Returns true if an entry completes an item without products although it could have some.
fn is_empty(event: &Event, state: &RunState) -> bool {
    matches!(event, Event::ItemReconciled(e) if state.ended_with_nothing(e))
}

/// Returns what people read of an event after its subject line.
fn details_of(event: &Event) -> String {
    event.details().map(|details| format!(": {details}")).unwrap_or_default()
}

/// Returns what an entry of a shared run says about drivers; empty for others.
fn shared(event: &Event) -> String {
    match event {
        Event::ItemFired(e) => Holder::from_fired(e).map(|holder| format!(", by {holder}")).unwrap_or_default(),
        Event::RunShared(e) => {
            let (heartbeat, lost) = (table::duration(e.heartbeat), table::duration(e.lost_after));
            format!(": a sign of life every {heartbeat}, a driver is lost after {lost} without")
        }
        _ => String::new(),
    }
}

/// Returns the source of the products of a reused item; empty for others.
fn source_of_reused(event: &Event) -> String {
    match event {
        Event::ItemReconciled(e) => {
            e.reused.as_ref().map(|reused| format!(", reused from {reused}")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Returns the results of a pipeline's blocks; empty without a pipeline.
fn blocks(event: &Event) -> String {
    let blocks = match event {
        Event::ItemReconciled(e) => &e.blocks,
        Event::ItemRetried(e) | Event::ItemRequeued(e) => &e.blocks,
        _ => return String::new(),
    };
    let words: Vec<String> = blocks.iter().map(BlockEnded::to_string).collect();
    if words.is_empty() { String::new() } else { format!(" [{}]", words.join(", ")) }
}
