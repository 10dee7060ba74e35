//! The rows of a run, the failures, and the codes of findings, each with its stage of the
//! verification.
//!
//! Tests write the table in section 9 of `docs/reference/format.md` and that of the JavaScript
//! verifier from this one, and `docs/vectors` has a run for each code. A `§` is a section of the
//! format.

use crate::model::words::{schema_of_words, words, written_as_text};

use super::rows::rows;

words! {
    word
    /// A stage of the verification. Only the first stage with a finding is judged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Stage {
        /// Commits and entries: their bytes, order, signatures and roles, and the root.
        Chain = "chain",
        /// The plan, the replay and the bytes that these need.
        Plan = "plan",
        /// All other bytes.
        Content = "content",
        /// Keys, logs and anchors that the reader knows.
        Policy = "policy",
    }
}

rows! {
    /// The rows of a run.
    Rows {
        /// The entries follow one another, and account for all changes to the tree.
        chain,
        /// The Merkle root is the sealed and anchored one.
        root,
        /// Every entry is signed by a key that may write it and that the verifier trusts.
        signature,
        /// An anchor outside the run holds its root.
        anchor,
        /// Each attempt consumed the products that the plan binds.
        handoff,
        /// The run followed its plan.
        plan,
        /// Every dispatch matches its manifest.
        manifest,
        /// The products have the recorded bytes.
        content,
    }
}

words! {
    as_str
    /// The reason why a run fails, in order of precedence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Failure {
        /// The chain of entries is broken.
        Chain = "chain",
        /// No anchor holds the run's root.
        AnchorMissing = "anchor-missing",
        /// The root differs from the entries or from an anchor.
        Root = "root",
        /// A signature is invalid, or its key is not allowed or not trusted.
        Signature = "signature",
        /// A dispatch does not match its manifest.
        Manifest = "manifest",
        /// The run does not follow its plan.
        Plan = "plan",
        /// A consumed product is not the one that the plan binds.
        Handoff = "handoff",
        /// A product has other bytes than recorded.
        Content = "content",
        /// The run is valid, but not the one that the verifier expects.
        Mismatch = "mismatch",
        /// Another run has the same id, and it is unknown which one is meant.
        Conflict = "conflict",
        /// The run is intact, but does not meet a requirement.
        Required = "required",
        /// The run is not sealed.
        NotSealed = "not-sealed",
        /// Evidence is missing from this repository.
        Incomplete = "incomplete",
    }
}

written_as_text!(Stage, Failure);
schema_of_words!(Stage: "A stage of the verification.", Failure: "The reason why a run fails.");

macro_rules! codes {
    ($($stage:ident {
        $($(#[doc = $finding:literal])+ $name:ident = $word:literal of $row:literal => $failure:ident,)*
    })*) => {
        /// The code of a finding. Codes are ordered as in the table of section 9.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($($(#[doc = $finding])+ $name,)*)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Self] = &[$($(Self::$name,)*)*];

            /// Returns the word for it.
            pub fn word(self) -> &'static str {
                match self { $($(Self::$name => $word,)*)* }
            }

            /// Returns what is wrong with the run, as in the table of section 9.
            pub fn finding(self) -> &'static str {
                match self { $($(Self::$name => concat!($($finding),+).trim_ascii_start(),)*)* }
            }

            /// Returns the row that it fails.
            pub fn row(self) -> &'static str {
                match self { $($(Self::$name => $row,)*)* }
            }

            /// Returns the stage that it belongs to.
            pub fn stage(self) -> Stage {
                match self { $($(Self::$name => Stage::$stage,)*)* }
            }

            /// Returns the failure of a run with this first finding.
            pub fn failure(self) -> Failure {
                match self { $($(Self::$name => Failure::$failure,)*)* }
            }
        }
    };
}

impl Code {
    /// Returns the first code of a row, whose stage is the first that judges the row.
    pub(crate) fn of_row(row: &str) -> Self {
        *Self::ALL.iter().find(|code| code.row() == row).expect("each row of a run has a code")
    }

    /// Returns true if the code says that the reader requires something that the run is not.
    pub fn is_requirement(self) -> bool {
        matches!(self.failure(), Failure::Mismatch | Failure::NotSealed)
    }

    /// Returns true if the finding contradicts the run, as opposed to evidence that is missing or
    /// not trusted.
    pub fn contradicts(self) -> bool {
        self.stage() < Stage::Policy || self == Self::AnchorDiffers
    }

    /// Returns true if the finding is about the trust in a key.
    pub(crate) fn is_distrust(self) -> bool {
        matches!(self, Self::KeyRevoked | Self::KeyNotValid | Self::KeyUnknown)
    }
}

codes! {
    Chain {
        /// The ref is symbolic, cannot be read, or names an object of another type than a commit.
        Ref = "ref" of "chain" => Chain,
        /// A commit of the chain is missing, damaged, of the wrong type or too large, or all
        /// commits together are (§15).
        Object = "object" of "chain" => Chain,
        /// A commit is not byte for byte what its entry makes, or the entry is not valid (§3).
        /// After 100 of them, counted from the ref, older commits are not read.
        Entry = "entry" of "chain" => Chain,
        /// `seq` is not one more than that of the previous entry, `prev` is not its leaf hash, `at`
        /// is before its `at`, or the commit does not have exactly one parent. In the first entry:
        /// `seq` is not 0, `prev` is present, or the commit has a parent.
        Order = "order" of "chain" => Chain,
        /// The first entry is not `run.submitted`, or another one is; an entry is of a kind that
        /// begins with `log.`, `thread.` or `archive.`, follows `run.sealed`, or names another run
        /// than the ref.
        Misplaced = "misplaced" of "chain" => Chain,
        /// Two artifacts of entry 0, or two outputs of one entry, clash (§1).
        Paths = "paths" of "chain" => Chain,
        /// An entry is not signed, or its signature does not match or does not have the form of §3.
        Signature = "signature" of "signature" => Signature,
        /// The key that signed an entry has none of the roles for it, or one of the four points
        /// after the table of roles (§6) is broken.
        Role = "role" of "signature" => Signature,
        /// The content of `said` is not a statement of the entry (§6).
        Statement = "statement" of "signature" => Signature,
        /// `root` of the seal is not the Merkle root over the leaf hashes of the entries before it.
        SealRoot = "seal-root" of "root" => Root,
    }
    Plan {
        /// The blob of `plan.json` or of an `item.json` is missing, damaged or too large.
        BytesMissing = "bytes-missing" of "plan" => Plan,
        /// `plan.json` or an `item.json` is not the bytes that the entry names.
        Bytes = "bytes" of "plan" => Plan,
        /// `plan.json` is not a plan (§14), has one item twice, or an item depends on one that the
        /// plan does not have.
        PlanInvalid = "plan-invalid" of "plan" => Plan,
        /// Entry 0 contradicts the plan: its `id`, or the keys of its `artifacts`; or `base` is not
        /// an object name in the repository's object format.
        PlanEntry = "plan-entry" of "plan" => Plan,
        /// The blob of `rules.json` is unusable; or it is not an array of 1 to 10,000 rules, or has
        /// an id that, after lower-casing, is that of another of its rules or of the plan's.
        RulesInvalid = "rules-invalid" of "plan" => Plan,
        /// The blob of a pipeline is unusable; or the pipeline is not valid (§6), or has another
        /// `id` or digest than its name says. It stands at the first entry with that name. Or the
        /// names in `pipelines` of entry 0 are not those that §6 requires.
        Pipelines = "pipelines" of "plan" => Plan,
        /// The names in `imports` of entry 0 are not exactly those that §6 requires.
        Imports = "imports" of "plan" => Plan,
        /// The evidence of an import, of the continued run, or of an `item.reconciled` with
        /// `reused` does not hold (§6).
        Proof = "proof" of "handoff" => Handoff,
        /// An `item.json` is not an item (§14), or is not the canonical JSON of the normalised
        /// item.
        ItemInvalid = "item-invalid" of "plan" => Plan,
        /// An `item.fired` names an item that the run does not have.
        UnknownItem = "unknown-item" of "handoff" => Handoff,
        /// A need of the item has no input ref in its `item.fired`.
        Need = "need" of "handoff" => Handoff,
        /// An input ref belongs to no need of the item, or its `from` or `select` is not that of
        /// the need.
        Input = "input" of "handoff" => Handoff,
        /// `ref` of an input ref is not the digest to which the need is bound at that entry, or the
        /// need is not bound then (below).
        InputBytes = "input-bytes" of "handoff" => Handoff,
        /// The blob of the manifest of an `item.fired` is unusable; or the manifest is not
        /// canonical, or does not have the fields of §5.
        ManifestInvalid = "manifest-invalid" of "manifest" => Manifest,
        /// `executor`, `subagent`, `argv`, `inputs`, `timeout`, `pipeline` or `start` of the
        /// manifest is not as the plan requires (§5), or `protect` lacks a rule of the item's.
        ManifestPlan = "manifest-plan" of "manifest" => Manifest,
        /// A document that a rule reads there, or at the seal, is missing, damaged, or not the
        /// bytes that its entry names.
        RuleDocument = "rule-document" of "plan" => Plan,
        /// A `run.extended` or `run.concluded` is not what its rule, if the run has it, creates or
        /// concludes at that point of the chain.
        Rule = "rule" of "plan" => Plan,
        /// `blocks` of an entry does not satisfy §6 for the item's pipeline.
        Blocks = "blocks" of "plan" => Plan,
        /// An entry is not a legal transition (§6).
        Transition = "transition" of "plan" => Plan,
        /// An item that is done and reused nothing has `reference`, `protectedAllowed` or
        /// `protectedJudged` not as §4 says, `protected` not as base, consumed patches, patch and
        /// manifest give (§6), or a manifest whose `start` is not the item's.
        Protected = "protected" of "plan" => Plan,
        /// At `run.sealed` of a run that is neither closed nor cancelled, a rule acts or has
        /// stopped short (§6).
        RuleWaits = "rule-waits" of "plan" => Plan,
        /// The keys of the seal's `stopped`, none if it is absent, are not exactly the rules that
        /// stopped (§6). The reasons do not count.
        Stopped = "stopped" of "plan" => Plan,
    }
    Content {
        /// The blob of a product, of an import, of a revision of a document or of an artifact is
        /// missing or damaged.
        ContentUnread = "content-unread" of "content" => Content,
        /// The bytes of such a blob, or their number, are not those of the entry.
        ContentBytes = "content-bytes" of "content" => Content,
    }
    Policy {
        /// A log at hand, or an external anchor, has another entry 0 or another seal of the run, or
        /// a seal of a run that is not sealed.
        AnchorDiffers = "anchor-differs" of "anchor" => Root,
        /// A key that counts (below) is revoked.
        KeyRevoked = "key-revoked" of "signature" => Signature,
        /// A key that counts is outside its validity in the verifier's signers at the time of the
        /// entry.
        KeyNotValid = "key-not-valid" of "signature" => Signature,
        /// A key that counts is not in the verifier's signers, and the verifier requires known
        /// keys.
        KeyUnknown = "key-unknown" of "signature" => Signature,
        /// No log at hand has the seal of a sealed run, and the row is not open; or an external
        /// anchor lacks it (below).
        AnchorMissing = "anchor-missing" of "anchor" => AnchorMissing,
        /// A log of a writer is broken (§8).
        AnchorBroken = "anchor-broken" of "anchor" => AnchorMissing,
        /// The run was driven twice (below).
        DrivenTwice = "driven-twice" of "anchor" => Conflict,
        /// Another run with the same id is in conflict with this one (below).
        SameId = "same-id" of "anchor" => Conflict,
        /// The verifier requires a principal or a key, and a key that conducts the run is another
        /// one.
        OtherSigner = "other-signer" of "signature" => Mismatch,
        /// The verifier requires another plan.
        OtherPlan = "other-plan" of "plan" => Mismatch,
        /// The verifier requires another base.
        OtherBase = "other-base" of "plan" => Mismatch,
        /// A source, near or far (§6), is here and contradicts the evidence.
        OtherSource = "other-source" of "handoff" => Mismatch,
        /// No entry is `run.sealed`.
        NotSealed = "not-sealed" of "root" => NotSealed,
    }
}
