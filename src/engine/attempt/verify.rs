//! Runs the verify command of an attempt, and decides what a failure of it means.

use super::step::{Commands, Line, judge};
use super::{Finished, Job, Verdict, blocking};
use crate::config::OnVerifyFail;
use crate::model::entry::{Exit, Verified, VerifiedBy};
use crate::model::outcomes::{STILL_OPEN, VERIFY_FAILED};
use crate::model::printable;
use crate::model::said::last_lines;
use crate::worker::agent::Cause;
use crate::worker::workspace::{Held, Workspace};

/// Runs the verify command, if there is one. Returns an error if that ends the attempt.
///
/// A failure that the worker reported stands, whatever the command returns.
pub(super) async fn verify(
    workspace: &Workspace,
    mut commands: Commands<'_>,
    finished: &mut Finished,
) -> Result<(), Verdict> {
    let job = commands.job;
    let reports_failure = finished.reports_failure();
    let Some(verify) = &job.command.verify else { return Ok(()) };
    only_ours(workspace, job, finished).await?;
    commands.transcript.follow();
    let ended = commands.run(workspace, Line::reading(verify, job)).await;
    let output = last_lines(&commands.transcript.followed());
    // The check may have passed on more files.
    if ended.as_ref().is_ok_and(|ended| matches!(ended.cause, Cause::Exited)) {
        only_ours(workspace, job, finished).await?;
    }
    let judged = judge(VERIFY_FAILED, &ended, job.command.timeout).map_err(|verdict| verdict.with_output(&output));
    match (judged, ended) {
        (Ok(()), _) => {
            if !reports_failure {
                finished.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
            }
            Ok(())
        }
        (Err(Verdict::Failed { reason, .. }), Ok(ended)) => record_failure(job, finished, reason, ended.exit),
        // A command that could not be run has judged nothing.
        (Err(verdict), _) => Err(verdict),
    }
}

/// Fails an attempt if a process outside of it could still change its files, because the captured
/// files could then differ from the checked ones.
///
/// This applies only if its worker could reach others. If that cannot be determined, a note says
/// so.
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

/// Records a failed check, and fails the attempt if the executor's settings say so.
pub(super) fn record_failure(
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
