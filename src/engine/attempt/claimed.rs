//! What a worker says of its result in the file that it may write.

use serde::Deserialize;

use super::{Finished, Verdict};
use crate::model::credential;
use crate::model::entry::{Verified, VerifiedBy};
use crate::model::outcomes::{BAD_RESULT, VERIFY_FAILED};
use crate::worker::workspace::Workspace;

/// The most letters of a summary that are recorded.
const LETTERS: usize = 4_000;

/// The file that an executor may write.
#[derive(Deserialize)]
struct Claim {
    summary: Option<String>,
    verify: Option<ClaimedVerify>,
}

#[derive(Deserialize)]
struct ClaimedVerify {
    passed: bool,
}

/// Takes the item at its word; a file that is not what it is to be fails the attempt.
///
/// A word about the result that cannot be understood, such as `"passed": "false"`, is so taken neither for a good one nor for none.
/// Where a worker runs more than once, what it said against its result stands: nobody knows what of it was taken before it said
/// otherwise. Of its summaries the last one counts.
pub(super) fn take(workspace: &Workspace, finished: &mut Finished) -> Result<(), Verdict> {
    let bad = |why: &str| Verdict::failed(format!("{BAD_RESULT}the result file cannot be read: {why}"));
    let Some(bytes) = workspace.read_result() else {
        return if workspace.has_result() { Err(bad("it is no plain file, or too large")) } else { Ok(()) };
    };
    let claim: Claim = serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?;
    finished.summary = claim.summary.map(|said| in_bounds(&said)).filter(|said| !said.is_empty());
    if !finished.denies_itself() {
        finished.verify = claim.verify.map(|verify| Verified { passed: verify.passed, by: VerifiedBy::Itself });
        if finished.denies_itself() {
            finished.red = Some(format!("{VERIFY_FAILED}by the worker's own word"));
        }
    }
    Ok(())
}

/// Returns a summary without credentials, and not longer than it may be.
fn in_bounds(said: &str) -> String {
    let said = credential::without(said.trim());
    match said.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &said[..at]),
        None => said.into_owned(),
    }
}
