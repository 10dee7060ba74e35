//! The gate for everything that takes bytes out of a run or relies on it.
//!
//! The gate refuses what `verify` calls TAMPERED or UNTRUSTED. The run need not be sealed,
//! anchored, complete or green. Product bytes are hashed here if the caller relies on the whole
//! run. Otherwise they are hashed when they are copied.

use std::collections::BTreeSet;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Entry;
use crate::model::format;
use crate::model::name::RunId;

use super::codes::Code;
use super::findings::Verdict;
use super::reader::Link;
use super::signature::{HOW_TO_KNOW, Signature};
use super::{AtHand, Case, Error, Evidence, Options, Report, Standing, State, Verified, anchor};

/// The settings of the gate.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    /// The repository of the run.
    pub store: &'a Store,
    /// The logs and anchors to compare the run with.
    pub at_hand: &'a AtHand<'a>,
    /// The verifier's options.
    pub options: &'a Options,
    /// True if a distrusted key is accepted. A contradiction is never accepted.
    pub accept_untrusted: bool,
}

/// A run that passed the gate, as of one commit of its chain, wherever its ref points now.
#[derive(Clone, Debug)]
pub struct GatedRun {
    /// The run.
    pub run: RunId,
    /// The ref that was read.
    pub reference: String,
    /// The entries, oldest first.
    pub entries: Vec<VerifiedEntry>,
    /// Warnings about its signers, and about anchors that could not be asked, a line each.
    pub cautions: Vec<String>,
    /// The fingerprints of the keys that signed it and that the verifier does not know.
    pub strangers: Vec<String>,
}

/// A verified entry, and its commit.
#[derive(Clone, Debug)]
pub struct VerifiedEntry {
    /// The commit.
    pub commit: Oid,
    /// The tree of the commit.
    pub tree: Oid,
    /// The leaf hash.
    pub hash: Digest,
    /// The entry.
    pub entry: Entry,
}

impl Gate<'_> {
    /// Admits a run without contradictions or distrusted keys.
    pub fn admit(&self, run: &RunId, reference: &str) -> Result<Verified<GatedRun>, Barred> {
        Ok(self.verify_run(run, reference, false)?.0)
    }

    /// Admits a run like [`Gate::admit`], and hashes the products that are here.
    ///
    /// For callers that rely on a run without copying its products, so that nothing else would hash
    /// them.
    pub fn admit_whole(&self, run: &RunId, reference: &str) -> Result<Verified<GatedRun>, Barred> {
        Ok(self.verify_run(run, reference, true)?.0)
    }

    /// Admits only an intact run: sealed, in a log at hand, and complete.
    pub fn admit_intact(&self, run: &RunId, reference: &str) -> Result<Verified<GatedRun>, Barred> {
        let (admitted, report) = self.verify_run(run, reference, true)?;
        if report.intact { Ok(admitted) } else { Err(Barred::NotIntact(Box::new(report))) }
    }

    /// Admits a run like [`Gate::admit_intact`] if all bytes are here and all keys are known.
    ///
    /// For a run that becomes part of another one, where no warning would reach a reader.
    pub fn admit_unreserved(&self, run: &RunId, reference: &str) -> Result<Verified<GatedRun>, Barred> {
        let (admitted, report) = self.verify_run(run, reference, true)?;
        let whole = report.rows.content.state == State::Ok;
        let known = admitted.strangers.is_empty() && admitted.cautions.is_empty();
        if report.intact && whole && known { Ok(admitted) } else { Err(Barred::NotIntact(Box::new(report))) }
    }

    fn verify_run(&self, run: &RunId, reference: &str, whole: bool) -> Result<(Verified<GatedRun>, Report), Barred> {
        let case = Case::open(self.store, run, reference, self.options).map_err(|error| {
            let own_key = self.options.own_key.as_deref();
            self.at_hand.logs.remember(error, run, reference, own_key)
        })?;
        let mut anchor = anchor::row(&case, self.at_hand);
        let mut evidence = Evidence::gather(&case, anchor.held_since());
        let strangers = evidence.signature.signers.iter().filter(|signer| !signer.trusted);
        let strangers = strangers.map(|signer| signer.fingerprint.clone()).collect();
        let mut cautions = Vec::new();
        let logged = anchor.anchored.first().is_some_and(|local| local.standing == Standing::Holds);
        if anchor.is_missing() && logged {
            // A run that did not reach an external anchor yet is as good as before the anchor
            // existed.
            if whole || anchor.anchored.iter().any(|one| one.standing == Standing::Unreachable) {
                cautions.push(format!("the run {:?} is not anchored outside: {}", run.as_str(), anchor.verdict.detail));
            }
            anchor.verdict = Verdict::ok(anchor.verdict.detail);
        }
        // Our own run is meant, whatever a copy elsewhere came to.
        let is_own =
            !reference.starts_with(format::FETCHED_REFS) && anchor.verdict.codes == BTreeSet::from([Code::DrivenTwice]);
        if is_own {
            cautions.push(anchor.verdict.detail.clone());
            anchor.verdict = Verdict::ok(anchor.verdict.detail);
        }
        let conflict = anchor.is_conflict().then(|| anchor.verdict.detail.clone());
        if let (Some(why), true) = (&conflict, self.accept_untrusted) {
            cautions.push(format!("the run {:?} was accepted although another has its id: {why}", run.as_str()));
        }
        let distrust = evidence.signature.is_distrust() && !self.accept_untrusted;
        cautions.extend(caution(run, &mut evidence.signature, self.accept_untrusted));
        let judged = evidence.conclude(&case, anchor, whole);
        let tampered = judged.is_tampered();
        let report = judged.report();
        let row = report.rows.iter().find(|row| row.codes.iter().any(|code| code.contradicts() || code.is_distrust()));
        let what = row.map_or_else(String::new, |row| format!("{}: {}", row.name, row.detail));
        if tampered {
            return Err(Barred::Tampered { report: Box::new(report), what });
        }
        if distrust {
            return Err(Barred::Untrusted { report: Box::new(report), what });
        }
        if let (Some(reason), false) = (conflict, self.accept_untrusted) {
            return Err(Barred::Conflict { report: Box::new(report), what: reason });
        }
        // Such a chain could not be read to its first entry, because objects are missing.
        if case.chain.cut || case.chain.links.is_empty() {
            return Err(Barred::NotIntact(Box::new(report)));
        }
        let entries = case
            .chain
            .links
            .into_iter()
            .map(|Link { commit, tree, hash, entry, .. }| VerifiedEntry { commit, tree, hash, entry })
            .collect();
        let run = GatedRun { run: run.clone(), reference: reference.to_owned(), entries, cautions, strangers };
        Ok((Verified::new(run), report))
    }
}

/// Accepts distrusted keys if `accept_untrusted` is true; returns a warning about the keys.
fn caution(run: &RunId, signature: &mut Signature, accept_untrusted: bool) -> Option<String> {
    let (run, row) = (run.as_str(), &signature.verdict);
    if signature.is_distrust() && accept_untrusted {
        let caution = format!("the run {run:?} is not trusted, but was accepted: {}", row.detail);
        signature.verdict = Verdict::not_applicable(row.detail.clone());
        return Some(caution);
    }
    let unknown = signature.signers.iter().filter(|signer| !signer.trusted);
    let unknown: Vec<&str> = unknown.map(|signer| signer.fingerprint.as_str()).collect();
    let caution = format!("the run {run:?} is signed with {}, not known to you; {HOW_TO_KNOW}", unknown.join(", "));
    Some(caution).filter(|_| !unknown.is_empty() && row.state != State::Failed)
}

errors! {
    /// A reason why a run did not pass.
    #[derive(Debug, thiserror::Error)] pub enum Barred;
    Tampered { report: Box<Report>, what: String } "tampered" 3:
        "the run {:?} does not verify, so nothing is taken from it: {what}" [report.run];
    Untrusted { report: Box<Report>, what: String } "untrusted" 3:
        "the run {:?} is not trusted, so nothing is taken from it: {what}" [report.run];
    Conflict { report: Box<Report>, what: String } "conflict" 3:
        "another run has the id of the run {:?}, so nothing is taken from it: {what}" [report.run];
    NotIntact(Box<Report>) "not-intact": "the run {:?} does not verify: {}" [.0.run, .0.headline];
    #[from] Verify(Error);
}
