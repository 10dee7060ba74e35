//! Runs one attempt, from its worktree to its products and transcript.

mod blocks;
mod check;
mod furnish;
pub(super) mod known_agent;
mod origin;
mod protect;
pub(super) mod repeat;
mod result_file;
mod step;
mod stored_transcript;
mod verdict;
mod verify;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::config::Preset;
use crate::engine::pipeline;
use crate::git::store;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Claims, Exit, Product, Verified};
use crate::model::item_index::ItemIndex;
use crate::model::limits::Limits;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::pipeline::{BlockEnded, Spec};
use crate::model::plan::{Declared, ProductKey};
use crate::model::protected::ProtectedChange;
use crate::model::schema::Schema;
use crate::plan::schemas::Schemas;
use crate::process::attendant::Attendant;
use crate::process::transcript::{Stream, TranscriptWriter};
use crate::process::{lease::Lease, live::Lives};
use crate::sandbox::Confinement;
use crate::worktree::capture::{self, Captured};
use crate::worktree::filters::{Filters, Inside};
use crate::worktree::host::Host;
use crate::worktree::protect::Guard;
use crate::worktree::salvage::{self, Salvaged};
use crate::worktree::workspace::{Refs, Workspace};

pub(super) use check::{CheckSettings, StoredCheck};
use furnish::furnish;
pub(super) use furnish::task;
pub(super) use origin::Origin;
pub(super) use protect::Protect;
pub(super) use step::OWN_VARIABLES;
use step::{Commands, Line, judge};
pub(super) use stored_transcript::StoredTranscript;
use stored_transcript::store_transcript;
pub(super) use verdict::Verdict;

use super::command::Resolved;
use super::products;
use super::secrets::{self, Secrets};

/// The input of one attempt.
pub(super) struct Job {
    pub(super) at: ItemIndex,
    pub(super) run: RunId,
    pub(super) item: ItemId,
    pub(super) attempt: u32,
    pub(super) base: Oid,
    /// The refs that the worktree gets.
    pub(super) refs: Refs,
    /// The task that the executor reads.
    pub(super) task: Vec<u8>,
    pub(super) inputs: BTreeMap<FilePath, (Oid, Digest)>,
    /// The patch and the outputs that the item or its shape declares, with the schemas of outputs.
    pub(super) promised: BTreeMap<ProductKey, Option<Schema>>,
    /// The products that other items need, each with the id of one such item.
    pub(super) wanted: BTreeMap<ProductKey, String>,
    pub(super) documents: Vec<Declared>,
    /// The registered schemas, for outputs and documents.
    pub(super) schemas: Arc<Schemas>,
    pub(super) command: Resolved,
    pub(super) origin: Origin,
    /// The description of the agent that the command starts, if it is a known one.
    pub(super) preset: Option<&'static Preset>,
    /// The blob and the digest of the pipeline that replaces setup, command and verify.
    pub(super) pipeline: Option<(Oid, Digest)>,
    pub(super) env: BTreeMap<String, OsString>,
    /// Reads secrets that are not in the environment.
    pub(super) secrets: Arc<Secrets>,
    /// Whether to keep the worktree of a failed attempt.
    pub(super) keep: bool,
    /// The program that supervises its commands.
    pub(super) supervisor: Option<Attendant>,
    pub(super) limits: Limits,
    /// The sign of life that its commands need, or `None`.
    pub(super) lease: Option<Lease>,
    pub(super) confinement: Option<Arc<Confinement>>,
    pub(super) protect: Option<Protect>,
    pub(super) check: CheckSettings,
    /// The output of running attempts.
    pub(super) lives: Arc<Lives>,
    /// Notes for the operator from its preparation.
    pub(super) notes: Vec<String>,
}

impl Job {
    /// Returns the host for taking the products: it rejects this attempt's secrets, and runs
    /// filters as confined as its commands.
    fn host(&self, host: &Host) -> Host {
        let inside = self.confinement.as_ref().map(|by| Inside {
            by: by.clone(),
            env: self.env.clone(),
            supervisor: self.supervisor.clone(),
            limits: self.limits,
        });
        let exclude = self.preset.map(|preset| preset.exclude.clone()).unwrap_or_default();
        host.guarding(&self.secret_values()).filtering(Filters::of(inside)).excluding(exclude)
    }

    /// Returns true if the worker is kept apart from those of all other attempts.
    fn is_apart(&self) -> bool {
        self.confinement.as_ref().is_some_and(|by| by.keeps_apart())
    }

    fn has_own_home(&self) -> bool {
        self.confinement.as_ref().is_some_and(|by| by.has_own_home())
    }
}

/// A patch, or none if nothing changed, that was checked in a fresh worktree.
pub(super) struct CheckedFresh {
    pub(super) patch: Option<Digest>,
}

/// The result of an attempt.
pub(super) struct Finished {
    pub(super) at: ItemIndex,
    pub(super) item: ItemId,
    pub(super) attempt: u32,
    pub(super) verdict: Verdict,
    pub(super) exit: Option<Exit>,
    pub(super) duration_ms: u64,
    pub(super) products: BTreeMap<ProductKey, Product>,
    pub(super) verify: Option<Verified>,
    /// Why the item is red, if it is done.
    pub(super) red: Option<String>,
    /// The tree with the reference state of the protected files.
    pub(super) reference: Option<Oid>,
    /// The changes of the patch to protected files.
    pub(super) protected: Vec<ProtectedChange>,
    /// Whether these changes are allowed.
    pub(super) protected_allowed: bool,
    /// The patch that was checked in a fresh worktree.
    pub(super) checked_fresh: Option<CheckedFresh>,
    /// The run of the check after the work.
    pub(super) check: Option<StoredCheck>,
    /// The run of the check before the work.
    pub(super) check_before: Option<StoredCheck>,
    /// The worker's own summary.
    pub(super) summary: Option<String>,
    /// The worker's claims about itself.
    pub(super) claims: Option<Claims>,
    /// Those of them that a known agent printed.
    pub(super) reported: Option<Claims>,
    /// Paths that its agent left behind and the patch omits.
    pub(super) excluded: Vec<String>,
    /// The results of its pipeline's blocks.
    pub(super) blocks: Vec<BlockEnded>,
    /// The products that the pipeline captured, which replace a capture at the end.
    pub(super) captured: Option<Captured>,
    pub(super) transcript: Option<StoredTranscript>,
    /// The work of an attempt without products, as a tree.
    pub(super) salvaged: Option<Salvaged>,
    /// The worktree, to be removed once the end of the attempt is recorded.
    pub(super) spent: Option<Workspace>,
    /// Whether all work is salvaged, so that the worktree can be removed even if recording fails.
    pub(super) saved: bool,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
    /// Keeps the products and the transcript until refs reach them.
    pub(super) kept: store::KeepGuard,
}

impl Finished {
    /// Returns the result of an attempt that has not begun.
    pub(super) fn not_begun(job: &Job) -> Self {
        Self {
            at: job.at,
            item: job.item.clone(),
            attempt: job.attempt,
            verdict: Verdict::Interrupted,
            exit: None,
            duration_ms: 0,
            products: BTreeMap::new(),
            verify: None,
            red: None,
            reference: None,
            protected: Vec::new(),
            protected_allowed: false,
            checked_fresh: None,
            check: None,
            check_before: None,
            summary: None,
            claims: None,
            reported: None,
            excluded: Vec::new(),
            blocks: Vec::new(),
            captured: None,
            transcript: None,
            salvaged: None,
            spent: None,
            saved: false,
            notes: job.notes.clone(),
            kept: store::KeepGuard::default(),
        }
    }

    /// Returns true if the patch differs from the one that a fresh worktree was checked with.
    fn is_patch_changed(&self) -> bool {
        let patch = self.products.get(&ProductKey::Patch).map(|patch| patch.sha256);
        self.checked_fresh.as_ref().is_some_and(|checked| checked.patch != patch)
    }

    /// Returns the result of an attempt that was lost. Its worktree stays until the run is driven
    /// again.
    pub(super) fn lost(mut self, why: &str) -> Self {
        self.verdict = Verdict::failed(format!("the attempt was lost: {why}"));
        self
    }
}

/// Runs one attempt, and returns when only the worktree and the parts of `Finished` are left.
pub(super) async fn run(host: Arc<Host>, mut job: Job, cancel: watch::Receiver<bool>) -> Finished {
    let started = Instant::now();
    if let Err(why) = secrets::fetch(&mut job).await {
        return Finished { verdict: Verdict::failed(why), ..Finished::not_begun(&job) };
    }
    let job = Arc::new(job);
    let mut finished = Finished::not_begun(&job);
    let store_and_worktrees = [host.root.clone(), host.private.clone(), host.store.objects_dir()];
    let prepared = {
        let (host, job) = (host.clone(), job.clone());
        blocking(move || prepare(&host, &job)).await
    };
    match prepared {
        Ok((workspace, mut transcript, spec, guard)) => {
            let commands = Commands::begin(&host, &job, &mut transcript, &cancel).guarded(guard.as_ref());
            let workspace = match spec {
                None => {
                    finished.verdict = work(&workspace, commands, &mut finished).await.err().unwrap_or(Verdict::Done);
                    workspace
                }
                Some(spec) => blocks::run(&spec, workspace, &host, commands, &mut finished).await,
            };
            let job = job.clone();
            finished = blocking(move || wind_up(&host, &job, (workspace, guard), transcript, finished)).await;
        }
        Err(verdict) => finished.verdict = verdict,
    }
    job.lives.end(&job.item);
    finished.verdict.name_full_disk(&store_and_worktrees);
    finished.redact(&job.secret_values());
    finished.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    finished
}

type Prepared = (Workspace, TranscriptWriter, Option<Spec>, Option<Guard>);

/// Makes the worktree and fills it with everything that the executor needs.
fn prepare(host: &Host, job: &Job) -> Result<Prepared, Verdict> {
    let spec = job.pipeline.map(|(oid, digest)| pipeline::load(&host.store, oid, digest)).transpose();
    let spec = spec.map_err(|e| Verdict::hopeless(in_words(&e)))?;
    let guard = job.needs_guard().then(|| protect::guard(host, job)).transpose()?;
    let host = &host.showing(job.refs.clone()).reusing(job.is_apart());
    let mut workspace = Workspace::create(host, &job.run, &job.item, job.attempt, job.base)
        .map_err(|e| Verdict::from_error("the worktree could not be made: ", &e, Verdict::failed))?;
    // An unconfined worker can change times in other ways too, so this would not help.
    if job.confinement.as_ref().is_some_and(|by| !by.keeps_times()) {
        workspace.distrust_times();
    }
    let fill = || -> Result<TranscriptWriter, Verdict> {
        let remarks = furnish(host, job, &workspace)?;
        let mut transcript = TranscriptWriter::create(&workspace.dir, &job.secret_values(), host.max_product)?;
        transcript.show(job.lives.begin(&job.item));
        for remark in remarks {
            let line = format!("git-handoff: {remark}\n");
            transcript.push(Stream::Err, line.as_bytes())?;
        }
        workspace.mark_started()?;
        Ok(transcript)
    };
    match fill() {
        Ok(transcript) => Ok((workspace, transcript, spec, guard)),
        Err(verdict) => {
            // If the removal fails, the next driver finds a leftover.
            let _ = workspace.remove();
            Err(verdict)
        }
    }
}

/// Runs setup, the command and verify.
async fn work(workspace: &Workspace, mut commands: Commands<'_>, finished: &mut Finished) -> Result<(), Verdict> {
    let job = commands.job;
    commands.expect_red(finished).await?;
    if let Origin::Commit(commit) = job.origin {
        let captured = capture::capture_commit(workspace, &job.host(commands.host), commit);
        finished.captured = Some(captured.map_err(|error| products::capture_failed(&error))?);
        return Ok(());
    }
    let before = job.before_work(commands.host, workspace)?;
    if let Some(setup) = &job.command.setup {
        let ended = commands.run(workspace, Line::plain(setup)).await;
        finished.exit = ended.as_ref().ok().and_then(|ended| ended.exit);
        judge("setup ", &ended, job.command.timeout)?;
    }
    let (ended, judged) = commands.run_item(workspace, "", finished).await;
    finished.exit = ended.as_ref().ok().and_then(|ended| ended.exit);
    judged?;
    finished.notes.extend(job.carry_over(commands.host, workspace, before.as_ref())?);
    result_file::read(workspace, finished)?;
    verify::verify(workspace, commands, finished).await
}

/// Takes the products, or salvages the work if there are none.
fn wind_up(
    host: &Host,
    job: &Job,
    (workspace, guard): (Workspace, Option<Guard>),
    transcript: TranscriptWriter,
    mut finished: Finished,
) -> Finished {
    let host = &job.host(host);
    match store_transcript(host, transcript, &mut finished.kept) {
        Ok(kept) => finished.transcript = Some(kept),
        Err(verdict) => finished.verdict = verdict,
    }
    if matches!(finished.verdict, Verdict::Done) {
        match products::take(&workspace, host, job, finished.captured.take()) {
            Ok(taken) => {
                finished.notes.extend(taken.notes(job));
                finished.products = taken.products;
                finished.excluded = taken.excluded;
                finished.kept.join(taken.kept);
                if finished.is_patch_changed() {
                    finished.verdict = Verdict::failed("the patch changed while it was checked");
                    finished.products = BTreeMap::new();
                }
                let compared = guard.map_or(Ok(()), |guard| protect::compare(host, job, &guard, &mut finished));
                if let Err(verdict) = compared {
                    (finished.verdict, finished.products) = (verdict, BTreeMap::new());
                }
            }
            Err(verdict) => finished.verdict = verdict,
        }
    }
    if !matches!(finished.verdict, Verdict::Done) {
        match salvage::salvage(&workspace, host) {
            Ok(salvaged) => {
                finished.notes.extend(salvaged.iter().flat_map(|saved| saved.messages(&job.item, job.attempt)));
                (finished.salvaged, finished.saved) = (salvaged, true);
            }
            Err(error) => {
                let (item, attempt, why) = (&job.item, job.attempt, in_words(&error));
                finished.notes.push(format!("{item}: the work of attempt {attempt} could not be saved: {why}"));
            }
        }
        if job.keep {
            finished.notes.push(format!("{}: the worktree stays in {}", job.item, workspace.dir.display()));
            return finished;
        }
        if matches!(finished.verdict, Verdict::NoSpace(_)) && !finished.saved {
            finished.notes.push(unsaved(&job.item, job.attempt, &workspace));
            return finished;
        }
    }
    finished.spent = Some(workspace);
    finished
}

/// Returns a note that the work of an attempt exists only in its worktree.
pub(super) fn unsaved(item: &ItemId, attempt: u32, workspace: &Workspace) -> String {
    let dir = workspace.dir.display();
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
