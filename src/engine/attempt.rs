//! Runs one attempt, from its worktree to its products and transcript.

mod blocks;
mod check;
mod furnish;
mod job;
pub(super) mod known_agent;
mod origin;
mod protect;
pub(super) mod repeat;
mod result;
mod result_file;
pub(super) mod spec;
mod step;
mod stored_transcript;
mod verdict;
mod verify;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::engine::pipeline;
use crate::model::causes::in_words;
use crate::model::format;
use crate::model::name::ItemId;
use crate::model::pipeline::Spec;
use crate::process::transcript::{Stream, TranscriptWriter};
use crate::worktree::capture::{self, MOST_EXCLUDED};
use crate::worktree::host::Host;
use crate::worktree::protect::Guard;
use crate::worktree::salvage::{self, Salvaged};
use crate::worktree::stray_commits;
use crate::worktree::workspace::{self, Workspace};

pub use check::StoredCheck;
use furnish::furnish;
pub(super) use furnish::task;
pub(super) use job::{Handles, Job};
pub(super) use origin::Origin;
pub(super) use protect::Protect;
pub(super) use result::Ended;
pub use result::{AttemptResult, LeftWorktree};
use result::{CheckedFresh, PendingResult};
pub(super) use spec::Promised;
pub use spec::{AttemptSpec, Error as SpecError};
pub(super) use step::OWN_VARIABLES;
use step::{Commands, Line, judge};
pub use stored_transcript::StoredTranscript;
use stored_transcript::store_transcript;
pub use verdict::Verdict;

use super::product_capture;
use super::recover;
use super::secrets;

/// Runs the attempt that a spec describes, and returns when only its worktree and its objects are
/// left. Fails before anything runs if the spec is wrong or this machine cannot execute it.
pub(super) async fn run(
    handles: &Handles,
    spec: AttemptSpec,
    cancel: watch::Receiver<bool>,
) -> Result<Ended, SpecError> {
    let host = Arc::new(handles.host.configured(&spec.worktrees));
    let handles = Handles { host: host.clone(), ..handles.clone() };
    let checked = blocking(move || {
        let by = spec.confine(&handles)?;
        spec.check(&handles, by.as_ref())?;
        Job::new(spec, &handles, by)
    });
    Ok(Box::pin(execute(host, checked.await?, cancel)).await.end())
}

/// Executes a job.
async fn execute(host: Arc<Host>, mut job: Job, cancel: watch::Receiver<bool>) -> PendingResult {
    let started = Instant::now();
    let mut pending = PendingResult::not_begun(&job);
    if let Err(why) = secrets::fetch(&mut job).await {
        pending.result.verdict = Verdict::failed(why);
        return pending;
    }
    let job = Arc::new(job);
    let folders = host.written_folders();
    let prepared = {
        let (host, job) = (host.clone(), job.clone());
        blocking(move || prepare(&host, &job)).await
    };
    match prepared {
        Ok((workspace, mut transcript, pipeline, guard)) => {
            let commands = Commands::begin(&host, &job, &mut transcript, &cancel).guarded(guard.as_ref());
            let workspace = match pipeline {
                None => {
                    let worked = work(&workspace, commands, &mut pending).await;
                    pending.result.verdict = worked.err().unwrap_or(Verdict::Done);
                    workspace
                }
                Some(pipeline) => blocks::run(&pipeline, workspace, &host, commands, &mut pending).await,
            };
            let job = job.clone();
            pending = blocking(move || wind_up(&host, &job, (workspace, guard), transcript, pending)).await;
        }
        Err(verdict) => pending.result.verdict = verdict.unless_short(&folders),
    }
    job.handles.lives.end(&job.spec.item);
    pending.result.verdict.describe_shortage(&folders);
    pending.result.redact(&job.secret_values());
    pending.result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    pending
}

type Prepared = (Workspace, TranscriptWriter, Option<Spec>, Option<Guard>);

/// Makes the worktree and fills it with everything that the executor needs.
fn prepare(host: &Host, job: &Job) -> Result<Prepared, Verdict> {
    let spec = job.spec.pipeline.map(|blob| pipeline::load(&host.store, blob.oid, blob.sha256)).transpose();
    let spec = spec.map_err(|e| Verdict::from_error("", &e, Verdict::hopeless))?;
    let guard = job.needs_guard().then(|| protect::guard(host, job)).transpose()?;
    let host = &host.showing(job.spec.refs.clone()).reusing(job.is_apart());
    let mut workspace = worktree(host, job)
        .map_err(|e| Verdict::from_error("the worktree could not be made: ", &e, Verdict::failed))?;
    if job.only_checks {
        workspace = workspace.for_check();
    }
    // An unconfined worker can change times in other ways too, so this would not help.
    if job.confinement.as_ref().is_some_and(|by| !by.keeps_times()) {
        workspace.distrust_times();
    }
    let fill = || -> Result<TranscriptWriter, Verdict> {
        let remarks = furnish(host, job, &workspace)?;
        let mut transcript = TranscriptWriter::create(&workspace.dir, &job.secret_values(), host.settings.max_product)?;
        transcript.show(job.handles.lives.begin(&job.spec.item));
        for remark in remarks {
            let line = format!("git-handoff: {remark}\n");
            transcript.push(Stream::Err, line.as_bytes())?;
        }
        if !matches!(job.spec.origin, Origin::Left(_)) {
            workspace.mark_started()?;
        }
        Ok(transcript)
    };
    match fill() {
        Ok(transcript) => Ok((workspace, transcript, spec, guard)),
        Err(verdict) => {
            // If this fails, the next driver finds a leftover.
            let _ = match job.spec.origin {
                Origin::Left(_) => workspace.set_aside().map(drop),
                _ => workspace.remove(),
            };
            Err(verdict)
        }
    }
}

/// Makes the worktree of an attempt, or takes the one that an earlier attempt left.
fn worktree(host: &Host, job: &Job) -> Result<Workspace, workspace::Error> {
    let AttemptSpec { run, item, attempt, .. } = &job.spec;
    let (attempt, base) = (*attempt, job.spec.first_commit());
    let Origin::Left(earlier) = job.spec.origin else { return Workspace::create(host, run, item, attempt, base) };
    Workspace::take_left(host, (run, item, attempt), base, earlier)
}

/// Runs setup, the command and verify.
async fn work(workspace: &Workspace, mut commands: Commands<'_>, pending: &mut PendingResult) -> Result<(), Verdict> {
    let job = commands.job;
    if matches!(job.spec.origin, Origin::Left(_)) {
        return verify::verify(workspace, commands, pending).await;
    }
    commands.expect_red(pending).await?;
    if let Origin::Commit(commit) = job.spec.origin {
        let captured = capture::capture_commit(workspace, &job.host(commands.host), commit);
        pending.captured = Some(captured.map_err(|error| product_capture::capture_failed(&error))?);
        return Ok(());
    }
    let before = job.before_work(commands.host, workspace)?;
    if let Some(setup) = &job.spec.command.setup {
        let ended = commands.run(workspace, Line::plain(setup)).await;
        pending.result.exit = ended.as_ref().ok().and_then(|ended| ended.exit);
        judge("setup ", &ended, job.spec.command.timeout)?;
    }
    let (ended, judged) = commands.run_item(workspace, "", pending).await;
    pending.result.exit = ended.as_ref().ok().and_then(|ended| ended.exit);
    judged?;
    let (left_out, notes) = job.carry_over(commands.host, workspace, before.as_ref())?;
    pending.result.excluded.extend(left_out);
    pending.result.notes.extend(notes);
    result_file::read(workspace, pending)?;
    verify::verify(workspace, commands, pending).await
}

/// Takes the products, or salvages the work if there are none.
#[expect(clippy::too_many_lines, reason = "one step after the other, with three ways to end")]
fn wind_up(
    host: &Host,
    job: &Job,
    (workspace, guard): (Workspace, Option<Guard>),
    transcript: TranscriptWriter,
    mut pending: PendingResult,
) -> PendingResult {
    let host = &job.host(host);
    match store_transcript(host, transcript, &mut pending.guard) {
        Ok(stored) => pending.result.transcript = Some(stored),
        Err(verdict) => pending.result.verdict = verdict,
    }
    let mut has_left_out = false;
    if matches!(pending.result.verdict, Verdict::Done) {
        match product_capture::take(&workspace, host, job, pending.captured.take()) {
            Ok(captured) => {
                pending.result.notes.extend(captured.notes(job));
                // The user's own work tree keeps them.
                has_left_out = !captured.left_out.is_empty() && job.spec.origin.here().is_none();
                pending.result.products = captured.products;
                pending.result.excluded.extend(captured.excluded);
                pending
                    .result
                    .excluded
                    .extend(captured.left_out.iter().map(|folder| format!("{}/", folder.trim_matches('"'))));
                pending.result.excluded.sort();
                pending.result.excluded.truncate(MOST_EXCLUDED);
                pending.guard.join(captured.guard);
                if pending.is_patch_changed() {
                    pending.result.verdict = Verdict::failed("the patch changed while it was checked");
                    pending.result.products = BTreeMap::new();
                }
                let compared = guard.map_or(Ok(()), |guard| protect::compare(host, job, &guard, &mut pending));
                if let Err(verdict) = compared {
                    (pending.result.verdict, pending.result.products) = (verdict, BTreeMap::new());
                }
            }
            Err(verdict) => pending.result.verdict = verdict,
        }
    }
    let has_all_commits = save_commits(&workspace, host, &mut pending);
    let keeps_sessions = !matches!(pending.result.verdict, Verdict::Done);
    pending.result.notes.extend(workspace.end_agent_folders(keeps_sessions));
    let mut left = LeftWorktree { path: workspace.dir.clone(), spent: false, saved: false };
    if !matches!(pending.result.verdict, Verdict::Done) {
        let is_whole;
        match salvage::salvage(&workspace, host) {
            Ok(salvaged) => {
                is_whole = salvaged.as_ref().is_none_or(Salvaged::is_whole);
                pending
                    .result
                    .notes
                    .extend(salvaged.iter().flat_map(|saved| saved.messages(&job.spec.item, job.spec.attempt)));
                pending.result.salvaged = salvaged.as_ref().map(|salvaged| salvaged.tree);
                salvaged.into_iter().for_each(|salvaged| pending.guard.join(salvaged.guard));
                left.saved = true;
            }
            Err(error) => {
                let (item, attempt, why) = (&job.spec.item, job.spec.attempt, in_words(&error));
                pending.result.notes.push(format!("{item}: the work of attempt {attempt} could not be saved: {why}"));
                is_whole = false;
            }
        }
        if job.spec.keep {
            if let Err(error) = workspace.forget_logins() {
                pending.result.notes.push(format!("{}: {}", job.spec.item, in_words(&error)));
            }
            pending.result.notes.push(format!("{}: the worktree stays in {}", job.spec.item, workspace.dir.display()));
            pending.result.worktree = Some(left);
            return pending;
        }
        if matches!(pending.result.verdict, Verdict::Shortage(_)) && !left.saved {
            pending.result.notes.push(unsaved(&job.spec.item, job.spec.attempt, &workspace.dir));
            pending.result.worktree = Some(left);
            return pending;
        }
        if !is_whole {
            return set_aside(workspace, pending);
        }
    }
    if has_left_out || !has_all_commits {
        return set_aside(workspace, pending);
    }
    pending.result.worktree = Some(LeftWorktree { spent: true, ..left });
    pending.spent = Some(workspace);
    pending
}

/// Saves the commits that are not in the work. Returns false if they are only in the worktree.
fn save_commits(workspace: &Workspace, host: &Host, pending: &mut PendingResult) -> bool {
    let (item, attempt) = (&workspace.item, workspace.attempt);
    let stray = match stray_commits::save(workspace, host) {
        Ok(stray) => stray,
        Err(error) => {
            let why = in_words(&error);
            pending.result.notes.push(format!("{item}: the commits of attempt {attempt} could not be read: {why}"));
            return false;
        }
    };
    pending.result.notes.extend(stray.sentences.iter().map(|sentence| format!("{item}: {sentence}")));
    if let Some(bundle) = stray.bundle {
        pending.result.commits = Some(bundle);
        pending.guard.join(stray.guard);
        let place = format!("{}:{}", format::salvage_ref(&workspace.run), format::commits_path(item, attempt));
        pending.result.notes.push(format!("{item}: these commits are saved in {place}"));
    }
    stray.is_whole
}

/// Leaves the worktree to a person, because some of its work is nowhere else.
fn set_aside(workspace: Workspace, mut pending: PendingResult) -> PendingResult {
    let (dir, item, attempt) = (workspace.dir.clone(), workspace.item.clone(), workspace.attempt);
    let path = workspace.set_aside().unwrap_or_else(|error| {
        pending.result.notes.push(format!("{item}: cannot rename the worktree: {}", in_words(&error)));
        dir
    });
    pending.result.notes.push(recover::stays(&item, attempt, &path));
    pending.result.worktree = Some(LeftWorktree { path, spent: false, saved: true });
    pending
}

/// Returns a note that the work of an attempt exists only in its worktree.
pub(super) fn unsaved(item: &ItemId, attempt: u32, dir: &Path) -> String {
    let dir = dir.display();
    format!("{item}: the work of attempt {attempt} is not saved yet and stays in {dir} until the run is driven again")
}

/// Removes a worktree, and returns a note if that fails.
pub(super) fn remove(workspace: Workspace) -> Option<String> {
    let dir = workspace.dir.clone();
    let error = workspace.remove().err()?;
    Some(format!("{} could not be removed: {}", dir.display(), in_words(&error)))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
