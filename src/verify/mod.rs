//! Verification: recomputes everything that a run's chain claims, from the objects alone.
//!
//! Each row has a file of its own. The first finding of the first stage that has one decides, and
//! rows of later stages are not judged. The verifier shares with the writer only the data model,
//! the codec, the Merkle tree and the signature check. It fetches nothing, and ignores replace
//! refs, grafts, shallow files and the commit-graph.

mod ahead;
mod anchor;
mod bundle;
mod chain;
mod claims;
mod clock_skew;
mod codes;
mod content;
mod continuable;
mod continues;
pub mod deleted;
mod entry_order;
mod external_statements;
pub(crate) mod findings;
mod gate;
mod growth;
mod handoff;
mod imports;
mod incoming;
mod key_lines;
mod local_copies;
mod log;
mod logs;
mod manifest;
mod next_entry;
mod objects;
mod pipelines;
mod plan;
mod proof;
mod protected;
mod reader;
mod render;
pub(crate) mod report;
mod required;
mod reuse;
mod revoked;
mod root;
pub(crate) mod rows;
mod run_chain;
mod same_id;
pub(crate) mod signature;
mod signers;
mod thread;
mod upstream;
mod verified;
mod witness;

pub use ahead::check_date;
pub use bundle::{Bundle, BundleError, ChainReport};
pub use claims::{Decided, TakenOver, Voucher};
pub use codes::{Code, Failure, Rows, Stage};
pub use continuable::{Appender, Begun, Continuable, Refusal, check_continued, continuable, continuable_on};
pub use external_statements::read_statement;
pub use findings::{Finding, First};
pub use gate::{Barred, Gate, GatedRun, VerifiedEntry};
pub use incoming::{Chain, Further, check_incoming, dispatchers, read_further};
/// The time zone of [`Signers::parse`].
pub use jiff::tz::TimeZone;
pub use local_copies::LocalCopies;
pub use logs::Logs;
pub use next_entry::{check_applied, check_next};
pub use pipelines::ItemBlocks;
pub use proof::{Beside, verify_proof};
pub use report::{Admission, Claim, Guarantee, Report, Row, SignerSeen, Since, State, Uncovered};
pub use required::Requirements;
pub use revoked::{Revoked, RevokedError, revoked};
pub use rows::ThreadRows;
pub use run_chain::Mark;
pub use same_id::{OtherRun, SameId};
pub use signature::HOW_TO_KNOW;
pub use signers::{Signers, SignersError, Skipped};
pub use thread::{
    Against, Ancestor, AskThread, Asking, Examined, Standpoint, ThreadAnswer, ThreadQuestion, ThreadReport,
    ThreadSnapshot, ThreadStatement, ThreadWitness, ThreadsAtHand, Unproven, Unsound, knows_key,
    leaves as thread_leaves, no_place, thread, thread_at, tied_run, verified_thread, verified_thread_on,
};
pub use upstream::{CopyState, Upstream};
pub use verified::Verified;
pub use witness::{
    Anchored, Answer, Ask, AskAnchors, AtHand, Held, LOCAL, Question, Seal, Standing, Timed, Witness, ask_none,
};

use std::collections::BTreeSet;

use crate::git::store::{self, Store};
use crate::git::{history, packed, refs};
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::name::RunId;
use crate::model::state::RunState;
use crate::model::time::Moment;

use anchor::Anchor;
use findings::Verdict;
use imports::Imported;
use plan::Replay;
pub use protected::{NotRecomputed, ProtectedItem};
use report::Verdicts;
use run_chain::RunChain;
use signature::Signature;

/// The verifier's knowledge and requirements. By default, a run is compared only with itself and
/// the logs at hand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fingerprint of this repository's own key.
    pub own_key: Option<String>,
    /// The keys that the verifier knows.
    pub signers: Option<Signers>,
    /// True if a key that `signers` does not name fails the row `signature`.
    pub strict_signers: bool,
    /// The only principal whose keys count, or `None` if all count.
    pub signer: Option<String>,
    /// The fingerprints of revoked keys, each with the time of its revocation, if known.
    pub revoked: Revoked,
    /// The bytes of the plan that the run must have.
    pub plan: Option<Vec<u8>>,
    /// The commit that the run must start from.
    pub base: Option<Oid>,
    /// True if the run comes alone, as in a bundle: then a missing log is no finding.
    pub alone: bool,
    /// The verifier's clock. Without it, no date is reported as lying in the future.
    pub now: Option<Now>,
}

/// The verifier's clock.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The current time.
    pub at: Moment,
    /// True if the clock is pinned. A pinned clock is compared only with entries dated by one.
    pub pinned: bool,
}

impl Options {
    /// Returns the fingerprints of the keys that the verifier knows, at any time: its own and its
    /// signers'. Keys that are revoked without a date are left out.
    fn known_keys(&self) -> Vec<String> {
        let signers = self.signers.iter().flat_map(Signers::keys).map(crate::ledger::sign::fingerprint);
        let known: BTreeSet<String> = self.own_key.iter().cloned().chain(signers).collect();
        known.into_iter().filter(|key| !matches!(self.revoked.get(key), Some(None))).collect()
    }

    /// Returns the reason to reject a signature by `key`: the key is revoked, or was not valid at
    /// that time. An unknown key is no reason.
    pub fn speaks_against(&self, key: &str, at: Moment) -> Option<String> {
        let (principal, distrust) = signature::standing(self, key, at, None);
        distrust.filter(|_| principal.is_some() || self.revoked.contains_key(key)).map(|(_, why)| why)
    }

    /// Returns true if the key is one of the signers' and neither revoked nor expired at that time.
    fn trusts(&self, key: &str, at: Moment) -> bool {
        matches!(signature::standing(self, key, at, None), (Some(_), None))
    }
}

/// Verifies the run at `reference`.
///
/// Returns an error if the ref does not exist or the repository cannot be read. Everything else is
/// a finding in the report.
pub fn verify(store: &Store, run: &RunId, reference: &str, options: &Options) -> Result<Report, Error> {
    verify_with(store, &AtHand::logs(&Logs::read(store)?), run, reference, options)
}

/// Verifies like [`verify`], with logs that the caller has read, and with external anchors.
pub fn verify_with(
    store: &Store,
    at_hand: &AtHand<'_>,
    run: &RunId,
    reference: &str,
    options: &Options,
) -> Result<Report, Error> {
    verify_beside(&mut LocalCopies::new(store), at_hand, run, reference, options)
}

/// Verifies like [`verify_with`], and examines each local copy of an upstream run only once for all
/// calls.
pub fn verify_beside(
    copies: &mut LocalCopies,
    at_hand: &AtHand<'_>,
    run: &RunId,
    reference: &str,
    options: &Options,
) -> Result<Report, Error> {
    let own_key = options.own_key.as_deref();
    let store = copies.store().clone();
    let case = Case::open(&store, run, reference, options)
        .map_err(|error| at_hand.logs.remember(error, run, reference, own_key))?;
    let case = Case { bases: at_hand.bases, ..case };
    let (mut judged, imports) = judge_run(&case, at_hand);
    let (upstream, contradicted) = upstream::follow(copies, at_hand, options, &imports)?;
    if judged.rows.handoff.state != State::Failed && contradicted.first().is_some() {
        let detail = judged.rows.handoff.detail;
        judged.rows.handoff = contradicted.verdict(true, || detail);
    }
    Ok(Report { upstream, ..judged.report() })
}

/// Verifies a run without its upstream runs; also returns its imports.
fn verify_alone(case: &Case<'_>, at_hand: &AtHand<'_>) -> (Report, Vec<Imported>) {
    let (judged, imports) = judge_run(case, at_hand);
    (judged.report(), imports)
}

fn judge_run(case: &Case<'_>, at_hand: &AtHand<'_>) -> (Verdicts, Vec<Imported>) {
    let mut anchor = anchor::row(case, at_hand);
    let dates = clock_skew::dates_of_run(&case.chain.links, case.seal());
    clock_skew::note_contradictions(&mut anchor, dates, case.options.now);
    let mut evidence = Evidence::gather(case, anchor.held_since());
    let imports = std::mem::take(&mut evidence.imports);
    (evidence.conclude(case, anchor, true), imports)
}

struct Case<'a> {
    store: &'a Store,
    run: &'a RunId,
    reference: &'a str,
    options: &'a Options,
    chain: RunChain,
    /// True in a partial clone: blobs may be missing.
    lazy: bool,
    /// True in a partial or shallow clone: commits and trees may be missing.
    shallow: bool,
    /// Another repository, which may have the base of the run.
    bases: Option<&'a Store>,
}

impl<'a> Case<'a> {
    fn open(store: &'a Store, run: &'a RunId, reference: &'a str, options: &'a Options) -> Result<Self, Error> {
        Self::open_on(store, run, reference, options, None)
    }

    /// Opens a run that was verified before, up to the commit of `mark`.
    fn open_on(
        store: &'a Store,
        run: &'a RunId,
        reference: &'a str,
        options: &'a Options,
        mark: Option<&Mark>,
    ) -> Result<Self, Error> {
        let chain = match resolve(store, reference)? {
            Ok(tip) => RunChain::read_on(store, tip, mark),
            Err(why) => RunChain::unreadable(why),
        };
        Ok(Self::at(store, run, reference, options, chain))
    }

    fn at(store: &'a Store, run: &'a RunId, reference: &'a str, options: &'a Options, chain: RunChain) -> Self {
        let lazy = history::is_partial(store);
        let shallow = history::is_lazy(store);
        Self { store, run, reference, options, chain, lazy, shallow, bases: None }
    }

    /// Returns the verdict of a row that needs the whole chain, if the chain could not be read to
    /// its first entry.
    fn cut_off(&self) -> Option<Verdict> {
        self.chain.cut.then(|| Verdict::incomplete("the chain could not be read to its first entry"))
    }

    fn seal(&self) -> Option<usize> {
        self.chain.links.iter().position(|link| matches!(link.entry.event, Event::RunSealed(_)))
    }
}

/// The rows that depend on entries and evidence blobs, which an open run has too.
struct Evidence {
    signature: Signature,
    replay: Replay,
    manifest: Verdict,
    reach: manifest::Reach,
    imports: Vec<Imported>,
}

impl Evidence {
    /// `held_since` is the earliest time at which an external clock saw the root.
    fn gather(case: &Case<'_>, held_since: Option<Moment>) -> Self {
        let imports = imports::examine(case);
        let signature = signature::row(case, &imports, held_since);
        let replay = plan::replay(case, &imports);
        let (manifest, reach) = manifest::row(case, replay.items());
        Self { signature, replay, manifest, reach, imports }
    }

    /// Hashes the products only if `whole` is true and no earlier stage has a finding.
    fn conclude(self, case: &Case<'_>, anchor: Anchor, whole: bool) -> Verdicts {
        let root = root::row(case, anchor.verdict.state);
        let mut verdicts = self.without_anchor(case, chain::row(case));
        verdicts.rows = Rows { root, anchor: anchor.verdict, ..verdicts.rows };
        if whole && !verdicts.first().is_some_and(First::precedes_content) {
            verdicts.rows.content = content::row(case);
        }
        let first = case.chain.links.first();
        let key = first.and_then(|link| link.signer.clone().ok());
        let claims = Report {
            anchors: anchor.anchored,
            times: anchor.times,
            same_id: SameId::new(key, first.map(|link| link.hash), anchor.others),
            ..verdicts.claims
        };
        Verdicts { claims, ..verdicts }
    }

    /// Returns the verdicts without the rows `root`, `anchor` and `content`.
    fn without_anchor(self, case: &Case<'_>, chain: Verdict) -> Verdicts {
        let Self { signature, replay, manifest, reach, .. } = self;
        let not_asked = Rows::default().map(|_, &()| Verdict::not_applicable("not asked for"));
        let outcome = replay.state().map(RunState::outcomes);
        let protected = ProtectedItem::all(case, replay.state());
        let unprotected = replay.state().map(RunState::unprotected).unwrap_or_default();
        let (handoff, plan) = (replay.handoff, replay.verdict);
        let rows = Rows { chain, signature: signature.verdict, handoff, plan, manifest, ..not_asked };
        let signers = signature.signers;
        let manifest::Reach { sandbox, real_home, writable } = reach;
        let report = Report { sandbox, real_home, writable, ..Report::of_entries(case) };
        let not_recomputed = replay.not_recomputed;
        let claims = Report { outcome, protected, not_recomputed, unprotected, signers, ..report };
        Verdicts { rows, claims }
    }
}

/// Returns the object that a ref names. Only the exact name counts; git's rules for short names do
/// not apply.
fn resolve(store: &Store, reference: &str) -> Result<Result<Oid, String>, Error> {
    packed::check(store)?;
    match store.local().try_find_reference(reference) {
        Ok(Some(found)) if found.name().as_bstr() == reference => Ok(match found.target() {
            gix::refs::TargetRef::Object(id) => Ok(Oid(id.to_owned())),
            gix::refs::TargetRef::Symbolic(name) => Err(format!("the ref is a symbolic one, to {}", name.as_bstr())),
        }),
        // An archived run is verified as if it had its own ref.
        Ok(_) => {
            refs::read(store, reference).map_err(Error::Refs)?.map(Ok).ok_or(Error::NoSuchRun(reference.to_owned()))
        }
        Err(error) if error.is_permission_denied() => Err(Error::Ref(reference.to_owned(), Box::new(error))),
        Err(error) => Ok(Err(format!("the ref cannot be read: {}", error.probable_cause()))),
    }
}

errors! {
    /// A reason why there is no report.
    #[derive(Debug, thiserror::Error)] pub enum Error = "verify";
    NoSuchRun(String): "there is no ref {0}";
    Vanished { reference: String, log: String } "vanished" 3:
        "the ref {reference} is gone, but the log {log} holds the run";
    VanishedThread { reference: String, log: String } "vanished" 3:
        "the ref {reference} is gone, but the log {log} holds the thread";
    Ref(String, #[source] Box<dyn std::error::Error + Send + Sync>): "cannot read the ref {0}";
    Refs(#[source] crate::git::refs::Error): "cannot list the logs";
    #[from "verify"] Packed(packed::Error), Store(store::Error);
}
