//! The attempts of a run and the waits before them, as spans of time. Pure.

use std::collections::BTreeMap;

use crate::ledger::chain::Link;
use crate::model::entry::{Again, Entry, Event, Exit, Outcome};
use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::state::Phase;
use crate::model::time::Moment;
use crate::run::query::View;

/// The attempts and waits of a run.
pub(super) struct Spans<'a> {
    /// In the order in which they were dispatched.
    pub(super) attempts: Vec<Attempt<'a>>,
    /// In the order in which they ended.
    pub(super) waits: Vec<Wait>,
}

/// An attempt.
pub(super) struct Attempt<'a> {
    pub(super) item: ItemIndex,
    /// The entry of its dispatch.
    pub(super) fired: &'a Link,
    /// The entry of its end, or `None` while it runs.
    pub(super) ended: Option<&'a Entry>,
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// The row, from 0; attempts of one row do not overlap.
    pub(super) row: usize,
    /// The earlier attempts whose results it depends on, by position.
    pub(super) needs: Vec<usize>,
}

/// The time from the moment when an item was ready to its dispatch or decision.
pub(super) struct Wait {
    pub(super) item: ItemIndex,
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// The row, from 0.
    pub(super) row: usize,
    /// The number of the attempt that it waited for.
    pub(super) attempt: u32,
    /// The locks that other items of the run held meanwhile, each with the first holder.
    pub(super) locks: BTreeMap<String, ItemIndex>,
}

impl<'a> Spans<'a> {
    /// Reads the entries of a run. Spans that have not ended reach until `now`, but not before the
    /// last entry.
    pub(super) fn new(view: &'a View, now: Moment) -> Self {
        let mut reader = Reader::new(view);
        view.links.iter().for_each(|link| reader.read(link));
        let now = view.links.last().map_or(now, |link| link.entry.at.max(now));
        reader.finish(now)
    }
}

/// The facts about an item so far.
#[derive(Clone, Default)]
struct Seen {
    /// When it was added to the run, or when the latest attempt ended.
    free_since: Option<Moment>,
    /// When it was done.
    done_at: Option<Moment>,
    /// The number of attempts so far.
    attempts: u32,
    /// The running attempt, by position.
    running: Option<usize>,
    /// The attempt with its result, by position.
    result: Option<usize>,
}

struct Reader<'a> {
    view: &'a View,
    states: ItemVec<Seen>,
    attempts: Vec<Attempt<'a>>,
    waits: Vec<Wait>,
}

impl<'a> Reader<'a> {
    fn new(view: &'a View) -> Self {
        Self { view, states: view.state.items.map(|_| Seen::default()), attempts: Vec::new(), waits: Vec::new() }
    }

    fn read(&mut self, link: &'a Link) {
        let (entry, graph) = (&link.entry, &self.view.state.graph);
        match &entry.event {
            Event::RunSubmitted(_) => {
                for item in &self.view.plan.items {
                    let at = graph.position(&item.id);
                    at.into_iter().for_each(|at| self.states[at].free_since = Some(entry.at));
                }
            }
            Event::RunExtended(e) => {
                for at in e.items.keys().filter_map(|id| graph.position(id)) {
                    self.states[at].free_since = Some(entry.at);
                }
            }
            Event::ItemFired(e) => {
                let at = graph.position(&e.item);
                at.into_iter().for_each(|at| self.fire(at, link));
            }
            event => {
                let at = event.item().and_then(|(item, _)| graph.position(item));
                at.into_iter().for_each(|at| self.end(at, entry));
            }
        }
    }

    fn fire(&mut self, item: ItemIndex, link: &'a Link) {
        let from = link.entry.at;
        self.wait(item, from);
        let on = self.view.state.graph.dependencies(item).iter();
        let needs = on.filter_map(|on| self.states[*on].result).collect();
        self.states[item].attempts += 1;
        self.states[item].running = Some(self.attempts.len());
        self.attempts.push(Attempt { item, fired: link, ended: None, from, to: from, row: 0, needs });
    }

    /// Records how long an item was ready, if it was.
    fn wait(&mut self, item: ItemIndex, to: Moment) {
        let on = self.view.state.graph.dependencies(item).iter();
        let done = on.map(|on| self.states[*on].done_at).collect::<Option<Vec<_>>>();
        let from = self.states[item].free_since.into_iter().chain(done.into_iter().flatten()).max();
        if let Some(from) = from.filter(|from| *from < to) {
            let attempt = self.states[item].attempts + 1;
            self.waits.push(Wait { item, from, to, row: 0, attempt, locks: BTreeMap::new() });
        }
    }

    fn end(&mut self, item: ItemIndex, entry: &'a Entry) {
        if matches!(entry.event, Event::ItemDecided(_)) && self.view.state.graph.item(item).is_for_people() {
            self.wait(item, entry.at);
        }
        let state = &mut self.states[item];
        if let Some(running) = state.running.take() {
            self.attempts[running].ended = Some(entry);
            self.attempts[running].to = entry.at;
            state.result = Some(running);
        }
        state.free_since = Some(match &entry.event {
            Event::ItemRetried(e) | Event::ItemRequeued(e) => e.not_before.map_or(entry.at, |at| at.max(entry.at)),
            _ => entry.at,
        });
        let is_done = match &entry.event {
            Event::ItemReconciled(e) => e.status == Outcome::Done,
            Event::ItemDecided(e) => e.status == Outcome::Done,
            _ => false,
        };
        if is_done {
            state.done_at = Some(entry.at);
        }
    }

    fn finish(mut self, now: Moment) -> Spans<'a> {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.ended.is_none()) {
            attempt.to = now;
        }
        let state = &self.view.state;
        let ready: Vec<ItemIndex> = state
            .items
            .indices()
            .filter(|at| {
                state.items[*at].phase == Phase::Waiting && state.blocked_by(*at).next().is_none() && !state.is_ended()
            })
            .collect();
        ready.into_iter().for_each(|at| self.wait(at, now));
        self.find_holders();
        assign_rows(&mut self.attempts, |attempt| (attempt.from, attempt.to), |attempt| &mut attempt.row);
        assign_rows(&mut self.waits, |wait| (wait.from, wait.to), |wait| &mut wait.row);
        Spans { attempts: self.attempts, waits: self.waits }
    }

    /// Finds which locks other items held during each wait.
    fn find_holders(&mut self) {
        let mut holders: BTreeMap<&str, Vec<&Attempt<'_>>> = BTreeMap::new();
        let graph = &self.view.state.graph;
        for attempt in &self.attempts {
            for lock in &graph.item(attempt.item).resource_locks {
                holders.entry(lock).or_default().push(attempt);
            }
        }
        for wait in &mut self.waits {
            for lock in &graph.item(wait.item).resource_locks {
                let candidates = holders.get(lock.as_str()).into_iter().flatten();
                let mut candidates = candidates.filter(|a| a.item != wait.item && a.from < wait.to && wait.from < a.to);
                if let Some(holder) = candidates.next() {
                    wait.locks.insert(lock.clone(), holder.item);
                }
            }
        }
    }
}

/// Gives each span the first row that is free when it begins.
fn assign_rows<T>(spans: &mut [T], times: fn(&T) -> (Moment, Moment), row: fn(&mut T) -> &mut usize) {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|at| times(&spans[*at]).0);
    let mut free_at: Vec<Moment> = Vec::new();
    for at in order {
        let (from, to) = times(&spans[at]);
        let free = free_at.iter().position(|free| *free <= from).unwrap_or_else(|| {
            free_at.push(from);
            free_at.len() - 1
        });
        free_at[free] = to;
        *row(&mut spans[at]) = free;
    }
}

impl Attempt<'_> {
    /// Returns how it ended, or `running`.
    pub(super) fn status(&self) -> &'static str {
        match self.ended.map(|entry| &entry.event) {
            None => "running",
            Some(Event::ItemRetried(_)) => "failed, retried",
            Some(Event::ItemRequeued(e)) if e.reason == Again::Crash => "lost to a crash",
            Some(Event::ItemRequeued(e)) if e.reason == Again::Lost => "taken from its driver",
            Some(Event::ItemRequeued(_)) => "requeued",
            Some(event) => event.shown_status().unwrap_or("ended"),
        }
    }

    /// Returns the exit of its process, if known.
    pub(super) fn exit(&self) -> Option<Exit> {
        match self.ended.map(|entry| &entry.event) {
            Some(Event::ItemReconciled(e)) => e.exit,
            Some(Event::ItemRetried(e) | Event::ItemRequeued(e)) => e.exit,
            _ => None,
        }
    }
}
