//! Reads the result file, in which a worker can describe its own result.

use serde::Deserialize;

use super::{PendingResult, Verdict};
use crate::model::claims::Reported;
use crate::model::credential;
use crate::model::entry::{Verified, VerifiedBy};
use crate::model::outcomes::{BAD_RESULT, VERIFY_FAILED};
use crate::worktree::workspace::Workspace;

/// The most characters of a text that are recorded.
const MAX_TEXT: usize = 4_000;

#[derive(Deserialize)]
struct ResultFile {
    summary: Option<String>,
    model: Option<String>,
    session: Option<String>,
    verify: Option<Check>,
}

#[derive(Deserialize)]
struct Check {
    passed: bool,
}

/// Records the worker's summary, its claims about itself and its own verdict. The claims are over
/// those that a known agent printed. An invalid file fails the attempt, so that `"passed": "false"`
/// counts neither as a pass nor as silence.
///
/// If a worker runs more than once, a failure that it reported stands, because its products may
/// have been captured before it changed its mind. The last summary and the last claims count.
pub(super) fn read(workspace: &Workspace, pending: &mut PendingResult) -> Result<(), Verdict> {
    let Some(bytes) = workspace.read_result() else {
        return if workspace.has_result() { Err(bad_result("it is no plain file, or too large")) } else { Ok(()) };
    };
    let result: ResultFile = serde_json::from_slice(&bytes).map_err(|error| bad_result(&error.to_string()))?;
    pending.result.summary = shorten_given(result.summary);
    let reported = pending.reported.clone().unwrap_or_default();
    let claims = Reported {
        model: shorten_given(result.model).or(reported.model),
        session: shorten_given(result.session).or(reported.session),
        ..reported
    };
    pending.result.claims = (claims != Reported::default()).then_some(claims);
    if !pending.reports_failure() {
        pending.result.verify = result.verify.map(|verify| Verified { passed: verify.passed, by: VerifiedBy::Itself });
        if pending.reports_failure() {
            pending.result.red = Some(format!("{VERIFY_FAILED}by the worker's own word"));
        }
    }
    Ok(())
}

/// Shortens a text, or returns `None` if it is empty.
fn shorten_given(given: Option<String>) -> Option<String> {
    given.map(|text| shorten(&text)).filter(|text| !text.is_empty())
}

fn bad_result(why: &str) -> Verdict {
    Verdict::failed(format!("{BAD_RESULT}the result file cannot be read: {why}"))
}

/// Returns a text without credentials, cut to its maximum length.
pub(super) fn shorten(text: &str) -> String {
    let text = credential::redact(text.trim());
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into_owned(),
    }
}

impl PendingResult {
    /// Returns true if the worker reported a failure, which makes the item red in any case.
    pub(super) fn reports_failure(&self) -> bool {
        self.result.verify.is_some_and(|verify| !verify.passed)
    }
}
