//! When items waited and ran, and the longest chain of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::facts::RunPage;
use super::{picture, words};
use crate::model::entry::Event;
use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::time::Moment;
use crate::report::graph::ItemStatus;
use crate::run::query::View;
use crate::run::query::attempts::AttemptShown;

/// The most items that the timeline draws.
const MOST_ROWS: usize = 200;

/// The place and the width of the bars, and the height of a row, in pixels.
const LEFT: i64 = 220;
const WIDTH: i64 = 640;
const ROW: i64 = 20;
const TOP: i64 = 24;

/// The times of a run, in milliseconds since 1970.
pub(super) struct Timing {
    begin: i64,
    end: i64,
    items: ItemVec<ItemTiming>,
}

/// The times of an item.
#[derive(Clone, Default)]
struct ItemTiming {
    /// When it was submitted or added.
    since: i64,
    attempts: Vec<Attempt>,
}

/// An attempt; `end` is `None` while it runs.
#[derive(Clone)]
struct Attempt {
    number: u32,
    actor: String,
    begin: i64,
    end: Option<i64>,
    is_failed: bool,
}

impl Timing {
    pub(super) fn measure(view: &View, attempts: &[AttemptShown<'_>]) -> Self {
        let begin = view.links[0].entry.at.millis();
        let end = view.links[view.links.len() - 1].entry.at.millis();
        let mut items = view.state.items.map(|_| ItemTiming { since: begin, attempts: Vec::new() });
        for link in &view.links {
            if let Event::RunExtended(extended) = &link.entry.event {
                for position in extended.items.keys().filter_map(|id| view.state.graph.position(id)) {
                    items[position].since = link.entry.at.millis();
                }
            }
        }
        for attempt in attempts {
            let Some(position) = view.state.graph.position(attempt.item) else { continue };
            items[position].attempts.push(Attempt {
                number: attempt.attempt,
                actor: attempt.actor.to_owned(),
                begin: attempt.started_at.millis(),
                end: attempt.ended_at.map(Moment::millis),
                is_failed: attempt.ended_at.is_some() && attempt.status != "done",
            });
        }
        // A seal may follow much later, and would squeeze everything else.
        let ends = items.iter().flat_map(|item| &item.attempts).map(|attempt| attempt.end.unwrap_or(end));
        let end = ends.max().unwrap_or(end).max(begin);
        Self { begin, end, items }
    }

    /// Returns the time that an item's attempts took, in words; empty if it had none.
    pub(super) fn took(&self, at: ItemIndex) -> String {
        let attempts = &self.items[at].attempts;
        let sum: i64 = attempts.iter().map(|attempt| (attempt.end.unwrap_or(self.end) - attempt.begin).max(0)).sum();
        if attempts.is_empty() { String::new() } else { words::duration(sum.unsigned_abs()) }
    }

    fn end(&self, at: ItemIndex) -> Option<i64> {
        let last = self.items[at].attempts.last()?;
        Some(last.end.unwrap_or(self.end))
    }

    /// Returns the items on which the end of the run depended: the last to end, then of its
    /// dependencies the last to end, and so on.
    fn critical(&self, view: &View) -> BTreeSet<ItemIndex> {
        let latest = |among: &mut dyn Iterator<Item = ItemIndex>| {
            let ended = among.filter_map(|at| Some((self.end(at)?, at)));
            // If two end at the same time, the first one counts.
            ended.fold(None, |best: Option<(i64, ItemIndex)>, one| match best {
                Some(best) if best.0 >= one.0 => Some(best),
                _ => Some(one),
            })
        };
        let mut path = BTreeSet::new();
        let mut next = latest(&mut view.state.graph.items().indices());
        while let Some((_, at)) = next.filter(|(_, at)| path.insert(*at)) {
            next = latest(&mut view.state.graph.dependencies(at).iter().copied());
        }
        path
    }

    fn x(&self, at: i64) -> i64 {
        let span = (self.end - self.begin).max(1);
        LEFT + (at.clamp(self.begin, self.end) - self.begin) * WIDTH / span
    }
}

/// Returns the facts of the drawn timeline, or null if nothing ran.
pub(super) fn facts(page: &RunPage<'_>) -> Value {
    let timing = &page.timing;
    let critical = timing.critical(page.view);
    let ran: Vec<ItemIndex> =
        timing.items.indexed().filter(|(_, times)| !times.attempts.is_empty()).map(|(at, _)| at).collect();
    if ran.is_empty() {
        return Value::Null;
    }
    let rows: Vec<Value> = ran
        .iter()
        .take(MOST_ROWS)
        .zip(0i64..)
        .map(|(at, number)| row(page, *at, TOP + number * ROW, critical.contains(at)))
        .collect();
    let path: Vec<&str> = critical.iter().map(|at| page.id(*at)).collect();
    json!({
        "width": LEFT + WIDTH + 20,
        "height": TOP + i64::try_from(rows.len()).unwrap_or(0) * ROW + 8,
        "took": words::duration((timing.end - timing.begin).unsigned_abs()),
        "left": LEFT,
        "right": LEFT + WIDTH,
        "rows": rows,
        "more": ran.len().saturating_sub(MOST_ROWS),
        "isMore": ran.len() > MOST_ROWS,
        "critical": crate::model::printable::cut_to(path.join(", "), 2000),
    })
}

fn row(page: &RunPage<'_>, at: ItemIndex, y: i64, is_critical: bool) -> Value {
    let timing = &page.timing;
    let times = &timing.items[at];
    let dependencies = page.view.state.graph.dependencies(at).iter();
    let ready = dependencies.filter_map(|on| timing.end(*on)).fold(times.since, i64::max);
    let waits_to = times.attempts.first().map_or(ready, |first| first.begin);
    let (from, to) = (timing.x(ready), timing.x(waits_to));
    let bars: Vec<Value> = times.attempts.iter().map(|attempt| bar(page, at, attempt, y)).collect();
    json!({
        "label": picture::label(page.id(at)),
        "anchor": page.anchor(at),
        "y": y,
        "textY": y + 13,
        "waitX": from,
        "waitY": y + 7,
        "waitWidth": (to - from).max(0),
        "bars": bars,
        "weight": if is_critical { "bold" } else { "normal" },
    })
}

fn bar(page: &RunPage<'_>, at: ItemIndex, attempt: &Attempt, y: i64) -> Value {
    let timing = &page.timing;
    let end = attempt.end.unwrap_or(timing.end);
    let (from, to) = (timing.x(attempt.begin), timing.x(end));
    let status = match attempt.end {
        None => ItemStatus::Running,
        Some(_) if attempt.is_failed => ItemStatus::Failed,
        Some(_) => page.status(at),
    };
    let took = words::duration((end - attempt.begin).max(0).unsigned_abs());
    let standing = status.standing();
    let (fill, stroke) = standing.colors();
    json!({
        "x": from,
        "y": y + 3,
        "width": (to - from).max(2),
        "mark": standing.mark(),
        "name": page.id(at),
        "title": format!("attempt {}, {took}", attempt.number),
        "actor": attempt.actor,
        "fill": fill,
        "stroke": stroke,
    })
}
