//! The codes of findings, and the stage of the verification that each belongs to.
//!
//! Section 9 of `docs/reference/format.md` has a line for each code, and `docs/vectors` a run.
//! A test compares the three.

use crate::model::words::words;

use super::Failure;

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

macro_rules! codes {
    ($($stage:ident { $($name:ident = $word:literal of $row:literal => $failure:ident,)* })*) => {
        /// The code of a finding. Codes are ordered as in the table of section 9.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "docs/reference/format.md, section 9, describes each code")]
        pub enum Code {
            $($($name,)*)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Self] = &[$($(Self::$name,)*)*];

            /// Returns the word for it.
            pub fn word(self) -> &'static str {
                match self { $($(Self::$name => $word,)*)* }
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
        Ref = "ref" of "chain" => Chain,
        Object = "object" of "chain" => Chain,
        Entry = "entry" of "chain" => Chain,
        Order = "order" of "chain" => Chain,
        Misplaced = "misplaced" of "chain" => Chain,
        Paths = "paths" of "chain" => Chain,
        Signature = "signature" of "signature" => Signature,
        Role = "role" of "signature" => Signature,
        Statement = "statement" of "signature" => Signature,
        SealRoot = "seal-root" of "root" => Root,
    }
    Plan {
        BytesMissing = "bytes-missing" of "plan" => Plan,
        Bytes = "bytes" of "plan" => Plan,
        PlanInvalid = "plan-invalid" of "plan" => Plan,
        PlanEntry = "plan-entry" of "plan" => Plan,
        RulesInvalid = "rules-invalid" of "plan" => Plan,
        Pipelines = "pipelines" of "plan" => Plan,
        Imports = "imports" of "plan" => Plan,
        Proof = "proof" of "handoff" => Handoff,
        ItemInvalid = "item-invalid" of "plan" => Plan,
        UnknownItem = "unknown-item" of "handoff" => Handoff,
        Need = "need" of "handoff" => Handoff,
        Input = "input" of "handoff" => Handoff,
        InputBytes = "input-bytes" of "handoff" => Handoff,
        ManifestInvalid = "manifest-invalid" of "manifest" => Manifest,
        ManifestPlan = "manifest-plan" of "manifest" => Manifest,
        RuleDocument = "rule-document" of "plan" => Plan,
        Rule = "rule" of "plan" => Plan,
        Blocks = "blocks" of "plan" => Plan,
        Transition = "transition" of "plan" => Plan,
        Protected = "protected" of "plan" => Plan,
        RuleWaits = "rule-waits" of "plan" => Plan,
        Stopped = "stopped" of "plan" => Plan,
    }
    Content {
        ContentUnread = "content-unread" of "content" => Content,
        ContentBytes = "content-bytes" of "content" => Content,
    }
    Policy {
        AnchorDiffers = "anchor-differs" of "anchor" => Root,
        KeyRevoked = "key-revoked" of "signature" => Signature,
        KeyNotValid = "key-not-valid" of "signature" => Signature,
        KeyUnknown = "key-unknown" of "signature" => Signature,
        AnchorMissing = "anchor-missing" of "anchor" => AnchorMissing,
        AnchorBroken = "anchor-broken" of "anchor" => AnchorMissing,
        DrivenTwice = "driven-twice" of "anchor" => Conflict,
        SameId = "same-id" of "anchor" => Conflict,
        OtherSigner = "other-signer" of "signature" => Mismatch,
        OtherPlan = "other-plan" of "plan" => Mismatch,
        OtherBase = "other-base" of "plan" => Mismatch,
        OtherSource = "other-source" of "handoff" => Mismatch,
        NotSealed = "not-sealed" of "root" => NotSealed,
    }
}
