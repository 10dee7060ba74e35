//! Steps out of a run: to items of other runs, and to checkpoints of threads.

use std::collections::HashMap;

use crate::git::codec;
use crate::model::digest::Oid;
use crate::model::elsewhere::Elsewhere;
use crate::model::evidence::Evidence;
use crate::model::name::{FilePath, ItemId, RunId, ThreadId};
use crate::model::place::Place;
use crate::model::plan::Source;
use crate::model::thread::CheckpointId;
use crate::repository::{Repository, Trust};
use crate::run::query::target;
use crate::verify::{Logs, Options, Standpoint, ThreadSnapshot, thread_at};

use super::{Error, Kind, Next, RunRoot, Step, Walk, leaf};

impl<E: From<Error>> Walk<'_, E> {
    /// Returns what an item consumed from outside its run.
    pub(super) fn imported(&mut self, run: usize, item: &ItemId, depth: usize) -> Result<Vec<Next>, E> {
        let state = &self.runs[run].run.state;
        let Some(at) = state.graph.position(item) else { return Ok(Vec::new()) };
        let consumed = state.items[at].inputs.clone();
        let mut next = Vec::new();
        for (key, input) in consumed {
            let Source::Elsewhere(from) = &input.from else { continue };
            let evidence = self.evidence(run, &from.import(&input.select))?;
            let mut steps = match (from, evidence) {
                (Elsewhere::Item { item: producer, .. }, Evidence::Proof(proof)) => {
                    let root = RunRoot { run: proof.run, root: proof.root, entries: None };
                    vec![self.step_to(root, producer.clone(), depth, Kind::Imported)?]
                }
                (Elsewhere::Checkpoint { remote, thread, .. }, Evidence::Commits(commits)) => {
                    let consumer = self.runs[run].run.run.clone();
                    let from_consumed =
                        Consumed { remote: remote.as_ref(), thread, commits: &commits, consumer, depth };
                    self.threads.origins(self.repository, &from_consumed)?
                }
                // No run with such evidence passes the gate.
                _ => continue,
            };
            if let Some(Next { step, .. }) = steps.first_mut() {
                step.input = Some(key);
                step.product = Some(input.select.product_key().to_string());
                step.sha256 = Some(input.digest);
            }
            next.extend(steps);
        }
        Ok(next)
    }

    /// Reads the evidence for an import of a run.
    fn evidence(&self, run: usize, name: &str) -> Result<Evidence, Error> {
        let store = &self.repository.store;
        let run = &self.runs[run].run;
        let import = run.state.submitted.imports.get(name).ok_or_else(|| Error::NoEvidence(name.to_owned()))?;
        Evidence::parse(&run.blob(&import.evidence).read(store)?).ok_or_else(|| Error::NoEvidence(name.to_owned()))
    }
}

/// A checkpoint that an item consumed.
struct Consumed<'a> {
    remote: Option<&'a FilePath>,
    thread: &'a ThreadId,
    /// The commit that was sealed as evidence.
    commits: &'a [String],
    consumer: RunId,
    depth: usize,
}

impl Consumed<'_> {
    /// Returns the step to a checkpoint.
    fn step(&self, depth: usize, thread: &ThreadId, id: &CheckpointId, by: String) -> Next {
        let leaf = leaf(depth, Kind::Checkpoint, self.consumer.clone());
        let step = Step { thread: Some(thread.clone()), checkpoint: Some(id.clone()), by: Some(by), ..leaf };
        Next { step, run: None }
    }
}

/// The threads on the way, each verified once.
#[derive(Default)]
pub(super) struct Threads {
    /// The verified threads by ref, or `None` if one does not verify.
    by_ref: HashMap<String, Option<ThreadSnapshot>>,
    /// The trusted keys, and the logs.
    context: Option<(Options, Logs)>,
}

impl Threads {
    /// Returns a checkpoint, and the checkpoints of other threads that it goes back to, as far as
    /// they are here.
    fn origins(&mut self, repository: &Repository, from: &Consumed<'_>) -> Result<Vec<Next>, Error> {
        let Consumed { remote, thread, depth, .. } = *from;
        let [commit] = from.commits else { return Err(Error::NoEvidence(thread.to_string())) };
        let decoded = codec::decode(commit.as_bytes()).map_err(|_| Error::NoEvidence(thread.to_string()))?;
        let id = CheckpointId::new(decoded.entry.seq, decoded.hash);
        let mut steps = vec![from.step(depth, thread, &id, decoded.entry.actor.clone())];
        if let Some(tie) = decoded.entry.event.tied_run() {
            steps.push(Next { step: leaf(depth + 1, Kind::Tied, tie.id.clone()), run: None });
        }
        let place = Place::of_thread(thread);
        let Some((reference, tip)) = target::located(&repository.store, &place, remote.map(FilePath::as_str))? else {
            return Ok(steps);
        };
        if let Some(sound) = self.verified(repository, thread, &reference, tip)?
            && sound.trail.find(&id).is_some_and(|found| found.hash == decoded.hash)
        {
            let further = sound.lineage.iter().enumerate();
            steps.extend(further.map(|(nth, ancestor)| {
                let source = &ancestor.source;
                from.step(depth + 1 + nth, &source.thread, &source.checkpoint, ancestor.signer.fingerprint.clone())
            }));
        }
        Ok(steps)
    }

    /// Returns the thread at a ref, or `None` if it does not verify.
    fn verified(
        &mut self,
        repository: &Repository,
        thread: &ThreadId,
        reference: &str,
        tip: Oid,
    ) -> Result<Option<&ThreadSnapshot>, Error> {
        if !self.by_ref.contains_key(reference) {
            let store = &repository.store;
            if self.context.is_none() {
                let options = repository.options(&Trust::default(), &mut |_| ()).map_err(Box::new)?;
                self.context = Some((options, Logs::read(store)?));
            }
            let at = Standpoint { objects: store, home: store, thread, reference, place: reference, tip };
            let examined = self.context.as_ref().map(|(options, logs)| thread_at(&at, logs, options));
            let sound = examined.and_then(|examined| examined.proven(false).ok()).map(|sound| (*sound).clone());
            self.by_ref.insert(reference.to_owned(), sound);
        }
        Ok(self.by_ref.get(reference).and_then(Option::as_ref))
    }
}
