//! Verification of threads, from the same evidence as runs, in rows of their own.
//!
//! A thread belongs to the key of its first entry, so the entries alone decide who may append. Its
//! trees are not judged. The threads that it came from, and the runs that it is tied to, must be
//! valid as well.

mod appendable;
mod chain;
mod content;
mod lineage;
mod logs;
mod outside;
mod tied_runs;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::name::ThreadId;
use crate::model::place::Place;
use crate::model::thread::{SourceCheckpoint, Trail};
use crate::model::time::Moment;

use super::findings::{Verdict, counted};
use super::rows::ThreadRows;
use super::signature::{Judged, Signature, Signed, Writers, judge, standing};
use super::{Error, Logs, Options, Row, SignerSeen, State, Verified, resolve};
use crate::git::history::is_partial;
pub use appendable::{verified_thread, verified_thread_on};
use chain::ThreadChain;
use lineage::Lineage;
pub use outside::{
    Against, AskThread, Asking, ThreadAnswer, ThreadQuestion, ThreadStatement, ThreadWitness, ThreadsAtHand, leaves,
    no_place,
};
pub use tied_runs::tied_run;

/// The result of verifying a thread. A thread with an existing ref always has a report.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "schemas",
    derive(schemars::JsonSchema),
    schemars(rename = "git-handoff.thread-verify/1", with = "super::render::ThreadReportShown<'static>")
)]
pub struct ThreadReport {
    /// The thread.
    pub thread: ThreadId,
    /// The remote, if the thread was fetched.
    pub remote: Option<String>,
    /// True if nothing failed and nothing was missing.
    pub intact: bool,
    /// The first row that failed; `mismatch` if only the key is not the expected one; or
    /// `incomplete`.
    pub failure: Option<&'static str>,
    /// True if only distrusted keys of valid signatures fail the thread. This includes its
    /// ancestors.
    pub distrust: bool,
    /// The number of readable entries.
    pub entries: u64,
    /// The number of checkpoints.
    pub checkpoints: u64,
    /// The rows.
    pub rows: ThreadRows<Row>,
    /// The keys that signed: one, unless the thread is not valid.
    pub signers: Vec<SignerSeen>,
    /// The threads that it descends from, the nearest first.
    pub lineage: Vec<Ancestor>,
    /// True if a pinned test clock dated entries.
    pub pinned_clock: bool,
}

/// A checkpoint of another thread, from which a thread descends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(with = "super::render::AncestorShown<'static>"))]
pub struct Ancestor {
    /// The checkpoint.
    pub source: SourceCheckpoint,
    /// True if it was adopted, false if it was forked.
    pub adopted: bool,
    /// The key of the other thread, judged at the times of its entries.
    pub signer: SignerSeen,
    /// True if the adopter accepted an unknown key.
    pub accepted_unknown: bool,
}

/// A thread at a commit, with the result of its verification.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The report.
    pub report: ThreadReport,
    /// The thread, valid or not, if its chain could be read to the first entry.
    found: Option<ThreadSnapshot>,
    /// True if the lineage could be read to its end.
    pub whole_lineage: bool,
    /// The leaf hashes of the readable entries, each after the hash of the entry before.
    pub(super) entries: Vec<(Option<Digest>, Digest)>,
}

/// A thread up to a commit. If [`Verified`], its chain, signatures and lineage are valid.
#[derive(Clone, Debug)]
pub struct ThreadSnapshot {
    /// The thread.
    pub thread: ThreadId,
    /// The commit of the last entry.
    pub commit: Oid,
    /// The tree of that commit.
    pub tree: Oid,
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The leaf hash of the last entry.
    pub last: Digest,
    /// The time of the last entry.
    pub at: Moment,
    /// The number of entries.
    pub entries: u64,
    /// The key that signed all of them.
    pub key: String,
    /// The checkpoints.
    pub trail: Trail,
    /// The threads that it descends from, the nearest first.
    pub lineage: Vec<Ancestor>,
}

/// A thread to verify at one commit.
#[derive(Clone, Copy)]
pub struct Standpoint<'a> {
    /// The store that holds its objects.
    pub objects: &'a Store,
    /// The repository that wants the thread. If it is a partial clone, missing objects are no
    /// contradiction.
    pub home: &'a Store,
    /// The thread.
    pub thread: &'a ThreadId,
    /// The ref where it was found; empty if no log can lie beside it.
    pub reference: &'a str,
    /// The ref where it is or would be stored. Logs of its key beside this place limit how short it
    /// may be.
    pub place: &'a str,
    /// The commit of its last entry.
    pub tip: Oid,
}

#[derive(Clone, Copy)]
struct Position<'a> {
    thread: &'a ThreadId,
    reference: &'a str,
    /// The ref that decides which logs lie beside the thread.
    place: &'a str,
}

/// The evidence to compare threads with.
struct ThreadVerifier<'a> {
    store: &'a Store,
    /// The repository whose own refs count.
    home: &'a Store,
    logs: &'a Logs,
    /// Asks the external anchors.
    ask: AskThread<'a>,
    options: &'a Options,
    lazy: bool,
    shallow: bool,
}

/// Verifies the thread at `reference` against the repository and the answers of external anchors.
pub fn thread(
    store: &Store,
    at_hand: ThreadsAtHand<'_>,
    thread: &ThreadId,
    reference: &str,
    options: &Options,
) -> Result<ThreadReport, Error> {
    let chain = match resolve(store, reference) {
        Ok(Ok(tip)) => ThreadChain::read(store, thread, tip),
        Ok(Err(why)) => ThreadChain::unreadable(why),
        Err(error @ Error::NoSuchRun(_)) => return Err(at_hand.logs.remember_thread(error, thread, reference)),
        Err(error) => return Err(error),
    };
    let verifier = ThreadVerifier { ask: at_hand.ask, ..ThreadVerifier::new(store, store, at_hand.logs, options) };
    Ok(verifier.report(&chain, Position { thread, reference, place: reference }).0)
}

/// Verifies a thread at one commit, wherever its ref points now.
pub fn thread_at(at: &Standpoint<'_>, logs: &Logs, options: &Options) -> Examined {
    let chain = ThreadChain::read(at.objects, at.thread, at.tip);
    let verifier = ThreadVerifier::new(at.objects, at.home, logs, options);
    let position = Position { thread: at.thread, reference: at.reference, place: at.place };
    let (report, lineage) = verifier.report(&chain, position);
    let whole_lineage = !lineage.verdict.incomplete;
    let entries = chain.links.iter().map(|link| (link.entry.prev, link.hash)).collect();
    Examined { found: found(chain, lineage, &report.signers), report, whole_lineage, entries }
}

/// Returns the thread if its chain is complete and has one key.
fn found(chain: ThreadChain, lineage: Lineage, signers: &[SignerSeen]) -> Option<ThreadSnapshot> {
    let owner = match (signers, chain.marked_owner()) {
        ([signer], _) => signer.fingerprint.as_str(),
        // No entry came after the mark.
        ([], Some(owner)) => owner,
        _ => return None,
    };
    let ([first, ..], Some(last), false) = (&chain.links[..], chain.links.last(), chain.cut) else { return None };
    Some(ThreadSnapshot {
        thread: last.entry.about.thread()?.clone(),
        commit: last.commit,
        tree: last.tree,
        first: first.hash,
        last: last.hash,
        at: last.entry.at,
        entries: last.entry.seq + 1,
        key: owner.to_owned(),
        trail: chain.trail,
        lineage: lineage.ancestors,
    })
}

/// Returns true if the verifier knows the key at that time, or a reason to distrust the key.
pub fn knows_key(options: &Options, key: &str, at: Moment) -> Result<bool, String> {
    let (principal, distrust) = standing(options, key, at, None);
    distrust.map_or(Ok(principal.is_some() || options.own_key.as_deref() == Some(key)), |(_, why)| Err(why))
}

impl<'a> ThreadVerifier<'a> {
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

    fn report(&self, chain: &ThreadChain, position: Position<'_>) -> (ThreadReport, Lineage) {
        let Position { thread, reference, .. } = position;
        let mut flaws = chain.findings.clone();
        if !(reference.is_empty() || reference.ends_with(&format!("threads/{}", thread.encoded()))) {
            flaws.add(format!("the ref {reference} is not the place of thread {thread}"));
        }
        let entries = counted(chain.links.len(), "entry", "entries");
        let checkpoints = counted(chain.trail.checkpoints.len(), "checkpoint", "checkpoints");
        let signature = signed(chain, self.options);
        let mismatch = signature.verdict.is_mismatch();
        let of_trust = mismatch || signature.is_distrust();
        let lineage = lineage::trace(self, chain);
        let verdicts = ThreadRows {
            chain: flaws.verdict(self.shallow, || format!("{checkpoints} in {entries}, hash-linked, no gaps")),
            signature: signature.verdict,
            anchor: self.anchored(chain, position),
            lineage: lineage.verdict.clone(),
            content: content::row(self, chain, &lineage),
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
        // A key other than the expected one is no contradiction.
        let only_asked = mismatch && !contradicts && !fails.lineage;
        let report = ThreadReport {
            thread: thread.clone(),
            remote: Place::fetched(reference).map(|(remote, _)| remote.to_owned()),
            intact: failure.is_none(),
            failure: if only_asked { Some("mismatch") } else { failure },
            distrust: first.is_some() && !contradicts,
            entries: chain.links.len() as u64,
            checkpoints: chain.trail.checkpoints.len() as u64,
            pinned_clock: chain.links.iter().any(|link| link.entry.pinned),
            rows,
            signers: signature.signers,
            lineage: lineage.ancestors.clone(),
        };
        (report, lineage)
    }
}

impl ThreadVerifier<'_> {
    /// The row `anchor`: the statements of logs and external anchors about the thread.
    fn anchored(&self, chain: &ThreadChain, position: Position<'_>) -> Verdict {
        let Position { thread, reference, .. } = position;
        let at_hand = logs::row(self, chain, position);
        let subject = outside::Subject { store: self.store, thread, reference, is_copy: self.options.alone };
        outside::judge_anchors(chain, self.ask, subject, at_hand)
    }
}

impl Examined {
    /// Returns the thread if nothing fails. With `accept_untrusted`, distrusted keys are accepted.
    pub fn proven(self, accept_untrusted: bool) -> Result<Verified<ThreadSnapshot>, Unproven> {
        match self.report.finding() {
            Some(finding) if !self.report.distrust => Err(Unproven::Tampered(finding)),
            Some(finding) if !accept_untrusted => Err(Unproven::Untrusted(finding)),
            _ => self.found.map(Verified::new).ok_or(Unproven::Unread),
        }
    }
}

/// A reason why an examined thread cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// A row fails: its name and text.
    Tampered(String),
    /// Only a distrusted key fails it: the row's name and text.
    Untrusted(String),
    /// Its chain could not be read to the first entry.
    Unread,
}

impl ThreadReport {
    /// Returns the name and the text of the first failed row.
    pub fn finding(&self) -> Option<String> {
        let row = self.rows.iter().find(|row| row.state == State::Failed)?;
        Some(format!("{}: {}", row.name, row.detail))
    }

    /// Returns true if an adoption in the lineage accepted an unknown key.
    pub fn accepted_unknown(&self) -> bool {
        self.lineage.iter().any(|ancestor| ancestor.accepted_unknown)
    }
}

/// The row `signature`: every entry is signed by the key of the first, which the verifier does not
/// distrust.
fn signed(chain: &ThreadChain, options: &Options) -> Signature {
    let mut row = signatures(chain, options, "").row();
    if chain.links.is_empty() {
        row.verdict = Verdict::not_applicable("no entry could be read");
    }
    row
}

/// Judges every signature of a thread; `label` is the prefix of findings.
fn signatures(chain: &ThreadChain, options: &Options, label: &str) -> Judged {
    let writers = chain.marked_owner().map_or(Writers::First, Writers::Owner);
    judge(chain.links.iter().map(Signed::from_link), writers, label, options, None)
}

/// A reason why a thread must not be continued or adopted.
#[derive(Debug, thiserror::Error)]
#[error("thread {thread} does not verify: {finding}")]
pub struct Unsound {
    /// The thread.
    pub thread: ThreadId,
    /// The first finding.
    pub finding: String,
}

impl Unsound {
    pub(crate) fn new(finding: String, thread: &ThreadId) -> Self {
        Self { thread: thread.clone(), finding }
    }
}
