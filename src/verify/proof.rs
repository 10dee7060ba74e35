//! Checks a proof, with nothing else at hand.

use std::collections::BTreeMap;

use crate::git::codec::{self, Decoded};
use crate::merkle::{self, Head};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, Outcome, RunSubmitted};
use crate::model::format::{self, leaf_hash};
use crate::model::plan::ProductKey;
use crate::model::proof::{Leaf, Proof, SCHEMA};

use super::anchor::{Anchor, Facts};
use super::findings::{Findings, Verdict};
use super::report::{Claim, Failure, Guarantee, ROWS, Report, Row, State};
use super::signature::{self, Signature};
use super::witness::{Ask, Seal};
use super::{Options, anchor, story};

/// Digest and size of the bytes that are said to be the product.
pub type Bytes = (Digest, u64);

/// Reports on a proof; `bytes` are those of the product, where somebody has them.
///
/// A proof shows single entries and that they stand in a run that somebody sealed; what needs the whole run stays open.
pub fn verify_proof(proof: &Proof, bytes: Option<Bytes>, options: &Options, ask: Ask<'_>) -> Report {
    let (first, last) = (Ends::read(&proof.first.commit), Ends::read(&proof.last.commit));
    let shown: Vec<Result<Shown<'_>, String>> = proof.shown.iter().map(Shown::read).collect();
    let chain = chain(proof, &first, &last, &shown);
    let root = root(proof, &first, &last, &shown);
    let Signature { verdict: signature, signers, distrust } = signatures(&first, &last, options);
    let content = content(proof, bytes);
    let rest = || Verdict::not_applicable("a proof shows single entries; this needs the run");
    let plan = plan(&first, options);
    let Anchor { verdict: anchor, missing, anchored, times } = anchors(proof, &first, &last, (options, ask));
    let verdicts = [chain, root, signature, anchor, rest(), plan, rest(), content];
    let failed = |at: usize| verdicts[at].state == State::Failed;
    let order = [
        (failed(0), Failure::Chain),
        (missing, Failure::AnchorMissing),
        (failed(1) || (failed(3) && !missing), Failure::Root),
        (failed(2), Failure::Signature),
        (failed(5), Failure::Plan),
        (failed(7), Failure::Content),
    ];
    let failure = order.into_iter().find(|(failed, _)| *failed).map(|(_, failure)| failure);
    let only_distrusted = distrust && [0, 1, 3, 5, 7].into_iter().all(|at| !failed(at));
    let only_missing = missing && [0, 1, 2, 5, 7].into_iter().all(|at| !failed(at));
    let submitted = first.submitted();
    let sealed = matches!(last.entry().map(|entry| &entry.event), Some(Event::RunSealed(_)));
    let pinned = [&first, &last].iter().any(|end| end.entry().is_some_and(|entry| entry.pinned));
    let mut verdicts = verdicts.into_iter().zip(ROWS);
    Report {
        run: proof.run.to_string(),
        sealed,
        intact: failure.is_none(),
        claim: Claim::TamperDetecting,
        guarantee: Guarantee::strongest(&anchored),
        failure,
        headline: match failure {
            None => "PROVEN",
            Some(_) if only_distrusted => "UNTRUSTED",
            Some(_) if only_missing => "NOT ANCHORED",
            Some(_) => "NOT PROVEN",
        },
        entries: proof.entries,
        root: Some(proof.root),
        plan: submitted.map(|e| e.plan),
        base: submitted.map(|e| e.base),
        actor: submitted.and(first.entry()).map(|entry| entry.actor.clone()),
        rows: std::array::from_fn(|_| {
            let (verdict, name) = verdicts.next().expect("there are as many verdicts as rows");
            Row { name, state: verdict.state, detail: verdict.detail }
        }),
        signers,
        anchors: anchored,
        times,
        sandbox: BTreeMap::new(),
        pinned_clock: pinned,
    }
}

/// An entry that came as a commit.
struct Ends(Result<(Box<Decoded>, Result<String, String>), String>);

impl Ends {
    fn read(commit: &str) -> Self {
        Self(codec::decode(commit.as_bytes()).map_err(|e| e.to_string()).map(|decoded| {
            let signer = story::signer(&decoded);
            (Box::new(decoded), signer)
        }))
    }

    fn entry(&self) -> Option<&Entry> {
        self.0.as_ref().ok().map(|(decoded, _)| &decoded.entry)
    }

    fn hash(&self) -> Option<Digest> {
        self.0.as_ref().ok().map(|(decoded, _)| decoded.hash)
    }

    fn submitted(&self) -> Option<&RunSubmitted> {
        match self.entry().map(|entry| &entry.event) {
            Some(Event::RunSubmitted(e)) => Some(e),
            _ => None,
        }
    }
}

/// An entry that came as JSON.
struct Shown<'a> {
    entry: Entry,
    hash: Digest,
    leaf: &'a Leaf,
}

impl<'a> Shown<'a> {
    fn read(leaf: &'a Leaf) -> Result<Self, String> {
        let bytes = format::canonical(&leaf.entry);
        let entry = Entry::parse(&bytes).map_err(|e| e.to_string())?;
        Ok(Self { entry, hash: leaf_hash(&bytes), leaf })
    }
}

/// What is shown is what the proof says it is.
fn chain(proof: &Proof, first: &Ends, last: &Ends, shown: &[Result<Shown<'_>, String>]) -> Verdict {
    let mut findings = Findings::default();
    if proof.schema != SCHEMA {
        findings.add(format!("the proof is of schema {:?}, not {SCHEMA}", proof.schema));
    }
    for (what, end) in [("first", first), ("last", last)] {
        match &end.0 {
            Err(why) => findings.add(format!("the {what} entry: {why}")),
            Ok((decoded, _)) if decoded.entry.about.run() != Some(&proof.run) => {
                findings.add(format!("the {what} entry is of another run, {:?}", decoded.entry.about.to_string()));
            }
            Ok(_) => {}
        }
    }
    if first.entry().is_some_and(|entry| entry.seq != 0) || (first.0.is_ok() && first.submitted().is_none()) {
        findings.add("the first entry is not run.submitted".to_owned());
    }
    let mut entries = Vec::new();
    for one in shown {
        match one {
            Err(why) => findings.add(format!("an entry that is shown: {why}")),
            Ok(one) if one.entry.about.run() != Some(&proof.run) => {
                findings.add(format!("entry {} is of another run, {:?}", one.entry.seq, one.entry.about.to_string()));
            }
            Ok(one) => entries.push(&one.entry),
        }
    }
    if findings.first().is_none()
        && let Err(why) = subject(proof, &entries)
    {
        findings.add(why.to_owned());
    }
    findings.verdict(false, || match &proof.since {
        Some(since) => format!("entries 0 to {} stand unchanged", since.entries.saturating_sub(1)),
        None => {
            format!("{} of {} entries shown, in canonical form", entries.len() + 2, proof.entries.saturating_add(1))
        }
    })
}

/// Holds the entries against what the proof is about.
fn subject(proof: &Proof, entries: &[&Entry]) -> Result<(), &'static str> {
    let Some(item) = &proof.item else {
        return if proof.since.is_some() && entries.is_empty() && proof.product.is_none() {
            Ok(())
        } else {
            Err("the proof is about nothing")
        };
    };
    let [fired, ended] = entries else { return Err("a dispatch and an end are to be shown, and nothing else") };
    let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.event, &ended.event) else {
        return Err("what is shown is not a dispatch and an end");
    };
    if dispatch.item != *item || end.item != *item || dispatch.attempt != end.attempt || fired.seq >= ended.seq {
        return Err("what is shown is not one attempt of the item");
    }
    if end.status != Outcome::Done {
        return Err("the item is not done");
    }
    match &proof.product {
        Some(handed) if end.products.get(&handed.key) != Some(&handed.is) => {
            Err("the item did not hand over what the proof says")
        }
        _ => Ok(()),
    }
}

/// What is shown stands under one root, and that root is the sealed one.
fn root(proof: &Proof, first: &Ends, last: &Ends, shown: &[Result<Shown<'_>, String>]) -> Verdict {
    let mut findings = Findings::default();
    let mut under = |what: &str, seq: u64, hash: Digest, path: &[Digest]| {
        if !merkle::includes(proof.root, proof.entries, seq, hash, path) {
            findings.add(format!("{what} is not under the root {}", proof.root.short()));
        }
    };
    if let Some(hash) = first.hash() {
        under("entry 0", 0, hash, proof.first.path.as_deref().unwrap_or_default());
    }
    for one in shown.iter().flatten() {
        under(&format!("entry {}", one.entry.seq), one.entry.seq, one.hash, &one.leaf.path);
    }
    let end = last.entry().zip(last.hash());
    if let (Some((entry, hash)), Some(path)) = (end, &proof.last.path) {
        under(&format!("entry {}", entry.seq), entry.seq, hash, path);
    }
    let mut held = "of a run that goes on";
    match (end.map(|(entry, _)| (entry.seq, &entry.event)), &proof.last.path) {
        (Some((seq, Event::RunSealed(seal))), None) => {
            if (seal.root, seal.entries, seq) != (proof.root, proof.entries, proof.entries) {
                findings.add(format!("the seal says root {}, {} entries", seal.root.short(), seal.entries));
            }
            held = "= sealed root";
        }
        (Some((seq, _)), Some(_)) if proof.since.is_some() && Some(seq) == proof.entries.checked_sub(1) => {}
        (Some(_), _) => findings.add("the last entry is not the seal".to_owned()),
        (None, _) => findings.add("the last entry cannot be read".to_owned()),
    }
    if let Some(since) = &proof.since {
        let old = Head { size: since.entries, root: since.root };
        let new = Head { size: proof.entries, root: proof.root };
        if !merkle::extends(old, new, &since.path) {
            findings.add(format!("the root {} does not go on from {}", new.root.short(), old.root.short()));
        }
    }
    findings.verdict(false, || match &proof.since {
        Some(since) => format!("merkle {} {held}, goes on from {}", proof.root.short(), since.root.short()),
        None => format!("merkle {} {held}", proof.root.short()),
    })
}

fn signatures(first: &Ends, last: &Ends, options: &Options) -> Signature {
    let writers = first.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    let signed = [first, last].into_iter().filter_map(|end| end.0.as_ref().ok());
    let signed = signed.map(|(decoded, signer)| signature::Signed {
        seq: decoded.entry.seq,
        at: decoded.entry.at,
        signer: signer.as_deref(),
    });
    signature::judge(signed, Some(writers), options, None)
}

/// Asks the places outside about the seal that the proof shows.
fn anchors(proof: &Proof, first: &Ends, last: &Ends, (options, ask): (&Options, Ask<'_>)) -> Anchor {
    let submitted = first.submitted();
    let format = submitted.map_or("sha1", |e| e.object_format.as_str());
    let kind = if format == "sha256" { gix::hash::Kind::Sha256 } else { gix::hash::Kind::Sha1 };
    let commit = gix::objs::compute_hash(kind, gix::objs::Kind::Commit, proof.last.commit.as_bytes()).ok().map(Oid);
    let seal = match (last.entry().map(|entry| &entry.event), last.hash(), commit) {
        (Some(Event::RunSealed(_)), Some(seal), Some(commit)) => {
            Some(Seal { root: proof.root, entries: proof.entries, seal, commit })
        }
        _ => None,
    };
    let writers = submitted.map(|e| e.writers.as_slice()).unwrap_or_default();
    let facts = Facts { run: &proof.run, first: first.hash(), seal, writers, known: &options.known_keys() };
    anchor::of_proof(&facts, ask, format)
}

fn plan(first: &Ends, options: &Options) -> Verdict {
    let Some(submitted) = first.submitted() else {
        return Verdict::not_applicable("there is no entry 0 that names a plan");
    };
    let mut findings = Findings::default();
    super::plan::check_asked(submitted, options, &mut findings);
    if findings.first().is_some() {
        return findings.verdict(false, String::new);
    }
    Verdict::not_applicable("named by entry 0; this needs the run")
}

fn content(proof: &Proof, bytes: Option<Bytes>) -> Verdict {
    let key = |key: &ProductKey| key.to_string();
    match (&proof.product, bytes) {
        (Some(handed), Some((digest, size))) if (digest, size) == (handed.is.sha256, handed.is.size) => Verdict::ok(
            format!("the file is {} of {}", key(&handed.key), proof.item.as_ref().map_or("", |i| i.as_str())),
        ),
        (Some(handed), Some((digest, _))) => Verdict::failed(format!(
            "the file hashes to {}, {} is {}",
            digest.short(),
            key(&handed.key),
            handed.is.sha256.short()
        )),
        (Some(handed), None) => Verdict::not_applicable(format!("{} is {}", key(&handed.key), handed.is.sha256)),
        (None, Some(_)) => Verdict::failed("the proof names no product that a file could be"),
        (None, None) => Verdict::not_applicable("the proof names no product"),
    }
}
