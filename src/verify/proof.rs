//! Verifies a proof without a repository.
//!
//! The entries in a proof are bound to one root, and the root to a seal. Only the signature of the
//! seal vouches for the root.

mod admission;
mod decisions;
mod entries;
mod item_proof;
mod subject;

use crate::git::store;
use crate::ledger::merkle::{self, TreeHead};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, Outcome};
use crate::model::item_state::Phase;
use crate::model::outcomes::Outcomes;
use crate::model::proof::{Proof, SCHEMA};
use crate::model::role::Keys;
use crate::model::time::Moment;

use super::anchor::{self, Anchor};
use super::clock_skew;
use super::codes::Rows;
use super::findings::{Findings, Verdict};
use super::protected::ProtectedItem;
use super::report::{CONFLICT, MISMATCH, Report, Since, UNKNOWN_KEY, Verdicts};
use super::same_id::SameId;
use super::signature::{self, Signature, Signed, Writers};
use super::witness::{AtHand, Seal};
use super::{Options, State};
use entries::{JsonEntry, SignedCommit};
pub(super) use item_proof::{ItemProof, read_item_proof};

/// The evidence to compare a proof with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// The digest and size of a file that is claimed to be the product.
    pub file: Option<(Digest, u64)>,
    /// The earlier root that the verifier noted.
    pub since_root: Option<Digest>,
}

/// Verifies a proof.
///
/// A proof shows single entries of a sealed run. The rows that need the whole run stay open.
pub fn verify_proof(proof: &Proof, context: Beside, options: &Options, at_hand: &AtHand<'_>) -> Report {
    let evidence = Revealed::read(proof);
    let mut anchor = evidence.anchors(options, at_hand);
    let ends = evidence.first.entry().zip(evidence.last.entry());
    let dates = ends.map(|(first, last)| clock_skew::dates_of_entries(first, last, true));
    clock_skew::note_contradictions(&mut anchor, dates, options.now);
    let signature = evidence.signatures(options, anchor.held_since());
    let rest =
        Rows::default().map(|_, &()| Verdict::not_applicable("a proof shows single entries; this needs the run"));
    let signer = evidence.first.signer().map(str::to_owned);
    let first = evidence.first.decoded().map(|first| first.hash);
    let verdicts = Verdicts {
        rows: Rows {
            chain: evidence.chain(),
            root: evidence.root(context.since_root),
            signature: signature.verdict,
            anchor: anchor.verdict,
            plan: evidence.plan(options),
            content: subject::content(proof, context.file),
            ..rest
        },
        claims: Report {
            signers: signature.signers,
            anchors: anchor.anchored,
            times: anchor.times,
            outcome: evidence.outcome(),
            same_id: SameId::new(signer, first, anchor.others),
            ..evidence.claims()
        },
    };
    let report = verdicts.report();
    let headline = match report.headline {
        UNKNOWN_KEY => "PROVEN · unknown key",
        _ if report.intact => "PROVEN",
        "NOT ANCHORED" | "UNTRUSTED" | MISMATCH | CONFLICT => report.headline,
        _ => "NOT PROVEN",
    };
    let since = proof.since.as_ref().map(|since| Since {
        head: TreeHead { size: since.entries, root: since.root },
        known: context.since_root == Some(since.root),
    });
    Report { headline, since, ..report }
}

struct Revealed<'p> {
    proof: &'p Proof,
    first: SignedCommit,
    /// The admission of the key that sealed, if the proof holds one.
    admitted: Option<SignedCommit>,
    last: SignedCommit,
    json_entries: Vec<Result<JsonEntry<'p>, String>>,
}

impl<'p> Revealed<'p> {
    fn read(proof: &'p Proof) -> Self {
        let (first, last) = (SignedCommit::read(&proof.first.commit), SignedCommit::read(&proof.last.commit));
        let admitted = proof.admitted.as_ref().map(|admitted| SignedCommit::read(&admitted.commit));
        Self { proof, first, admitted, last, json_entries: proof.shown.iter().map(JsonEntry::read).collect() }
    }

    /// Returns the readable entries in order, with the admission in its place.
    fn entries(&self) -> impl Iterator<Item = (&Entry, Digest)> {
        let revealed =
            || self.json_entries.iter().flatten().map(|revealed_entry| (&revealed_entry.entry, revealed_entry.hash));
        let admitted = self.admitted.as_ref().and_then(SignedCommit::hashed);
        let is_before =
            move |(entry, _): &(&Entry, Digest)| admitted.is_some_and(|(admitted, _)| entry.seq < admitted.seq);
        let ordered = revealed().take_while(is_before).chain(admitted).chain(revealed().skip_while(is_before));
        self.first.hashed().into_iter().chain(ordered).chain(self.last.hashed())
    }

    /// Returns a report with the claims of the entries, and no verdict yet.
    fn claims(&self) -> Report {
        let submitted = self.first.submitted();
        Report {
            run: self.proof.run.to_string(),
            sealed: self.last.sealed().is_some(),
            entries: self.proof.entries,
            root: Some(self.proof.root),
            plan: submitted.map(|e| e.plan.sha256),
            rules: submitted.and_then(|e| Some(e.rules?.sha256)),
            pipelines: submitted
                .into_iter()
                .flat_map(|e| &e.pipelines)
                .map(|(name, is)| (name.clone(), is.sha256))
                .collect(),
            base: submitted.map(|e| e.base),
            actor: submitted.and(self.first.entry()).map(|entry| entry.actor.clone()),
            pinned_clock: self.entries().any(|(entry, _)| entry.pinned),
            continues: submitted.and_then(|e| e.continues.clone()),
            decisions: self.decisions(),
            protected: self.protected(),
            ..Report::default()
        }
    }

    fn protected(&self) -> Vec<ProtectedItem> {
        let ends = self.json_entries.iter().flatten().filter_map(|revealed| match &revealed.entry.event {
            Event::ItemReconciled(end) => ProtectedItem::from_entry(end)
                .map(|item| ProtectedItem { allowed_by: item.allowed.then(|| revealed.entry.actor.clone()), ..item }),
            _ => None,
        });
        ends.collect()
    }

    fn outcome(&self) -> Option<Outcomes> {
        let ends = self.json_entries.iter().flatten().find_map(|revealed| match &revealed.entry.event {
            Event::ItemReconciled(end) => Some((end.status, end.is_red(), end.grade)),
            Event::ItemDecided(end) => Some((end.status, end.is_red(), None)),
            _ => None,
        });
        let (status, red, grade) = ends.filter(|_| self.proof.item.is_some())?;
        let mut outcome = Outcomes::default();
        outcome.add(if status == Outcome::Done { Phase::Done } else { Phase::Failed }, red);
        outcome.claimed = u64::from(grade.is_some());
        Some(outcome)
    }

    /// Checks that the entries are what the proof says.
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
        for revealed in &self.json_entries {
            if let Err(why) = revealed {
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

    /// Checks that the entries are of the run, in order, and linked if they are neighbours.
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

    /// Checks that all entries are under the sealed root, and that it extends the root that the
    /// verifier knows.
    fn root(&self, known: Option<Digest>) -> Verdict {
        let proof = self.proof;
        let mut findings = Findings::default();
        let mut under = |seq: u64, hash: Digest, path: &[Digest]| {
            if !merkle::includes(proof.root, proof.entries, seq, hash, path) {
                findings.add(format!("entry {seq} is not under the root {}", proof.root.short()));
            }
        };
        for revealed in self.json_entries.iter().flatten() {
            under(revealed.entry.seq, revealed.hash, &revealed.leaf.path);
        }
        if let (Some(admitted), Some(entry)) = (&proof.admitted, self.admitted.as_ref().and_then(SignedCommit::decoded))
        {
            under(entry.entry.seq, entry.hash, admitted.path.as_deref().unwrap_or_default());
        }
        match (self.first.decoded(), &proof.first.path) {
            (Some(first), Some(path)) => under(0, first.hash, path),
            (Some(_), None) => findings.add("entry 0 has no path to the root".to_owned()),
            (None, _) => findings.add("the first entry cannot be read".to_owned()),
        }
        if proof.last.path.is_some() {
            findings.add("the last entry has a path, but a seal is not under its own root".to_owned());
        }
        match (self.last.entry(), self.last.sealed()) {
            (Some(entry), Some(seal)) => {
                if (seal.root, entry.seq) != (proof.root, proof.entries) {
                    findings.add(format!("the seal is entry {} and says root {}", entry.seq, seal.root.short()));
                }
            }
            _ => findings.add("the proof shows no seal".to_owned()),
        }
        let from = self.goes_on(known, &mut findings);
        findings.verdict(false, || format!("merkle {} = sealed root{from}", proof.root.short()))
    }

    /// Compares the earlier state with the root and with the one that the verifier knows; returns a
    /// note.
    fn goes_on(&self, known: Option<Digest>, findings: &mut Findings) -> String {
        let Some(since) = &self.proof.since else {
            if let Some(known) = known {
                findings.add(format!("the proof is not about an earlier root, but you gave {known}"));
            }
            return String::new();
        };
        let old = TreeHead { size: since.entries, root: since.root };
        let new = TreeHead { size: self.proof.entries, root: self.proof.root };
        if !merkle::extends(old, new, &since.path) {
            findings.add(format!("the root {} does not extend {}", new.root.short(), old.root.short()));
        }
        match known {
            Some(known) if known != since.root => {
                findings.add(format!("it extends {}, but you gave {known}", since.root));
                String::new()
            }
            Some(_) => format!(", extends the root that you gave, over {} entries", since.entries),
            None => {
                let (root, entries) = (since.root, since.entries);
                format!(", extends {root} over {entries} entries: compare it with the root that you noted")
            }
        }
    }

    fn signatures(&self, options: &Options, held_since: Option<Moment>) -> Signature {
        let keys = self.first.submitted().map(Keys::from_submitted).unwrap_or_default();
        let writers = Writers::of_run(&self.proof.run, keys, self.first.decoded().map(|first| first.hash));
        let signed = self.ends().filter_map(|end| end.0.as_ref().ok());
        let signed = signed.map(|(decoded, signer)| Signed {
            seq: decoded.entry.seq,
            at: decoded.entry.at,
            signer: signer.as_deref(),
            event: Some(&decoded.entry.event),
            verified_before: false,
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

    fn anchors(&self, options: &Options, at_hand: &AtHand<'_>) -> Anchor {
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
        let facts = anchor::Known {
            run,
            first,
            seal,
            writers: &writers,
            keys: &known,
            at: None,
            signer,
            options,
            deleted: None,
        };
        let kind = self.object_kind().unwrap_or(gix::hash::Kind::Sha1);
        anchor::of_proof(&facts, at_hand, store::object_format(kind))
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
