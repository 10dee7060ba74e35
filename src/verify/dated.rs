//! Dates that two clocks contradict: a seal that a place outside held before the run says that it was made.

use crate::model::time::Moment;

use super::anchor::Anchor;
use super::reader::Link;
use super::witness::Standing;

/// Clocks may differ by an hour before it is worth a word.
const LEEWAY_MILLIS: u64 = 60 * 60 * 1000;

/// Returns when the first and the last of some entries are dated.
pub(super) fn of(links: &[Link]) -> Option<(Moment, Moment)> {
    Some((links.first()?.entry.at, links.last()?.entry.at))
}

/// Adds a word to the row for each anchor and each time stamp that is earlier than the seal is dated.
///
/// It changes no verdict: whose clock is wrong cannot be told.
pub(super) fn note(anchor: &mut Anchor, dated: Option<(Moment, Moment)>) {
    let Some((first, last)) = dated else { return };
    let holding = anchor.anchored.iter().filter(|one| one.standing == Standing::Holds);
    let held = holding.filter_map(|one| Some((&one.name, one.since?)));
    let stamped = anchor.times.iter().filter_map(|timed| Some((&timed.authority, *timed.at.as_ref().ok()?)));
    let early = held.chain(stamped).filter(|(_, since)| since.plus_millis(LEEWAY_MILLIS) < last);
    let words: Vec<String> = early.map(|(name, since)| contradicts(name, since, (first, last))).collect();
    anchor.verdict.detail += &words.concat();
}

fn contradicts(name: &str, since: Moment, (first, last): (Moment, Moment)) -> String {
    let dated = if since < first {
        format!("the run dates its first entry {first}")
    } else {
        format!("the run dates its seal {last}")
    };
    format!("; {name} held the seal at {since}, and {dated}: one of the two clocks is wrong")
}
