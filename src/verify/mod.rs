//! Verification: recomputes everything that a run's chain claims, from the objects alone.
//!
//! One file a row. Every row is evaluated, whatever the others found, and each says what it found. Nothing of the writer is
//! used but the data model, the codec, the Merkle tree and the check of a signature; nothing is fetched, and neither replace
//! refs nor grafts nor a shallow file nor the commit-graph have a say in what is read.

mod anchor;
mod bundle;
mod chain;
mod codes;
mod content;
mod continuable;
mod continues;
mod copies;
mod dated;
pub(crate) mod facts;
pub(crate) mod findings;
mod gate;
mod growth;
mod handoff;
mod imports;
mod lines;
mod log;
mod logs;
mod manifest;
mod objects;
mod order;
mod origins;
mod pipelines;
mod plan;
mod proof;
mod proven;
mod reader;
mod received;
mod render;
pub(crate) mod report;
mod required;
mod reuse;
mod revoked;
mod root;
pub(crate) mod rows;
mod run_chain;
mod said;
mod same_id;
pub(crate) mod signature;
mod signers;
mod taken;
mod thread;
mod tree;
mod witness;

pub use bundle::{Bundle, BundleError, ChainReport};
pub use codes::Code;
pub use continuable::{Begun, Continuable, Refusal, continuable, continuable_on};
pub use copies::Copies;
pub use facts::{Decided, Word};
pub use gate::{Admitted, Barred, Gate, Seen};
/// The time zone of [`Signers::parse`].
pub use jiff::tz::TimeZone;
pub use logs::Logs;
pub use origins::{Here, TakenFrom};
pub use pipelines::Told;
pub use proof::{Beside, verify_proof};
pub use proven::Proven;
pub use received::{Chain, received};
pub use report::{Admission, Claim, Failure, Guarantee, Report, Row, SignerSeen, Since, State, Uncovered};
pub use revoked::{Revoked, RevokedError, revoked};
pub use rows::{Rows, ThreadRows};
pub use run_chain::Mark;
pub use said::read as said;
pub use same_id::{OtherRun, SameId};
pub use signature::HOW_TO_KNOW;
pub use signers::{Signers, SignersError};
pub use thread::{
    Against, Ancestor, AskThread, Asking, Examined, Sound, Standpoint, ThreadQuestion, ThreadReport, ThreadStatement,
    ThreadWitness, ThreadWord, ThreadsAtHand, Unproven, Unsound, knows_key, leaves as thread_leaves, no_place,
    sound_thread, thread, thread_at, tied_run,
};
pub use witness::{Anchored, Answer, Ask, AtHand, Held, LOCAL, Question, Seal, Standing, Timed, Witness, nobody};

use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::{self, Store};
use crate::git::{history, packed, refs};
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::name::RunId;
use crate::model::outcomes::Outcomes;
use crate::model::state::RunState;
use crate::model::time::Moment;

use anchor::Anchor;
use facts::Facts;
use findings::Verdict;
use report::Verdicts;
use run_chain::RunChain;
use taken::Taken;

/// What the verifier knows and asks for. Without any of it, a run is held against itself and the logs at hand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fingerprint of this repository's own key.
    pub own_key: Option<String>,
    /// The keys that the verifier knows.
    pub signers: Option<Signers>,
    /// Whether a key that `signers` does not know fails the signature row.
    pub strict_signers: bool,
    /// The only principal whose keys count, if not all of them do.
    pub signer: Option<String>,
    /// The fingerprints of keys that are revoked, whoever else trusts them; since when, where somebody says.
    pub revoked: Revoked,
    /// The bytes of the plan that the run must be of.
    pub plan: Option<Vec<u8>>,
    /// The commit that the run must start from.
    pub base: Option<Oid>,
    /// Whether the run stands alone, as in a bundle: that no log came along says nothing against it.
    pub alone: bool,
    /// What time it is for the verifier; without it, no date lies ahead.
    pub now: Option<Now>,
}

/// What time it is for the verifier.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The moment.
    pub at: Moment,
    /// Whether a pinned clock says so, which only such entries are compared with.
    pub pinned: bool,
}

impl Options {
    /// Returns the fingerprints of the keys that the verifier knows: its own, and those of its signers, whenever they are valid.
    /// One that is revoked, and not only since some time, is nobody's any more.
    fn known_keys(&self) -> Vec<String> {
        let signers = self.signers.iter().flat_map(Signers::keys).map(crate::ledger::sign::fingerprint);
        let known: BTreeSet<String> = self.own_key.iter().cloned().chain(signers).collect();
        known.into_iter().filter(|key| !matches!(self.revoked.get(key), Some(None))).collect()
    }

    /// Says why something that a key signs is not to be acted upon: it is revoked, or was not valid then. A key that is merely not known is
    /// not spoken against.
    pub fn speaks_against(&self, key: &str, at: Moment) -> Option<String> {
        let (principal, distrust) = signature::standing(self, key, at, None);
        distrust.filter(|_| principal.is_some() || self.revoked.contains_key(key)).map(|(_, why)| why)
    }

    /// Returns whether a key is one of the signers', and nothing speaks against what it signed at some time.
    fn trusts(&self, key: &str, at: Moment) -> bool {
        matches!(signature::standing(self, key, at, None), (Some(_), None))
    }
}

/// Verifies the run at `reference` against everything in the repository.
///
/// An error is our own failure, or says that there is no such ref: everything else is a finding in the report.
pub fn verify(store: &Store, run: &RunId, reference: &str, options: &Options) -> Result<Report, Error> {
    verify_with(store, &AtHand::logs(&Logs::read(store)?), run, reference, options)
}

/// Verifies like [`verify`], with logs that were read before, which for many runs is once, and with places outside.
pub fn verify_with(
    store: &Store,
    at_hand: &AtHand<'_>,
    run: &RunId,
    reference: &str,
    options: &Options,
) -> Result<Report, Error> {
    verify_beside(&mut Copies::default(), (store, at_hand), (run, reference), options)
}

/// Verifies like [`verify_with`], beside other runs: the copies that these took from, too, are looked at once for all.
pub fn verify_beside(
    copies: &mut Copies,
    (store, at_hand): (&Store, &AtHand<'_>),
    (run, reference): (&RunId, &str),
    options: &Options,
) -> Result<Report, Error> {
    let own_key = options.own_key.as_deref();
    let case = Case::open(store, run, reference, options)
        .map_err(|error| at_hand.logs.remember(error, run, reference, own_key))?;
    let (mut judged, distrust, taken) = judged(&case, at_hand);
    let (taken_from, contradicted) = origins::follow(store, at_hand, options, (&taken, copies))?;
    if judged.rows.handoff.state != State::Failed && contradicted.first().is_some() {
        let detail = judged.rows.handoff.detail;
        let contradicted = contradicted.verdict(true, || detail);
        // What became of the other since is nothing against this one.
        let mismatch = contradicted.state == State::Failed;
        judged.rows.handoff = Verdict { mismatch, ..contradicted };
    }
    Ok(Report { taken_from, ..judged.report(Facts::of(&case), distrust) })
}

/// Verifies one run, whatever it took from others; returns what it took.
fn examined(case: &Case<'_>, at_hand: &AtHand<'_>) -> (Report, Vec<Taken>) {
    let (judged, distrust, taken) = judged(case, at_hand);
    (judged.report(Facts::of(case), distrust), taken)
}

/// Judges one run: the verdicts, whether nothing but a key speaks against it, and what it took from others.
fn judged(case: &Case<'_>, at_hand: &AtHand<'_>) -> (Verdicts, bool, Vec<Taken>) {
    let mut anchor = anchor::row(case, at_hand);
    dated::note(&mut anchor, dated::of(&case.chain.links, case.seal()), case.options.now);
    let mut evidence = Evidence::gather(case, anchor.held_since());
    let (distrust, taken) = (evidence.distrust, std::mem::take(&mut evidence.taken));
    (evidence.judged(case, anchor, content::row(case)), distrust, taken)
}

/// One run on the table.
struct Case<'a> {
    store: &'a Store,
    run: &'a RunId,
    reference: &'a str,
    options: &'a Options,
    chain: RunChain,
    /// Whether the repository is a partial clone: blobs may be elsewhere.
    lazy: bool,
    /// Whether it is partial or shallow: commits and trees may be elsewhere.
    shallow: bool,
}

impl<'a> Case<'a> {
    fn open(store: &'a Store, run: &'a RunId, reference: &'a str, options: &'a Options) -> Result<Self, Error> {
        Self::open_on(store, run, reference, options, None)
    }

    /// Opens a run of which a mark vouches for the beginning.
    fn open_on(
        store: &'a Store,
        run: &'a RunId,
        reference: &'a str,
        options: &'a Options,
        mark: Option<&Mark>,
    ) -> Result<Self, Error> {
        let told = match resolve(store, reference)? {
            Ok(tip) => RunChain::read_on(store, tip, mark),
            Err(why) => RunChain::unreadable(why),
        };
        Ok(Self::at(store, run, reference, options, told))
    }

    /// A run as a chain tells it, whichever ref leads there.
    fn at(store: &'a Store, run: &'a RunId, reference: &'a str, options: &'a Options, chain: RunChain) -> Self {
        let lazy = history::is_partial(store);
        let shallow = history::is_lazy(store);
        Self { store, run, reference, options, chain, lazy, shallow }
    }

    /// Returns what a row says that needs the chain from its first entry on, where that could not be read.
    fn cut_off(&self) -> Option<Verdict> {
        self.chain.cut.then(|| Verdict::incomplete("the chain could not be read to its first entry"))
    }

    /// Returns the place of the seal among the entries.
    fn seal(&self) -> Option<usize> {
        self.chain.links.iter().position(|link| matches!(link.entry.event, Event::RunSealed(_)))
    }
}

/// The rows that rest on the entries and the evidence blobs, as far as they go in an open run too.
struct Evidence {
    signature: Verdict,
    signers: Vec<SignerSeen>,
    distrust: bool,
    handoff: Verdict,
    plan: Verdict,
    manifest: Verdict,
    sandbox: BTreeMap<String, u64>,
    state: Option<RunState>,
    /// What was taken from other runs and from threads.
    taken: Vec<Taken>,
}

impl Evidence {
    /// `held_since` is when the root was there at the latest, by the clock of somebody else.
    fn gather(case: &Case<'_>, held_since: Option<Moment>) -> Self {
        let taken = taken::examine(case);
        let signature = signature::row(case, &taken, held_since);
        let replay = plan::replay(case, &taken);
        let (manifest, sandbox) = manifest::row(case, replay.state.as_ref().map(|state| state.graph.items()));
        Self {
            signature: signature.verdict,
            signers: signature.signers,
            distrust: signature.distrust,
            handoff: replay.handoff,
            plan: replay.verdict,
            manifest,
            sandbox,
            state: replay.state,
            taken,
        }
    }

    /// Puts the rows together.
    fn judged(self, case: &Case<'_>, anchor: Anchor, content: Verdict) -> Verdicts {
        let outcome = self.outcome();
        let rows = Rows {
            chain: chain::row(case),
            root: root::row(case, anchor.verdict.state),
            signature: self.signature,
            anchor: anchor.verdict,
            handoff: self.handoff,
            plan: self.plan,
            manifest: self.manifest,
            content,
        };
        Verdicts {
            rows,
            signers: self.signers,
            missing_anchor: anchor.missing,
            anchored: anchor.anchored,
            times: anchor.times,
            sandbox: self.sandbox,
            outcome,
            others: anchor.others,
        }
    }

    /// Returns how the items came out.
    fn outcome(&self) -> Option<Outcomes> {
        self.state.as_ref().map(RunState::outcomes)
    }
}

/// Finds the object that a ref names: none of git's ways of finding another ref by a name is followed.
fn resolve(store: &Store, reference: &str) -> Result<Result<Oid, String>, Error> {
    packed::check(store)?;
    match store.local().try_find_reference(reference) {
        Ok(Some(found)) if found.name().as_bstr() == reference => Ok(match found.target() {
            gix::refs::TargetRef::Object(id) => Ok(Oid(id.to_owned())),
            gix::refs::TargetRef::Symbolic(name) => Err(format!("the ref is a symbolic one, to {}", name.as_bstr())),
        }),
        // What an archive holds is verified as if it had its ref.
        Ok(_) => {
            refs::read(store, reference).map_err(Error::Refs)?.map(Ok).ok_or(Error::NoSuchRun(reference.to_owned()))
        }
        Err(error) if error.is_permission_denied() => Err(Error::Ref(reference.to_owned(), Box::new(error))),
        Err(error) => Ok(Err(format!("the ref cannot be read: {}", error.probable_cause()))),
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no ref {0}")]
    NoSuchRun(String),
    #[error("the ref {reference} is gone, but the log {log} holds the run")]
    Vanished { reference: String, log: String },
    #[error("the ref {reference} is gone, but the log {log} holds the thread")]
    VanishedThread { reference: String, log: String },
    #[error("the ref {0} could not be read")]
    Ref(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Packed(#[from] packed::Error),
    #[error("the logs could not be listed")]
    Refs(#[source] crate::git::refs::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}
