//! Checks a proof, with nothing else at hand.
//!
//! Whatever a proof shows is bound to one root, and that root to a seal that one of the run's writers signed: nothing else signs a root.

mod admitted;
mod decided;
mod sealed;
mod shown;

use std::collections::BTreeMap;

use crate::ledger::merkle::{self, TreeHead};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, Outcome};
use crate::model::item_state::Phase;
use crate::model::name::ItemId;
use crate::model::outcomes::Outcomes;
use crate::model::plan::ProductKey;
use crate::model::proof::{Proof, SCHEMA};
use crate::model::role::Keys;
use crate::model::time::Moment;

use super::anchor::{self, Anchor};
use super::dated;
use super::facts::Facts;
use super::findings::{Findings, Verdict};
use super::report::{CONFLICT, MISMATCH, Report, Since, UNKNOWN_KEY, Verdicts};
use super::rows::Rows;
use super::signature::{self, Signature, Signed, Writers};
use super::witness::{AtHand, Seal};
use super::{Options, State};
pub(super) use sealed::{Sealed, sealed};
use shown::{End, Shown};

/// What the verifier holds a proof against, besides whom he trusts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Digest and size of the bytes that are said to be the product.
    pub file: Option<(Digest, u64)>,
    /// The root that the run is said to have gone on from, as the verifier noted it.
    pub since_root: Option<Digest>,
}

/// Reports on a proof.
///
/// A proof shows single entries and that they stand in a run that somebody sealed; what needs the whole run stays open.
pub fn verify_proof(proof: &Proof, beside: Beside, options: &Options, at_hand: &AtHand<'_>) -> Report {
    let evidence = Revealed::read(proof);
    let mut anchor = evidence.anchors(options, at_hand);
    let ends = evidence.first.entry().zip(evidence.last.entry());
    dated::note(&mut anchor, ends.map(|ends| dated::between(ends, true)), options.now);
    let signature = evidence.signatures(options, anchor.held_since());
    let rest =
        Rows::default().map(|_, &()| Verdict::not_applicable("a proof shows single entries; this needs the run"));
    let judged = Verdicts {
        rows: Rows {
            chain: evidence.chain(),
            root: evidence.root(beside.since_root),
            signature: signature.verdict,
            anchor: anchor.verdict,
            plan: evidence.plan(options),
            content: content(proof, beside.file),
            ..rest
        },
        signers: signature.signers,
        missing_anchor: anchor.missing,
        anchored: anchor.anchored,
        times: anchor.times,
        sandbox: BTreeMap::new(),
        outcome: evidence.outcome(),
        others: anchor.others,
    };
    let report = judged.report(evidence.facts(), signature.distrust);
    let headline = match report.headline {
        UNKNOWN_KEY => "PROVEN · unknown key",
        _ if report.intact => "PROVEN",
        "NOT ANCHORED" | "UNTRUSTED" | MISMATCH | CONFLICT => report.headline,
        _ => "NOT PROVEN",
    };
    let since = proof.since.as_ref().map(|since| Since {
        head: TreeHead { size: since.entries, root: since.root },
        known: beside.since_root == Some(since.root),
    });
    Report { headline, since, ..report }
}

/// What a proof shows, as far as it can be read.
struct Revealed<'p> {
    proof: &'p Proof,
    first: End,
    /// The admission of the key that sealed, where the proof shows one.
    admitted: Option<End>,
    last: End,
    shown: Vec<Result<Shown<'p>, String>>,
}

impl<'p> Revealed<'p> {
    fn read(proof: &'p Proof) -> Self {
        let (first, last) = (End::read(&proof.first.commit), End::read(&proof.last.commit));
        let admitted = proof.admitted.as_ref().map(|admitted| End::read(&admitted.commit));
        Self { proof, first, admitted, last, shown: proof.shown.iter().map(Shown::read).collect() }
    }

    /// Returns the entries that could be read, in the order in which they are shown, with the admission in its place.
    fn entries(&self) -> impl Iterator<Item = (&Entry, Digest)> {
        let shown = || self.shown.iter().flatten().map(|shown| (&shown.entry, shown.hash));
        let admitted = self.admitted.as_ref().and_then(End::hashed);
        let is_before =
            move |(entry, _): &(&Entry, Digest)| admitted.is_some_and(|(admitted, _)| entry.seq < admitted.seq);
        let shown = shown().take_while(is_before).chain(admitted).chain(shown().skip_while(is_before));
        self.first.hashed().into_iter().chain(shown).chain(self.last.hashed())
    }

    fn facts(&self) -> Facts {
        let submitted = self.first.submitted();
        Facts {
            run: self.proof.run.to_string(),
            remote: None,
            sealed: self.last.sealed().is_some(),
            entries: self.proof.entries,
            root: Some(self.proof.root),
            so_far: None,
            plan: submitted.map(|e| e.plan),
            rules: submitted.and_then(|e| e.rules),
            pipelines: submitted.map(|e| e.pipelines.clone()).unwrap_or_default(),
            blocks: Vec::new(),
            base: submitted.map(|e| e.base),
            actor: submitted.and(self.first.entry()).map(|entry| entry.actor.clone()),
            pinned_clock: self.entries().any(|(entry, _)| entry.pinned),
            continues: submitted.and_then(|e| e.continues.clone()),
            decisions: self.decisions(),
            begun: (self.first.signer().map(str::to_owned), self.first.decoded().map(|first| first.hash)),
        }
    }

    /// Returns how the item came out that the proof is about; the end of its attempt says it.
    fn outcome(&self) -> Option<Outcomes> {
        let ends = self.shown.iter().flatten().find_map(|shown| match &shown.entry.event {
            Event::ItemReconciled(end) => Some((end.status, end.is_red())),
            Event::ItemDecided(end) => Some((end.status, end.is_red())),
            _ => None,
        });
        let (status, red) = ends.filter(|_| self.proof.item.is_some())?;
        let mut outcome = Outcomes::default();
        outcome.add(if status == Outcome::Done { Phase::Done } else { Phase::Failed }, red);
        Some(outcome)
    }

    /// What is shown is what the proof says it is.
    fn chain(&self) -> Verdict {
        let mut findings = Findings::default();
        if self.proof.schema != SCHEMA {
            findings.add(format!("the proof is of schema {:?}, not {SCHEMA}", self.proof.schema));
        }
        for (what, end, parents) in [("first", &self.first, 0), ("last", &self.last, 1)] {
            match &end.0 {
                Err(why) => findings.add(format!("the {what} entry: {why}")),
                Ok((decoded, _)) if decoded.parents.len() != parents => {
                    findings.add(format!("the {what} entry has {} parents", decoded.parents.len()));
                }
                Ok((decoded, _)) => self.check_object_format(what, decoded, &mut findings),
            }
        }
        for shown in &self.shown {
            if let Err(why) = shown {
                findings.add(format!("an entry that is shown: {why}"));
            }
        }
        if self.first.entry().is_some_and(|entry| entry.seq != 0)
            || (self.first.0.is_ok() && self.first.submitted().is_none())
        {
            findings.add("the first entry is not run.submitted, entry 0".to_owned());
        }
        if self.last.0.is_ok() && self.last.sealed().is_none() {
            findings.add("the last entry is not the seal".to_owned());
        }
        self.check_admission(&mut findings);
        self.check_order(&mut findings);
        if findings.first().is_none()
            && let Err(why) = self.check_subject()
        {
            findings.add(why.to_owned());
        }
        let entries = self.proof.entries.saturating_add(1);
        findings.verdict(false, || format!("{} of {entries} entries shown, in canonical form", self.entries().count()))
    }

    /// The entries are of the run, follow one another, and are linked where nothing stands between them.
    fn check_order(&self, findings: &mut Findings) {
        let mut before: Option<(&Entry, Digest)> = None;
        for (entry, hash) in self.entries() {
            let seq = entry.seq;
            if entry.about.run() != Some(&self.proof.run) {
                findings.add(format!("entry {seq} is of another run, {:?}", entry.about.to_string()));
            }
            if (seq == 0) != entry.prev.is_none() {
                findings.add(format!("entry {seq} does not name the hash of the entry before it"));
            }
            if let Some((earlier, linked)) = before {
                if seq <= earlier.seq {
                    findings.add(format!("entry {seq} is shown after entry {}", earlier.seq));
                } else if entry.at < earlier.at {
                    findings.add(format!("entry {seq} is dated before entry {}", earlier.seq));
                } else if seq - earlier.seq == 1 && entry.prev != Some(linked) {
                    findings.add(format!("entry {seq} does not name the hash of the entry before it"));
                }
            }
            before = Some((entry, hash));
        }
    }

    /// The proof is about one thing, and shows just what that takes.
    fn check_subject(&self) -> Result<(), &'static str> {
        let proof = self.proof;
        match (&proof.item, &proof.since) {
            (Some(_), Some(_)) => Err("the proof is about an item and about an earlier state, which is two things"),
            (None, None) => Err("the proof is about nothing"),
            (None, Some(_)) if !self.shown.is_empty() || proof.product.is_some() => {
                Err("a proof of how the run went on shows no item's entries and no product")
            }
            (None, Some(_)) => Ok(()),
            (Some(item), None) => self.check_attempt(item),
        }
    }

    /// One decision about the item is shown, which holds.
    fn check_decision(&self, item: &ItemId, decided: &Shown<'_>) -> Result<(), &'static str> {
        let event = &decided.entry.event;
        let Event::ItemDecided(end) = event else { return Err("what is shown is not a dispatch and an end") };
        if end.item != *item || end.status != Outcome::Done {
            return Err("what is shown is not a decision that ended the item as done");
        }
        if self.proof.product.is_some() {
            return Err("what people decide about hands nothing over");
        }
        match self.statement(event) {
            Some(Err(_)) => Err("the decision is not what the key said that is to have made it"),
            _ => Ok(()),
        }
    }

    /// One attempt of the item is shown, which handed the product over; or what people decided about it.
    fn check_attempt(&self, item: &ItemId) -> Result<(), &'static str> {
        if let [Ok(decided)] = self.shown.as_slice() {
            return self.check_decision(item, decided);
        }
        let [Ok(fired), Ok(ended)] = self.shown.as_slice() else {
            return Err("a dispatch and an end are to be shown, and nothing else");
        };
        let (Event::ItemFired(dispatch), Event::ItemReconciled(end)) = (&fired.entry.event, &ended.entry.event) else {
            return Err("what is shown is not a dispatch and an end");
        };
        if dispatch.item != *item || end.item != *item || dispatch.attempt != end.attempt || dispatch.attempt == 0 {
            return Err("what is shown is not one attempt of the item");
        }
        if end.status != Outcome::Done {
            return Err("the item is not done");
        }
        match &self.proof.product {
            Some(handed) if end.products.get(&handed.key) != Some(&handed.is) => {
                Err("the item did not hand over what the proof says")
            }
            _ => Ok(()),
        }
    }

    /// What is shown stands under one root, the seal says that root, and it goes on from the one that the verifier knows.
    fn root(&self, known: Option<Digest>) -> Verdict {
        let proof = self.proof;
        let mut findings = Findings::default();
        let mut under = |seq: u64, hash: Digest, path: &[Digest]| {
            if !merkle::includes(proof.root, proof.entries, seq, hash, path) {
                findings.add(format!("entry {seq} is not under the root {}", proof.root.short()));
            }
        };
        for shown in self.shown.iter().flatten() {
            under(shown.entry.seq, shown.hash, &shown.leaf.path);
        }
        if let (Some(admitted), Some(entry)) = (&proof.admitted, self.admitted.as_ref().and_then(End::decoded)) {
            under(entry.entry.seq, entry.hash, admitted.path.as_deref().unwrap_or_default());
        }
        match (self.first.decoded(), &proof.first.path) {
            (Some(first), Some(path)) => under(0, first.hash, path),
            (Some(_), None) => findings.add("entry 0 has no path to the root".to_owned()),
            (None, _) => findings.add("the first entry cannot be read".to_owned()),
        }
        if proof.last.path.is_some() {
            findings.add("the last entry has a path, and a seal is not under the root that it says".to_owned());
        }
        match (self.last.entry(), self.last.sealed()) {
            (Some(entry), Some(seal)) => {
                if (seal.root, seal.entries, entry.seq) != (proof.root, proof.entries, proof.entries) {
                    let (root, entries) = (seal.root.short(), seal.entries);
                    findings.add(format!("the seal is entry {} and says root {root}, {entries} entries", entry.seq));
                }
            }
            _ => findings.add("there is no seal that says a root".to_owned()),
        }
        let from = self.goes_on(known, &mut findings);
        findings.verdict(false, || format!("merkle {} = sealed root{from}", proof.root.short()))
    }

    /// Holds the earlier state against the root and against what the verifier knows; returns what there is to say of it.
    fn goes_on(&self, known: Option<Digest>, findings: &mut Findings) -> String {
        let Some(since) = &self.proof.since else {
            if let Some(known) = known {
                findings.add(format!("the proof says nothing of an earlier root; you gave {known}"));
            }
            return String::new();
        };
        let old = TreeHead { size: since.entries, root: since.root };
        let new = TreeHead { size: self.proof.entries, root: self.proof.root };
        if !merkle::extends(old, new, &since.path) {
            findings.add(format!("the root {} does not go on from {}", new.root.short(), old.root.short()));
        }
        match known {
            Some(known) if known != since.root => {
                findings.add(format!("it goes on from {}, and you gave {known}", since.root));
                String::new()
            }
            Some(_) => format!(", goes on from the root that you gave, over {} entries", since.entries),
            None => {
                let (root, entries) = (since.root, since.entries);
                format!(", goes on from {root} over {entries} entries: hold it against the root that you noted")
            }
        }
    }

    fn signatures(&self, options: &Options, held_since: Option<Moment>) -> Signature {
        let keys = self.first.submitted().map(Keys::of).unwrap_or_default();
        let writers = Writers::of_run(&self.proof.run, keys, self.first.decoded().map(|first| first.hash));
        let signed = self.ends().filter_map(|end| end.0.as_ref().ok());
        let signed = signed.map(|(decoded, signer)| Signed {
            seq: decoded.entry.seq,
            at: decoded.entry.at,
            signer: signer.as_deref(),
            event: Some(&decoded.entry.event),
            vouched: false,
        });
        let mut judged = signature::judge(signed, writers, "", options, held_since);
        self.judge_decisions(&mut judged, options, held_since);
        let mut row = judged.row();
        if row.verdict.state != State::Failed {
            row.verdict.detail += &self.unsigned();
        }
        if row.signers.is_empty() && row.verdict.state != State::Failed {
            row.verdict = Verdict::not_applicable("no entry could be read");
        }
        row
    }

    /// Asks the logs at hand and the places outside about the seal that the proof shows.
    fn anchors(&self, options: &Options, at_hand: &AtHand<'_>) -> Anchor {
        let submitted = self.first.submitted();
        let format = submitted.map_or("sha1", |e| e.object_format.as_str());
        let hash =
            |kind| gix::objs::compute_hash(kind, gix::objs::Kind::Commit, self.proof.last.commit.as_bytes()).ok();
        let seal = self.last.decoded().filter(|_| self.last.sealed().is_some()).and_then(|last| {
            let commit = Oid(hash(last.tree.0.kind())?);
            Some(Seal { root: self.proof.root, entries: self.proof.entries, seal: last.hash, commit })
        });
        let writers = self.sealers();
        let first = self.first.decoded().map(|first| first.hash);
        let known = options.known_keys();
        let (run, signer) = (&self.proof.run, self.first.signer());
        let facts = anchor::Known { run, first, seal, writers: &writers, keys: &known, at: None, signer, options };
        anchor::of_proof(&facts, at_hand, format)
    }

    fn plan(&self, options: &Options) -> Verdict {
        let Some(submitted) = self.first.submitted() else {
            return Verdict::not_applicable("there is no entry 0 that names a plan");
        };
        if let Some(unexpected) = super::plan::unexpected(submitted, None, options) {
            return unexpected;
        }
        Verdict::not_applicable("named by entry 0; this needs the run")
    }
}

fn content(proof: &Proof, file: Option<(Digest, u64)>) -> Verdict {
    let key = |key: &ProductKey| key.to_string();
    match (&proof.product, file) {
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
