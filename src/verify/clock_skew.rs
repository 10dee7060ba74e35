//! Dates that contradict another clock: a seal that an external anchor held before its date, and
//! dates in the verifier's future.

use crate::model::entry::Entry;
use crate::model::time::Moment;

use super::Now;
use super::anchor::Anchor;
use super::reader::Link;
use super::witness::Standing;

/// Differences of up to an hour are not reported.
const LEEWAY_MILLIS: u64 = 60 * 60 * 1000;

#[derive(Clone, Copy)]
pub(super) struct EntryDates {
    first: Moment,
    last: Moment,
    pinned: bool,
    sealed: bool,
}

/// Returns the dates of a run up to its seal, if it has one.
pub(super) fn dates_of_run(links: &[Link], seal: Option<usize>) -> Option<EntryDates> {
    let links = seal.map_or(links, |seal| &links[..=seal]);
    Some(dates_of_entries(&links.first()?.entry, &links.last()?.entry, seal.is_some()))
}

/// Returns the dates of two entries; `sealed` says if the last is a seal.
pub(super) fn dates_of_entries(first: &Entry, last: &Entry, sealed: bool) -> EntryDates {
    EntryDates { first: first.at, last: last.at, pinned: last.pinned, sealed }
}

/// Adds a note for each anchor and time stamp that is older than the date of the seal, and for each
/// date in the verifier's future.
///
/// Verdicts stay the same: the notes cannot tell which clock is wrong.
pub(super) fn note_contradictions(anchor: &mut Anchor, dates: Option<EntryDates>, now: Option<Now>) {
    let Some(dates) = dates else { return };
    let mut words: Vec<String> = Vec::new();
    if let Some(now) = now.filter(|now| now.pinned == dates.pinned && is_before(now.at, dates.last)) {
        let (what, last, here) = (if dates.sealed { "seal" } else { "last entry" }, dates.last, now.at);
        words.push(format!("the run dates its {what} {last}, and it is {here} here: one of the two clocks is wrong"));
    }
    for one in anchor.anchored.iter_mut().filter(|one| one.standing == Standing::Holds) {
        let Some(word) = one.since.and_then(|since| contradiction(&one.name, since, dates, now)) else { continue };
        one.detail = if one.detail.is_empty() { word.clone() } else { format!("{}; {word}", one.detail) };
        words.push(word);
    }
    for timed in &mut anchor.times {
        let Ok(at) = timed.at else { continue };
        timed.contradiction = contradiction(&timed.authority, at, dates, now);
        words.extend(timed.contradiction.clone());
    }
    anchor.verdict.detail.extend(words.iter().map(|word| format!("; {word}")));
}

/// Returns a note if the time at which an anchor held the seal contradicts another date.
fn contradiction(name: &str, since: Moment, dates: EntryDates, now: Option<Now>) -> Option<String> {
    let other = if is_before(since, dates.last) {
        let (what, at) = if since < dates.first { ("first entry", dates.first) } else { ("seal", dates.last) };
        format!("the run dates its {what} {at}")
    } else {
        let now = now.filter(|now| !now.pinned && is_before(now.at, since))?;
        format!("it is {} here", now.at)
    };
    Some(format!("{name} held the seal at {since}, and {other}: one of the two clocks is wrong"))
}

fn is_before(one: Moment, other: Moment) -> bool {
    one.plus_millis(LEEWAY_MILLIS) < other
}
