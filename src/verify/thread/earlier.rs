//! All that logs said of a thread, and not only their last word on it.
//!
//! A log that knows of more entries than a thread has here cannot be held against it at its end. What it said when the thread was
//! as short as here can. Each entry of a log is signed, so each is evidence by itself, whatever became of the log.

use crate::model::name::ThreadId;

use super::{Table, ThreadChain};
use crate::verify::State;
use crate::verify::findings::Verdict;

/// Fails the verdict on what logs last said where one of the thread's key said something else before; or where one that stands
/// beside `place` signed for more entries than there are.
pub(super) fn held(
    table: &Table<'_>,
    walked: &ThreadChain,
    (thread, place): (&ThreadId, &str),
    last: Verdict,
) -> Verdict {
    if last.state == State::Failed || walked.cut {
        return last;
    }
    contradiction(table, walked, thread, place).map_or(last, Verdict::failed)
}

fn contradiction(table: &Table<'_>, walked: &ThreadChain, thread: &ThreadId, place: &str) -> Option<String> {
    let owner = walked.links.first()?.signer.as_ref().ok()?;
    let here = walked.links.len() as u64;
    for log in table.logs.logs.iter().filter(|log| log.fingerprint == *owner) {
        if log.broken.is_none() && log.threads.get(thread).is_none_or(|said| said.entries <= here) {
            continue;
        }
        // A log of another repository stands beside nothing here.
        if log.elsewhere {
            continue;
        }
        for said in log.told.get(thread).into_iter().flatten().rev() {
            let place_of = said.entries.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            match place_of.and_then(|place| walked.links.get(place)) {
                Some(link) if link.hash != said.last => {
                    return Some(format!("{} holds another entry {}", log.name, link.entry.seq));
                }
                None if log.stands_beside(place) => {
                    return Some(format!("{} holds {} entries: the last are gone", log.name, said.entries));
                }
                _ => {}
            }
        }
    }
    None
}
