//! Progress of a running run: a line for each running item on a terminal, else plain lines.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use git_handoff::clock::Clock;
use git_handoff::engine::event::Progress;
use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::{Cause, Entry, Event, Outcome, RunExtended};
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::outcomes::{NOTHING, Outcomes};
use git_handoff::model::printable::{self, Painted};
use git_handoff::model::protected::judged_in_words;
use git_handoff::model::state::{Holder, RunState};
use git_handoff::process::live::{Echo, Live, Lives};
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use super::silence::{QUIET, Watched, minutes};
use super::{Output, shade, table};

/// The interval of the spinner.
const TURN: Duration = Duration::from_millis(120);

/// The width of a row without the agent's last line.
const BESIDE: usize = 16;

/// The progress display of one run.
pub(crate) struct Display {
    terminal: Option<Terminal>,
    /// The output of this process's attempts.
    lives: Option<Arc<Lives>>,
    /// The prefix of each line.
    prefix: String,
    /// Whether to use colour.
    color: bool,
    /// The number of items, in total and by result.
    outcomes: Outcomes,
    ended: HashMap<ItemId, End>,
    /// Whether the output of attempts is printed as it comes, above a single live row.
    echoes: bool,
}

/// The result of an item.
#[derive(Clone, Copy)]
enum End {
    Done,
    Red,
    Failed,
    Skipped,
    Cancelled,
}

impl End {
    /// Returns the result of an item, or `None` if it has not ended.
    fn from_status(status: &str, red: bool) -> Option<Self> {
        Some(match status {
            "done" if red => Self::Red,
            "done" => Self::Done,
            "failed" => Self::Failed,
            "skipped" => Self::Skipped,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }
}

struct Terminal {
    bars: MultiProgress,
    counts: ProgressBar,
    running: HashMap<ItemId, ProgressBar>,
    /// The last line of the output of attempts that is printed above the rows, until it ends.
    unfinished: Arc<Mutex<Vec<u8>>>,
}

impl Display {
    /// Starts with the present state of the run. A pinned clock shows no elapsed time. With several
    /// runs, each line names its run.
    pub(crate) fn new(
        state: &RunState,
        clock: Clock,
        labelled: Option<&RunId>,
        lives: Option<Arc<Lives>>,
        color: bool,
    ) -> Self {
        let live = io::stderr().is_terminal() && !clock.is_pinned() && labelled.is_none();
        let mut display = Self {
            terminal: live.then(Terminal::new),
            lives,
            prefix: labelled.map(|run| format!("{run}: ")).unwrap_or_default(),
            color,
            outcomes: Outcomes { total: state.items.len() as u64, ..Outcomes::default() },
            ended: HashMap::new(),
            echoes: false,
        };
        for (at, item) in state.items.indexed() {
            display.count(&state.graph.item(at).id, End::from_status(state.status(at), item.red));
        }
        display.show_counts();
        display
    }

    /// Starts for a command whose own output is printed as it comes, above the live row.
    pub(crate) fn echoing(state: &RunState, clock: Clock, lives: Arc<Lives>, color: bool) -> Self {
        let live = io::stderr().is_terminal() && !clock.is_pinned();
        Self {
            terminal: live.then(Terminal::new),
            lives: Some(lives),
            prefix: String::new(),
            color,
            outcomes: Outcomes { total: state.items.len() as u64, ..Outcomes::default() },
            ended: HashMap::new(),
            echoes: true,
        }
    }

    /// Returns a function that prints the output of attempts on standard error: on a terminal above
    /// the live rows, in whole lines and without control sequences, else unchanged. It ignores
    /// errors, so that a command continues if standard error is closed.
    pub(crate) fn echo(&self) -> Echo {
        let Some(terminal) = &self.terminal else { return Output::echo() };
        let (bars, unfinished) = (terminal.bars.clone(), Arc::clone(&terminal.unfinished));
        Box::new(move |bytes| {
            let mut unfinished = unfinished.lock().unwrap_or_else(PoisonError::into_inner);
            unfinished.extend_from_slice(bytes);
            let Some(end) = unfinished.iter().rposition(|byte| *byte == b'\n') else { return };
            let lines: Vec<u8> = unfinished.drain(..=end).collect();
            let lines = Output::readable(&lines);
            bars.suspend(|| drop(io::stderr().lock().write_all(lines.as_bytes())));
        })
    }

    /// Returns the attempts without a row on the terminal, whose silence must be reported.
    pub(crate) fn unseen(&self) -> Option<Watched> {
        let lives = self.lives.clone().filter(|_| self.terminal.is_none())?;
        Some((self.prefix.clone(), lives))
    }

    /// Shows an event.
    pub(crate) fn tell(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Note(text) => self.line(&Painted::from(self.prefix.as_str()).words(text)),
            Progress::Recorded(link, state) => self.recorded(link, state),
        }
    }

    /// Removes the live rows; printed lines stay.
    pub(crate) fn end(&mut self) {
        if let Some(terminal) = self.terminal.take() {
            terminal.counts.finish_and_clear();
            terminal.running.values().for_each(ProgressBar::finish_and_clear);
            let unfinished = std::mem::take(&mut *terminal.unfinished.lock().unwrap_or_else(PoisonError::into_inner));
            if !unfinished.is_empty() {
                drop(io::stderr().lock().write_all(&[unfinished.as_slice(), b"\n"].concat()));
            }
        }
    }

    /// Shows an entry.
    pub(crate) fn recorded(&mut self, link: &Link, state: &RunState) {
        let entry = &link.entry;
        if let Event::RunExtended(e) = &entry.event {
            self.outcomes.total += e.items.len() as u64;
        }
        if let (Event::ItemFired(fired), Some(terminal)) = (&entry.event, &mut self.terminal) {
            terminal.start(&fired.item, fired.attempt, self.lives.clone(), self.echoes);
            return;
        }
        if let Some((item, _)) = entry.event.item() {
            let outcome = entry.event.shown_status().and_then(|status| End::from_status(status, entry.event.is_red()));
            self.count(item, outcome);
            if let Some(bar) = self.terminal.as_mut().and_then(|terminal| terminal.running.remove(item)) {
                bar.finish_and_clear();
            }
        }
        // On a terminal, successes only change the counts; the table at the end lists them. What is
        // recorded alone has its result on the screen that follows.
        let is_folded = match &entry.event {
            Event::ItemReconciled(_) if self.echoes => true,
            Event::ItemReconciled(e) => self.terminal.is_some() && e.status == Outcome::Done && !e.is_red(),
            _ => false,
        };
        if !is_folded {
            let (mark, text) = describe(entry, state);
            let shade = shade::of_event(&entry.event).filter(|_| self.color);
            self.line(&Painted::from(self.prefix.as_str()).painted(mark, shade).words(&text));
        }
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

    fn counted(&mut self, end: End) -> &mut u64 {
        match end {
            End::Done => &mut self.outcomes.done,
            End::Red => &mut self.outcomes.red,
            End::Failed => &mut self.outcomes.failed,
            End::Skipped => &mut self.outcomes.skipped,
            End::Cancelled => &mut self.outcomes.cancelled,
        }
    }

    fn line(&self, line: &Painted) {
        match &self.terminal {
            // Ignores terminal errors; the run continues.
            Some(terminal) => drop(terminal.bars.println(line.as_str())),
            None => drop(writeln!(io::stderr().lock(), "{}", line.as_str())),
        }
    }

    fn show_counts(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !self.echoes) {
            terminal.counts.set_message(self.outcomes.to_string());
        }
    }
}

impl Terminal {
    fn new() -> Self {
        let bars = MultiProgress::new();
        let counts = bars.add(ProgressBar::new_spinner());
        counts.set_style(style("{spinner} {msg}  {elapsed}"));
        counts.enable_steady_tick(TURN);
        Self { bars, counts, running: HashMap::new(), unfinished: Arc::default() }
    }

    /// Adds the row of an attempt, or makes it the only one if the output is printed as it comes.
    fn start(&mut self, item: &ItemId, attempt: u32, lives: Option<Arc<Lives>>, echoes: bool) {
        let of = item.clone();
        let write_last_line = move |_: &ProgressState, to: &mut dyn fmt::Write| {
            let live = lives.as_ref().and_then(|lives| lives.find(&of));
            // Ignores drawing errors.
            let _ =
                to.write_str(&live.map(|live| format_last_line(&live, of.as_str().len(), echoes)).unwrap_or_default());
        };
        let (bar, template) = if echoes {
            (self.counts.clone(), "{spinner} {msg}  {elapsed}  {said}")
        } else {
            (self.bars.add(ProgressBar::new_spinner()), "  {msg}  {elapsed}  {said}")
        };
        bar.set_style(style(template).with_key("said", write_last_line));
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        bar.set_message(printable::line(&format!("{item}{again}")));
        if echoes {
            return;
        }
        bar.enable_steady_tick(TURN);
        self.running.insert(item.clone(), bar);
    }
}

/// Formats the silence of an attempt and its last line, unless that was printed, cut to the
/// terminal's width.
fn format_last_line(live: &Live, used: usize, is_printed: bool) -> String {
    let (silent, last) = (live.silent(), if is_printed { String::new() } else { printable::line(&live.last()) });
    let quiet = if silent < QUIET { String::new() } else { format!("silent for {}  ", minutes(silent)) };
    let width = usize::from(console::Term::stderr().size().1).saturating_sub(used + BESIDE);
    table::wrap::cut(&format!("{quiet}{last}"), width)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

/// Formats the items that were added to a run, and their origin.
pub(crate) fn added(e: &RunExtended, actor: &str) -> String {
    let items: Vec<&str> = e.items.keys().map(ItemId::as_str).collect();
    format!("{}  added by {}", items.join(", "), cause(&e.cause, actor))
}

/// Returns the rule or actor that added items.
pub(crate) fn cause(cause: &Cause, actor: &str) -> String {
    match cause {
        Cause::Rule(rule) => format!("rule {rule}"),
        Cause::Actor => actor.to_owned(),
    }
}

/// Formats an entry: the mark and the text.
fn describe(entry: &Entry, state: &RunState) -> (&'static str, String) {
    match &entry.event {
        Event::ItemFired(e) => {
            let by = Holder::from_fired(e).map(|holder| format!(", {holder}")).unwrap_or_default();
            item_line("▶", &e.item, format_args!("attempt {}{by}", e.attempt))
        }
        Event::ItemReconciled(e) if e.status == Outcome::Done => {
            let products = match e.products.len() {
                0 if state.ended_with_nothing(e) => format!(", {NOTHING}"),
                0 => String::new(),
                1 => ", 1 product".into(),
                count => format!(", {count} products"),
            };
            let took = table::duration(e.duration_ms);
            match (&e.reused, &e.reason) {
                (Some(reused), _) => item_line("✓", &e.item, format_args!("reused from {reused}{products}")),
                (None, _) if e.grade.is_some() => item_line("✓", &e.item, format_args!("claimed{products}")),
                (None, reason) if e.is_red() => {
                    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                    item_line("!", &e.item, format_args!("done in {took}{products}, red{why}"))
                }
                _ => {
                    let detail = e.summary().and_then(|detail| detail.lines().next());
                    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                    let judged = if e.protected_judged {
                        format!(", ! {}", judged_in_words(e.protected.len()))
                    } else {
                        String::new()
                    };
                    item_line("✓", &e.item, format_args!("done in {took}{products}{judged}{detail}"))
                }
            }
        }
        Event::ItemReconciled(e) => {
            item_line("✗", &e.item, format_args!("failed: {}", e.reason.as_deref().unwrap_or("no reason")))
        }
        Event::ItemRetried(e) => item_line(
            "↻",
            &e.item,
            format!(
                "attempt {} failed: {}; will be tried again",
                e.attempt,
                e.detail.as_deref().unwrap_or("no reason")
            ),
        ),
        Event::ItemRequeued(e) => {
            let cause = e.because.map(|because| format!("taken from its driver: {}", because.word()));
            let why = cause.as_deref().or(e.detail.as_deref()).unwrap_or("asked for again");
            item_line("↻", &e.item, format_args!("attempt {}: {why}", e.attempt))
        }
        Event::ItemSkipped(e) => item_line("─", &e.item, format_args!("skipped: {}", e.reason)),
        Event::ItemCancelled(e) => item_line("─", &e.item, format_args!("cancelled: {}", e.reason)),
        Event::RunExtended(e) => ("+", format!(" {}", added(e, &entry.actor))),
        Event::RunConcluded(e) => {
            let detail = format!(" {}  {}", e.rule, e.outcome);
            ("!", e.detail.iter().fold(detail, |text, detail| text + ": " + detail))
        }
        _ => ("", entry.subject()),
    }
}

/// Returns the line of an item.
fn item_line(mark: &'static str, item: &ItemId, rest: impl fmt::Display) -> (&'static str, String) {
    (mark, format!(" {item}  {rest}"))
}
