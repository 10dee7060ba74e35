//! A run as a trace in Chrome's trace event format, which Perfetto and speedscope read.

mod spans;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::spans::{Attempt, Spans, Wait};
use crate::git::store::{self, Store};
use crate::model::entry::Event;
use crate::model::item_index::ItemIndex;
use crate::model::plan::Source;
use crate::model::time::Moment;

use super::{View, show};

/// The groups of rows, as processes of the trace.
const ATTEMPTS: u64 = 1;
const WAITS: u64 = 2;
const LOCKS: u64 = 3;

/// The row of the events that take no time.
const MOMENTS: u64 = 0;

/// Returns a run as a trace. Attempts that run, and items that are ready, reach until `now`.
pub fn trace(store: &Store, view: &View, now: Moment) -> Result<Value, store::Error> {
    let spans = Spans::new(view, now);
    let begin = view.links.first().map_or(now, |link| link.entry.at);
    let locks: BTreeSet<&str> = spans
        .attempts
        .iter()
        .flat_map(|attempt| &view.state.graph.item(attempt.item).resource_locks)
        .map(String::as_str)
        .collect();
    let locks = locks.into_iter().zip(1..).collect();
    let tracer = Tracer { store, view, begin, locks };
    let mut events = tracer.names(&spans);
    for attempt in &spans.attempts {
        events.push(tracer.attempt(attempt)?);
        events.extend(tracer.lock_spans(attempt));
    }
    events.extend(spans.waits.iter().map(|wait| tracer.wait(wait)));
    events.extend(tracer.moments());
    events.extend(tracer.flows(&spans.attempts));
    let data = json!({ "run": view.run, "submittedAt": begin, "sealed": view.state.sealed });
    Ok(json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": data }))
}

struct Tracer<'a> {
    store: &'a Store,
    view: &'a View,
    /// The time of the first entry, at which the trace begins.
    begin: Moment,
    /// The row of each lock.
    locks: BTreeMap<&'a str, u64>,
}

impl Tracer<'_> {
    /// Returns a time in microseconds from the beginning.
    fn micros(&self, at: Moment) -> i64 {
        at.millis().saturating_sub(self.begin.millis()).saturating_mul(1000)
    }

    fn id(&self, at: ItemIndex) -> &str {
        self.view.state.graph.item(at).id.as_str()
    }

    /// Names the groups and rows.
    fn names(&self, spans: &Spans<'_>) -> Vec<Value> {
        let groups = [
            (ATTEMPTS, format!("run {}", self.view.run), true),
            (WAITS, "waiting".to_owned(), !spans.waits.is_empty()),
            (LOCKS, "locks".to_owned(), !self.locks.is_empty()),
        ];
        let mut events = Vec::new();
        for (pid, title, _) in groups.iter().filter(|(.., is_used)| *is_used) {
            events.push(name_event("process_name", (*pid, 0), title));
            events.push(json!({
                "ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": { "sort_index": pid },
            }));
        }
        events.push(name_event("thread_name", (ATTEMPTS, MOMENTS), "events"));
        let attempts: BTreeSet<u64> = spans.attempts.iter().map(|attempt| tid(attempt.row)).collect();
        events
            .extend(attempts.iter().map(|tid| name_event("thread_name", (ATTEMPTS, *tid), &format!("attempts {tid}"))));
        let waits: BTreeSet<u64> = spans.waits.iter().map(|wait| tid(wait.row)).collect();
        events.extend(waits.iter().map(|tid| name_event("thread_name", (WAITS, *tid), &format!("ready {tid}"))));
        events.extend(self.locks.iter().map(|(lock, tid)| name_event("thread_name", (LOCKS, *tid), lock)));
        events
    }

    /// Returns the event of an attempt.
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<Value, store::Error> {
        let mut args = json!({ "status": attempt.status(), "red": false, "actor": attempt.fired.entry.actor });
        if let Event::ItemFired(fired) = &attempt.fired.entry.event {
            args["attempt"] = fired.attempt.into();
            if let Some(manifest) = show::manifest(self.store, &fired.manifest)? {
                args["sandbox"] = manifest.claims.sandbox.into();
            }
        }
        if let Some(exit) = attempt.exit() {
            args["exit"] = json!(exit);
        }
        match attempt.ended.map(|entry| &entry.event) {
            Some(Event::ItemReconciled(e)) => {
                args["red"] = e.is_red().into();
                args["durationMs"] = e.duration_ms.into();
                if let Some(reason) = &e.reason {
                    args["reason"] = reason.as_str().into();
                }
                if let Some(reused) = &e.reused {
                    args["reused"] = reused.to_string().into();
                }
            }
            Some(Event::ItemRetried(e) | Event::ItemRequeued(e)) => {
                args["durationMs"] = json!(e.duration_ms);
                if let Some(detail) = &e.detail {
                    args["reason"] = detail.as_str().into();
                }
            }
            _ => {}
        }
        Ok(self.span("attempt", (ATTEMPTS, tid(attempt.row)), attempt.item, (attempt.from, attempt.to), &args))
    }

    /// Returns an event for each lock that an attempt held.
    fn lock_spans(&self, attempt: &Attempt<'_>) -> Vec<Value> {
        let locks = self.view.state.graph.item(attempt.item).resource_locks.iter();
        locks
            .map(|lock| {
                let row = (LOCKS, self.locks.get(lock.as_str()).copied().unwrap_or_default());
                self.span("lock", row, attempt.item, (attempt.from, attempt.to), &json!({ "lock": lock }))
            })
            .collect()
    }

    fn wait(&self, wait: &Wait) -> Value {
        let is_approval = self.view.state.graph.item(wait.item).is_for_people();
        let mut args = if is_approval { json!({}) } else { json!({ "attempt": wait.attempt }) };
        if !wait.locks.is_empty() {
            let locks: BTreeMap<&str, &str> =
                wait.locks.iter().map(|(lock, holder)| (lock.as_str(), self.id(*holder))).collect();
            args["locks"] = json!(locks);
        }
        let category = if is_approval { "approval" } else { "waiting" };
        self.span(category, (WAITS, tid(wait.row)), wait.item, (wait.from, wait.to), &args)
    }

    fn span(
        &self,
        category: &str,
        (pid, tid): (u64, u64),
        item: ItemIndex,
        (from, to): (Moment, Moment),
        args: &Value,
    ) -> Value {
        let (ts, end) = (self.micros(from), self.micros(to));
        json!({
            "ph": "X", "name": self.id(item), "cat": category, "pid": pid, "tid": tid,
            "ts": ts, "dur": end.saturating_sub(ts).max(0), "args": args,
        })
    }

    /// Returns the events that take no time: all entries but those that begin or end an attempt.
    fn moments(&self) -> Vec<Value> {
        let mut events = Vec::new();
        for link in &self.view.links {
            let entry = &link.entry;
            let category = match &entry.event {
                Event::ItemDecided(_) => "decision",
                Event::DocumentWritten(_) => "document",
                Event::ItemSkipped(_) | Event::ItemCancelled(_) => "item",
                Event::ItemReconciled(e) if e.attempt == 0 => "item",
                Event::ItemFired(_) | Event::ItemReconciled(_) | Event::ItemRetried(_) | Event::ItemRequeued(_) => {
                    continue;
                }
                _ => "run",
            };
            events.push(json!({
                "ph": "i", "s": "p", "name": entry.subject(), "cat": category, "pid": ATTEMPTS, "tid": MOMENTS,
                "ts": self.micros(entry.at), "args": { "actor": entry.actor, "seq": entry.seq },
            }));
        }
        events
    }

    /// Returns a pair of events for each dependency between attempts.
    fn flows(&self, attempts: &[Attempt<'_>]) -> Vec<Value> {
        let (mut events, mut id) = (Vec::new(), 0_u64);
        for attempt in attempts {
            for producer in attempt.needs.iter().map(|at| &attempts[*at]) {
                let name = self.needed(attempt, producer);
                let event = |ph: &str, of: &Attempt<'_>, ts: i64| {
                    json!({
                        "ph": ph, "name": name, "cat": "needs", "id": id, "pid": ATTEMPTS, "tid": tid(of.row), "ts": ts,
                    })
                };
                // A viewer assigns a flow to the span around it, so it begins just before the end.
                let (from, to) = (self.micros(producer.from), self.micros(producer.to));
                events.push(event("s", producer, (to - 1).max(from)));
                let mut end = event("f", attempt, self.micros(attempt.from));
                end["bp"] = "e".into();
                events.push(end);
                id += 1;
            }
        }
        events
    }

    /// Returns the input keys under which an attempt took products of another, or `after` if it
    /// took none.
    fn needed(&self, attempt: &Attempt<'_>, producer: &Attempt<'_>) -> String {
        let Event::ItemFired(fired) = &attempt.fired.entry.event else { return String::new() };
        let id = &self.view.state.graph.item(producer.item).id;
        let of_producer = fired.input_refs.iter().filter(|(_, input)| input.from == Source::Item(id.clone()));
        let keys: Vec<&str> = of_producer.map(|(key, _)| key.as_str()).collect();
        if keys.is_empty() { "after".to_owned() } else { keys.join(", ") }
    }
}

/// Returns the event that gives a process or a thread its name.
fn name_event(what: &str, (pid, tid): (u64, u64), name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } })
}

/// Returns the number of a row; the first is that of moments.
fn tid(row: usize) -> u64 {
    row as u64 + 1
}
