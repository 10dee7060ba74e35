//! All that logs said of a thread, and not only their last word on it.
//!
//! A log that knows of more entries than a thread has here cannot be held against it at its end. What it said when the thread was
//! as short as here can. Each entry of a log is signed, so each is evidence by itself, whatever became of the log.

use gix::objs::Kind;

use crate::git::codec;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::{Event, LogThread};
use crate::model::name::ThreadId;

use super::{Table, Told};
use crate::verify::findings::Verdict;
use crate::verify::objects::Objects;
use crate::verify::story::{links, signer};
use crate::verify::{State, resolve};

/// Fails the verdict on what logs last said where one of the thread's key said something else before; or where one that stands
/// beside `place` signed for more entries than there are.
pub(super) fn held(table: &Table<'_>, told: &Told, (thread, place): (&ThreadId, &str), last: Verdict) -> Verdict {
    if last.state == State::Failed || told.cut {
        return last;
    }
    contradiction(table, told, thread, place).map_or(last, Verdict::failed)
}

fn contradiction(table: &Table<'_>, told: &Told, thread: &ThreadId, place: &str) -> Option<String> {
    let owner = told.links.first()?.signer.as_ref().ok()?;
    let here = told.links.len() as u64;
    for log in table.logs.logs.iter().filter(|log| log.fingerprint == *owner) {
        if log.broken.is_none() && log.threads.get(thread).is_none_or(|said| said.entries <= here) {
            continue;
        }
        // A log of another repository is not here to be read again.
        let Ok(Ok(tip)) = resolve(table.home, &log.name) else { continue };
        for said in statements(table.home, tip, thread, owner) {
            let place_of = said.entries.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            match place_of.and_then(|place| told.links.get(place)) {
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

/// Returns what a key signed about a thread in the log that ends at `tip`.
fn statements(store: &Store, tip: Oid, thread: &ThreadId, owner: &str) -> Vec<LogThread> {
    let objects = Objects::new(store);
    let mut statements = Vec::new();
    let mut next = Some(tip);
    while let Some(commit) = next {
        let Ok(raw) = objects.read(commit, Kind::Commit) else { break };
        next = links(&raw).1;
        if let Ok(decoded) = codec::decode(&raw)
            && let Event::LogThread(said) = &decoded.entry.event
            && decoded.entry.about.thread() == Some(thread)
            && signer(&decoded).as_deref() == Ok(owner)
        {
            statements.push(said.clone());
        }
    }
    statements
}
