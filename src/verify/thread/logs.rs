//! Compares a thread with the statements about it in logs.
//!
//! The latest statement of a log may be about entries that are not here. An earlier one, about a
//! shorter thread, can still contradict. Each statement is signed, so it counts even if the log is
//! broken.

use crate::model::name::ThreadId;

use super::{Position, ThreadChain, ThreadVerifier};
use crate::verify::findings::{Findings, Verdict};
use crate::verify::{Logs, State};

/// The row `anchor`, by the logs at hand.
pub(super) fn row(verifier: &ThreadVerifier<'_>, chain: &ThreadChain, position: Position<'_>) -> Verdict {
    let Position { thread, reference, place } = position;
    let last = latest(chain, verifier.logs, thread, reference);
    if last.state == State::Failed || chain.cut {
        return last;
    }
    contradiction(verifier, chain, thread, place).map_or(last, Verdict::failed)
}

/// Compares the thread with the latest statements in logs.
///
/// A thread that is shorter than its key's log states has lost its end. A broken log may hide that.
fn latest(chain: &ThreadChain, logs: &Logs, thread: &ThreadId, reference: &str) -> Verdict {
    if chain.cut {
        return Verdict::not_applicable("the chain could not be read to its first entry");
    }
    let owner = chain.links.first().and_then(|link| link.signer.as_ref().ok());
    let mut findings = Findings::default();
    let (mut broken, mut unread) = (Vec::new(), None);
    let (mut holds, mut notes) = (false, String::new());
    for log in
        logs.logs.iter().filter(|log| Some(&log.fingerprint) == owner || (log.is_own() && log.lies_beside(reference)))
    {
        // An unreadable end of the owner's log may state more entries.
        let is_owners = Some(&log.fingerprint) == owner;
        match log.complaint() {
            Some(why) if is_owners => broken.push(why),
            Some(why) => notes = format!("{notes}; {why}"),
            None => {}
        }
        unread = unread.or_else(|| Some(format!("{}: {}", log.name, log.unread.as_ref().filter(|_| is_owners)?)));
        let Some(statement) = log.threads.get(thread) else { continue };
        let place = usize::try_from(statement.entries.saturating_sub(1)).unwrap_or(usize::MAX);
        match chain.links.get(place) {
            Some(link) if link.hash == statement.last => holds = true,
            Some(_) => findings.add(format!("{} holds another entry {place}", log.name)),
            // A log fetched from elsewhere may be newer than the fetched thread.
            None if !log.lies_beside(reference) => {
                notes = format!("{notes}; {} knows of {} entries", log.name, statement.entries);
            }
            None => findings.add(format!("{} holds {} entries: the last are gone", log.name, statement.entries)),
        }
    }
    if findings.first().is_some() {
        return findings.verdict(false, String::new);
    }
    if !broken.is_empty() {
        return Verdict::failed(broken.join("; ") + &notes);
    }
    if let Some(unread) = unread {
        return Verdict::incomplete(unread + &notes);
    }
    if holds {
        Verdict::ok(format!("local (detect){notes}"))
    } else {
        Verdict::not_applicable(format!("in no log{notes}"))
    }
}

/// Returns the reason if a log of the thread's key stated another entry before, or a log beside
/// `place` more entries than there are.
fn contradiction(verifier: &ThreadVerifier<'_>, chain: &ThreadChain, thread: &ThreadId, place: &str) -> Option<String> {
    let owner = chain.links.first()?.signer.as_ref().ok()?;
    let here = chain.links.len() as u64;
    for log in verifier.logs.logs.iter().filter(|log| log.fingerprint == *owner) {
        if log.broken.is_none() && log.threads.get(thread).is_none_or(|statement| statement.entries <= here) {
            continue;
        }
        // A log of another repository lies beside nothing here.
        if log.elsewhere {
            continue;
        }
        for statement in log.thread_history.get(thread).into_iter().flatten().rev() {
            let place_of = statement.entries.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            match place_of.and_then(|place| chain.links.get(place)) {
                Some(link) if link.hash != statement.last => {
                    return Some(format!("{} holds another entry {}", log.name, link.entry.seq));
                }
                None if log.lies_beside(place) => {
                    return Some(format!("{} holds {} entries: the last are gone", log.name, statement.entries));
                }
                _ => {}
            }
        }
    }
    None
}
