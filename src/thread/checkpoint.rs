//! Saves a state as the next checkpoint of a thread, or the first of a new one.

use std::path::PathBuf;

use crate::git::retry::{self};
use crate::git::work_tree;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::entry::{Content, Origin, Product, RunTie, Worktree};
use crate::model::name::ThreadId;
use crate::model::packet::{Draft, MAX_BYTES, pretty};
use crate::model::thread::{Checkpoint, MAX_SUMMARY, Trail};
use crate::repository::Repository;
use crate::run::query::{self, Target};
use crate::thread::packet::{self, Classification, Terms};
use crate::verify::{self, Gate, Logs, Options};

use super::answers::MadeCheckpoint;
use super::operations::{Error, THREAD};
use super::{OpenThread, gate as attached, save, steps, worktree};

/// Options of a checkpoint besides state and packet.
#[derive(Clone, Copy, Default)]
pub struct Besides<'a> {
    /// A summary of one line.
    pub summary: Option<&'a str>,
    /// The run to tie it to.
    pub run: Option<&'a str>,
    /// Whether to save the working tree.
    pub worktree: bool,
    /// Whether to append nothing if the latest checkpoint holds the same, whatever its summary is.
    pub if_changed: bool,
    /// Writes the packet from recorded facts; its run must pass this gate.
    pub auto_packet: Option<&'a Gate<'a>>,
}

/// A checkpoint that is ready to be appended, except for a packet from recorded facts.
struct Unsaved<'a> {
    thread: &'a ThreadId,
    content: Content,
    run: Option<RunTie>,
    besides: &'a Besides<'a>,
}

impl Repository {
    /// Saves a checkpoint; `bytes` stores its state and packet after all checks have passed. Calls
    /// `warn` with notes about the facts of an automatic packet.
    ///
    /// Concurrent checkpoints are appended one after the other. A run must verify to be tied.
    /// Objects are flushed before the ref moves, so a failure leaves only unreferenced objects.
    pub fn checkpoint<E: From<AnyError>>(
        &self,
        thread: &ThreadId,
        besides: &Besides<'_>,
        warn: &mut dyn FnMut(&str),
        bytes: impl FnOnce() -> Result<(Product, Option<Product>), E>,
    ) -> Result<MadeCheckpoint, E> {
        if besides.summary.is_some_and(|text| text.len() > MAX_SUMMARY || text.chars().any(char::is_control)) {
            return Err(AnyError::from(Error::Summary).into());
        }
        if let Some(summary) = besides.summary {
            self.free_of_secrets("summary", summary)?;
        }
        self.free_of_secrets(THREAD, thread.as_str())?;
        let run = besides.run.map(|run| self.tie(run)).transpose()?;
        let writer = self.writer()?;
        let base = work_tree::head(&self.store).map_err(|error| AnyError::from(Error::Head(error)))?;
        let (state, packet) = bytes()?;
        let saved = besides.worktree.then(|| self.save_worktree()).transpose()?;
        let (worktree, left_out) = saved.unzip();
        let [linked, too_large] = left_out.unwrap_or_default();
        let content = Content {
            state,
            summary: besides.summary.map(str::to_owned),
            packet,
            worktree,
            base: base.map(|(commit, _)| commit),
        };
        if let Some(tie) = &run {
            check_tie(&writer, tie)?;
        }
        let unsaved = Unsaved { thread, content, run, besides };
        let mut answer = retry::run(|| self.append_checkpoint(&writer, &unsaved, warn))?;
        answer.left_out = [linked, too_large.clone()].concat();
        answer.too_large = too_large;
        Ok(answer)
    }

    /// Appends a checkpoint to the thread as it is now.
    fn append_checkpoint(
        &self,
        writer: &Writer,
        unsaved: &Unsaved<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<MadeCheckpoint, AnyError> {
        let Unsaved { thread, content, run, besides } = unsaved;
        let open = OpenThread::find(writer, thread)?;
        let unborn = Trail::default();
        let trail = open.as_ref().map_or(&unborn, |open| &open.sound().trail);
        let draft = besides.auto_packet.map(|gate| {
            let draft = self.write_attached_packet(gate, thread, trail, content, besides.run, warn);
            draft.map_err(Error::Packet)
        });
        let draft = draft.transpose()?;
        if let Some(latest) = trail.latest().filter(|_| besides.if_changed)
            && holds_same(latest, content, run.as_ref())
            && self.holds_same_packet(latest, content, draft.as_ref())?
        {
            return Ok(MadeCheckpoint::unchanged(thread, latest));
        }
        let mut content = content.clone();
        if let (Some(draft), Some(gate)) = (draft, besides.auto_packet) {
            let text = format!("{}\n", pretty(&draft));
            content.packet = Some(self.save_bytes("packet", text.as_bytes())?);
            self.warn_if_unclean(text.as_bytes(), gate, trail, warn)?;
        }
        let made = save(writer, thread, open.as_ref(), content, run.clone().map(Origin::Run))?;
        Ok(MadeCheckpoint::new(thread, &made))
    }

    /// Returns true if a checkpoint has the packet of `content`, or one with the facts of `draft`
    /// that was not resumed from: each resumption needs another token.
    fn holds_same_packet(
        &self,
        latest: &Checkpoint,
        content: &Content,
        draft: Option<&Draft>,
    ) -> Result<bool, AnyError> {
        let Some(draft) = draft else { return Ok(latest.content().packet == content.packet) };
        let Some(attached) = latest.content().packet.filter(|attached| attached.size <= MAX_BYTES as u64) else {
            return Ok(false);
        };
        let mut bytes = Vec::new();
        steps::hand_out(&self.store, latest, attached, &mut bytes)?;
        Ok(latest.resumed.is_empty() && draft.has_facts_of(&bytes))
    }

    /// Warns of a written packet that a resumption will refuse: a thread's name can read like an
    /// order, and a run that was accepted here is not accepted there.
    fn warn_if_unclean(
        &self,
        packet: &[u8],
        gate: &Gate<'_>,
        trail: &Trail,
        warn: &mut dyn FnMut(&str),
    ) -> Result<(), AnyError> {
        let terms = Terms::new(self.environment.clock.now());
        let report = attached::report(&packet::read(packet), &Gate { accept_untrusted: false, ..*gate }, trail, terms);
        let report = report.map_err(Error::Packet)?;
        if report.classification != Classification::Clean {
            let class = report.classification.as_str();
            warn(&format!("`git handoff check` finds the packet of this checkpoint {class}, so it stops a resumption"));
        }
        Ok(())
    }

    fn tie(&self, text: &str) -> Result<RunTie, AnyError> {
        let target = Target::find(&self.store, text)?;
        let view = target.view(&self.store)?;
        let commit = view.head.commit.ok_or_else(|| query::Error::Unknown(target.run.clone()))?;
        Ok(RunTie { id: target.run, commit })
    }

    /// Saves the working tree; returns it with the paths that it does not include: nested
    /// worktrees, and files that are too large.
    fn save_worktree(&self) -> Result<(Worktree, [Vec<String>; 2]), AnyError> {
        let saved = worktree::save(&self.store, self.config.max_product_size, &self.gate())?;
        self.keep(saved.guard);
        Ok((saved.worktree, [to_names(&saved.linked), to_names(&saved.too_large)]))
    }
}

fn to_names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Verifies a run that is to be tied to a checkpoint.
fn check_tie(writer: &Writer, tie: &RunTie) -> Result<(), AnyError> {
    let options = Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() };
    let logs = Logs::read(&writer.store)?;
    let tied = verify::tied_run(&writer.store, &logs, &tie.id, tie.commit, &options);
    Ok(tied.map_err(|finding| super::Error::Tie { run: tie.id.clone(), finding })?)
}

/// Returns true if a checkpoint has this state, working tree, base and tie.
fn holds_same(latest: &Checkpoint, content: &Content, run: Option<&RunTie>) -> bool {
    let Content { state, worktree, base, .. } = latest.content();
    (state, worktree, base, latest.entry.event.tied_run()) == (&content.state, &content.worktree, &content.base, run)
}
