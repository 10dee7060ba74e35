//! What a worker says of its result in the file that it may write.

use serde::Deserialize;
use serde_json::Value;

use super::{Finished, Job};
use crate::model::entry::{Verified, VerifiedBy};
use crate::model::outcomes::VERIFY_FAILED;
use crate::worker::transcript::{Stream, TranscriptWriter};
use crate::worker::workspace::Workspace;

/// The file that an executor may write.
#[derive(Deserialize)]
struct Claim {
    verify: Option<ClaimedVerify>,
}

#[derive(Deserialize)]
struct ClaimedVerify {
    passed: bool,
}

/// Takes the item at its word; what cannot be read is said in the transcript.
///
/// A word about the result that cannot be understood, such as `"passed": "false"`, is not taken for a good one, and neither is a file
/// of a gate that says nothing readable: its verdict was to be there. Where a worker runs more than once, what it said against its
/// result stands: nobody knows what of it was taken before it said otherwise.
pub(super) fn take(workspace: &Workspace, job: &Job, transcript: &mut TranscriptWriter, finished: &mut Finished) {
    if finished.denies_itself() {
        return;
    }
    let bytes = workspace.read_result();
    let claim = match &bytes {
        Some(bytes) => serde_json::from_slice::<Claim>(bytes).map_err(|error| error.to_string()),
        None if workspace.has_result() => Err("it is no plain file, or too large".to_owned()),
        None => return,
    };
    let own = |passed| Some(Verified { passed, by: VerifiedBy::Itself });
    match claim {
        Ok(claim) => {
            finished.verify = claim.verify.and_then(|verify| own(verify.passed));
            if finished.verify.is_some_and(|claim| !claim.passed) {
                finished.red = Some(format!("{VERIFY_FAILED}by the worker's own word"));
            }
        }
        Err(error) => {
            let line = format!("[git-handoff: the result file cannot be read: {error}]\n");
            // A transcript that cannot be written fails the attempt where it is finished.
            let _ = transcript.push(Stream::Err, line.as_bytes());
            if job.is_gate || bytes.is_some_and(|bytes| speaks_of_a_check(&bytes)) {
                finished.verify = own(false);
                finished.red = Some(format!("{VERIFY_FAILED}by the worker's own word, which cannot be read"));
            }
        }
    }
}

/// Returns whether something was to be said about a check.
fn speaks_of_a_check(bytes: &[u8]) -> bool {
    let claim = serde_json::from_slice::<Value>(bytes);
    claim.is_ok_and(|claim| claim.get("verify").is_some())
}
