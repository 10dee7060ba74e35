//! Verification of threads: the same evidence as a run's, read the same way, in rows of its own.
//!
//! A thread belongs to one key, that of its first entry, so that nothing but the entries decides who may append. Its tree
//! follows from its entries alone: it is computed and compared, not walked.

mod lineage;
mod reading;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;
use crate::model::name::ThreadId;
use crate::model::thread::Trail;
use crate::model::time::Moment;

use super::content::{bytes_for_people, hash};
use super::findings::{Findings, Verdict, counted};
use super::objects::{Fault, Objects};
use super::signature::{detail, standing};
use super::{Error, Logs, Options, Row, SignerSeen, State, resolve};
use crate::git::history::is_partial;
use reading::Told;

/// The names of the rows, in the order of a report; `failure` is the first that fails.
pub const THREAD_ROWS: [&str; 5] = ["chain", "signature", "anchor", "lineage", "content"];

/// What verification of a thread found. A report about a ref that exists is never an error.
#[derive(Clone, Debug)]
pub struct ThreadReport {
    /// The thread.
    pub thread: ThreadId,
    /// Whether nothing failed and nothing was missing.
    pub intact: bool,
    /// The name of the first row that failed, or `incomplete`.
    pub failure: Option<&'static str>,
    /// Whether it fails only because a valid signature's key is not to be trusted.
    pub distrust: bool,
    /// How many entries could be read.
    pub entries: u64,
    /// How many checkpoints they make.
    pub checkpoints: u64,
    /// The rows, in the order of [`THREAD_ROWS`].
    pub rows: Vec<Row>,
    /// The keys that signed: one, unless something is wrong.
    pub signers: Vec<SignerSeen>,
    /// Whether entries were dated by a pinned test clock.
    pub pinned_clock: bool,
}

/// The proof that a thread's chain, signatures and lineage hold up to a commit.
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
}

/// Verifies the thread at `reference` against everything in the repository.
pub fn thread(
    store: &Store,
    logs: &Logs,
    thread: &ThreadId,
    reference: &str,
    options: &Options,
) -> Result<ThreadReport, Error> {
    let told = match resolve(store, reference) {
        Ok(Ok(tip)) => Told::read(store, thread, tip),
        Ok(Err(why)) => Told::unreadable(why),
        Err(error @ Error::NoSuchRun(_)) => return Err(logs.remember_thread(error, thread, reference)),
        Err(error) => return Err(error),
    };
    let shallow = is_partial(store) || store.local().is_shallow().unwrap_or(false);
    let mut chain = told.findings.clone();
    if !reference.ends_with(&format!("threads/{}", thread.encoded())) {
        chain.add(format!("the ref {reference} is not the place of thread {thread}"));
    }
    let entries = counted(told.links.len(), "entry", "entries");
    let checkpoints = counted(told.trail.checkpoints.len(), "checkpoint", "checkpoints");
    let (signature, signers, distrust) = signature(&told, options);
    let verdicts = [
        chain.verdict(shallow, || format!("{checkpoints} in {entries}, hash-linked, no gaps")),
        signature,
        anchor(&told, logs, thread, reference),
        lineage::row(store, &told, shallow),
        content(store, &told),
    ];
    let failed = verdicts.iter().zip(THREAD_ROWS).find(|(verdict, _)| verdict.state == State::Failed);
    let incomplete = || verdicts.iter().any(|verdict| verdict.incomplete).then_some("incomplete");
    let failure = failed.map(|(_, name)| name).or_else(incomplete);
    Ok(ThreadReport {
        thread: thread.clone(),
        intact: failure.is_none(),
        failure,
        distrust: distrust && failure == Some("signature"),
        entries: told.links.len() as u64,
        checkpoints: told.trail.checkpoints.len() as u64,
        pinned_clock: told.links.iter().any(|link| link.entry.pinned),
        rows: verdicts
            .into_iter()
            .zip(THREAD_ROWS)
            .map(|(verdict, name)| Row { name, state: verdict.state, detail: verdict.detail })
            .collect(),
        signers,
    })
}

/// Verifies what appending to a thread, or adopting from it, rests on: its chain up to `tip`, all signatures, its lineage.
pub fn sound_thread(store: &Store, thread: &ThreadId, tip: Oid, options: &Options) -> Result<Sound, Unsound> {
    let told = Told::read(store, thread, tip);
    let (signature, signers, _) = signature(&told, options);
    let lineage = lineage::row(store, &told, false);
    let chain = told.findings.clone().verdict(false, String::new);
    if let Some(verdict) = [chain, signature, lineage].iter().find(|verdict| verdict.state == State::Failed) {
        return Err(Unsound { thread: thread.clone(), finding: verdict.detail.clone() });
    }
    let (Some(last), [signer]) = (told.links.last(), signers.as_slice()) else {
        return Err(Unsound { thread: thread.clone(), finding: "it has no entries that could be read".into() });
    };
    Ok(Sound {
        thread: thread.clone(),
        commit: last.commit,
        tree: last.tree,
        last: last.hash,
        at: last.entry.at,
        entries: last.entry.seq + 1,
        key: signer.fingerprint.clone(),
        trail: told.trail,
    })
}

/// Returns whether the verifier knows a key as good at a time, and refuses one that its own words speak against.
pub fn knows_key(options: &Options, key: &str, at: Moment) -> Result<bool, String> {
    let (principal, distrust) = standing(options, key, at, None);
    distrust.map_or(Ok(principal.is_some() || options.own_key.as_deref() == Some(key)), Err)
}

fn signature(told: &Told, options: &Options) -> (Verdict, Vec<SignerSeen>, bool) {
    let mut bad = Findings::default();
    let mut distrusted = Findings::default();
    let mut signers: Vec<SignerSeen> = Vec::new();
    for link in &told.links {
        let seq = link.entry.seq;
        let key = match &link.signer {
            Ok(key) => key,
            Err(why) => {
                bad.add(format!("entry {seq}: {why}"));
                continue;
            }
        };
        if signers.first().is_some_and(|owner| owner.fingerprint != *key) {
            bad.add(format!("entry {seq} is signed by {key}, but the thread belongs to the key of its first entry"));
        }
        let (principal, distrust) = standing(options, key, link.entry.at, None);
        let trusted = distrust.is_none() && (principal.is_some() || options.own_key.as_ref() == Some(key));
        match signers.iter_mut().find(|seen| seen.fingerprint == *key) {
            Some(seen) => seen.trusted &= trusted,
            None => signers.push(SignerSeen { fingerprint: key.clone(), principal, trusted }),
        }
        if let Some(why) = distrust {
            distrusted.add(format!("entry {seq}: the key {key} {why}"));
        }
    }
    let distrust = bad.first().is_none() && distrusted.first().is_some();
    bad.extend(&distrusted);
    let mut verdict = bad.verdict(false, || detail(&signers));
    if told.links.is_empty() {
        verdict = Verdict::not_applicable("no entry could be read");
    } else if verdict.state == State::Ok && signers.iter().any(|signer| !signer.trusted) {
        verdict.state = State::NotApplicable;
    }
    (verdict, signers, distrust)
}

/// The log of the thread's key holds how far the thread went: one that is shorter now has lost its end, and a log that is broken
/// may hide that it is.
fn anchor(told: &Told, logs: &Logs, thread: &ThreadId, reference: &str) -> Verdict {
    if told.cut {
        return Verdict::not_applicable("the chain could not be read to its first entry");
    }
    let owner = told.links.first().and_then(|link| link.signer.as_ref().ok());
    let mut findings = Findings::default();
    let (mut broken, mut unread) = (Vec::new(), None);
    let (mut holds, mut notes) = (false, String::new());
    for log in logs.logs.iter().filter(|log| Some(&log.fingerprint) == owner || log.stands_beside(reference)) {
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
        match told.links.get(place) {
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

fn content(store: &Store, told: &Told) -> Verdict {
    let objects = Objects::new(store);
    let lazy = is_partial(store);
    let mut findings = Findings::default();
    let (mut seen, mut bytes, mut missing) = (std::collections::BTreeSet::new(), 0, 0);
    for checkpoint in &told.trail.checkpoints {
        let content = &checkpoint.content;
        let claims = [("state", Some(&content.state)), ("packet", content.packet.as_ref())];
        for (what, product) in claims.into_iter().filter_map(|(what, product)| Some((what, product?))) {
            if !seen.insert((product.oid, product.sha256)) {
                continue;
            }
            match claim(store, &objects, product) {
                Ok(()) => bytes += product.size,
                Err(Claim::Fault(Fault::Missing(_))) if lazy => missing += 1,
                Err(why) => findings.add(format!("{what} of {}: {why}", checkpoint.id)),
            }
        }
        if let Some(worktree) = &content.worktree
            && let Err(fault) = reading::files(&objects, store, worktree.tree, &mut bytes)
        {
            match fault {
                Fault::Missing(_) if lazy => missing += 1,
                fault => findings.add(format!("working tree of {}: {fault}", checkpoint.id)),
            }
        }
    }
    if findings.first().is_none() && missing > 0 {
        return Verdict::not_applicable(format!("{missing} objects are not in this partial clone"));
    }
    let count = counted(told.trail.checkpoints.len(), "checkpoint", "checkpoints");
    findings.verdict(false, || format!("{count}, {} re-hashed", bytes_for_people(bytes)))
}

fn claim(store: &Store, objects: &Objects, product: &Product) -> Result<(), Claim> {
    let (sha256, size) = hash(store, objects, product.oid).map_err(Claim::Fault)?;
    if sha256 != product.sha256 || size != product.size {
        return Err(Claim::Other(sha256, product.sha256));
    }
    Ok(())
}

/// Why a blob does not hold what an entry says.
#[derive(Debug, thiserror::Error)]
enum Claim {
    #[error("{0}")]
    Fault(Fault),
    #[error("it hashes to {}, not to {}", .0.short(), .1.short())]
    Other(Digest, Digest),
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
