//! One attempt from its worktree to its products, and what of it is kept beside the chain.

mod blocks;
mod checked;
mod claimed;
mod step;
mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::git::store;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Exit, InputRef, Product, Transcript, Verified};
use crate::model::limits::Limits;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::pipeline::{BlockEnded, Spec};
use crate::model::plan::{Declared, ProductKey};
use crate::model::schema::Schema;
use crate::plan::schemas::Schemas;
use crate::worker::attendant::Attendant;
use crate::worker::capture::Captured;
use crate::worker::filters::{Filters, Inside};
use crate::worker::live::Lives;
use crate::worker::salvage::{self, Salvaged};
use crate::worker::sandbox::Confinement;
use crate::worker::transcript::{Stream, TranscriptWriter};
use crate::worker::workspace::{Refs, Workspace};
use crate::worker::{host::Host, inputs, pipeline};

pub(super) use step::OWN_VARIABLES;
use step::{Line, judge, step};
pub(super) use verdict::Verdict;

use super::command::Resolved;
use super::products;
use super::secrets::{self, Secrets};

/// Everything that one attempt is given.
pub(super) struct Job {
    /// The item's position.
    pub(super) at: usize,
    pub(super) run: RunId,
    pub(super) item: ItemId,
    pub(super) attempt: u32,
    pub(super) base: Oid,
    /// The refs that the worktree has.
    pub(super) refs: Refs,
    /// What the executor reads as its task.
    pub(super) task: Vec<u8>,
    pub(super) inputs: BTreeMap<FilePath, (Oid, Digest)>,
    /// The patch and the outputs that the item or its shape declares, with what outputs claim to be.
    pub(super) promised: BTreeMap<ProductKey, Option<Schema>>,
    /// The products that others need of it, each with who does.
    pub(super) wanted: BTreeMap<ProductKey, String>,
    /// The outputs that become documents.
    pub(super) documents: Vec<Declared>,
    /// What these are checked against.
    pub(super) schemas: Arc<Schemas>,
    pub(super) command: Resolved,
    /// The pipeline that is run in the place of setup, command and verify: its blob, and what that is to hash to.
    pub(super) pipeline: Option<(Oid, Digest)>,
    pub(super) env: BTreeMap<String, OsString>,
    /// Where secrets are had from that are not in our environment.
    pub(super) secrets: Arc<Secrets>,
    /// Whether the worktree of a failed attempt stays.
    pub(super) keep: bool,
    /// The program that supervises its commands.
    pub(super) supervisor: Option<Attendant>,
    /// How much they may use.
    pub(super) limits: Limits,
    /// What confines them.
    pub(super) confinement: Option<Arc<Confinement>>,
    /// Whoever watches.
    pub(super) lives: Arc<Lives>,
}

impl Job {
    /// Returns the host as it takes what this attempt left: nothing of its secrets, and by filters that run as its commands did.
    fn host(&self, host: &Host) -> Host {
        let inside = self.confinement.as_ref().map(|by| Inside {
            by: by.clone(),
            env: self.env.clone(),
            supervisor: self.supervisor.clone(),
            limits: self.limits,
        });
        host.guarding(&self.secret_values()).filtering(Filters::of(inside))
    }

    /// Returns whether the worker may speak to those of other attempts. One that nothing confines counts for none of them: it has
    /// no need to.
    fn meets_others(&self, workspace: &Workspace) -> bool {
        self.confinement.as_ref().is_some_and(|by| workspace.lets_meet(by))
    }

    /// Returns whether the worker has a home directory of its own.
    fn has_own_home(&self) -> bool {
        self.confinement.as_ref().is_some_and(|by| by.has_own_home())
    }
}

/// A transcript whose bytes are in the object database.
pub(super) struct Kept {
    pub(super) transcript: Transcript,
    pub(super) oid: Option<Oid>,
}

/// What came of an attempt.
pub(super) struct Finished {
    pub(super) at: usize,
    pub(super) item: ItemId,
    pub(super) attempt: u32,
    pub(super) verdict: Verdict,
    pub(super) exit: Option<Exit>,
    pub(super) duration_ms: u64,
    pub(super) products: BTreeMap<ProductKey, Product>,
    pub(super) verify: Option<Verified>,
    /// Why it is red, if it is done.
    pub(super) red: Option<String>,
    /// What the worker says that it did.
    pub(super) summary: Option<String>,
    /// What became of the blocks of its pipeline.
    pub(super) blocks: Vec<BlockEnded>,
    /// What they took, in the place of what is taken in the end.
    pub(super) captured: Option<Captured>,
    pub(super) transcript: Option<Kept>,
    /// The work of an attempt without products, as a tree.
    pub(super) salvaged: Option<Salvaged>,
    /// The worktree, to be removed once the end of the attempt is recorded.
    pub(super) spent: Option<Workspace>,
    /// Whether all work in the worktree is salvaged, so that it may go even if the end cannot be recorded.
    pub(super) saved: bool,
    /// What to tell the operator.
    pub(super) notes: Vec<String>,
    /// Keeps the products and the transcript until refs reach them.
    pub(super) kept: store::Kept,
}

impl Finished {
    /// Returns what there is to say of an attempt that has not begun.
    pub(super) fn none(job: &Job) -> Self {
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
            summary: None,
            blocks: Vec::new(),
            captured: None,
            transcript: None,
            salvaged: None,
            spent: None,
            saved: false,
            notes: Vec::new(),
            kept: store::Kept::default(),
        }
    }

    /// Returns it as an attempt that failed because it was lost. Its worktree stays where it is, until the run is driven again.
    pub(super) fn because(mut self, why: &str) -> Self {
        self.verdict = Verdict::failed(format!("the attempt was lost: {why}"));
        self
    }
}

/// Returns the bytes of an executor's task: the item's inputs as submitted, and what its needs were resolved to.
pub(super) fn task(inputs: &Map<String, Value>, refs: &BTreeMap<FilePath, InputRef>) -> Vec<u8> {
    let mut task = inputs.clone();
    let refs = serde_json::to_value(refs).expect("refs serialise to an object");
    task.insert("inputRefs".to_owned(), refs);
    let mut bytes = serde_json::to_vec_pretty(&task).expect("a JSON object serialises");
    bytes.push(b'\n');
    bytes
}

/// Runs one attempt and returns when nothing of it is left but what `Finished` names and the worktree.
pub(super) async fn run(host: Arc<Host>, mut job: Job, cancel: watch::Receiver<bool>) -> Finished {
    let started = Instant::now();
    if let Err(why) = secrets::fetch(&mut job).await {
        return Finished { verdict: Verdict::failed(why), ..Finished::none(&job) };
    }
    let job = Arc::new(job);
    let mut finished = Finished::none(&job);
    let store_and_worktrees = [host.root.clone(), host.private.clone(), host.store.objects_dir()];
    let prepared = {
        let (host, job) = (host.clone(), job.clone());
        blocking(move || prepare(&host, &job)).await
    };
    match prepared {
        Ok((workspace, mut transcript, spec)) => {
            let workspace = match spec {
                None => {
                    finished.verdict = work(&workspace, &job, &mut transcript, cancel, &mut finished).await;
                    workspace
                }
                Some(spec) => {
                    let work = blocks::Work { host: &host, job: &job, spec: &spec, cancel: &cancel };
                    work.run(workspace, &mut transcript, &mut finished).await
                }
            };
            let job = job.clone();
            finished = blocking(move || wind_up(&host, &job, workspace, transcript, finished)).await;
        }
        Err(verdict) => finished.verdict = verdict,
    }
    job.lives.end(&job.item);
    finished.verdict.name_full_disk(&store_and_worktrees);
    finished.redact(&job.secret_values());
    finished.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    finished
}

/// What an attempt begins with.
type Prepared = (Workspace, TranscriptWriter, Option<Spec>);

/// Makes the worktree and puts everything into it that the executor is to find there.
fn prepare(host: &Host, job: &Job) -> Result<Prepared, Verdict> {
    let spec = job.pipeline.map(|(oid, digest)| pipeline::load(&host.store, oid, digest)).transpose();
    let spec = spec.map_err(|e| Verdict::hopeless(in_words(&e)))?;
    let host = &host.showing(job.refs.clone());
    let mut workspace = Workspace::create(host, &job.run, &job.item, job.attempt, job.base)
        .map_err(|e| Verdict::of("the worktree could not be made: ", &e, Verdict::failed))?;
    // Who is confined by nothing can do all that we can, with its files as with ours.
    if job.confinement.as_ref().is_some_and(|by| !by.keeps_times()) {
        workspace.distrust_times();
    }
    let fill = || {
        inputs::stage(&workspace, &host.store, &job.inputs).map_err(|e| Verdict::of("", &e, Verdict::hopeless))?;
        std::fs::write(workspace.task(), &job.task)
            .map_err(|e| Verdict::of("the task could not be written: ", &e, Verdict::failed))?;
        let mut transcript = TranscriptWriter::create(&workspace.dir, &job.secret_values(), host.max_product)
            .map_err(|e| Verdict::of("", &e, Verdict::failed))?;
        transcript.show(job.lives.begin(&job.item));
        if let Some(confinement) = job.confinement.as_ref().filter(|_| job.has_own_home()) {
            workspace.make_home(host, &confinement.at_home()).map_err(|e| Verdict::of("", &e, Verdict::failed))?;
        }
        if let Some(confinement) = &job.confinement {
            for remark in workspace.make_scratch(confinement).map_err(|e| Verdict::failed(in_words(&e)))? {
                let line = format!("git-handoff: {remark}\n");
                transcript.push(Stream::Err, line.as_bytes()).map_err(|e| Verdict::of("", &e, Verdict::failed))?;
            }
        }
        workspace.mark_started().map_err(|e| Verdict::of("", &e, Verdict::failed))?;
        Ok(transcript)
    };
    match fill() {
        Ok(transcript) => {
            if job.meets_others(&workspace) {
                workspace.meet(host);
            }
            Ok((workspace, transcript, spec))
        }
        Err(verdict) => {
            // What cannot be removed now is found as a leftover by the next driver.
            let _ = workspace.remove();
            Err(verdict)
        }
    }
}

/// Runs setup, the command and verify, in this order.
async fn work(
    workspace: &Workspace,
    job: &Job,
    transcript: &mut TranscriptWriter,
    cancel: watch::Receiver<bool>,
    finished: &mut Finished,
) -> Verdict {
    let deadline = Instant::now() + Duration::from_secs(job.command.timeout);
    if let Some(setup) = &job.command.setup {
        let ended = step(workspace, job, Line::plain(setup), deadline, transcript, &cancel).await;
        if let Err(verdict) = judge("setup ", &ended, job.command.timeout) {
            finished.exit = ended.ok().and_then(|ended| ended.exit);
            return verdict;
        }
    }
    let ended = step(workspace, job, Line::of(job), deadline, transcript, &cancel).await;
    finished.exit = ended.as_ref().ok().and_then(|ended| ended.exit);
    if let Err(verdict) = judge("", &ended, job.command.timeout) {
        return verdict;
    }
    if let Err(verdict) = claimed::take(workspace, finished) {
        return verdict;
    }
    let checked = checked::verify(workspace, job, deadline, transcript, &cancel, finished).await;
    checked.err().unwrap_or(Verdict::Done)
}

/// Takes the products, or saves the work that has none.
fn wind_up(
    host: &Host,
    job: &Job,
    workspace: Workspace,
    transcript: TranscriptWriter,
    mut finished: Finished,
) -> Finished {
    workspace.part();
    let host = &job.host(host);
    match keep_transcript(host, transcript, &mut finished.kept) {
        Ok(kept) => finished.transcript = Some(kept),
        Err(verdict) => finished.verdict = verdict,
    }
    if matches!(finished.verdict, Verdict::Done) {
        match products::take(&workspace, host, job, finished.captured.take()) {
            Ok(taken) => {
                finished.notes.extend(taken.note(&job.item));
                finished.products = taken.products;
                finished.kept.join(taken.kept);
            }
            Err(verdict) => finished.verdict = verdict,
        }
    }
    if !matches!(finished.verdict, Verdict::Done) {
        match salvage::salvage(&workspace, host) {
            Ok(salvaged) => {
                finished.notes.extend(salvaged.iter().flat_map(|saved| saved.told(&job.item, job.attempt)));
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

/// Says that the work of an attempt is only where it was done.
pub(super) fn unsaved(item: &ItemId, attempt: u32, workspace: &Workspace) -> String {
    let dir = workspace.dir.display();
    format!("{item}: the work of attempt {attempt} is not saved yet and stays in {dir} until the run is driven again")
}

/// Removes a worktree that is of no more use; returns what to tell if it cannot be.
pub(super) fn remove(workspace: Workspace) -> Option<String> {
    let dir = workspace.dir.clone();
    let error = workspace.remove().err()?;
    Some(format!("{} could not be removed: {}", dir.display(), in_words(&error)))
}

/// Writes the transcript into the repository, from the open file: by no name that a worker could have given to something else.
fn keep_transcript(host: &Host, transcript: TranscriptWriter, kept: &mut store::Kept) -> Result<Kept, Verdict> {
    let (transcript, mut file) = transcript.finish().map_err(|e| Verdict::of("", &e, Verdict::failed))?;
    if transcript.size == 0 {
        return Ok(Kept { transcript, oid: None });
    }
    let mut batch = host.store.batch();
    let (oid, sha256, size) = batch.write_file(&mut file).map_err(|e| Verdict::of("", &e, Verdict::failed))?;
    if (sha256, size) != (transcript.sha256, transcript.size) {
        return Err(Verdict::failed("the transcript was changed while it was kept"));
    }
    kept.join(batch.keep().map_err(|e| Verdict::of("", &e, Verdict::failed))?);
    Ok(Kept { transcript, oid: Some(oid) })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
