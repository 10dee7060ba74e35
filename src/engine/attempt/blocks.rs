//! Runs the pipeline of an item, block by block.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::step::{Commands, Line, judge};
use super::verify::record_failure;
use super::{PendingResult, Verdict, blocking, result_file};
use crate::engine::product_capture::capture_failed;
use crate::model::entry::{Exit, Verified, VerifiedBy};
use crate::model::last_lines::last_lines;
use crate::model::outcomes::{GATE_FAILED, VERIFY_FAILED};
use crate::model::pipeline::{Block, BlockEnded, BlockStatus, CaptureKind, Lens, Script, Spec};
use crate::process::agent::{self, Cause, Ended};
use crate::worktree::capture::{self, Captured};
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

/// The result of the first block that checks.
enum Check {
    Passed,
    Failed { reason: String, exit: Option<Exit> },
}

/// The state of an attempt between its blocks.
struct Blocks<'a> {
    host: &'a Arc<Host>,
    commands: Commands<'a>,
    pending: &'a mut PendingResult,
    captured: Captured,
    check: Option<Check>,
}

/// Runs the blocks until one ends the attempt, and leaves their results in `pending`.
pub(super) async fn run(
    spec: &Spec,
    mut workspace: Workspace,
    host: &Arc<Host>,
    commands: Commands<'_>,
    pending: &mut PendingResult,
) -> Workspace {
    let mut blocks = Blocks { host, commands, pending, captured: Captured::default(), check: None };
    let mut verdict = Ok(());
    for (at, block) in spec.blocks.iter().enumerate() {
        (workspace, verdict) = blocks.run(workspace, at, block).await;
        if verdict.is_err() {
            break;
        }
    }
    let verdict = verdict.and_then(|()| blocks.conclude());
    blocks.pending.captured = Some(blocks.captured);
    blocks.pending.result.verdict = verdict.err().unwrap_or(Verdict::Done);
    workspace
}

impl Blocks<'_> {
    /// Runs one block and records its result. Returns an error if that ends the attempt.
    async fn run(&mut self, workspace: Workspace, at: usize, block: &Block) -> (Workspace, Result<(), Verdict>) {
        let started = Instant::now();
        let mut ended = BlockEnded {
            ordinal: u32::try_from(at).expect("a pipeline has few blocks"),
            kind: block.kind(),
            status: BlockStatus::Done,
            exit: None,
            duration_ms: 0,
            verify: None,
        };
        let (workspace, verdict) = match block {
            Block::Agent => {
                let verdict = self.agent(&workspace, at, &mut ended).await;
                (workspace, verdict)
            }
            Block::Script(script) => {
                let verdict = self.script(&workspace, at, script, &mut ended).await;
                (workspace, verdict)
            }
            Block::Capture(what) => {
                let (workspace, verdict) = self.capture(workspace, *what).await;
                ended.status = if verdict.is_ok() { BlockStatus::Done } else { BlockStatus::Failed };
                (workspace, verdict)
            }
        };
        ended.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.pending.result.blocks.push(ended);
        (workspace, verdict)
    }

    /// Runs the setup and the command of the item's executor.
    async fn agent(&mut self, workspace: &Workspace, at: usize, ended: &mut BlockEnded) -> Result<(), Verdict> {
        let job = self.commands.job;
        if let Some(setup) = &job.spec.command.setup {
            let result = self.commands.run(workspace, Line::plain(setup)).await;
            record_end(ended, &result);
            self.pending.result.exit = ended.exit;
            judge(&format!("blocks[{at}] (agent): setup "), &result, job.spec.command.timeout)?;
        }
        let step = format!("blocks[{at}] (agent) ");
        let (result, judged) = self.commands.run_item(workspace, &step, self.pending).await;
        record_end(ended, &result);
        if judged.is_err() && ended.status == BlockStatus::Done {
            ended.status = BlockStatus::Failed;
        }
        self.pending.result.exit = ended.exit;
        judged?;
        result_file::read(workspace, self.pending)
    }

    /// Runs a command of the pipeline. A failed gate ends the attempt; a failed check is recorded.
    async fn script(
        &mut self,
        workspace: &Workspace,
        at: usize,
        script: &Script,
        ended: &mut BlockEnded,
    ) -> Result<(), Verdict> {
        let job = self.commands.job;
        let own = (Instant::now() + Duration::from_secs(script.timeout), script.timeout);
        let (deadline, seconds) = own.min((self.commands.deadline, job.spec.command.timeout));
        let argv = ["sh".to_owned(), "-c".to_owned(), script.command.clone()];
        self.commands.transcript.follow();
        let checked = self
            .commands
            .check_in_worktree(deadline, workspace, Line::reading(&argv, job), &mut self.pending.guard)
            .await?;
        let result = checked.ended;
        if script.lens == Lens::Verify {
            self.pending.result.check.get_or_insert(checked.stored);
        }
        let mut output = last_lines(&self.commands.transcript.followed());
        if job.check.withholds_output() {
            output.clear();
        }
        record_end(ended, &result);
        let beginning = if script.lens == Lens::Gate { GATE_FAILED } else { VERIFY_FAILED };
        let verdict = judge(&format!("{beginning}blocks[{at}] "), &result, seconds);
        let verdict = verdict.map_err(|verdict| verdict.with_output(&output));
        if script.lens == Lens::Gate {
            return verdict.inspect_err(|_| self.pending.result.exit = ended.exit);
        }
        let check = match verdict {
            Ok(()) => Check::Passed,
            // A command that could not be run has judged nothing.
            Err(Verdict::Failed { reason, .. }) if result.is_ok() => Check::Failed { reason, exit: ended.exit },
            Err(other) => return Err(other),
        };
        ended.verify = Some(Verified { passed: matches!(check, Check::Passed), by: VerifiedBy::Command });
        self.check.get_or_insert(check);
        Ok(())
    }

    /// Captures the patch or the outputs, in place of an earlier capture of the same kind.
    async fn capture(&mut self, workspace: Workspace, kind: CaptureKind) -> (Workspace, Result<(), Verdict>) {
        let (host, job) = (self.host.clone(), self.commands.job.clone());
        let (workspace, captured) = blocking(move || {
            let captured = capture::capture_part(&workspace, &job.host(&host), kind);
            (workspace, captured)
        })
        .await;
        let captured = match captured {
            Ok(captured) => captured,
            Err(error) => return (workspace, Err(capture_failed(&error))),
        };
        match kind {
            CaptureKind::Patch => {
                (self.captured.patch, self.captured.submodules) = (captured.patch, captured.submodules);
                (self.captured.left_out, self.captured.excluded) = (captured.left_out, captured.excluded);
            }
            CaptureKind::Outputs => self.captured.outputs = captured.outputs,
        }
        self.captured.large.extend(captured.large);
        self.captured.guard.join(captured.guard);
        (workspace, Ok(()))
    }

    /// Applies the result of the first check. A failure that the worker reported stands.
    fn conclude(&mut self) -> Result<(), Verdict> {
        match self.check.take() {
            Some(Check::Passed) if !self.pending.reports_failure() => {
                self.pending.result.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
                Ok(())
            }
            Some(Check::Passed) | None => Ok(()),
            Some(Check::Failed { reason, exit }) => record_failure(self.commands.job, self.pending, reason, exit),
        }
    }
}

/// Records how a command of a block ended.
fn record_end(block: &mut BlockEnded, result: &Result<Ended, agent::Error>) {
    let (status, exit) = match result {
        Err(_) => (BlockStatus::Failed, None),
        Ok(ended) => {
            let status = match (ended.cause, ended.exit) {
                (Cause::Cancelled, _) => BlockStatus::Interrupted,
                (Cause::TimedOut, _) => BlockStatus::TimedOut,
                (Cause::Exited, Some(Exit { code: Some(0), .. })) => BlockStatus::Done,
                (Cause::Exited | Cause::Exceeded(_) | Cause::Left, _) => BlockStatus::Failed,
            };
            (status, ended.exit)
        }
    };
    (block.status, block.exit) = (status, exit);
}
