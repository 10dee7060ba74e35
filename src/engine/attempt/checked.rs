//! The verify command of an attempt, and what it means that it did not pass.

use std::time::Instant;

use tokio::sync::watch;

use super::{Finished, Job, Verdict, blocking};
use crate::config::OnVerifyFail;
use crate::model::entry::{Exit, Verified, VerifiedBy};
use crate::model::outcomes::{STILL_OPEN, VERIFY_FAILED};
use crate::model::printable;
use crate::model::said::last_lines;
use crate::worker::agent::Cause;
use crate::worker::transcript::TranscriptWriter;
use crate::worker::workspace::{Held, Workspace};

use super::step::{Line, judge, step};

/// Runs the verify command, if there is one; an error is how the attempt ends because of it.
///
/// A worker's own word against its result stands, whatever the command says.
pub(super) async fn verify(
    workspace: &Workspace,
    job: &Job,
    deadline: Instant,
    transcript: &mut TranscriptWriter,
    cancel: &watch::Receiver<bool>,
    finished: &mut Finished,
) -> Result<(), Verdict> {
    let denies_itself = finished.denies_itself();
    let Some(verify) = &job.command.verify else { return Ok(()) };
    only_ours(workspace, job, finished).await?;
    transcript.follow();
    let ended = step(workspace, job, Line::reading(verify, job), deadline, transcript, cancel).await;
    let said = last_lines(&transcript.followed());
    // What the check ran may have passed on more.
    if ended.as_ref().is_ok_and(|ended| matches!(ended.cause, Cause::Exited)) {
        only_ours(workspace, job, finished).await?;
    }
    let passed = |passed| Some(Verified { passed, by: VerifiedBy::Command });
    let reason = match judge(VERIFY_FAILED, &ended, job.command.timeout) {
        Ok(()) => {
            if !denies_itself {
                finished.verify = passed(true);
            }
            return Ok(());
        }
        Err(Verdict::Failed { reason, .. }) if !said.is_empty() => format!("{reason}: {said}"),
        Err(Verdict::Failed { reason, .. }) => reason,
        Err(other) => return Err(other),
    };
    // What could not be run has not judged anything.
    let Ok(ended) = ended else { return Err(Verdict::failed(reason)) };
    fall_short(job, finished, reason, ended.exit)
}

/// Fails an attempt of whose files somebody outside of it could change one: what is taken would not be what was checked.
///
/// Only where its worker could speak to others. Where nobody can tell, that is noted.
pub(super) async fn only_ours(workspace: &Workspace, job: &Job, finished: &mut Finished) -> Result<(), Verdict> {
    if !workspace.could_meet() {
        return Ok(());
    }
    let looked_at = workspace.clone();
    match blocking(move || looked_at.held()).await {
        Held::Nobody => Ok(()),
        Held::Somebody(path, why) => {
            let path = printable::line(&path.to_string_lossy());
            Err(Verdict::failed(format!(
                "{STILL_OPEN}{path} {why}, so what is taken could be other than what is checked"
            )))
        }
        Held::Untold(error) => {
            let note =
                format!("{}: whether others have files of its worktree open cannot be told here: {error}", job.item);
            if !finished.notes.contains(&note) {
                finished.notes.push(note);
            }
            Ok(())
        }
    }
}

/// Takes in that the check did not pass, which means what its executor's settings say.
pub(super) fn fall_short(
    job: &Job,
    finished: &mut Finished,
    reason: String,
    exit: Option<Exit>,
) -> Result<(), Verdict> {
    finished.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    match job.command.on_verify_fail {
        OnVerifyFail::Keep => {
            finished.red = Some(reason);
            Ok(())
        }
        OnVerifyFail::Fail => {
            finished.exit = exit;
            Err(Verdict::failed(reason))
        }
    }
}

impl Finished {
    /// Returns whether the worker denies that its result is good: it is red whatever else is found.
    pub(super) fn denies_itself(&self) -> bool {
        self.verify.is_some_and(|claim| !claim.passed)
    }
}
