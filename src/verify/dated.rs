//! Dates that two clocks contradict: a seal that a place outside held before the run says that it
//! was made, and dates that lie ahead of the verifier's own clock.

use crate::model::entry::Entry;
use crate::model::time::Moment;

use super::Now;
use super::anchor::Anchor;
use super::reader::Link;
use super::witness::Standing;

/// Clocks may differ by an hour before it is worth a word.
const LEEWAY_MILLIS: u64 = 60 * 60 * 1000;

/// When the first and the last of some entries are dated.
#[derive(Clone, Copy)]
pub(super) struct Dated {
    first: Moment,
    last: Moment,
    /// Whether the last one was dated by a pinned clock.
    pinned: bool,
    /// Whether the last one is the seal.
    sealed: bool,
}

/// Returns when the entries of a run are dated, up to its seal if it has one.
pub(super) fn of(links: &[Link], seal: Option<usize>) -> Option<Dated> {
    let links = seal.map_or(links, |seal| &links[..=seal]);
    Some(between((&links.first()?.entry, &links.last()?.entry), seal.is_some()))
}

/// Returns when two entries are dated, of which the last one may be a seal.
pub(super) fn between((first, last): (&Entry, &Entry), sealed: bool) -> Dated {
    Dated { first: first.at, last: last.at, pinned: last.pinned, sealed }
}

/// Adds a word for each anchor and each time stamp that is earlier than the seal is dated, and for
/// each date that lies ahead of the verifier's clock.
///
/// It changes no verdict: whose clock is wrong cannot be told.
pub(super) fn note(anchor: &mut Anchor, dated: Option<Dated>, now: Option<Now>) {
    let Some(dated) = dated else { return };
    let mut words: Vec<String> = Vec::new();
    if let Some(now) = now.filter(|now| now.pinned == dated.pinned && is_before(now.at, dated.last)) {
        let (what, last, here) = (if dated.sealed { "seal" } else { "last entry" }, dated.last, now.at);
        words.push(format!("the run dates its {what} {last}, and it is {here} here: one of the two clocks is wrong"));
    }
    for one in anchor.anchored.iter_mut().filter(|one| one.standing == Standing::Holds) {
        let Some(word) = one.since.and_then(|since| contradiction(&one.name, since, dated, now)) else { continue };
        one.detail = if one.detail.is_empty() { word.clone() } else { format!("{}; {word}", one.detail) };
        words.push(word);
    }
    for timed in &mut anchor.times {
        let Ok(at) = timed.at else { continue };
        timed.contradiction = contradiction(&timed.authority, at, dated, now);
        words.extend(timed.contradiction.clone());
    }
    anchor.verdict.detail.extend(words.iter().map(|word| format!("; {word}")));
}

/// Says what a time at which something outside held the seal contradicts, if it does.
fn contradiction(name: &str, since: Moment, dated: Dated, now: Option<Now>) -> Option<String> {
    let other = if is_before(since, dated.last) {
        let (what, at) = if since < dated.first { ("first entry", dated.first) } else { ("seal", dated.last) };
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
