//! The gate in front of everything that takes bytes out of a run, or believes what it says.
//!
//! It asks what `verify` asks of integrity and keys: what would read TAMPERED or UNTRUSTED does not pass. That a run is sealed,
//! anchored, complete or green is not asked. Products are hashed again where the run is believed as a whole; what is taken alone is
//! hashed on its way out.

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Entry;
use crate::model::name::RunId;

use super::facts::Facts;
use super::findings::Verdict;
use super::reader::Link;
use super::rows::Rows;
use super::signature::HOW_TO_KNOW;
use super::{AtHand, Case, Error, Evidence, Options, Report, SignerSeen, Standing, State, anchor, content};

/// What the gate goes by.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    /// Where the run lies.
    pub store: &'a Store,
    /// What it is held against besides itself.
    pub at_hand: &'a AtHand<'a>,
    /// Whom the reader knows.
    pub options: &'a Options,
    /// Whether a key that is not to be trusted will do. What contradicts itself never does.
    pub accept_untrusted: bool,
}

/// The proof that a run passed the gate, at one commit of its chain.
///
/// There is no other way to have one. Whoever takes bytes takes them from this commit, wherever the ref points by then.
#[derive(Clone, Debug)]
pub struct Admitted {
    run: RunId,
    reference: String,
    entries: Vec<Seen>,
    cautions: Vec<String>,
    strangers: Vec<String>,
}

/// An entry that was verified, and the commit that carries it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The commit.
    pub commit: Oid,
    /// The tree after it.
    pub tree: Oid,
    /// Its leaf hash.
    pub hash: Digest,
    /// The entry.
    pub entry: Entry,
}

impl Admitted {
    /// Returns the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the ref that was looked at.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns the entries that were verified, oldest first, so that nobody has to read them again.
    pub fn entries(&self) -> &[Seen] {
        &self.entries
    }

    /// Returns what the reader should know of who signed it and who could not be asked, a line each.
    pub fn cautions(&self) -> &[String] {
        &self.cautions
    }

    /// Returns the fingerprints of the keys that signed it and that the reader does not know: what they sign is consistent, and
    /// anybody's.
    pub fn strangers(&self) -> &[String] {
        &self.strangers
    }
}

impl Gate<'_> {
    /// Lets a run pass whose integrity holds as far as it goes, by keys that are not distrusted.
    pub fn admit(&self, run: &RunId, reference: &str) -> Result<Admitted, Barred> {
        Ok(self.judge(run, reference, false)?.0)
    }

    /// Lets a run pass like [`Gate::admit`] whose products are besides what its entries say, as far as they are here.
    ///
    /// For what is believed of a run and not taken from it: what is not taken is hashed nowhere else.
    pub fn admit_whole(&self, run: &RunId, reference: &str) -> Result<Admitted, Barred> {
        Ok(self.judge(run, reference, true)?.0)
    }

    /// Lets a run pass that is intact besides: sealed, in a log at hand, with all its bytes here.
    pub fn admit_intact(&self, run: &RunId, reference: &str) -> Result<Admitted, Barred> {
        let (admitted, report) = self.judge(run, reference, true)?;
        if report.intact { Ok(admitted) } else { Err(Barred::NotIntact(Box::new(report))) }
    }

    /// Lets a run pass like [`Gate::admit_intact`] of which nothing is left to be said: all its bytes are here, and all keys are known.
    ///
    /// For what becomes part of another run, where nobody can be told.
    pub fn admit_unreserved(&self, run: &RunId, reference: &str) -> Result<Admitted, Barred> {
        let (admitted, report) = self.judge(run, reference, true)?;
        let whole = report.row("content").is_some_and(|row| row.state == State::Ok);
        let known = admitted.strangers.is_empty() && admitted.cautions.is_empty();
        if report.intact && whole && known { Ok(admitted) } else { Err(Barred::NotIntact(Box::new(report))) }
    }

    fn judge(&self, run: &RunId, reference: &str, whole: bool) -> Result<(Admitted, Report), Barred> {
        let case = Case::open(self.store, run, reference, self.options).map_err(|error| {
            let own_key = self.options.own_key.as_deref();
            self.at_hand.logs.remember(error, run, reference, own_key)
        })?;
        let mut anchor = anchor::row(&case, self.at_hand);
        let evidence = Evidence::gather(&case, anchor.held_since());
        let strangers = evidence.signers.iter().filter(|signer| !signer.trusted);
        let strangers = strangers.map(|signer| signer.fingerprint.clone()).collect();
        let mut cautions = Vec::new();
        let of = |standing| anchor.anchored.iter().any(|one| one.standing == standing);
        let logged = anchor.anchored.first().is_some_and(|local| local.standing == Standing::Holds);
        if anchor.missing && logged {
            // What has not reached a place outside yet is as good as it was before there was one.
            if whole || of(Standing::Unreachable) {
                cautions.push(format!("the run {:?} is not anchored outside: {}", run.as_str(), anchor.verdict.detail));
            }
            (anchor.missing, anchor.verdict) = (false, Verdict::ok(anchor.verdict.detail));
        }
        let conflict = anchor.verdict.conflict.then(|| anchor.verdict.detail.clone());
        if let (Some(why), true) = (&conflict, self.accept_untrusted) {
            cautions.push(format!("the run {:?} is taken although another has its id: {why}", run.as_str()));
        }
        let accepted = evidence.distrust && self.accept_untrusted;
        let (signature, caution) = keys(run, &evidence.signers, evidence.signature, accepted);
        cautions.extend(caution);
        let distrust = evidence.distrust && !accepted;
        let unasked = || Verdict::not_applicable("not asked for");
        let content = if whole { content::row(&case) } else { unasked() };
        let judged = Evidence { signature, ..evidence }.judged(&case, anchor, content);
        let sealed = case.seal().is_some();
        let tampered = judged.is_tampered(sealed, distrust);
        // What is only missing, or not trusted, contradicts nothing.
        let aside =
            Rows { root: !sealed, anchor: judged.missing_anchor, signature: tampered && distrust, ..Rows::default() };
        let report = judged.report(Facts::of(&case), distrust);
        let row = report.rows.iter().zip(aside.iter()).find(|(row, aside)| row.state == State::Failed && !**aside);
        let what = row.map_or_else(String::new, |(row, _)| format!("{}: {}", row.name, row.detail));
        if tampered {
            return Err(Barred::Tampered { report: Box::new(report), what });
        }
        if distrust {
            return Err(Barred::Untrusted { report: Box::new(report), what });
        }
        if let (Some(what), false) = (conflict, self.accept_untrusted) {
            return Err(Barred::Conflict { report: Box::new(report), what });
        }
        // A chain that nothing is wrong with and that has no first entry could not be read to it, for want of objects.
        if case.chain.cut || case.chain.links.is_empty() {
            return Err(Barred::NotIntact(Box::new(report)));
        }
        let seen = |Link { commit, tree, hash, entry, .. }| Seen { commit, tree, hash, entry };
        let entries = case.chain.links.into_iter().map(seen).collect();
        Ok((Admitted { run: run.clone(), reference: reference.to_owned(), entries, cautions, strangers }, report))
    }
}

/// Judges who signed: returns the row, and what a reader should know of it.
fn keys(run: &RunId, signers: &[SignerSeen], row: Verdict, accepted: bool) -> (Verdict, Option<String>) {
    let run = run.as_str();
    if accepted {
        let caution = format!("the run {run:?} is not trusted, and taken all the same: {}", row.detail);
        return (Verdict::not_applicable(row.detail), Some(caution));
    }
    let unknown: Vec<&str> =
        signers.iter().filter(|signer| !signer.trusted).map(|signer| signer.fingerprint.as_str()).collect();
    let caution = format!("the run {run:?} is signed with {}, not known to you; {HOW_TO_KNOW}", unknown.join(", "));
    let caution = Some(caution).filter(|_| !unknown.is_empty() && row.state != State::Failed);
    (row, caution)
}

/// Why a run did not pass.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Barred {
    #[error("the run {:?} does not verify, so nothing is taken from it: {what}", report.run)]
    Tampered { report: Box<Report>, what: String },
    #[error("the run {:?} is not trusted, so nothing is taken from it: {what}", report.run)]
    Untrusted { report: Box<Report>, what: String },
    #[error("another run has the id of the run {:?}, so nothing is taken from it: {what}", report.run)]
    Conflict { report: Box<Report>, what: String },
    #[error("the run {:?} does not verify: {}", .0.run, .0.headline)]
    NotIntact(Box<Report>),
    #[error(transparent)]
    Verify(#[from] Error),
}
