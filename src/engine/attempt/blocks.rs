//! An attempt of an item with a pipeline: its blocks in order, and what is said of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::checked::{fall_short, only_ours};
use super::step::{Line, judge, step};
use super::{Finished, Job, Verdict, blocking, claimed};
use crate::engine::products::not_taken;
use crate::model::entry::{Exit, Verified, VerifiedBy};
use crate::model::outcomes::{GATE_FAILED, VERIFY_FAILED};
use crate::model::pipeline::{Block, BlockEnded, BlockStatus, Lens, Script, Spec, What};
use crate::model::said::last_lines;
use crate::worker::agent::{self, Cause, Ended};
use crate::worker::capture::{self, Captured};
use crate::worker::host::Host;
use crate::worker::transcript::TranscriptWriter;
use crate::worker::workspace::Workspace;

/// What the blocks of an attempt are run with.
pub(super) struct Work<'a> {
    pub(super) host: &'a Arc<Host>,
    pub(super) job: &'a Arc<Job>,
    pub(super) spec: &'a Spec,
    pub(super) cancel: &'a watch::Receiver<bool>,
}

/// What the first block found that says whether the result is good.
enum Found {
    Good,
    Bad { reason: String, exit: Option<Exit> },
}

/// An attempt on its way through its blocks.
struct Under<'a> {
    work: &'a Work<'a>,
    transcript: &'a mut TranscriptWriter,
    finished: &'a mut Finished,
    /// When the time of the attempt is up.
    deadline: Instant,
    captured: Captured,
    found: Option<Found>,
}

impl Work<'_> {
    /// Runs the blocks until one ends the attempt, and leaves in `finished` what came of it and of each.
    pub(super) async fn run(
        self,
        workspace: Workspace,
        transcript: &mut TranscriptWriter,
        finished: &mut Finished,
    ) -> Workspace {
        let deadline = Instant::now() + Duration::from_secs(self.job.command.timeout);
        let captured = Captured::default();
        let mut under = Under { work: &self, transcript, finished, deadline, captured, found: None };
        let mut workspace = workspace;
        let mut verdict = Ok(());
        for (at, block) in self.spec.blocks.iter().enumerate() {
            (workspace, verdict) = under.block(workspace, at, block).await;
            if verdict.is_err() {
                break;
            }
        }
        let verdict = verdict.and_then(|()| under.conclude());
        under.finished.captured = Some(under.captured);
        under.finished.verdict = verdict.err().unwrap_or(Verdict::Done);
        workspace
    }
}

impl Under<'_> {
    /// Runs one block and notes what became of it; an error is how the attempt ends because of it.
    async fn block(&mut self, workspace: Workspace, at: usize, block: &Block) -> (Workspace, Result<(), Verdict>) {
        let started = Instant::now();
        let ordinal = u32::try_from(at).expect("a pipeline has few blocks");
        let mut ended = BlockEnded {
            ordinal,
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
        self.finished.blocks.push(ended);
        (workspace, verdict)
    }

    /// Runs what the item's executor is configured to run, with what that has run before it.
    async fn agent(&mut self, workspace: &Workspace, at: usize, ended: &mut BlockEnded) -> Result<(), Verdict> {
        let job = self.work.job;
        let seconds = job.command.timeout;
        if let Some(setup) = &job.command.setup {
            let result =
                step(workspace, job, Line::plain(setup), self.deadline, self.transcript, self.work.cancel).await;
            note(ended, &result);
            self.finished.exit = ended.exit;
            judge(&format!("blocks[{at}] (agent): setup "), &result, seconds)?;
        }
        let result = step(workspace, job, Line::of(job), self.deadline, self.transcript, self.work.cancel).await;
        note(ended, &result);
        self.finished.exit = ended.exit;
        judge(&format!("blocks[{at}] (agent) "), &result, seconds)?;
        claimed::take(workspace, self.finished)
    }

    /// Runs a command of the pipeline. A gate that does not pass ends the attempt; what only checks is noted.
    async fn script(
        &mut self,
        workspace: &Workspace,
        at: usize,
        script: &Script,
        ended: &mut BlockEnded,
    ) -> Result<(), Verdict> {
        let job = self.work.job;
        let own = Instant::now() + Duration::from_secs(script.timeout);
        let (deadline, seconds) =
            if own < self.deadline { (own, script.timeout) } else { (self.deadline, job.command.timeout) };
        let argv = ["sh".to_owned(), "-c".to_owned(), script.command.clone()];
        only_ours(workspace, job, self.finished).await.inspect_err(|_| ended.status = BlockStatus::Failed)?;
        self.transcript.follow();
        let result = step(workspace, job, Line::reading(&argv, job), deadline, self.transcript, self.work.cancel).await;
        let said = last_lines(&self.transcript.followed());
        note(ended, &result);
        if result.as_ref().is_ok_and(|ended| matches!(ended.cause, Cause::Exited)) {
            only_ours(workspace, job, self.finished).await.inspect_err(|_| ended.status = BlockStatus::Failed)?;
        }
        let beginning = if script.lens == Lens::Gate { GATE_FAILED } else { VERIFY_FAILED };
        let verdict = judge(&format!("{beginning}blocks[{at}] "), &result, seconds).map_err(|verdict| match verdict {
            Verdict::Failed { reason, hopeless } if !said.is_empty() => {
                Verdict::Failed { reason: format!("{reason}: {said}"), hopeless }
            }
            other => other,
        });
        if script.lens == Lens::Gate {
            return verdict.inspect_err(|_| self.finished.exit = ended.exit);
        }
        let found = match verdict {
            Ok(()) => Found::Good,
            // What could not be run has not judged anything.
            Err(Verdict::Failed { reason, .. }) if result.is_ok() => Found::Bad { reason, exit: ended.exit },
            Err(other) => return Err(other),
        };
        ended.verify = Some(Verified { passed: matches!(found, Found::Good), by: VerifiedBy::Command });
        self.found.get_or_insert(found);
        Ok(())
    }

    /// Takes the patch or the outputs as they stand; what was taken of the same before counts no more.
    async fn capture(&mut self, workspace: Workspace, what: What) -> (Workspace, Result<(), Verdict>) {
        let (host, job) = (self.work.host.clone(), self.work.job.clone());
        let (workspace, taken) = blocking(move || {
            let taken = capture::capture_part(&workspace, &job.host(&host), what);
            (workspace, taken)
        })
        .await;
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => return (workspace, Err(not_taken(&error))),
        };
        match what {
            What::Patch => {
                (self.captured.patch, self.captured.submodules) = (taken.patch, taken.submodules);
                self.captured.left_out = taken.left_out;
            }
            What::Outputs => self.captured.outputs = taken.outputs,
        }
        self.captured.large.extend(taken.large);
        self.captured.kept.join(taken.kept);
        (workspace, Ok(()))
    }

    /// Says what it means what the blocks found that check; a worker's own word against its result stands, whatever they found.
    fn conclude(&mut self) -> Result<(), Verdict> {
        let denies_itself = self.finished.denies_itself();
        match self.found.take() {
            None => Ok(()),
            Some(Found::Good) => {
                if !denies_itself {
                    self.finished.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
                }
                Ok(())
            }
            Some(Found::Bad { reason, exit }) => fall_short(self.work.job, self.finished, reason, exit),
        }
    }
}

/// Notes how a command of a block ended.
fn note(block: &mut BlockEnded, result: &Result<Ended, agent::Error>) {
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
