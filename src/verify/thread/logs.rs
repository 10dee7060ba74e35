//! Compares a thread with the statements about it in logs.
//!
//! The latest statement of a log may be about entries that are not here. An earlier one, about a
//! shorter thread, can still contradict. Each statement is signed, so it counts even if the log is
//! broken.

use crate::model::entry::LogRecorded;
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
        let entries = statement.last_seq.saturating_add(1);
        match has(chain, statement) {
            Ok(true) => holds = true,
            Err(seq) => findings.add(format!("{} holds another entry {seq}", log.name)),
            // A log fetched from elsewhere may be newer than the fetched thread.
            Ok(false) if !log.lies_beside(reference) => {
                notes = format!("{notes}; {} knows of {entries} entries", log.name);
            }
            Ok(false) => findings.add(format!("{} holds {entries} entries: the last are gone", log.name)),
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
        if log.broken.is_none() && log.threads.get(thread).is_none_or(|statement| statement.last_seq < here) {
            continue;
        }
        // A log of another repository lies beside nothing here.
        if log.elsewhere {
            continue;
        }
        for statement in log.thread_history.get(thread).into_iter().flatten().rev() {
            match has(chain, statement) {
                Err(seq) => return Some(format!("{} holds another entry {seq}", log.name)),
                Ok(false) if log.lies_beside(place) => {
                    let entries = statement.last_seq.saturating_add(1);
                    return Some(format!("{} holds {entries} entries: the last are gone", log.name));
                }
                _ => {}
            }
        }
    }
    None
}

/// Returns true if the thread has the entry that a log states, or the position of a different one.
fn has(chain: &ThreadChain, recorded: &LogRecorded) -> Result<bool, u64> {
    for (seq, hash) in [(0, recorded.first), (recorded.last_seq, recorded.last)] {
        match usize::try_from(seq).ok().and_then(|at| chain.links.get(at)) {
            Some(link) if link.hash == hash => {}
            Some(_) => return Err(seq),
            None => return Ok(false),
        }
    }
    Ok(true)
}
