//! Stores the transcript of an attempt.

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::git::store;
use crate::model::digest::Oid;
use crate::model::entry::{Product, Transcript};
use crate::process::transcript::TranscriptWriter;
use crate::worktree::host::Host;

/// A transcript in the object database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StoredTranscript {
    /// The digest and the size.
    pub transcript: Transcript,
    /// The blob of the transcript, unless it is empty.
    pub oid: Option<Oid>,
}

/// Stores the transcript from its open file, because a worker could replace a file by name.
pub(super) fn store_transcript(
    host: &Host,
    transcript: TranscriptWriter,
    guard: &mut store::KeepGuard,
) -> Result<StoredTranscript, Verdict> {
    let (transcript, mut file) = transcript.finish()?;
    if transcript.size == 0 {
        return Ok(StoredTranscript { transcript, oid: None });
    }
    let mut batch = host.store.batch();
    let Product { oid, sha256, size } = batch.write_file(&mut file)?;
    if (sha256, size) != (transcript.sha256, transcript.size) {
        return Err(Verdict::failed("the transcript was changed while it was kept"));
    }
    guard.join(batch.keep()?);
    Ok(StoredTranscript { transcript, oid: Some(oid) })
}
