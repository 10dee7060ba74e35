//! Reports on runs as data: `git-handoff.verify/1`.

mod conversions;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::decision::Decision;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::{Because, DriverId};
use crate::model::name::{ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::verify::findings::Finding;
use crate::verify::pipelines::ItemBlocks;
use crate::verify::protected::{NotRecomputed, ProtectedItem};
use crate::verify::report::Claim;
use crate::verify::witness::{Anchored, Timed};
use crate::verify::{Failure, Guarantee, Rows, SignerSeen, Stage, State, Uncovered};

/// The report on a run, a proof or a bundle: the output of `verify` for each.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.verify/1", rename_all = "camelCase")]
pub(in crate::verify) struct ReportShown<'a> {
    /// The run, by its name in the evidence.
    run: &'a str,
    /// The remote of a fetched run; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<&'a str>,
    /// The requirement besides being intact that is not met; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<&'a str>,
    /// True if the chain holds a seal.
    sealed: bool,
    /// True if nothing failed and nothing was missing.
    intact: bool,
    /// True if every signature is by a key that the verifier trusts.
    trusted: bool,
    /// The property that the run proves if it is intact.
    claim: Claim,
    /// The strength of the strongest anchor that holds the run.
    guarantee: Guarantee,
    /// The first finding of the first stage that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<FirstShown>,
    /// The failure that follows from the first finding; null exactly if the run is intact.
    failure: Option<Failure>,
    /// The outcome of the items, by the entries; null if unreadable, and for a proof about no item.
    outcome: Option<&'a Outcomes>,
    /// The number of readable entries.
    entries: u64,
    /// The recomputed Merkle root over the entries before the seal; null if the run is not sealed.
    root: Option<Digest>,
    /// The entries so far and their root, for a run that is not sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    so_far: Option<HeadShown>,
    /// The earlier state that a proof is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<SinceShown>,
    /// The run that it continues, by entry 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<ContinuesShown<'a>>,
    /// The digest of the plan, by entry 0.
    plan: Option<Digest>,
    /// The digest of the rules that the queue and the pattern add to the plan's.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Digest>,
    /// The commit that the run starts from, by entry 0.
    base: Option<Oid>,
    /// Every row, by its name.
    checks: Rows<RowShown<'a>>,
    /// The keys that signed, in order of appearance.
    signers: &'a [SignerSeen],
    /// The decisions about items, in the order of the entries; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<DecidedShown<'a>>,
    /// The attempts that were taken from their drivers, in the order of the entries; absent if
    /// there are none. The silence of a driver cannot be proven.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    takeovers: Vec<TakenOverShown<'a>>,
    /// The items whose patches change protected files; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    protected: &'a [ProtectedItem],
    /// The items whose protected files were not recomputed, so that the row `plan` is open; absent
    /// if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_recomputed: &'a [NotRecomputed],
    /// The items whose checks decided while no file was protected; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unprotected: &'a [ItemId],
    /// The other runs with the same id; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_id: Option<SameIdShown<'a>>,
    /// The runs and threads that the run took something from, their own sources, and so on; absent
    /// if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taken_from: Vec<UpstreamShown<'a>>,
    /// The digests of the sealed pipelines, by their names in items; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipelines: Option<&'a BTreeMap<String, Digest>>,
    /// The blocks of each item with a pipeline, by the entries; absent without pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<&'a [ItemBlocks]>,
    /// The answer of each anchor; absent if there is none besides the logs at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    anchors: Option<&'a [Anchored]>,
    /// The answers of time-stamping authorities, which change no claim; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    times: &'a [Timed],
    /// The number of dispatched attempts for each kind of confinement.
    sandbox: &'a BTreeMap<String, u64>,
    /// `real` if an attempt had the user's own home directory; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "real")))]
    home: Option<&'static str>,
    /// The places that settings let attempts write besides their worktrees; absent if there are
    /// none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<String>", length(min = 1)))]
    writable: &'a BTreeSet<String>,
    /// `pinned` if a pinned test clock dated entries; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "pinned")))]
    clock: Option<&'static str>,
    /// The parts of the evidence that no signature covers; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    uncovered: &'a [Uncovered],
}

/// The first finding of the first stage that has one.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FirstShown {
    /// The stage.
    stage: Stage,
    /// The code, from the table of findings in docs/reference/format.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// The number of the entry; 0 also for a finding about the whole chain, absent for a
    /// requirement of the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<u64>,
}

/// A number of entries and the root over them.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct HeadShown {
    /// The number of entries.
    entries: u64,
    /// The root over them.
    root: Digest,
}

/// An earlier state that the run of a proof extends.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SinceShown {
    /// The number of entries.
    entries: u64,
    /// The root over them.
    root: Digest,
    /// True if the verifier supplied this root.
    known: bool,
}

/// A run that another one continues.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ContinuesShown<'a> {
    /// The run.
    run: &'a RunId,
    /// The number of its entries, without a seal.
    entries: u64,
    /// The Merkle root over them.
    root: Digest,
}

/// A row of a report.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct RowShown<'a> {
    /// True if the row holds; `n/a` if it could not be checked or there was nothing to check.
    #[cfg_attr(feature = "schemas", schemars(with = "serde_json::Value", extend("enum" = [true, false, "n/a"])))]
    ok: State,
    /// One line for people.
    detail: &'a str,
    /// The codes of the failure; absent if there are none. A failed row of a run has at least one.
    /// docs/reference/format.md, section 9, has the table of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codes: Vec<&'static str>,
    /// The first contradictions and missing objects, at most 20 of each; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    findings: &'a [Finding],
}

/// A decision about an item.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct DecidedShown<'a> {
    /// The item.
    item: &'a ItemId,
    /// The decision.
    decision: Decision,
    /// The key that decided, according to the entry.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    by: &'a str,
    /// True if a signature of that key is shown: over the entry, over a statement in it, or over
    /// the seal.
    signed: bool,
    /// The key that vouches for the decision; absent if the key in `by` signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    on_word_of: Option<&'a str>,
    /// False if nothing shows that the key may decide, as in a proof of a run whose first entry
    /// does not give it the role; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = false)))]
    role_shown: Option<bool>,
}

/// An attempt that was taken from its driver.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TakenOverShown<'a> {
    /// The number of the entry.
    entry: u64,
    /// The item.
    item: &'a ItemId,
    /// The attempt.
    attempt: u32,
    /// The driver that held it.
    driver: &'a DriverId,
    /// The name of that driver's host, by its own word; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    /// The driver that took it; absent if the entry names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    taker: Option<&'a DriverId>,
    /// The reason, by the word of the key that signed.
    because: Because,
    /// The key that signed the entry; absent if its signature is not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    key: Option<&'a str>,
}

/// A run or a thread that something was taken from.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct UpstreamShown<'a> {
    /// The kind.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["run", "thread"])))]
    kind: &'static str,
    /// The name.
    name: &'a str,
    /// The number of steps from the verified run.
    depth: u32,
    /// The sealed root of a run; absent for a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<Digest>"))]
    root: Option<&'a str>,
    /// The checkpoint of a thread; absent for a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a str>,
    /// True if a copy is here.
    here: bool,
    /// True if the copy is complete and valid; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    intact: Option<bool>,
    /// The reason why the copy is not proven, or its contradiction to the evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// A run, and the others with its id.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SameIdShown<'a> {
    /// The key that signed entry 0 of this run; null if the signature is not valid.
    key: Option<&'a str>,
    /// The leaf hash of entry 0 of this run.
    first: Option<Digest>,
    /// The other runs.
    others: Vec<OtherRunShown<'a>>,
}

/// Another run with the same id.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct OtherRunShown<'a> {
    /// The key whose log or anchor names it.
    key: &'a str,
    /// The principal of that key in the verifier's signers; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    /// The leaf hash of its entry 0; null if only its seal is known.
    first: Option<Digest>,
    /// The log or the anchor that names it.
    named_by: &'a str,
    /// True if it is unknown which of the two runs is meant.
    conflicts: bool,
}
