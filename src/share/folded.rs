//! Logs that a remote lacks because another log of the same key contains their statements.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;

use super::travelling::SharedLog;
use super::{Kind, Place};

/// Deletes the fetched refs of such logs; returns their places.
///
/// Nothing is lost: a fetched log that the remote shows contains every statement.
pub(super) fn give_way(
    store: &Store,
    folder: &str,
    listed_places: &BTreeSet<Place>,
) -> Result<BTreeSet<Place>, refs::Error> {
    let (mut there, mut gone) = (BTreeMap::<String, Vec<(LogName, Oid)>>::new(), Vec::new());
    for (name, head) in refs::list(store, &format!("{folder}logs/"))? {
        let place = name.strip_prefix(folder).and_then(Place::parse).filter(|place| place.kind == Kind::Log);
        let Some((place, log)) = place.and_then(|place| Some((place.clone(), LogName::parse(&place.name)?))) else {
            continue;
        };
        if listed_places.contains(&place) {
            there.entry(log.key().to_owned()).or_default().push((log, head));
        } else {
            gone.push((place, log, head));
        }
    }
    let mut folded = BTreeSet::new();
    for (place, log, head) in gone {
        let others = there.get(log.key()).map_or(&[][..], Vec::as_slice);
        let Some(folded_log) = read(store, &log, head) else { continue };
        if others.iter().filter_map(|(other, tip)| read(store, other, *tip)).any(|other| other.covers(&folded_log)) {
            refs::delete(store, &place.below(folder), head)?;
            folded.insert(place);
        }
    }
    Ok(folded)
}

/// Reads a log, or returns `None` if it is unreadable and so cannot replace another.
fn read(store: &Store, log: &LogName, head: Oid) -> Option<SharedLog> {
    let (_, links) = chain::read_at(store, &log.reference(), head).ok()?;
    Some(SharedLog::new(log.clone(), head, &links))
}
