//! Runs the verify command of an attempt, and decides what a failure of it means.

use super::step::{Commands, judge};
use super::{Job, PendingResult, Verdict};
use crate::model::entry::{Exit, Verified, VerifiedBy};
use crate::model::last_lines::last_lines;
use crate::model::outcomes::VERIFY_FAILED;
use crate::repository::config::OnVerifyFail;
use crate::worktree::workspace::Workspace;

/// Runs the verify command, if there is one. Returns an error if that ends the attempt.
///
/// A failure that the worker reported stands, whatever the command returns.
pub(super) async fn verify(
    workspace: &Workspace,
    mut commands: Commands<'_>,
    pending: &mut PendingResult,
) -> Result<(), Verdict> {
    let job = commands.job;
    let reports_failure = pending.reports_failure();
    let Some(verify) = &job.spec.command.verify else { return Ok(()) };
    commands.transcript.follow();
    let checked = commands.check_work(workspace, verify, pending).await?;
    let (ended, stored) = (checked.ended, checked.stored);
    pending.result.check = Some(stored);
    let mut output = last_lines(&commands.transcript.followed());
    if job.check.withholds_output() {
        output.clear();
    }
    let judged = judge(VERIFY_FAILED, &ended, job.spec.command.timeout).map_err(|verdict| verdict.with_output(&output));
    match (judged, ended) {
        (Ok(()), _) => {
            if !reports_failure {
                pending.result.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
            }
            Ok(())
        }
        (Err(Verdict::Failed { reason, .. }), Ok(ended)) => record_failure(job, pending, reason, ended.exit),
        // A command that could not be run has judged nothing.
        (Err(verdict), _) => Err(verdict),
    }
}

/// Records a failed check, and fails the attempt if the executor's settings say so.
pub(super) fn record_failure(
    job: &Job,
    pending: &mut PendingResult,
    reason: String,
    exit: Option<Exit>,
) -> Result<(), Verdict> {
    pending.result.verify = Some(Verified { passed: false, by: VerifiedBy::Command });
    match job.spec.command.on_verify_fail {
        OnVerifyFail::Keep => {
            pending.result.red = Some(reason);
            Ok(())
        }
        OnVerifyFail::Fail => {
            pending.result.exit = exit;
            Err(Verdict::failed(reason))
        }
    }
}
