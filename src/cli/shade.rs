//! Colours of status words, for every view except the reports of `verify`.

use git_handoff::model::entry::Event;
use git_handoff::model::printable::Color;

use super::status;

/// The colour of a run's result set by a rule, which is never good.
pub(crate) const SAID: Option<Color> = Some(Color::Red);

/// Returns the colour of a status word, or `None` for other words.
pub(crate) fn for_word(word: &str) -> Option<Color> {
    match word.strip_suffix(status::EMPTY).unwrap_or(word) {
        "done" | status::REUSED | status::CLAIMED => Some(Color::Green),
        "red" | "failed" | "timed out" | "unreadable" | status::RED => Some(Color::Red),
        "pending" | "ready" | "running" | "interrupted" | status::AWAITED | status::UNSTARTED => Some(Color::Yellow),
        "skipped" | "cancelled" | "superseded" => Some(Color::Dim),
        _ => None,
    }
}

/// Returns the colour of an entry's status, or `None` if it has none.
pub(crate) fn of_event(event: &Event) -> Option<Color> {
    match event {
        Event::RunConcluded(_) => SAID,
        event if event.is_red() => for_word("red"),
        event => event.shown_status().and_then(for_word),
    }
}
