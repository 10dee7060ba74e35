//! Compares a thread with the statements of anchors outside the repository.

use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::name::ThreadId;
use crate::model::place::Place;
use crate::model::time::Moment;
use crate::verify::findings::{Findings, Verdict};
use crate::verify::{Error, Guarantee, Logs, State, resolve};

use super::ThreadChain;

/// A question about a thread to the anchors.
pub struct ThreadQuestion<'a> {
    /// The repository that has the thread.
    pub store: &'a Store,
    /// The thread.
    pub thread: &'a ThreadId,
    /// The fingerprint of the key that signed its first entry.
    pub owner: &'a str,
}

/// The answer of an anchor about a thread.
pub struct ThreadWitness {
    /// The name that the verifier's configuration gives to it.
    pub anchor: String,
    /// Its kind, such as `git`.
    pub kind: String,
    /// Its guarantee, or `None` for an authority that states only the time.
    pub guarantee: Option<Guarantee>,
    /// The statements, or the reason why there is no answer.
    pub answer: Result<ThreadAnswer, String>,
}

/// The statements of an anchor about a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadAnswer {
    /// The statements.
    pub statements: Vec<ThreadStatement>,
    /// Errors in the logs of the thread's key that the anchor holds.
    pub complaints: Vec<String>,
    /// The reason why there is no statement, if the anchor gives one.
    pub nothing: Option<String>,
}

/// One statement: that a thread had this many entries, of which this is the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStatement {
    /// The number of entries.
    pub entries: u64,
    /// The leaf hash of the last of them.
    pub last: Digest,
    /// Since when the anchor has the statement, by the anchor's clock.
    pub since: Option<Moment>,
    /// The strongest guarantee that the statement can have.
    pub at_most: Guarantee,
    /// Further remarks for the row.
    pub notes: Vec<String>,
    /// Which threads of the owner it contradicts if they do not have its entry.
    pub against: Against,
}

/// The threads that a statement contradicts if they do not have its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Every thread with this name and key: the anchor keeps the statement under the key.
    All,
    /// Only the thread of this repository: the statement is kept beside it, and under no key.
    Own,
    /// No thread: the statement came with a copy, and any party may have added it.
    None,
}

/// Asks every configured anchor about a thread.
pub type AskThread<'a> = &'a dyn Fn(&ThreadQuestion<'_>) -> Vec<ThreadWitness>;

/// The same, with an owner.
pub type Asking<'a> = Box<dyn Fn(&ThreadQuestion<'_>) -> Vec<ThreadWitness> + 'a>;

/// Asks no anchor.
pub fn no_place(_: &ThreadQuestion<'_>) -> Vec<ThreadWitness> {
    Vec::new()
}

/// The evidence that a thread is compared with.
#[derive(Clone, Copy)]
pub struct ThreadsAtHand<'a> {
    /// The logs of this repository.
    pub logs: &'a Logs,
    /// Asks the anchors.
    pub ask: AskThread<'a>,
}

impl<'a> ThreadsAtHand<'a> {
    /// Returns the logs alone, without anchors.
    pub fn logs(logs: &'a Logs) -> Self {
        Self { logs, ask: &no_place }
    }
}

/// Returns the leaf hashes of a thread's entries in order, as far as its chain can be read.
pub fn leaves(store: &Store, thread: &ThreadId, reference: &str) -> Result<Vec<Digest>, Error> {
    let tip = resolve(store, reference)?;
    let links = tip.map(|tip| ThreadChain::read(store, thread, tip).links).unwrap_or_default();
    Ok(links.iter().map(|link| link.hash).collect())
}

/// The comparison of one thread with the statements of all anchors.
struct Judged<'a> {
    walked: &'a ThreadChain,
    /// Whether it is a thread of this repository and no copy.
    is_own: bool,
    findings: Findings,
    holds: Vec<String>,
    /// Whether an anchor holds the thread; a time stamp alone does not.
    is_held: bool,
    notes: Vec<String>,
    unasked: Vec<String>,
}

/// The thread that anchors are asked about.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) store: &'a Store,
    pub(super) thread: &'a ThreadId,
    /// Its ref; empty if it has none here.
    pub(super) reference: &'a str,
    /// Whether it is a copy of a thread of another repository.
    pub(super) is_copy: bool,
}

/// Compares a thread with the statements of all anchors, and adds the verdict of the logs at hand.
///
/// A thread of this repository must not be shorter than an anchor says. A thread that was fetched,
/// or is in a bundle, may be.
pub(super) fn judge_anchors(
    walked: &ThreadChain,
    ask: AskThread<'_>,
    subject: Subject<'_>,
    at_hand: Verdict,
) -> Verdict {
    let Subject { store, thread, reference, is_copy } = subject;
    let owner = walked.links.first().and_then(|link| link.signer.as_ref().ok());
    let Some(owner) = owner.filter(|_| at_hand.state != State::Failed && !walked.cut) else { return at_hand };
    let mut judged = Judged {
        walked,
        is_own: !is_copy && !reference.is_empty() && Place::fetched(reference).is_none(),
        findings: Findings::default(),
        holds: Vec::new(),
        is_held: false,
        notes: Vec::new(),
        unasked: Vec::new(),
    };
    for witness in ask(&ThreadQuestion { store, thread, owner }) {
        judged.add(witness);
    }
    judged.verdict(at_hand)
}

impl Judged<'_> {
    fn add(&mut self, witness: ThreadWitness) {
        let ThreadWitness { anchor, kind, guarantee, answer } = witness;
        let answer = match answer {
            Ok(answer) => answer,
            // A time changes no claim, so a missing one does not leave the row open.
            Err(why) if guarantee.is_none() => return self.notes.push(format!("{anchor}: {why}")),
            Err(why) => return self.unasked.push(format!("{anchor}: {why}")),
        };
        answer.complaints.iter().for_each(|why| self.findings.add(format!("{anchor}: {why}")));
        let verb = if guarantee.is_none() { "stamped" } else { "holds" };
        let fits = answer.statements.into_iter().filter_map(|statement| self.fitting(&anchor, verb, statement));
        // The earliest of those that state the most.
        let best = fits.collect::<Vec<_>>().into_iter().rev();
        let best = best.max_by_key(|statement| (statement.entries, std::cmp::Reverse(statement.since)));
        let Some(best) = best else {
            let nothing = answer.nothing.map(|why| format!("{anchor}: {why}"));
            return self.notes.push(nothing.unwrap_or_else(|| format!("{anchor} holds nothing of it")));
        };
        let all = self.walked.links.len() as u64;
        let some = if best.entries == all { String::new() } else { format!(", {} of {all} entries", best.entries) };
        let strength = match (guarantee, best.since) {
            (None, Some(since)) => since.to_string(),
            (guarantee, _) => guarantee.unwrap_or(Guarantee::Detect).min(best.at_most).as_str().to_owned(),
        };
        self.is_held |= guarantee.is_some();
        self.holds.push(format!("{anchor}: {kind} ({strength}){some}"));
        self.notes.extend(best.notes.iter().map(|note| format!("{anchor}: {note}")));
    }

    /// Returns a statement if the thread has its entry; notes a contradiction otherwise.
    fn fitting(&mut self, anchor: &str, verb: &str, statement: ThreadStatement) -> Option<ThreadStatement> {
        let ThreadStatement { entries, last, against, .. } = statement;
        let links = &self.walked.links;
        let place = usize::try_from(entries.saturating_sub(1)).unwrap_or(usize::MAX);
        // A time stamp is bound to its entry by the hash alone: the number beside it is not signed.
        let at = if against == Against::All {
            place
        } else {
            links.iter().position(|link| link.hash == last).unwrap_or(place)
        };
        let found = links.get(at);
        if found.is_some_and(|link| link.hash == last) {
            return Some(ThreadStatement { entries: at as u64 + 1, ..statement });
        }
        let contradicts = match against {
            Against::All => true,
            Against::Own => self.is_own,
            Against::None => false,
        };
        match found {
            _ if !contradicts => {}
            Some(_) => self.findings.add(format!("{anchor} {verb} another entry {place}")),
            None if self.is_own => self.findings.add(format!("{anchor} {verb} {entries} entries: the last are gone")),
            None => self.notes.push(format!("{anchor} knows of {entries} entries")),
        }
        None
    }

    fn verdict(self, at_hand: Verdict) -> Verdict {
        let Self { findings, holds, is_held, notes, unasked, .. } = self;
        if findings.first().is_some() {
            return findings.verdict(false, String::new);
        }
        let (is_here, incomplete) = (at_hand.state == State::Ok, at_hand.incomplete);
        let detail = holds.into_iter().chain([at_hand.detail]).chain(notes).collect::<Vec<_>>().join("; ");
        match unasked.is_empty() {
            _ if incomplete => Verdict::incomplete(detail),
            false => Verdict::incomplete(format!("{}; {detail}", unasked.join("; "))),
            true if is_held || is_here => Verdict::ok(detail),
            true => Verdict::not_applicable(detail),
        }
    }
}
