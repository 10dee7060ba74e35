//! Runs the check of an attempt: before the work if it must fail first, in the worktree or in a
//! fresh one, with its output recorded.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::spec::AttemptSpec;
use super::step::{Commands, Line, judge};
use super::{CheckedFresh, Job, PendingResult, StoredTranscript, Verdict, furnish, protect, store_transcript};
use crate::git::{private_files, store};
use crate::model::credential;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{CheckRun, Exit, Transcript};
use crate::model::format;
use crate::model::pipeline::CaptureKind;
use crate::model::protected::VerifyIn;
use crate::process::agent::{self, Ended};
use crate::process::transcript::TranscriptWriter;
use crate::worktree::capture;
use crate::worktree::held_out::HeldOut;
use crate::worktree::host::Host;
use crate::worktree::product::{self, Recorded};
use crate::worktree::workspace::{self, Workspace};

/// The start of the reason if a check passed before the work.
const NOT_RED: &str = "check-not-red: ";
/// The exit codes of a shell for a command that cannot be run.
pub(super) const CANNOT_RUN: [i32; 2] = [126, 127];
/// Set in the number of an attempt for its fresh worktree, which is never started or salvaged.
const FRESH: u32 = 1 << 31;

/// The settings of an attempt's check.
pub(in crate::engine) struct CheckSettings {
    pub(in crate::engine) held_out: Option<HeldOut>,
    /// Whether reasons contain its output in spite of held-out files.
    pub(in crate::engine) feedback: bool,
    pub(in crate::engine) red_first: bool,
    pub(in crate::engine) verify_in: VerifyIn,
}

impl CheckSettings {
    /// Returns true if the check needs a worktree that is prepared for it.
    pub(super) fn needs_guard(&self) -> bool {
        self.held_out.is_some() || self.red_first || self.verify_in == VerifyIn::Fresh
    }

    /// Returns true if the check's output must not reach later attempts.
    pub(super) fn withholds_output(&self) -> bool {
        self.held_out.is_some() && !self.feedback
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        self.held_out.as_ref().map(|held_out| held_out.digest)
    }
}

/// A run of a check, with its stored output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StoredCheck {
    /// The run.
    pub run: CheckRun,
    /// The blob of the output, if there is any.
    pub oid: Option<Oid>,
}

/// The result of a check that was run.
pub(super) struct Checked {
    pub(super) ended: Result<Ended, agent::Error>,
    pub(super) stored: StoredCheck,
}

/// Whose files a worktree has.
#[derive(Clone, Copy)]
enum CheckedFiles {
    Worker,
    /// Those of the base, of a patch and of a setup.
    Fresh {
        patch: Option<(Oid, Digest)>,
        /// The number of protected files that got their reference state before the setup.
        restored: usize,
    },
}

impl Commands<'_> {
    /// Runs a check in the worktree of the worker, with surroundings of its own.
    pub(super) async fn check_in_worktree(
        &mut self,
        deadline: Instant,
        workspace: &Workspace,
        line: Line<'_>,
        guard: &mut store::KeepGuard,
    ) -> Result<Checked, Verdict> {
        let host = self.host.showing(self.job.spec.refs.clone());
        let own = workspace.begin_check(&host).map_err(|e| failed_surroundings(&e))?;
        let checked = match furnish(&host, self.job, &own) {
            Ok(_) => self.check(deadline, &own, line, CheckedFiles::Worker, guard).await,
            Err(verdict) => Err(verdict),
        };
        workspace.end_check(&host).map_err(|e| failed_surroundings(&e))?;
        checked
    }

    /// Runs a check in a worktree for it while the protected files have their reference state and
    /// the held-out files are in place. Records its output.
    async fn check(
        &mut self,
        deadline: Instant,
        workspace: &Workspace,
        line: Line<'_>,
        files: CheckedFiles,
        guard: &mut store::KeepGuard,
    ) -> Result<Checked, Verdict> {
        let argv: Vec<String> = line.argv().iter().map(|word| credential::redact(word).into_owned()).collect();
        let withheld = self.job.check.withholds_output();
        self.transcript.flush()?;
        self.transcript.split(self.host.settings.max_product, withheld)?;
        let started = Instant::now();
        let (ended, restored) = match self.guard {
            None => (self.run_until(deadline, workspace, line).await, 0),
            Some(protection) => {
                let (enforced, earlier) = match files {
                    CheckedFiles::Worker => (protection.enforce(self.host, workspace), 0),
                    CheckedFiles::Fresh { patch, restored } => {
                        (protection.enforce_fresh(self.host, workspace, patch), restored)
                    }
                };
                let enforced = enforced.map_err(|e| protect::failed(&e))?;
                let restored = earlier + enforced.restored();
                let ended = self.run_until(deadline, workspace, line).await;
                enforced.restore().map_err(|e| protect::failed(&e))?;
                (ended, restored)
            }
        };
        self.transcript.flush()?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let copy = self.transcript.take_copy().ok_or_else(|| Verdict::failed("the check has no output file"))?;
        let StoredTranscript { transcript: output, oid } = if withheld {
            StoredTranscript { transcript: keep_privately(self.host, self.job, copy, self.is_before)?, oid: None }
        } else {
            store_transcript(self.host, copy, guard)?
        };
        let exit = ended.as_ref().ok().and_then(|ended| ended.exit);
        let held_out = self.job.check.digest();
        let restored = restored as u64;
        let run = CheckRun { argv, exit, duration_ms, output, restored, held_out };
        Ok(Checked { ended, stored: StoredCheck { run, oid } })
    }

    /// Runs the executor's check where the settings say.
    pub(super) async fn check_work(
        &mut self,
        workspace: &Workspace,
        verify: &[String],
        pending: &mut PendingResult,
    ) -> Result<Checked, Verdict> {
        let job = self.job;
        if job.check.verify_in == VerifyIn::Worktree {
            let line = Line::reading(verify, job);
            return self.check_in_worktree(self.deadline, workspace, line, &mut pending.guard).await;
        }
        let captured = capture::capture_part(workspace, &job.host(self.host), CaptureKind::Patch);
        let captured = captured.map_err(|error| crate::engine::product_capture::capture_failed(&error))?;
        let patch = captured.patch.map(|patch| (patch.oid, patch.sha256));
        pending.checked_fresh = Some(CheckedFresh { patch: patch.map(|(_, digest)| digest) });
        pending.guard.join(captured.guard);
        self.check_fresh(verify, patch, &mut pending.guard).await
    }

    /// Runs the check in a fresh worktree of the base with a patch.
    pub(super) async fn check_fresh(
        &mut self,
        verify: &[String],
        patch: Option<(Oid, Digest)>,
        guard: &mut store::KeepGuard,
    ) -> Result<Checked, Verdict> {
        let job = self.job;
        let host = self.host.showing(job.spec.refs.clone());
        let AttemptSpec { run, item, attempt, .. } = &job.spec;
        let fresh = Workspace::create(&host, run, item, attempt | FRESH, job.spec.first_commit())
            .map_err(|e| Verdict::from_error("cannot create a fresh worktree: ", &e, Verdict::failed))?
            .for_check();
        let checked = self.check_in(&fresh, verify, patch, guard).await;
        let removed = fresh.remove_private().and_then(|()| fresh.remove());
        let checked = checked?;
        removed.map_err(|e| Verdict::from_error("cannot remove a fresh worktree: ", &e, Verdict::failed))?;
        Ok(checked)
    }

    async fn check_in(
        &mut self,
        fresh: &Workspace,
        verify: &[String],
        patch: Option<(Oid, Digest)>,
        guard: &mut store::KeepGuard,
    ) -> Result<Checked, Verdict> {
        let job = self.job;
        furnish(self.host, job, fresh)?;
        if patch.is_some() {
            product::write(self.host, fresh, &Recorded { patch, outputs: BTreeMap::new() }).map_err(|e| {
                Verdict::from_error("cannot write the patch into a fresh worktree: ", &e, Verdict::failed)
            })?;
        }
        let mut restored = 0;
        if let Some(setup) = &job.spec.command.setup {
            // The setup runs with the reference state as well.
            if let Some(protection) = self.guard {
                restored = protection.settle(self.host, fresh).map_err(|e| protect::failed(&e))?;
            }
            let ended = self.run(fresh, Line::plain(setup)).await;
            judge("setup of the check ", &ended, job.spec.command.timeout)?;
        }
        self.check(self.deadline, fresh, Line::reading(verify, job), CheckedFiles::Fresh { patch, restored }, guard)
            .await
    }

    /// Runs the check before the work if the settings ask for it. It must fail.
    pub(super) async fn expect_red(&mut self, pending: &mut PendingResult) -> Result<(), Verdict> {
        let job = self.job;
        let Some(verify) = job.spec.command.verify.as_ref().filter(|_| job.check.red_first) else { return Ok(()) };
        self.is_before = true;
        let checked = self.check_fresh(verify, None, &mut pending.guard).await;
        self.is_before = false;
        let checked = checked?;
        let exit = checked.stored.run.exit;
        pending.result.check_before = Some(checked.stored);
        match judge("", &checked.ended, job.spec.command.timeout) {
            Ok(()) => Err(Verdict::hopeless(format!("{NOT_RED}the check passes before the work"))),
            Err(Verdict::Failed { .. }) => match exit {
                Some(Exit { code: Some(code), .. }) if CANNOT_RUN.contains(&code) => {
                    Err(Verdict::hopeless(format!("{NOT_RED}the check cannot be run, it exited with {code}")))
                }
                Some(_) => Ok(()),
                None => Err(Verdict::hopeless(format!("{NOT_RED}the check did not end by itself"))),
            },
            Err(other) => Err(other),
        }
    }
}

fn failed_surroundings(e: &workspace::Error) -> Verdict {
    Verdict::from_error("cannot give the check its own surroundings: ", e, Verdict::failed)
}

impl Job {
    /// Returns true if checks need prepared worktrees.
    pub(super) fn needs_guard(&self) -> bool {
        self.protect.is_some() || self.check.needs_guard()
    }
}

/// Keeps the output of a check with held-out files in a file of the git directory: workers can read
/// every object.
fn keep_privately(host: &Host, job: &Job, writer: TranscriptWriter, before: bool) -> Result<Transcript, Verdict> {
    let (output, mut file) = writer.finish()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let name = format::withheld_check(&job.spec.item, job.spec.attempt, before);
    private_files::put(&host.store, &private_files::checks_of(&job.spec.run), &name, &bytes)?;
    Ok(output)
}
