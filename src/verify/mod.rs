//! Verification: recomputes everything that a run's chain claims, from the objects alone.
//!
//! One file a row. Every row is evaluated, whatever the others found, and each says what it found. Nothing of the writer is
//! used but the data model, the codec, the Merkle tree and the check of a signature; nothing is fetched, and neither replace
//! refs nor grafts nor a shallow file nor the commit-graph have a say in what is read.

mod anchor;
mod chain;
mod content;
mod continuable;
mod findings;
mod handoff;
mod logs;
mod manifest;
mod objects;
mod plan;
mod render;
mod root;
mod signature;
mod signers;
mod story;
mod tree;

pub use continuable::{Continuable, Refusal, continuable};
pub use logs::Logs;
pub use signers::{Signers, SignersError};

use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::{self, Store};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::name::RunId;

use findings::Verdict;
use story::Story;

/// What the verifier knows and asks for. Without any of it, a run is held against itself and the logs at hand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fingerprint of this repository's own key.
    pub own_key: Option<String>,
    /// The keys that the verifier knows.
    pub signers: Option<Signers>,
    /// Whether a key that `signers` does not know fails the signature row.
    pub strict_signers: bool,
    /// The fingerprints of keys that are revoked, whoever else trusts them.
    pub revoked: BTreeSet<String>,
    /// The bytes of the plan that the run must be of.
    pub plan: Option<Vec<u8>>,
    /// The commit that the run must start from.
    pub base: Option<Oid>,
}

/// How strong the place is that holds a run's root outside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarantee {
    /// A log in the same repository: shows tampering by whoever could not rewrite both.
    Detect,
    /// A place that other people run.
    External,
    /// A place that nobody can rewrite.
    ExternalImmutable,
}

/// What an intact run proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Tampering would show to whoever trusts the anchor at hand.
    TamperDetecting,
    /// Tampering would show to anyone.
    TamperEvident,
}

/// The first thing that failed, in the order in which failures are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The chain of entries is broken.
    Chain,
    /// Nothing at hand holds the run's root.
    AnchorMissing,
    /// The root is not what the entries give, or not what is anchored.
    Root,
    /// A signature is bad, or by a key that may not sign or is not trusted.
    Signature,
    /// A dispatch is not bound to its manifest.
    Manifest,
    /// The run is not what its plan said.
    Plan,
    /// A consumed product is not the one that the plan binds.
    Handoff,
    /// A product's bytes are not those that were handed over.
    Content,
    /// The run goes on.
    NotSealed,
    /// Evidence is not in this repository.
    Incomplete,
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was checked and holds.
    Ok,
    /// It was checked and does not hold.
    Failed,
    /// It could not be checked or there was nothing to check.
    NotApplicable,
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name: `chain`, `root`, `signature`, `anchor`, `handoff`, `plan`, `manifest` or `content`.
    pub name: &'static str,
    /// What it says.
    pub state: State,
    /// One line for people.
    pub detail: String,
}

/// A key that signed entries of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignerSeen {
    /// `SHA256:<base64>` of the key.
    pub fingerprint: String,
    /// Whom the verifier's signers name for it.
    pub principal: Option<String>,
    /// Whether the verifier trusts it, for the times at which it signed.
    pub trusted: bool,
}

/// What verification found. A report about a ref that exists is never an error.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// Whether a seal stands in the chain.
    pub sealed: bool,
    /// Whether nothing failed and nothing was missing.
    pub intact: bool,
    /// What may be said of the run if it is intact.
    pub claim: Claim,
    /// How strong the anchor is.
    pub guarantee: Guarantee,
    /// The first failure; none exactly where the run is intact.
    pub failure: Option<Failure>,
    /// The verdict in two words, without its mark.
    pub headline: &'static str,
    /// How many entries could be read.
    pub entries: u64,
    /// The Merkle root over the entries before the seal, recomputed; none for a run that is not sealed.
    pub root: Option<Digest>,
    /// The digest of the plan, as entry 0 says.
    pub plan: Option<Digest>,
    /// The commit that the run starts from, as entry 0 says.
    pub base: Option<Oid>,
    /// Who submitted the run, as entry 0 claims.
    pub actor: Option<String>,
    /// The rows, in the order of [`ROWS`].
    pub rows: [Row; 8],
    /// The keys that signed, in order of appearance.
    pub signers: Vec<SignerSeen>,
    /// What confined the dispatched attempts, counted.
    pub sandbox: BTreeMap<String, u64>,
    /// Whether entries were dated by a pinned test clock.
    pub pinned_clock: bool,
}

/// The names of the rows, in the order of a report.
pub const ROWS: [&str; 8] = ["chain", "root", "signature", "anchor", "handoff", "plan", "manifest", "content"];

/// Verifies the run at `reference` against everything in the repository.
///
/// An error is our own failure, or says that there is no such ref: everything else is a finding in the report.
pub fn verify(store: &Store, run: &RunId, reference: &str, options: &Options) -> Result<Report, Error> {
    verify_with(store, &Logs::read(store)?, run, reference, options)
}

/// Verifies like [`verify`], with logs that were read before: for many runs, that is once.
pub fn verify_with(
    store: &Store,
    logs: &Logs,
    run: &RunId,
    reference: &str,
    options: &Options,
) -> Result<Report, Error> {
    let case = Case::open(store, run, reference, options).map_err(|error| logs.remember(error, run, reference))?;
    let evidence = Evidence::gather(&case);
    let anchor = anchor::row(&case, logs);
    let verdicts = [
        chain::row(&case),
        root::row(&case, anchor.verdict.state),
        evidence.signature,
        anchor.verdict,
        evidence.handoff,
        evidence.plan,
        evidence.manifest,
        content::row(&case),
    ];
    let judged =
        Judged { verdicts, signers: evidence.signers, missing_anchor: anchor.missing, sandbox: evidence.sandbox };
    Ok(judged.report(&case, evidence.distrust))
}

/// One run on the table.
struct Case<'a> {
    store: &'a Store,
    run: &'a RunId,
    reference: &'a str,
    options: &'a Options,
    story: Story,
    /// Whether the repository is a partial clone: blobs may be elsewhere.
    lazy: bool,
    /// Whether it is partial or shallow: commits and trees may be elsewhere.
    shallow: bool,
}

impl<'a> Case<'a> {
    fn open(store: &'a Store, run: &'a RunId, reference: &'a str, options: &'a Options) -> Result<Self, Error> {
        let told = match resolve(store, reference)? {
            Ok(tip) => Story::read(store, tip),
            Err(why) => Story::unreadable(why),
        };
        let lazy = is_partial(store);
        let shallow = lazy || store.local().is_shallow().unwrap_or(false);
        Ok(Self { store, run, reference, options, story: told, lazy, shallow })
    }

    /// Returns what a row says that needs the chain from its first entry on, where that could not be read.
    fn cut_off(&self) -> Option<Verdict> {
        self.story.cut.then(|| Verdict::incomplete("the chain could not be read to its first entry"))
    }

    /// Returns the place of the seal among the entries.
    fn seal(&self) -> Option<usize> {
        self.story.links.iter().position(|link| matches!(link.entry.event, Event::RunSealed(_)))
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
    state: Option<crate::model::state::RunState>,
}

impl Evidence {
    fn gather(case: &Case<'_>) -> Self {
        let signature = signature::row(case);
        let replay = plan::replay(case);
        let (manifest, sandbox) = manifest::row(case, replay.plan.as_ref());
        Self {
            signature: signature.verdict,
            signers: signature.signers,
            distrust: signature.distrust,
            handoff: replay.handoff,
            plan: replay.verdict,
            manifest,
            sandbox,
            state: replay.state,
        }
    }
}

/// The rows' verdicts, before they are summed up.
struct Judged {
    verdicts: [Verdict; 8],
    signers: Vec<SignerSeen>,
    missing_anchor: bool,
    sandbox: BTreeMap<String, u64>,
}

impl Judged {
    fn report(self, case: &Case<'_>, distrust: bool) -> Report {
        let sealed = case.seal().is_some();
        let failure = self.failure(sealed);
        // The only anchors there are yet are logs in the repository.
        let guarantee = Guarantee::Detect;
        let trusted = !self.signers.is_empty() && self.signers.iter().all(|signer| signer.trusted);
        let all_ok = self.verdicts.iter().all(|verdict| verdict.state == State::Ok);
        let evident = all_ok && failure.is_none() && trusted && guarantee == Guarantee::ExternalImmutable;
        let claim = if evident { Claim::TamperEvident } else { Claim::TamperDetecting };
        let headline = match failure {
            None if evident => "TAMPER-EVIDENT",
            None => "TAMPER-DETECTING",
            Some(_) if self.is_tampered(sealed, distrust) => "TAMPERED",
            Some(Failure::AnchorMissing) => "NOT ANCHORED",
            Some(Failure::Signature) => "UNTRUSTED",
            Some(Failure::NotSealed) => "NOT SEALED",
            Some(_) => "INCOMPLETE",
        };
        let submitted = case.story.submitted();
        let mut names = ROWS.iter();
        Report {
            run: case.run.clone(),
            sealed,
            intact: failure.is_none(),
            claim,
            guarantee,
            failure,
            headline,
            entries: case.story.links.len() as u64,
            root: case.seal().filter(|_| !case.story.cut).map(|seal| root::over(case, seal)),
            plan: submitted.map(|e| e.plan),
            base: submitted.map(|e| e.base),
            actor: submitted.and(case.story.links.first()).map(|link| link.entry.actor.clone()),
            rows: self.verdicts.map(|verdict| Row {
                name: names.next().expect("there are as many names as rows"),
                state: verdict.state,
                detail: verdict.detail,
            }),
            signers: self.signers,
            sandbox: self.sandbox,
            pinned_clock: case.story.links.iter().any(|link| link.entry.pinned),
        }
    }

    fn failed(&self, row: usize) -> bool {
        self.verdicts[row].state == State::Failed
    }

    /// Returns the first failure, in the order of [`Failure`].
    fn failure(&self, sealed: bool) -> Option<Failure> {
        let [chain, root, signature, anchor, handoff, plan, manifest, content] =
            std::array::from_fn(|row| self.failed(row));
        let failures = [
            (chain, Failure::Chain),
            (self.missing_anchor, Failure::AnchorMissing),
            // An anchor that holds another root fails the root as well.
            ((root && sealed) || (anchor && !self.missing_anchor), Failure::Root),
            (signature, Failure::Signature),
            (manifest, Failure::Manifest),
            (plan, Failure::Plan),
            (handoff, Failure::Handoff),
            (content, Failure::Content),
            (!sealed && root, Failure::NotSealed),
            (self.verdicts.iter().any(|verdict| verdict.incomplete), Failure::Incomplete),
        ];
        failures.into_iter().find(|(failed, _)| *failed).map(|(_, failure)| failure)
    }

    /// Whether any row contradicts the run, as opposed to missing or distrusting something.
    fn is_tampered(&self, sealed: bool, distrust: bool) -> bool {
        let [chain, root, signature, anchor, handoff, plan, manifest, content] =
            std::array::from_fn(|row| self.failed(row));
        let bad_root = (root && sealed) || (anchor && !self.missing_anchor);
        chain || bad_root || (signature && !distrust) || handoff || plan || manifest || content
    }
}

/// Finds the object that a ref names: none of git's ways of finding another ref by a name is followed.
fn resolve(store: &Store, reference: &str) -> Result<Result<Oid, String>, Error> {
    match store.local().try_find_reference(reference) {
        Ok(Some(found)) if found.name().as_bstr() == reference => Ok(match found.target() {
            gix::refs::TargetRef::Object(id) => Ok(Oid(id.to_owned())),
            gix::refs::TargetRef::Symbolic(name) => Err(format!("the ref is a symbolic one, to {}", name.as_bstr())),
        }),
        Ok(_) => Err(Error::NoSuchRun(reference.to_owned())),
        Err(error) if error.is_permission_denied() => Err(Error::Ref(reference.to_owned(), Box::new(error))),
        Err(error) => Ok(Err(format!("the ref cannot be read: {}", error.probable_cause()))),
    }
}

/// Whether missing objects are what this repository was made for: a partial clone.
fn is_partial(store: &Store) -> bool {
    let repo = store.local();
    let config = repo.config_snapshot();
    let partial = config.string("extensions.partialClone").is_some();
    let promised = || {
        let remotes = repo.remote_names();
        remotes.iter().any(|name| config.boolean(format!("remote.{name}.promisor").as_str()) == Some(true))
    };
    partial || promised()
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing knows the run.
    #[error("there is no ref {0}")]
    NoSuchRun(String),
    /// The run's ref is gone, and a log remembers it.
    #[error("the ref {reference} is gone, but the log {log} holds the run")]
    Vanished {
        /// The ref.
        reference: String,
        /// The log that names the run.
        log: String,
    },
    /// A ref could not be read.
    #[error("the ref {0} could not be read")]
    Ref(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The refs could not be listed.
    #[error("the logs could not be listed")]
    Refs(#[source] crate::git::refs::Error),
    /// The repository could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}
