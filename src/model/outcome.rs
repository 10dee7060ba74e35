//! The exit, check and transcript of a command.

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// The final status of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The executor exited with 0 and its products are recorded.
    Done,
    /// Anything else.
    Failed,
}

/// The exit of a process; exactly one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The outcome of checking a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Whether the check passed.
    pub passed: bool,
    /// The origin of the check.
    pub by: VerifiedBy,
}

/// The origin of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifiedBy {
    /// The configured verify command.
    Command,
    /// The item itself, in its result file: a claim.
    #[serde(rename = "self")]
    Itself,
}

/// One run of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRun {
    /// The command, with credentials removed.
    pub argv: Vec<String>,
    /// Its exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// The digest and size of its output; the bytes may be deleted.
    pub output: Transcript,
    /// How many protected files differed from their reference state and were replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restored: u64,
    /// The digest of the held-out files laid over the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Digest>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The worker's claims about itself, from its result file. Nothing verifies them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The model that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Claims {
    /// Returns all texts.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.model.iter_mut().chain(&mut self.session)
    }
}

/// The digest and size of a transcript; its bytes may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// The digest of the transcript as kept.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
}
