//! The codes of findings: every way in which a row of a run fails has one.
//!
//! Section 9 of `docs/reference/format.md` has a line for each, with its row and its failure, and
//! `docs/vectors` a run for each. A test compares the three.

use super::Failure;

/// Defines the codes, row by row, in the order of the rows.
macro_rules! codes {
    ($($row:literal { $($(#[$of_one:meta])* $name:ident = $word:literal => $failure:ident,)* })*) => {
        /// The code of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($($(#[$of_one])* $name,)*)*
        }

        impl Code {
            /// All codes, in the order of the rows.
            pub const ALL: &[Self] = &[$($(Self::$name,)*)*];

            /// Returns the word for it.
            pub fn word(self) -> &'static str {
                match self { $($(Self::$name => $word,)*)* }
            }

            /// Returns the row that it fails.
            pub fn row(self) -> &'static str {
                match self { $($(Self::$name => $row,)*)* }
            }

            /// Returns the failure of a run with no other finding.
            pub fn failure(self) -> Failure {
                match self { $($(Self::$name => Failure::$failure,)*)* }
            }
        }
    };
}

codes! {
    "chain" {
        /// The ref is symbolic or unreadable, or names no commit.
        Ref = "ref" => Chain,
        /// An object of the chain or of its trees is missing, damaged, of the wrong type, or too large.
        Object = "object" => Chain,
        /// Too many commits are no entries; the history before them is not read.
        NotRead = "not-read" => Chain,
        /// A commit is no valid entry.
        Entry = "entry" => Chain,
        /// `seq` does not count on from the entry before.
        Seq = "seq" => Chain,
        /// `prev` is not the leaf hash of the entry before.
        Prev = "prev" => Chain,
        /// The commit has another number of parents.
        Parents = "parents" => Chain,
        /// The entry is dated before the one before it.
        Time = "time" => Chain,
        /// The first entry is not `run.submitted`.
        First = "first" => Chain,
        /// An entry is of a kind that has no place there.
        Misplaced = "misplaced" => Chain,
        /// An entry follows the seal.
        AfterSeal = "after-seal" => Chain,
        /// An entry or the ref names another run.
        OtherRun = "other-run" => Chain,
        /// The author of a document is not the actor of its entry.
        Author = "author" => Chain,
        /// Two paths of one entry cannot stand side by side.
        Paths = "paths" => Chain,
        /// A path changed that does not belong to the entry.
        TreeChange = "tree-change" => Chain,
        /// A path does not hold what the entry says.
        TreeHolds = "tree-holds" => Chain,
    }
    "root" {
        /// The run is not sealed.
        NotSealed = "not-sealed" => NotSealed,
        /// The seal has another root.
        SealRoot = "seal-root" => Root,
        /// The seal has another number of entries.
        SealEntries = "seal-entries" => Root,
        /// The seal counts the items otherwise.
        SealCounts = "seal-counts" => Root,
    }
    "signature" {
        /// An entry is not signed, or its signature does not match.
        Signature = "signature" => Signature,
        /// The key of an entry has not the role that the entry takes.
        Role = "role" => Signature,
        /// A key cannot give the role `seal`, or gives it to another run.
        Admission = "admission" => Signature,
        /// A decision is signed by another key than the one that decided.
        DecidedBy = "decided-by" => Signature,
        /// A statement is not what its entry says.
        Statement = "statement" => Signature,
        /// A key is revoked.
        KeyRevoked = "key-revoked" => Signature,
        /// A key was not valid at the time of the entry.
        KeyNotValid = "key-not-valid" => Signature,
        /// A key is not one of the verifier's signers.
        KeyUnknown = "key-unknown" => Signature,
        /// A key is not the one that the verifier asked for.
        OtherSigner = "other-signer" => Mismatch,
    }
    "anchor" {
        /// A log or a place outside holds something else of the run.
        AnchorDiffers = "anchor-differs" => Root,
        /// No log holds the seal, or a place outside does not.
        AnchorMissing = "anchor-missing" => AnchorMissing,
        /// A log of a writer is broken.
        AnchorBroken = "anchor-broken" => AnchorMissing,
        /// Another run has the same id.
        SameId = "same-id" => Conflict,
    }
    "handoff" {
        /// An item that the run does not have was dispatched.
        UnknownItem = "unknown-item" => Handoff,
        /// A need was not consumed.
        Need = "need" => Handoff,
        /// An input belongs to no need.
        Input = "input" => Handoff,
        /// An input names another source or selector than its need.
        InputSource = "input-source" => Handoff,
        /// An input is not what its need was bound to.
        InputBytes = "input-bytes" => Handoff,
        /// The evidence of a reused item does not hold.
        Reused = "reused" => Handoff,
        /// The evidence of a product from elsewhere does not hold.
        Import = "import" => Handoff,
        /// The evidence of the run that is continued does not hold.
        Continues = "continues" => Handoff,
        /// A run or thread that was taken from is here and is another one.
        OtherSource = "other-source" => Mismatch,
    }
    "plan" {
        /// `plan.json` cannot be read.
        PlanUnread = "plan-unread" => Plan,
        /// `plan.json` is not the one that entry 0 names.
        PlanDigest = "plan-digest" => Plan,
        /// `plan.json` is no plan.
        PlanInvalid = "plan-invalid" => Plan,
        /// The plan has one item twice, or names one that it does not have.
        PlanItems = "plan-items" => Plan,
        /// Entry 0 contradicts the plan or the repository.
        PlanEntry = "plan-entry" => Plan,
        /// `rules.json` cannot be read.
        RulesUnread = "rules-unread" => Plan,
        /// `rules.json` is not the one that entry 0 names.
        RulesDigest = "rules-digest" => Plan,
        /// `rules.json` holds no rules.
        RulesInvalid = "rules-invalid" => Plan,
        /// `rules.json` has a rule with an id of the plan's.
        RulesTwice = "rules-twice" => Plan,
        /// A pipeline cannot be read.
        PipelineUnread = "pipeline-unread" => Plan,
        /// A pipeline does not hash to its digest.
        PipelineDigest = "pipeline-digest" => Plan,
        /// A pipeline is none.
        PipelineInvalid = "pipeline-invalid" => Plan,
        /// A pipeline is not the one that its name says.
        PipelineName = "pipeline-name" => Plan,
        /// Entry 0 has other pipelines than those that are named.
        Pipelines = "pipelines" => Plan,
        /// Entry 0 has other imports than those that the plan needs.
        Imports = "imports" => Plan,
        /// An `item.json` cannot be read.
        ItemUnread = "item-unread" => Plan,
        /// An `item.json` does not hash to its entry.
        ItemDigest = "item-digest" => Plan,
        /// An `item.json` is no normalised item.
        ItemInvalid = "item-invalid" => Plan,
        /// An entry is not a legal transition.
        Transition = "transition" => Plan,
        /// A rule does something else than the entry says.
        Rule = "rule" => Plan,
        /// A document that a rule looks into cannot be read.
        RuleDocument = "rule-document" => Plan,
        /// The run was sealed although a rule had something to do, or had stopped short.
        RuleWaits = "rule-waits" => Plan,
        /// The seal does not name exactly the rules that stopped.
        Stopped = "stopped" => Plan,
        /// The blocks of an entry are not those of its pipeline.
        Blocks = "blocks" => Plan,
        /// A `state.json` is not what the entries give.
        State = "state" => Plan,
        /// The verifier asked for another plan.
        OtherPlan = "other-plan" => Mismatch,
        /// The verifier asked for another base.
        OtherBase = "other-base" => Mismatch,
    }
    "manifest" {
        /// A manifest cannot be read.
        ManifestUnread = "manifest-unread" => Manifest,
        /// A manifest does not hash to its entry.
        ManifestDigest = "manifest-digest" => Manifest,
        /// A manifest is none, or not canonical.
        ManifestInvalid = "manifest-invalid" => Manifest,
        /// A manifest differs from its entry or from entry 0.
        ManifestEntry = "manifest-entry" => Manifest,
        /// A manifest differs from the plan.
        ManifestPlan = "manifest-plan" => Manifest,
    }
    "content" {
        /// The blob of a product, an import, a document or an artifact is missing or damaged.
        ContentUnread = "content-unread" => Content,
        /// Its bytes are not those of the entry.
        ContentBytes = "content-bytes" => Content,
    }
}
