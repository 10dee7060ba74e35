//! The steps out of a run: to items of other runs whose products were sealed with it, and to checkpoints of threads.

use std::collections::HashMap;

use crate::git::codec;
use crate::model::digest::Oid;
use crate::model::elsewhere::{Elsewhere, Evidence};
use crate::model::entry::Event;
use crate::model::name::{FilePath, ItemId, RunId, ThreadId};
use crate::model::place::Place;
use crate::model::plan::Source;
use crate::model::thread::{CheckpointId, ThreadCheckpointed};
use crate::repository::{Repository, Trust};
use crate::run::Vetted;
use crate::run::target;
use crate::verify::{Logs, Options, Sound, Standpoint, thread_at};

use super::{Error, Kind, Next, Step, Way, leaf};

impl<E: From<Error>> Way<'_, E> {
    /// Returns what an item consumed from outside its run.
    pub(super) fn imported(&mut self, run: usize, item: &ItemId, depth: usize) -> Result<Vec<Next>, E> {
        let state = &self.runs[run].run.state;
        let Some(at) = state.graph.position(item) else { return Ok(Vec::new()) };
        let consumed = state.items[at].inputs.clone();
        let mut next = Vec::new();
        for (key, input) in consumed {
            let Source::Elsewhere(from) = &input.from else { continue };
            let here = &self.runs[run].run;
            let evidence = self.repository.evidence(here, &from.import(&input.select)).map_err(E::from)?;
            let mut steps = match (from, evidence) {
                (Elsewhere::Item { item, .. }, Evidence::Item(proof)) => {
                    vec![self.other((proof.run, proof.root, None), item.clone(), (depth, Kind::Imported))?]
                }
                (Elsewhere::Checkpoint { remote, thread, .. }, Evidence::Checkpoint(commit)) => {
                    let of = here.run.clone();
                    let thread = (remote.as_ref(), thread);
                    self.repository.checkpoints(&mut self.threads, thread, &commit, (of, depth)).map_err(E::from)?
                }
                // The gate lets no run through that has such evidence.
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
}

impl Repository {
    /// Reads what shows where a product comes from.
    fn evidence(&self, run: &Vetted, name: &str) -> Result<Evidence, Error> {
        let none = || Error::NoEvidence(name.to_owned());
        let blob = run.evidence(&self.store, name)?.ok_or_else(none)?;
        Evidence::parse(&blob.read(&self.store)?).ok_or_else(none)
    }

    /// Returns the steps from a checkpoint back over the threads that it goes back to, where they are here.
    fn checkpoints(
        &self,
        threads: &mut Threads,
        (remote, thread): (Option<&FilePath>, &ThreadId),
        commit: &str,
        (of, depth): (RunId, usize),
    ) -> Result<Vec<Next>, Error> {
        let decoded = codec::decode(commit.as_bytes()).map_err(|_| Error::NoEvidence(thread.to_string()))?;
        let id = CheckpointId::new(decoded.entry.seq, decoded.hash);
        let step = |depth, thread: &ThreadId, id: &CheckpointId, by: Option<String>| Next {
            step: Step {
                thread: Some(thread.clone()),
                checkpoint: Some(id.clone()),
                by,
                ..leaf(depth, Kind::Checkpoint, of.clone())
            },
            run: None,
        };
        let mut steps = vec![step(depth, thread, &id, Some(decoded.entry.actor.clone()))];
        if let Event::ThreadCheckpointed(ThreadCheckpointed { run: Some(tie), .. }) = &decoded.entry.event {
            steps.push(Next { step: leaf(depth + 1, Kind::Tied, tie.id.clone()), run: None });
        }
        let place = Place::of_thread(thread);
        let Some((reference, tip)) = target::located(&self.store, &place, remote.map(FilePath::as_str))? else {
            return Ok(steps);
        };
        if let Some(sound) = self.thread_here(threads, thread, (&reference, tip))?
            && sound.trail.find(&id).is_some_and(|found| found.hash == decoded.hash)
        {
            let further = sound.lineage.iter().enumerate();
            steps.extend(further.map(|(nth, ancestor)| {
                step(depth + 1 + nth, &ancestor.thread, &ancestor.checkpoint, Some(ancestor.signer.fingerprint.clone()))
            }));
        }
        Ok(steps)
    }

    /// Returns the thread at a ref, if it holds.
    fn thread_here<'t>(
        &self,
        threads: &'t mut Threads,
        thread: &ThreadId,
        (reference, tip): (&str, Oid),
    ) -> Result<Option<&'t Sound>, Error> {
        if !threads.seen.contains_key(reference) {
            let store = &self.store;
            if threads.with.is_none() {
                let options = self.options(&Trust::default(), &mut |_| ()).map_err(Box::new)?;
                threads.with = Some((options, Logs::read(store)?));
            }
            let at = Standpoint { objects: store, home: store, thread, reference, place: reference, tip };
            let examined = threads.with.as_ref().map(|(options, logs)| thread_at(&at, logs, options));
            let sound = examined.and_then(|examined| examined.proven(false).ok()).map(|sound| (*sound).clone());
            threads.seen.insert(reference.to_owned(), sound);
        }
        Ok(threads.seen.get(reference).and_then(Option::as_ref))
    }
}

/// The threads that were come to, each verified once however many of its checkpoints are on the way.
#[derive(Default)]
pub(super) struct Threads {
    /// Those that hold, by their refs.
    seen: HashMap<String, Option<Sound>>,
    /// Whom to trust, and the logs.
    with: Option<(Options, Logs)>,
}
