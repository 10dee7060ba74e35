//! Refuses entries of others that are dated ahead of the local clock.
//!
//! No entry is dated before the one that it follows. So a date in the future would be that of all
//! later entries, and the keys that sign them may no longer be valid then.

use crate::model::driver::DriverId;
use crate::model::entry::{Entry, Event};
use crate::model::printable;
use crate::model::time::Moment;

use super::Now;
use super::reader::Link;

/// The most that an entry of another may be ahead of the local clock: 5 minutes.
const MOST_AHEAD_MILLIS: u64 = 5 * 60 * 1000;

/// Refuses an entry that is dated more than five minutes ahead of `now`; the reason names whose
/// clock is wrong.
///
/// An entry that is not later than `known`, the last one that is here already, passes: it moves no
/// date. A pinned clock is compared only with entries dated by one.
pub fn check_date(now: Now, known: Option<Moment>, entry: &Entry, key: &str) -> Result<(), String> {
    let latest = now.at.plus_millis(MOST_AHEAD_MILLIS).max(known.unwrap_or(now.at));
    if entry.at <= latest || (now.pinned && !entry.pinned) {
        return Ok(());
    }
    let whose = match driver_and_host(&entry.event) {
        Some((driver, Some(host))) => format!("the driver {driver} on {}", printable::line(host)),
        Some((driver, None)) => format!("the driver {driver}"),
        None => format!("the key {key}"),
    };
    Err(format!(
        "it is dated {}, more than 5 minutes ahead of {} here: the clock of {whose} is wrong, or the clock of this machine",
        entry.at, now.at
    ))
}

/// Checks the dates of the entries of a chain that were not verified before and that another key
/// than `own_key` signed, like [`check_date`].
pub(super) fn check_dates(links: &[Link], own_key: Option<&str>, now: Now) -> Result<(), String> {
    let known = links.iter().rfind(|link| link.verified_before).map(|link| link.entry.at);
    let foreign = links.iter().filter(|link| !link.verified_before);
    for link in foreign {
        let key = link.signer.as_deref().unwrap_or("that signed it");
        if Some(key) != own_key {
            check_date(now, known, &link.entry, key)
                .map_err(|why| format!("entry {} of the key {key}: {why}", link.entry.seq))?;
        }
    }
    Ok(())
}

/// Returns the driver that an entry names as its author, with its host if the entry names that.
fn driver_and_host(event: &Event) -> Option<(&DriverId, Option<&str>)> {
    match event {
        Event::ItemFired(e) => Some((e.driver.as_ref()?, e.host())),
        _ => Some((event.author()?, None)),
    }
}
