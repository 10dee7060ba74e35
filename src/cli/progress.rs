//! What a run shows while it is driven: on a terminal one line per running item and the counts, elsewhere plain lines.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use git_handoff::clock::Clock;
use git_handoff::engine::event::Progress;
use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::{Cause, Entry, Event, Outcome, RunExtended};
use git_handoff::model::name::ItemId;
use git_handoff::model::printable;
use git_handoff::model::state::{Phase, RunState};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::table;

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// The display of one run.
pub(crate) struct Display {
    terminal: Option<Terminal>,
    items: usize,
    done: usize,
    lost: usize,
    ended: HashMap<ItemId, bool>,
}

struct Terminal {
    bars: MultiProgress,
    counts: ProgressBar,
    running: HashMap<ItemId, ProgressBar>,
}

impl Display {
    /// Starts with what the run has come to; a pinned clock shows no elapsed time.
    pub(crate) fn new(state: &RunState, clock: Clock) -> Self {
        let live = io::stderr().is_terminal() && !clock.is_pinned();
        let mut display = Self {
            terminal: live.then(Terminal::new),
            items: state.items.len(),
            done: 0,
            lost: 0,
            ended: HashMap::new(),
        };
        for (at, item) in state.items.iter().enumerate().filter(|(_, item)| item.phase.is_terminal()) {
            display.count(&state.graph.item(at).id, Some(item.phase == Phase::Done));
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

    fn recorded(&mut self, link: &Link) {
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
                Event::ItemReconciled(e) => Some(e.status == Outcome::Done),
                Event::ItemSkipped(_) | Event::ItemCancelled(_) => Some(false),
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

    fn count(&mut self, item: &ItemId, outcome: Option<bool>) {
        let before = match outcome {
            Some(done) => self.ended.insert(item.clone(), done),
            None => self.ended.remove(item),
        };
        match before {
            Some(true) => self.done -= 1,
            Some(false) => self.lost -= 1,
            None => {}
        }
        match outcome {
            Some(true) => self.done += 1,
            Some(false) => self.lost += 1,
            None => {}
        }
    }

    fn line(&self, text: &str) {
        let text = printable::line(text);
        match &self.terminal {
            // A terminal that cannot be written to shows nothing; the run goes on.
            Some(terminal) => drop(terminal.bars.println(&text)),
            None => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }

    fn show_counts(&self) {
        if let Some(terminal) = &self.terminal {
            let lost = if self.lost == 0 { String::new() } else { format!(", {} not", self.lost) };
            terminal.counts.set_message(format!("{} of {} done{lost}", self.done, self.items));
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
            line("✓", &e.item, format!("done in {}{products}", table::duration(e.duration_ms)))
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
        _ => entry.subject(),
    }
}
