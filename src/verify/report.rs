//! The report of a verification, and how the verdict follows from the rows. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::ledger::merkle::TreeHead;
use crate::model::continued::Continues;
use crate::model::digest::{Digest, Oid};
use crate::model::name::ItemId;
use crate::model::outcomes::Outcomes;
use crate::model::role::Role;
use crate::model::words::{schema_of_words, words, written_as_text};

use super::claims::{Decided, TakenOver};
use super::codes::{Code, Failure, Rows};
use super::findings::{Finding, First, Verdict};
use super::pipelines::ItemBlocks;
use super::protected::{NotRecomputed, ProtectedItem};
use super::same_id::SameId;
use super::upstream::Upstream;
use super::witness::{Anchored, Standing, Timed};

words! {
    as_str
    /// The strength of an anchor that holds a run's root.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Guarantee {
        /// A log in the same repository. It detects tampering by who cannot rewrite both.
        #[default]
        Detect = "detect",
        /// An anchor that other people operate.
        External = "external",
        /// An anchor that cannot be rewritten.
        ExternalImmutable = "external-immutable",
    }
}

written_as_text!(Guarantee);
schema_of_words!(Guarantee: "The strength of an anchor that holds a run's root.");

impl Guarantee {
    /// Returns the strongest guarantee of the anchors that hold the run; `Detect` if there are
    /// none.
    pub(crate) fn strongest(anchored: &[Anchored]) -> Self {
        let holding = anchored.iter().filter(|anchored| anchored.standing == Standing::Holds);
        holding.map(|anchor| anchor.guarantee).max().unwrap_or(Self::Detect)
    }
}

/// The headline of an intact run with an unknown key.
pub(crate) const UNKNOWN_KEY: &str = "INTACT · unknown key";
/// The headline of a run that is not as expected or required.
pub(crate) const MISMATCH: &str = "MISMATCH";
/// The headline of a run whose id another run has as well.
pub(crate) const CONFLICT: &str = "CONFLICT";

words! {
    as_str
    /// The property that an intact run proves.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Claim {
        /// Tampering is visible to everyone who trusts the anchors at hand.
        #[default]
        TamperDetecting = "tamper-detecting",
        /// Tampering is visible to everyone.
        TamperEvident = "tamper-evident",
    }
}

written_as_text!(Claim);
schema_of_words!(Claim: "The property that an intact run proves.");

/// The state of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Checked, and holds.
    Ok,
    /// Checked, and does not hold.
    Failed,
    /// Not checked, or nothing to check.
    #[default]
    NotApplicable,
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ok => serializer.serialize_bool(true),
            Self::Failed => serializer.serialize_bool(false),
            Self::NotApplicable => serializer.serialize_str("n/a"),
        }
    }
}

/// One row of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The name: one of [`Rows::NAMES`], or of [`ThreadRows::NAMES`](super::ThreadRows::NAMES).
    pub name: &'static str,
    /// The state.
    pub state: State,
    /// One line of text.
    pub detail: String,
    /// The codes of the findings; empty for rows of threads.
    pub codes: Vec<Code>,
    /// The first findings, at most 20 of each kind.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Returns true if the verifier trusts every key that signed.
    pub fn is_trusted(&self) -> bool {
        !self.signers.is_empty() && self.signers.iter().all(|signer| signer.trusted)
    }

    /// Returns true if the run is intact, but not all done and green.
    pub fn is_partial(&self) -> bool {
        self.intact && self.outcome.as_ref().is_some_and(|outcome| !outcome.is_green())
    }
}

/// A key that signed entries of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SignerSeen {
    /// `SHA256:<base64>` of the key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub fingerprint: String,
    /// The principal, if the verifier's signers name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// True if the verifier trusts the key at all times at which it signed.
    pub trusted: bool,
    /// True if no signer, revocation or own key mentions it.
    #[serde(skip)]
    pub unknown: bool,
    /// The admission of the key, if another key admitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Admission>,
}

/// The admission of a key to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Admission {
    /// The fingerprint of the key that signed the entry.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub by: String,
    /// The first entry that gives the key a role.
    pub entry: u64,
    /// All roles that the key was given.
    pub roles: Vec<Role>,
}

impl SignerSeen {
    /// Returns an unknown signer.
    pub fn unknown(fingerprint: String) -> Self {
        Self { fingerprint, principal: None, trusted: false, unknown: true, admitted: None }
    }
}

/// The earlier state that a proof of growth starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Its entries and root, as the proof claims them.
    pub head: TreeHead,
    /// True if the verifier supplied the same root.
    pub known: bool,
}

/// A part of the evidence that no signature covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Uncovered {
    /// Its path, such as `items[].attempts`.
    pub path: String,
    /// The reason.
    pub detail: String,
}

/// The result of a verification. A run with an existing ref always has a report.
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    feature = "schemas",
    derive(schemars::JsonSchema),
    schemars(rename = "git-handoff.verify/1", with = "super::render::ReportShown<'static>")
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Report {
    /// The name of the run, as the evidence states it.
    pub run: String,
    /// The remote, if the run was fetched.
    pub remote: Option<String>,
    /// True if the chain holds a seal.
    pub sealed: bool,
    /// True if nothing failed and nothing was missing.
    pub intact: bool,
    /// The outcome of all items of a run, or of the one item of a proof; `None` if unknown, or if a
    /// finding is in the chain or the plan.
    pub outcome: Option<Outcomes>,
    /// The property that the run proves if it is intact.
    pub claim: Claim,
    /// The strength of the strongest anchor that holds the run.
    pub guarantee: Guarantee,
    /// The first finding of the first stage that has one.
    pub finding: Option<First>,
    /// The failure that follows from it, or `None` if the run is intact.
    pub failure: Option<Failure>,
    /// The verdict in a few words.
    pub headline: &'static str,
    /// The requirement that is not met, in a sentence.
    pub unmet: Option<String>,
    /// The number of readable entries.
    pub entries: u64,
    /// The recomputed Merkle root over the entries before the seal, if the run is sealed.
    pub root: Option<Digest>,
    /// The entries and root of an unsealed run whose entries follow one another from the first.
    pub so_far: Option<TreeHead>,
    /// The earlier state that a proof of growth starts from.
    pub since: Option<Since>,
    /// The digest of the plan, as entry 0 states it.
    pub plan: Option<Digest>,
    /// The digest of the rules that queue and pattern add to the plan's, as entry 0 states it.
    pub rules: Option<Digest>,
    /// The decisions about items, in the order of the entries.
    pub decisions: Vec<Decided>,
    /// The attempts that were taken from their drivers, in the order of the entries.
    pub takeovers: Vec<TakenOver>,
    /// The items whose patches change protected files. The row `plan` judges the list.
    pub protected: Vec<ProtectedItem>,
    /// The items whose protected files could not be recomputed; the row `plan` is open then.
    pub not_recomputed: Vec<NotRecomputed>,
    /// The items whose checks decided while no file was protected.
    pub unprotected: Vec<ItemId>,
    /// The run that this one continues, as entry 0 states it. The row `handoff` judges the
    /// evidence.
    pub continues: Option<Continues>,
    /// The sources of imports, their own sources, and so on, as far as they are here.
    pub upstream: Vec<Upstream>,
    /// The digests of the pipelines, by the names in items.
    pub pipelines: BTreeMap<String, Digest>,
    /// The claimed blocks of each item with a pipeline. The row `plan` judges them.
    pub blocks: Vec<ItemBlocks>,
    /// The commit that the run starts from, as entry 0 states it.
    pub base: Option<Oid>,
    /// The submitter, as entry 0 claims.
    pub actor: Option<String>,
    /// The rows.
    pub rows: Rows<Row>,
    /// The keys that signed, in order of appearance.
    pub signers: Vec<SignerSeen>,
    /// The answers of the logs at hand and of each external anchor.
    pub anchors: Vec<Anchored>,
    /// The answers of time-stamping authorities. They change no claim.
    pub times: Vec<Timed>,
    /// The number of attempts for each sandbox.
    pub sandbox: BTreeMap<String, u64>,
    /// True if an attempt had the user's own home directory.
    pub real_home: bool,
    /// The places that settings let attempts write besides their worktrees.
    pub writable: BTreeSet<String>,
    /// True if a pinned test clock dated entries.
    pub pinned_clock: bool,
    /// The parts that no signature covers. Runs of this format have none.
    pub uncovered: Vec<Uncovered>,
    /// The other runs with the same id.
    pub same_id: Option<SameId>,
}

/// The verdicts of the rows, before the conclusion.
pub(crate) struct Verdicts {
    pub(crate) rows: Rows<Verdict>,
    /// Everything else in the report.
    pub(crate) claims: Report,
}

impl Verdicts {
    pub(crate) fn report(self) -> Report {
        let finding = self.first();
        let rows = match finding {
            Some(first) => self.rows.map(|name, verdict| Verdict::row(name, &verdict.up_to(name, first))),
            None => self.rows.map(Verdict::row),
        };
        let is_incomplete = self.rows.iter().any(|verdict| verdict.incomplete);
        let failure = finding.map(First::failure).or(is_incomplete.then_some(Failure::Incomplete));
        let mut claims = self.claims;
        if finding.is_some_and(First::precedes_content) {
            claims.outcome = None;
            claims.unprotected.clear();
        }
        let guarantee = Guarantee::strongest(&claims.anchors);
        let trusted = claims.is_trusted();
        let all_ok = rows.iter().all(|row| row.state == State::Ok);
        // The repository's own key is no evidence for others: the signers must name each key.
        let all_named = trusted && claims.signers.iter().all(|signer| signer.principal.is_some());
        let evident = all_ok && failure.is_none() && all_named && guarantee == Guarantee::ExternalImmutable;
        let claim = if evident { Claim::TamperEvident } else { Claim::TamperDetecting };
        let headline = match failure {
            None if evident => "INTACT · tamper-evident",
            None if !trusted => UNKNOWN_KEY,
            None => "INTACT · tamper-detecting",
            Some(_) if finding.is_some_and(First::contradicts) => "TAMPERED",
            Some(Failure::AnchorMissing) => "NOT ANCHORED",
            Some(Failure::Signature) => "UNTRUSTED",
            Some(Failure::Mismatch | Failure::Required) => MISMATCH,
            Some(Failure::Conflict) => CONFLICT,
            Some(Failure::NotSealed) => "NOT SEALED",
            Some(_) => "INCOMPLETE",
        };
        Report { intact: failure.is_none(), claim, guarantee, finding, failure, headline, rows, ..claims }
    }

    /// Returns the first finding of the first stage that has one.
    pub(crate) fn first(&self) -> Option<First> {
        self.rows.map(First::from_verdict).iter().flatten().min().copied()
    }

    /// Returns true if the first finding contradicts the run.
    pub(crate) fn is_tampered(&self) -> bool {
        self.first().is_some_and(First::contradicts)
    }
}
