//! The codes of findings. Every way in which a row of a run fails has one.
//!
//! Section 9 of `docs/reference/format.md` has a line for each code, and `docs/vectors` a run.
//! A test compares the three.

use super::Failure;

macro_rules! codes {
    ($($row:literal { $($name:ident = $word:literal => $failure:ident,)* })*) => {
        /// The code of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "docs/reference/format.md, section 9, describes each code")]
        pub enum Code {
            $($($name,)*)*
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
        Ref = "ref" => Chain,
        Object = "object" => Chain,
        NotRead = "not-read" => Chain,
        Entry = "entry" => Chain,
        Seq = "seq" => Chain,
        Prev = "prev" => Chain,
        Parents = "parents" => Chain,
        Time = "time" => Chain,
        First = "first" => Chain,
        Misplaced = "misplaced" => Chain,
        AfterSeal = "after-seal" => Chain,
        OtherRun = "other-run" => Chain,
        Author = "author" => Chain,
        Paths = "paths" => Chain,
        TreeChange = "tree-change" => Chain,
        TreeHolds = "tree-holds" => Chain,
    }
    "root" {
        NotSealed = "not-sealed" => NotSealed,
        SealRoot = "seal-root" => Root,
        SealEntries = "seal-entries" => Root,
        SealCounts = "seal-counts" => Root,
    }
    "signature" {
        Signature = "signature" => Signature,
        Role = "role" => Signature,
        Admission = "admission" => Signature,
        DecidedBy = "decided-by" => Signature,
        Statement = "statement" => Signature,
        KeyRevoked = "key-revoked" => Signature,
        KeyNotValid = "key-not-valid" => Signature,
        KeyUnknown = "key-unknown" => Signature,
        OtherSigner = "other-signer" => Mismatch,
    }
    "anchor" {
        AnchorDiffers = "anchor-differs" => Root,
        AnchorMissing = "anchor-missing" => AnchorMissing,
        AnchorBroken = "anchor-broken" => AnchorMissing,
        DrivenTwice = "driven-twice" => Conflict,
        SameId = "same-id" => Conflict,
    }
    "handoff" {
        UnknownItem = "unknown-item" => Handoff,
        Need = "need" => Handoff,
        Input = "input" => Handoff,
        InputSource = "input-source" => Handoff,
        InputBytes = "input-bytes" => Handoff,
        Reused = "reused" => Handoff,
        Import = "import" => Handoff,
        Continues = "continues" => Handoff,
        OtherSource = "other-source" => Mismatch,
    }
    "plan" {
        PlanUnread = "plan-unread" => Plan,
        PlanDigest = "plan-digest" => Plan,
        PlanInvalid = "plan-invalid" => Plan,
        PlanItems = "plan-items" => Plan,
        PlanEntry = "plan-entry" => Plan,
        RulesUnread = "rules-unread" => Plan,
        RulesDigest = "rules-digest" => Plan,
        RulesInvalid = "rules-invalid" => Plan,
        RulesTwice = "rules-twice" => Plan,
        PipelineUnread = "pipeline-unread" => Plan,
        PipelineDigest = "pipeline-digest" => Plan,
        PipelineInvalid = "pipeline-invalid" => Plan,
        PipelineName = "pipeline-name" => Plan,
        Pipelines = "pipelines" => Plan,
        Protected = "protected" => Plan,
        Imports = "imports" => Plan,
        ItemUnread = "item-unread" => Plan,
        ItemDigest = "item-digest" => Plan,
        ItemInvalid = "item-invalid" => Plan,
        Transition = "transition" => Plan,
        Rule = "rule" => Plan,
        RuleDocument = "rule-document" => Plan,
        RuleWaits = "rule-waits" => Plan,
        Stopped = "stopped" => Plan,
        Blocks = "blocks" => Plan,
        State = "state" => Plan,
        OtherPlan = "other-plan" => Mismatch,
        OtherBase = "other-base" => Mismatch,
    }
    "manifest" {
        ManifestUnread = "manifest-unread" => Manifest,
        ManifestDigest = "manifest-digest" => Manifest,
        ManifestInvalid = "manifest-invalid" => Manifest,
        ManifestEntry = "manifest-entry" => Manifest,
        ManifestPlan = "manifest-plan" => Manifest,
    }
    "content" {
        ContentUnread = "content-unread" => Content,
        ContentBytes = "content-bytes" => Content,
    }
}
