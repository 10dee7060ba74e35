//! Verification of threads: the same evidence as a run's, read the same way, in rows of its own.
//!
//! A thread belongs to one key, that of its first entry, so that nothing but the entries decides who may append. Its tree
//! follows from its entries alone: it is computed and compared, not walked. What a thread goes back to, and the runs that it is
//! tied to, are held to the same: a thread is never better than what it came from.

mod content;
mod earlier;
mod lineage;
mod outside;
mod reading;
mod ties;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::name::ThreadId;
use crate::model::place::Place;
use crate::model::thread::{CheckpointId, Trail};
use crate::model::time::Moment;

use super::findings::{Findings, Verdict, counted};
use super::rows::ThreadRows;
use super::signature::{Judged, Signature, Signed, Writers, judge, standing};
use super::{Error, Logs, Options, Proven, Row, SignerSeen, State, resolve};
use crate::git::history::is_partial;
use lineage::Lineage;
pub use outside::{
    Against, AskThread, Asking, ThreadQuestion, ThreadStatement, ThreadWitness, ThreadWord, ThreadsAtHand, leaves,
    no_place,
};
use reading::ThreadChain;
pub use ties::tied_run;

/// What verification of a thread found. A report about a ref that exists is never an error.
#[derive(Clone, Debug)]
pub struct ThreadReport {
    /// The thread.
    pub thread: ThreadId,
    /// The remote that it was fetched from; none of ours.
    pub remote: Option<String>,
    /// Whether nothing failed and nothing was missing.
    pub intact: bool,
    /// The name of the first row that failed, `mismatch` where that is only the key that was asked for, or `incomplete`.
    pub failure: Option<&'static str>,
    /// Whether nothing fails but that the key of a valid signature, its own or one that it goes back to, is not to be trusted.
    pub distrust: bool,
    /// How many entries could be read.
    pub entries: u64,
    /// How many checkpoints they make.
    pub checkpoints: u64,
    /// The rows.
    pub rows: ThreadRows<Row>,
    /// The keys that signed: one, unless something is wrong.
    pub signers: Vec<SignerSeen>,
    /// The threads that it goes back to, the nearest first.
    pub lineage: Vec<Ancestor>,
    /// Whether entries were dated by a pinned test clock.
    pub pinned_clock: bool,
}

/// A checkpoint of another thread that a thread goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// The other thread.
    pub thread: ThreadId,
    /// The checkpoint that was gone on from.
    pub checkpoint: CheckpointId,
    /// The commit of its entry.
    pub commit: Oid,
    /// Whether it was adopted; else it was forked.
    pub adopted: bool,
    /// The key of the other thread, judged at the times of its entries.
    pub signer: SignerSeen,
    /// Whether it was adopted although its key, or one that it goes back to itself, was not known to the adopter.
    pub accepted_unknown: bool,
}

/// A thread at a commit, and what was made of it.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The report.
    pub report: ThreadReport,
    /// The thread itself, whether it holds or not; none where its chain could not be read to its first entry.
    found: Option<Sound>,
    /// Whether the lineage could be read to its end.
    pub whole_lineage: bool,
    /// The leaf hashes of its entries, as far as they could be read, each behind that of the entry that it says it follows.
    pub(super) entries: Vec<(Option<Digest>, Digest)>,
}

/// A thread up to a commit; [`Proven`], its chain, signatures and lineage hold.
#[derive(Clone, Debug)]
pub struct Sound {
    /// The thread.
    pub thread: ThreadId,
    /// The commit of the last entry.
    pub commit: Oid,
    /// The tree of that commit.
    pub tree: Oid,
    /// The leaf hash of the last entry.
    pub last: Digest,
    /// When the last entry was made.
    pub at: Moment,
    /// How many entries there are.
    pub entries: u64,
    /// The key that signed all of them.
    pub key: String,
    /// The checkpoints.
    pub trail: Trail,
    /// The threads that it goes back to, the nearest first.
    pub lineage: Vec<Ancestor>,
}

/// A thread as it stands at one commit.
#[derive(Clone, Copy)]
pub struct Standpoint<'a> {
    /// Where its objects are.
    pub objects: &'a Store,
    /// The repository that it is read for: what that may lack is not held against the thread.
    pub home: &'a Store,
    /// The thread.
    pub thread: &'a ThreadId,
    /// The ref that it was found at; an empty one stands beside no log.
    pub reference: &'a str,
    /// Where it stands, or would if it were kept: a log of its key beside this place knows how far it went at least.
    pub place: &'a str,
    /// The commit of its last entry.
    pub tip: Oid,
}

/// What threads are held against.
struct Table<'a> {
    store: &'a Store,
    /// The repository whose own refs count.
    home: &'a Store,
    logs: &'a Logs,
    /// Asks the anchors.
    ask: AskThread<'a>,
    options: &'a Options,
    /// Whether blobs may be elsewhere.
    lazy: bool,
    /// Whether commits and trees may be elsewhere.
    shallow: bool,
}

/// Verifies the thread at `reference` against everything in the repository, and what places outside hold.
pub fn thread(
    store: &Store,
    at_hand: ThreadsAtHand<'_>,
    thread: &ThreadId,
    reference: &str,
    options: &Options,
) -> Result<ThreadReport, Error> {
    let walked = match resolve(store, reference) {
        Ok(Ok(tip)) => ThreadChain::read(store, thread, tip),
        Ok(Err(why)) => ThreadChain::unreadable(why),
        Err(error @ Error::NoSuchRun(_)) => return Err(at_hand.logs.remember_thread(error, thread, reference)),
        Err(error) => return Err(error),
    };
    let table = Table { ask: at_hand.ask, ..Table::new(store, store, at_hand.logs, options) };
    Ok(table.report(&walked, thread, (reference, reference)).0)
}

/// Verifies a thread as it stands at one commit, whichever ref leads there by now.
pub fn thread_at(at: &Standpoint<'_>, logs: &Logs, options: &Options) -> Examined {
    let walked = ThreadChain::read(at.objects, at.thread, at.tip);
    let table = Table::new(at.objects, at.home, logs, options);
    let (report, lineage) = table.report(&walked, at.thread, (at.reference, at.place));
    let whole_lineage = !lineage.verdict.incomplete;
    let entries = walked.links.iter().map(|link| (link.entry.prev, link.hash)).collect();
    Examined { found: found(walked, lineage, &report.signers), report, whole_lineage, entries }
}

/// Verifies what appending to a thread rests on: its chain up to `tip`, all signatures, its lineage.
pub fn sound_thread(store: &Store, thread: &ThreadId, tip: Oid, options: &Options) -> Result<Proven<Sound>, Unsound> {
    let walked = ThreadChain::read(store, thread, tip);
    let logs = Logs::default();
    let table =
        Table { store, home: store, logs: &logs, ask: &no_place, options, lazy: is_partial(store), shallow: false };
    let signature = signed(&walked, options);
    let lineage = lineage::trace(&table, &walked);
    let chain = walked.findings.clone().verdict(false, String::new);
    let rows = [&chain, &signature.verdict, &lineage.verdict];
    let unsound = |finding: String| Unsound { thread: thread.clone(), finding };
    if let Some(verdict) = rows.iter().find(|verdict| verdict.state == State::Failed) {
        return Err(unsound(verdict.detail.clone()));
    }
    let found = found(walked, lineage, &signature.signers);
    found.map(Proven::new).ok_or_else(|| unsound("it has no entries that could be read".to_owned()))
}

/// Returns the thread that was walked, if it was walked from its first entry on and by one key.
fn found(walked: ThreadChain, lineage: Lineage, signers: &[SignerSeen]) -> Option<Sound> {
    let (Some(last), [signer], false) = (walked.links.last(), signers, walked.cut) else { return None };
    Some(Sound {
        thread: last.entry.about.thread()?.clone(),
        commit: last.commit,
        tree: last.tree,
        last: last.hash,
        at: last.entry.at,
        entries: last.entry.seq + 1,
        key: signer.fingerprint.clone(),
        trail: walked.trail,
        lineage: lineage.ancestors,
    })
}

/// Returns whether the verifier knows a key as good at a time, and refuses one that its own words speak against.
pub fn knows_key(options: &Options, key: &str, at: Moment) -> Result<bool, String> {
    let (principal, distrust) = standing(options, key, at, None);
    distrust.map_or(Ok(principal.is_some() || options.own_key.as_deref() == Some(key)), |(_, why)| Err(why))
}

impl<'a> Table<'a> {
    fn new(store: &'a Store, home: &'a Store, logs: &'a Logs, options: &'a Options) -> Self {
        let lazy = is_partial(home);
        Self {
            store,
            home,
            logs,
            ask: &no_place,
            options,
            lazy,
            shallow: lazy || home.local().is_shallow().unwrap_or(false),
        }
    }

    fn report(
        &self,
        walked: &ThreadChain,
        thread: &ThreadId,
        (reference, place): (&str, &str),
    ) -> (ThreadReport, Lineage) {
        let mut chain = walked.findings.clone();
        if !(reference.is_empty() || reference.ends_with(&format!("threads/{}", thread.encoded()))) {
            chain.add(format!("the ref {reference} is not the place of thread {thread}"));
        }
        let entries = counted(walked.links.len(), "entry", "entries");
        let checkpoints = counted(walked.trail.checkpoints.len(), "checkpoint", "checkpoints");
        let signature = signed(walked, self.options);
        let (of_trust, mismatch) = (signature.distrust || signature.verdict.mismatch, signature.verdict.mismatch);
        let lineage = lineage::trace(self, walked);
        let verdicts = ThreadRows {
            chain: chain.verdict(self.shallow, || format!("{checkpoints} in {entries}, hash-linked, no gaps")),
            signature: signature.verdict,
            anchor: self.anchored(walked, thread, (reference, place)),
            lineage: lineage.verdict.clone(),
            content: content::row(self, walked, &lineage),
        };
        let incomplete = verdicts.iter().any(|verdict| verdict.incomplete);
        let rows = verdicts.map(Verdict::row);
        let first = rows.iter().find(|row| row.state == State::Failed).map(|row| row.name);
        let failure = first.or(incomplete.then_some("incomplete"));
        let fails = rows.map(|_, row| row.state == State::Failed);
        let contradicts = ThreadRows {
            signature: fails.signature && !of_trust,
            lineage: fails.lineage && !lineage.distrust,
            ..fails
        };
        let contradicts = contradicts.iter().any(|contradicts| *contradicts);
        // Another key than was asked for is nothing against it.
        let only_asked = mismatch && !contradicts && !fails.lineage;
        let report = ThreadReport {
            thread: thread.clone(),
            remote: Place::fetched(reference).map(|(remote, _)| remote.to_owned()),
            intact: failure.is_none(),
            failure: if only_asked { Some("mismatch") } else { failure },
            distrust: first.is_some() && !contradicts,
            entries: walked.links.len() as u64,
            checkpoints: walked.trail.checkpoints.len() as u64,
            pinned_clock: walked.links.iter().any(|link| link.entry.pinned),
            rows,
            signers: signature.signers,
            lineage: lineage.ancestors.clone(),
        };
        (report, lineage)
    }
}

impl Table<'_> {
    /// The row `anchor`: what logs here and places outside hold of the thread.
    fn anchored(&self, walked: &ThreadChain, thread: &ThreadId, (reference, place): (&str, &str)) -> Verdict {
        let last = anchor(walked, self.logs, thread, reference);
        let at_hand = earlier::held(self, walked, (thread, place), last);
        let is_copy = self.options.alone;
        outside::held(walked, self.ask, (self.store, thread, reference, is_copy), at_hand)
    }
}

impl Examined {
    /// Returns the thread if nothing in it fails; with `accept_untrusted`, nothing but that a key is not to be trusted.
    pub fn proven(self, accept_untrusted: bool) -> Result<Proven<Sound>, Unproven> {
        match self.report.finding() {
            Some(finding) if !self.report.distrust => Err(Unproven::Tampered(finding)),
            Some(finding) if !accept_untrusted => Err(Unproven::Untrusted(finding)),
            _ => self.found.map(Proven::new).ok_or(Unproven::Unread),
        }
    }
}

/// Why a thread that was examined is not gone on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// It does not hold: the first row that fails, and what it says.
    Tampered(String),
    /// It holds, but for a key that is not to be trusted.
    Untrusted(String),
    /// Its chain could not be read to its first entry.
    Unread,
}

impl ThreadReport {
    /// Returns what the first row that fails says, behind its name.
    pub fn finding(&self) -> Option<String> {
        let row = self.rows.iter().find(|row| row.state == State::Failed)?;
        Some(format!("{}: {}", row.name, row.detail))
    }

    /// Returns whether an adoption on the way here took in a key that its adopter did not know.
    pub fn accepted_unknown(&self) -> bool {
        self.lineage.iter().any(|ancestor| ancestor.accepted_unknown)
    }
}

/// The row `signature`: every entry signed, all by the key of the first, and by whom as far as the verifier knows.
fn signed(walked: &ThreadChain, options: &Options) -> Signature {
    let mut row = signatures(walked, options, "").row();
    if walked.links.is_empty() {
        row.verdict = Verdict::not_applicable("no entry could be read");
    }
    row
}

/// Judges every signature of a thread; `whose` stands before what is found.
fn signatures(walked: &ThreadChain, options: &Options, whose: &str) -> Judged {
    judge(walked.links.iter().map(Signed::of), Writers::of_thread(), whose, options, None)
}

/// The log of the thread's key holds how far the thread went: one that is shorter now has lost its end, and a log that is broken
/// may hide that it is.
fn anchor(walked: &ThreadChain, logs: &Logs, thread: &ThreadId, reference: &str) -> Verdict {
    if walked.cut {
        return Verdict::not_applicable("the chain could not be read to its first entry");
    }
    let owner = walked.links.first().and_then(|link| link.signer.as_ref().ok());
    let mut findings = Findings::default();
    let (mut broken, mut unread) = (Vec::new(), None);
    let (mut holds, mut notes) = (false, String::new());
    for log in
        logs.logs.iter().filter(|log| Some(&log.fingerprint) == owner || (log.is_own() && log.stands_beside(reference)))
    {
        // What the owner's log says no more could be how far the thread went.
        let is_owners = Some(&log.fingerprint) == owner;
        match log.complaint() {
            Some(why) if is_owners => broken.push(why),
            Some(why) => notes = format!("{notes}; {why}"),
            None => {}
        }
        unread = unread.or_else(|| Some(format!("{}: {}", log.name, log.unread.as_ref().filter(|_| is_owners)?)));
        let Some(said) = log.threads.get(thread) else { continue };
        let place = usize::try_from(said.entries.saturating_sub(1)).unwrap_or(usize::MAX);
        match walked.links.get(place) {
            Some(link) if link.hash == said.last => holds = true,
            Some(_) => findings.add(format!("{} holds another entry {place}", log.name)),
            // A log that was fetched from elsewhere may be ahead of what was fetched of the thread.
            None if !log.stands_beside(reference) => {
                notes = format!("{notes}; {} knows of {} entries", log.name, said.entries);
            }
            None => findings.add(format!("{} holds {} entries: the last are gone", log.name, said.entries)),
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

/// Why a thread must be neither continued nor adopted from.
#[derive(Debug, thiserror::Error)]
#[error("thread {thread} does not verify: {finding}")]
pub struct Unsound {
    /// The thread.
    pub thread: ThreadId,
    /// The first thing that is wrong.
    pub finding: String,
}
