//! What verification answers: the rows, and the verdict that follows from them. Pure.

use std::collections::BTreeMap;

use crate::ledger::merkle::TreeHead;
use crate::model::continued::Continues;
use crate::model::digest::{Digest, Oid};
use crate::model::outcomes::Outcomes;
use crate::model::role::Role;

use super::codes::Code;
use super::facts::{Decided, Facts};
use super::findings::Verdict;
use super::origins::TakenFrom;
use super::pipelines::Told;
use super::rows::Rows;
use super::same_id::{OtherRun, SameId};
use super::witness::{Anchored, Standing, Timed};

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

impl Guarantee {
    /// Returns the strongest of the anchors that hold a run; of none, the weakest that there is.
    pub(crate) fn strongest(anchored: &[Anchored]) -> Self {
        let holding = anchored.iter().filter(|anchored| anchored.standing == Standing::Holds);
        holding.map(|anchored| anchored.guarantee).max().unwrap_or(Self::Detect)
    }
}

/// What a report is headed by whose key nobody configured an opinion about.
pub(crate) const UNKNOWN_KEY: &str = "INTACT · unknown key";
/// What a report is headed by that is not what was expected or required.
pub(crate) const MISMATCH: &str = "MISMATCH";
/// The headline of a run whose id another run has as well.
pub(crate) const CONFLICT: &str = "CONFLICT";

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
    /// The run is not the one that the verifier expects, and nothing speaks against it.
    Mismatch,
    /// Another run has the same id, and nothing says which of the two is meant.
    Conflict,
    /// What is required of the run beyond being intact is not met.
    Required,
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
    /// Its name: one of [`Rows::NAMES`], or of [`ThreadRows::NAMES`](super::ThreadRows::NAMES).
    pub name: &'static str,
    /// What it says.
    pub state: State,
    /// One line for people.
    pub detail: String,
    /// The codes of what fails it; for rows of a run only.
    pub codes: Vec<Code>,
}

impl Report {
    /// Returns whether every signature is by a key that the verifier trusts.
    pub fn is_trusted(&self) -> bool {
        !self.signers.is_empty() && self.signers.iter().all(|signer| signer.trusted)
    }

    /// Returns whether the evidence holds of something that is not all done and green.
    pub fn is_partial(&self) -> bool {
        self.intact && self.outcome.as_ref().is_some_and(|outcome| !outcome.is_green())
    }
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
    /// Whether the verifier knows nothing of it: no line names it, it is not revoked and not this repository's.
    pub unknown: bool,
    /// Who admitted it to the run, if an entry of another key did.
    pub admitted: Option<Admission>,
}

/// The admission of a key to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The fingerprint of the key that signed the entry.
    pub by: String,
    /// The entry: the first that gives the key a role.
    pub entry: u64,
    /// The roles that the key was given, by this entry and by later ones.
    pub roles: Vec<Role>,
}

impl SignerSeen {
    /// Returns a signer of whose key nothing is known.
    pub fn unknown(fingerprint: String) -> Self {
        Self { fingerprint, principal: None, trusted: false, unknown: true, admitted: None }
    }
}

/// An earlier state that a proof says its run went on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Its entries and their root, which is the proof's own word unless it is known.
    pub head: TreeHead,
    /// Whether the verifier gave this root as the one that he knows.
    pub known: bool,
}

/// Something that stands beside the evidence and that nothing vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// Where it stands: `items[].attempts`.
    pub path: String,
    /// Why nothing vouches for it.
    pub detail: String,
}

/// What verification found. A report about a ref that exists is never an error.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run, by the name that the evidence gives it.
    pub run: String,
    /// Whose it is, where it was fetched.
    pub remote: Option<String>,
    /// Whether a seal stands in the chain.
    pub sealed: bool,
    /// Whether nothing failed and nothing was missing.
    pub intact: bool,
    /// How the items came out, as the entries tell it: of a run all of them, of a proof the one that it is about. None where that
    /// cannot be read, and of a proof that is about no item.
    pub outcome: Option<Outcomes>,
    /// What may be said of the run if it is intact.
    pub claim: Claim,
    /// How strong the strongest anchor is that holds the run.
    pub guarantee: Guarantee,
    /// The first failure; none exactly where the run is intact.
    pub failure: Option<Failure>,
    /// The verdict in two words, without its mark.
    pub headline: &'static str,
    /// What is required of it beyond being intact, and is not met, in a sentence; none where nothing is, or nobody asked.
    pub unmet: Option<String>,
    /// How many entries could be read.
    pub entries: u64,
    /// The Merkle root over the entries before the seal, recomputed; none for a run that is not sealed.
    pub root: Option<Digest>,
    /// The entries so far and their Merkle root, of a run that is not sealed and whose entries follow one another from the first.
    pub so_far: Option<TreeHead>,
    /// The earlier state that a proof is about; none of a run.
    pub since: Option<Since>,
    /// The digest of the plan, as entry 0 says.
    pub plan: Option<Digest>,
    /// The digest of the rules that the queue and the pattern add to the plan's, as entry 0 says; none where they add none.
    pub rules: Option<Digest>,
    /// What people decided about items, in the order of the entries.
    pub decisions: Vec<Decided>,
    /// The run that it continues, as entry 0 says; the row `handoff` says whether the evidence holds.
    pub continues: Option<Continues>,
    /// The runs and threads that it took something from, those that these took from, and so on, as far as they are here.
    pub taken_from: Vec<TakenFrom>,
    /// The digests of the pipelines that were sealed with the run, by the names that items give them.
    pub pipelines: BTreeMap<String, Digest>,
    /// What the entries say of the blocks of each item that has a pipeline; the row `plan` says whether that fits.
    pub blocks: Vec<Told>,
    /// The commit that the run starts from, as entry 0 says.
    pub base: Option<Oid>,
    /// Who submitted the run, as entry 0 claims.
    pub actor: Option<String>,
    /// The rows.
    pub rows: Rows<Row>,
    /// The keys that signed, in order of appearance.
    pub signers: Vec<SignerSeen>,
    /// What each anchor says: the logs at hand, and every place outside that was asked.
    pub anchors: Vec<Anchored>,
    /// What time-stamping authorities say of the run. It changes no claim.
    pub times: Vec<Timed>,
    /// What confined the dispatched attempts, counted.
    pub sandbox: BTreeMap<String, u64>,
    /// Whether entries were dated by a pinned test clock.
    pub pinned_clock: bool,
    /// What stands in the evidence and nothing vouches for, by path. Runs of this format have nothing of the kind.
    pub uncovered: Vec<Uncovered>,
    /// The other runs that have the same id, if there are any.
    pub same_id: Option<SameId>,
}

/// The rows' verdicts, before they are summed up.
pub(crate) struct Verdicts {
    pub(crate) rows: Rows<Verdict>,
    pub(crate) signers: Vec<SignerSeen>,
    pub(crate) missing_anchor: bool,
    pub(crate) anchored: Vec<Anchored>,
    pub(crate) times: Vec<Timed>,
    pub(crate) sandbox: BTreeMap<String, u64>,
    pub(crate) outcome: Option<Outcomes>,
    pub(crate) others: Vec<OtherRun>,
}

impl Verdicts {
    /// Sums up; `distrust` says that signatures fail for want of trust only.
    pub(crate) fn report(self, facts: Facts, distrust: bool) -> Report {
        let failure = self.failure(facts.sealed);
        let guarantee = Guarantee::strongest(&self.anchored);
        let trusted = !self.signers.is_empty() && self.signers.iter().all(|signer| signer.trusted);
        let all_ok = self.rows.iter().all(|verdict| verdict.state == State::Ok);
        // That a key is this repository's own convinces nobody else: the verifier's signers have to name each.
        let named = trusted && self.signers.iter().all(|signer| signer.principal.is_some());
        let evident = all_ok && failure.is_none() && named && guarantee == Guarantee::ExternalImmutable;
        let claim = if evident { Claim::TamperEvident } else { Claim::TamperDetecting };
        let headline = match failure {
            None if evident => "INTACT · tamper-evident",
            None if !trusted => UNKNOWN_KEY,
            None => "INTACT · tamper-detecting",
            Some(_) if self.is_tampered(facts.sealed, distrust) => "TAMPERED",
            Some(Failure::AnchorMissing) => "NOT ANCHORED",
            Some(Failure::Signature) => "UNTRUSTED",
            Some(Failure::Mismatch | Failure::Required) => MISMATCH,
            Some(Failure::Conflict) => CONFLICT,
            Some(Failure::NotSealed) => "NOT SEALED",
            Some(_) => "INCOMPLETE",
        };
        Report {
            run: facts.run,
            remote: facts.remote,
            sealed: facts.sealed,
            intact: failure.is_none(),
            outcome: self.outcome,
            claim,
            guarantee,
            failure,
            headline,
            unmet: None,
            entries: facts.entries,
            root: facts.root,
            so_far: facts.so_far,
            since: None,
            plan: facts.plan,
            rules: facts.rules,
            pipelines: facts.pipelines,
            blocks: facts.blocks,
            base: facts.base,
            actor: facts.actor,
            rows: self.rows.map(Verdict::row),
            signers: self.signers,
            anchors: self.anchored,
            times: self.times,
            sandbox: self.sandbox,
            pinned_clock: facts.pinned_clock,
            decisions: facts.decisions,
            continues: facts.continues,
            taken_from: Vec::new(),
            uncovered: Vec::new(),
            same_id: SameId::of(facts.begun, self.others),
        }
    }

    /// Returns whether each row failed.
    fn failed(&self) -> Rows<bool> {
        self.rows.map(|_, verdict| verdict.state == State::Failed && !verdict.mismatch && !verdict.conflict)
    }

    /// Returns whether the root is not the one that was sealed; an anchor that holds another fails it as well.
    fn is_another_root(&self, failed: &Rows<bool>, sealed: bool) -> bool {
        (failed.root && sealed) || (failed.anchor && !self.missing_anchor)
    }

    /// Returns the first failure, in the order of [`Failure`].
    fn failure(&self, sealed: bool) -> Option<Failure> {
        let failed = self.failed();
        let failures = [
            (failed.chain, Failure::Chain),
            (self.missing_anchor, Failure::AnchorMissing),
            (self.is_another_root(&failed, sealed), Failure::Root),
            (failed.signature, Failure::Signature),
            (failed.manifest, Failure::Manifest),
            (failed.plan, Failure::Plan),
            (failed.handoff, Failure::Handoff),
            (failed.content, Failure::Content),
            (self.rows.iter().any(|verdict| verdict.mismatch), Failure::Mismatch),
            (self.rows.iter().any(|verdict| verdict.conflict), Failure::Conflict),
            (!sealed && failed.root, Failure::NotSealed),
            (self.rows.iter().any(|verdict| verdict.incomplete), Failure::Incomplete),
        ];
        failures.into_iter().find(|(failed, _)| *failed).map(|(_, failure)| failure)
    }

    /// Whether any row contradicts the run, as opposed to missing or distrusting something.
    pub(crate) fn is_tampered(&self, sealed: bool, distrust: bool) -> bool {
        let failed = self.failed();
        let another_root = self.is_another_root(&failed, sealed);
        // Every other row contradicts it when it fails.
        let rest =
            Rows { root: another_root, anchor: another_root, signature: failed.signature && !distrust, ..failed };
        rest.iter().any(|contradicts| *contradicts)
    }
}
