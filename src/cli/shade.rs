//! Which colour says how work stands: the one place that knows it, for every view but the reports of `verify`, whose colours it has.

use git_handoff::model::entry::Event;
use git_handoff::model::printable::Color;

use super::status;

/// The colour of what rules had a run say: then it is not good, however its items came out.
pub(crate) const SAID: Option<Color> = Some(Color::Red);

/// Returns the colour of a word that says how an item, an attempt, a block or a run stands; none of any other word.
pub(crate) fn of(word: &str) -> Option<Color> {
    match word {
        "done" | status::REUSED | status::EMPTY | status::REUSED_EMPTY => Some(Color::Green),
        "red" | "failed" | "timed out" | "unreadable" | status::RED | status::RED_AND_EMPTY => Some(Color::Red),
        "pending" | "ready" | "running" | "interrupted" | status::AWAITED => Some(Color::Yellow),
        "skipped" | "cancelled" | "superseded" => Some(Color::Dim),
        _ => None,
    }
}

/// Returns the colour of how an item stands since an entry, or of what a rule had the run say; none of entries about anything else.
pub(crate) fn of_event(event: &Event) -> Option<Color> {
    match event {
        Event::RunConcluded(_) => SAID,
        event if event.is_red() => of("red"),
        event => event.shown_status().and_then(of),
    }
}
