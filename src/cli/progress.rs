//! What a run shows while it is driven: on a terminal one line per running item and the counts, elsewhere plain lines.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use git_handoff::clock::Clock;
use git_handoff::engine::event::Progress;
use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::{Cause, Entry, Event, Outcome, RunExtended};
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::printable;
use git_handoff::model::state::{Phase, RunState};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::table;

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// The display of one run.
pub(crate) struct Display {
    terminal: Option<Terminal>,
    /// What stands before each line.
    named: String,
    items: usize,
    done: usize,
    red: usize,
    lost: usize,
    ended: HashMap<ItemId, End>,
}

/// How an item ended.
#[derive(Clone, Copy)]
enum End {
    Done,
    Red,
    Lost,
}

struct Terminal {
    bars: MultiProgress,
    counts: ProgressBar,
    running: HashMap<ItemId, ProgressBar>,
}

impl Display {
    /// Starts with what the run has come to; a pinned clock shows no elapsed time. A run that is driven beside others is named in each line.
    pub(crate) fn new(state: &RunState, clock: Clock, beside: Option<&RunId>) -> Self {
        let live = io::stderr().is_terminal() && !clock.is_pinned() && beside.is_none();
        let mut display = Self {
            terminal: live.then(Terminal::new),
            named: beside.map(|run| format!("{run}: ")).unwrap_or_default(),
            items: state.items.len(),
            done: 0,
            red: 0,
            lost: 0,
            ended: HashMap::new(),
        };
        for (at, item) in state.items.iter().enumerate().filter(|(_, item)| item.phase.is_terminal()) {
            let end = match item.phase {
                Phase::Done if item.red => End::Red,
                Phase::Done => End::Done,
                _ => End::Lost,
            };
            display.count(&state.graph.item(at).id, Some(end));
        }
        display.show_counts();
        display
    }

    /// Shows what happened.
    pub(crate) fn tell(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Note(text) => self.line(text),
            Progress::Recorded(link) => self.recorded(link),
        }
    }

    /// Takes the live lines away; what was said stays.
    pub(crate) fn end(&mut self) {
        if let Some(terminal) = self.terminal.take() {
            terminal.counts.finish_and_clear();
            terminal.running.values().for_each(ProgressBar::finish_and_clear);
        }
    }

    /// Shows what was recorded.
    pub(crate) fn recorded(&mut self, link: &Link) {
        let entry = &link.entry;
        if let Event::RunExtended(e) = &entry.event {
            self.items += e.items.len();
        }
        if let (Event::ItemFired(fired), Some(terminal)) = (&entry.event, &mut self.terminal) {
            terminal.start(&fired.item, fired.attempt);
            return;
        }
        if let Some((item, _)) = entry.event.item() {
            let outcome = match &entry.event {
                Event::ItemReconciled(e) if e.is_red() => Some(End::Red),
                Event::ItemReconciled(e) if e.status == Outcome::Done => Some(End::Done),
                Event::ItemReconciled(_) | Event::ItemSkipped(_) | Event::ItemCancelled(_) => Some(End::Lost),
                _ => None,
            };
            self.count(item, outcome);
            if let Some(bar) = self.terminal.as_mut().and_then(|terminal| terminal.running.remove(item)) {
                bar.finish_and_clear();
            }
        }
        self.line(&describe(entry));
        self.show_counts();
    }

    fn count(&mut self, item: &ItemId, end: Option<End>) {
        let before = match end {
            Some(end) => self.ended.insert(item.clone(), end),
            None => self.ended.remove(item),
        };
        if let Some(before) = before {
            *self.counted(before) -= 1;
        }
        if let Some(end) = end {
            *self.counted(end) += 1;
        }
    }

    fn counted(&mut self, end: End) -> &mut usize {
        match end {
            End::Done => &mut self.done,
            End::Red => &mut self.red,
            End::Lost => &mut self.lost,
        }
    }

    fn line(&self, text: &str) {
        let text = printable::line(&format!("{}{text}", self.named));
        match &self.terminal {
            // A terminal that cannot be written to shows nothing; the run goes on.
            Some(terminal) => drop(terminal.bars.println(&text)),
            None => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }

    fn show_counts(&self) {
        if let Some(terminal) = &self.terminal {
            let also = |count: usize, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
            let (red, lost) = (also(self.red, "red"), also(self.lost, "not"));
            terminal.counts.set_message(format!("{} of {} done{red}{lost}", self.done, self.items));
        }
    }
}

impl Terminal {
    fn new() -> Self {
        let bars = MultiProgress::new();
        let counts = bars.add(ProgressBar::new_spinner());
        counts.set_style(style("{spinner} {msg}  {elapsed}"));
        counts.enable_steady_tick(TURN);
        Self { bars, counts, running: HashMap::new() }
    }

    fn start(&mut self, item: &ItemId, attempt: u32) {
        let bar = self.bars.insert_before(&self.counts, ProgressBar::new_spinner());
        bar.set_style(style("  {msg}  {elapsed}"));
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        bar.set_message(printable::line(&format!("{item}{again}")));
        bar.enable_steady_tick(TURN);
        self.running.insert(item.clone(), bar);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

/// Returns what was added to a run, and by what.
pub(crate) fn added(e: &RunExtended, actor: &str) -> String {
    let items: Vec<&str> = e.items.keys().map(ItemId::as_str).collect();
    format!("{}  added by {}", items.join(", "), cause(&e.cause, actor))
}

/// Returns what added items to a run: a rule, or the actor of the entry.
pub(crate) fn cause(cause: &Cause, actor: &str) -> String {
    match cause {
        Cause::Rule(rule) => format!("rule {rule}"),
        Cause::Actor => actor.to_owned(),
    }
}

/// Returns one line about an entry.
fn describe(entry: &Entry) -> String {
    let line = |mark: &str, item: &ItemId, rest: String| format!("{mark} {item}  {rest}");
    match &entry.event {
        Event::ItemFired(e) => line("▶", &e.item, format!("attempt {}", e.attempt)),
        Event::ItemReconciled(e) if e.status == Outcome::Done => {
            let products = match e.products.len() {
                0 => String::new(),
                1 => ", 1 product".into(),
                count => format!(", {count} products"),
            };
            let took = table::duration(e.duration_ms);
            match (&e.reused, &e.reason) {
                (Some(reused), _) => line("✓", &e.item, format!("reused from {reused}{products}")),
                (None, reason) if e.is_red() => {
                    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                    line("!", &e.item, format!("done in {took}{products}, red{why}"))
                }
                _ => line("✓", &e.item, format!("done in {took}{products}")),
            }
        }
        Event::ItemReconciled(e) => {
            line("✗", &e.item, format!("failed: {}", e.reason.as_deref().unwrap_or("no reason")))
        }
        Event::ItemRetried(e) => line(
            "↻",
            &e.item,
            format!(
                "attempt {} failed: {}; will be tried again",
                e.attempt,
                e.detail.as_deref().unwrap_or("no reason")
            ),
        ),
        Event::ItemRequeued(e) => {
            line("↻", &e.item, format!("attempt {}: {}", e.attempt, e.detail.as_deref().unwrap_or("asked for again")))
        }
        Event::ItemSkipped(e) => line("─", &e.item, format!("skipped: {}", e.reason)),
        Event::ItemCancelled(e) => line("─", &e.item, format!("cancelled: {}", e.reason)),
        Event::RunExtended(e) => format!("+ {}", added(e, &entry.actor)),
        Event::RunConcluded(e) => {
            let said = format!("! {}  {}", e.rule, e.outcome);
            e.detail.iter().fold(said, |said, detail| said + ": " + detail)
        }
        _ => entry.subject(),
    }
}
