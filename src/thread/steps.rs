//! Rollback, fork and resume. All of them append; none removes an entry.

use std::io::Write;

use crate::git::quarantine::Quarantine;
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::entry::{Event, Origin, Product, SourceCheckpoint, ThreadResumed};
use crate::model::name::ThreadId;
use crate::model::packet::Unclean;
use crate::model::thread::{Checkpoint, CheckpointId};
use crate::thread::packet::Terms;
use crate::verify::ThreadSnapshot;

use super::checkout::Plan;
use super::nonce::Nonces;
use super::submodules::Behind;
use super::vouch::VerifiedThread;
use super::{Error, OpenThread, explain_lost_race, gate, in_turn, save, vacant};

/// Appends an earlier checkpoint's content as the latest, even if it already is.
pub fn rollback(writer: &Writer, thread: VerifiedThread, to: &CheckpointId) -> Result<Checkpoint, AnyError> {
    in_turn(writer, thread, |thread| {
        let open = OpenThread::from_verified(writer, thread)?;
        let target = find(open.sound(), Some(to))?;
        intact(&writer.store, target)?;
        save(writer, &open.sound().thread, Some(&open), target.content().clone(), Some(Origin::To(to.clone())))
    })
}

/// Creates a thread from a checkpoint of any thread.
pub fn fork(
    writer: &Writer,
    source: &VerifiedThread,
    at: Option<&CheckpointId>,
    new: &ThreadId,
) -> Result<Checkpoint, AnyError> {
    let source = source.sound();
    let target = find(source, at)?;
    intact(&writer.store, target)?;
    let from = SourceCheckpoint { thread: source.thread.clone(), checkpoint: target.id.clone(), commit: target.commit };
    vacant(writer, new)?;
    save(writer, new, None, target.content().clone(), Some(Origin::From(from)))
        .map_err(|error| explain_lost_race(new, error))
}

/// Resumes the latest checkpoint, records that, and returns it with the submodules that are not at
/// the saved commit.
///
/// Records nothing if the packet is worse than accepted, or if `checkout` is set and the working
/// tree cannot be restored. If two processes resume one packet, the second finds its token used.
pub fn resume(
    writer: &Writer,
    thread: VerifiedThread,
    checkout: bool,
    accept: Option<Unclean>,
) -> Result<(Checkpoint, Vec<Behind>), AnyError> {
    let _one_at_a_time = Nonces::lock(&writer.store)?;
    in_turn(writer, thread, |thread| resume_once(writer, thread, checkout, accept))
}

fn resume_once(
    writer: &Writer,
    thread: &VerifiedThread,
    checkout: bool,
    accept: Option<Unclean>,
) -> Result<(Checkpoint, Vec<Behind>), AnyError> {
    let open = OpenThread::from_verified(writer, thread)?;
    let latest = find(open.sound(), None)?.clone();
    intact(&writer.store, &latest)?;
    let store = &writer.store;
    let terms = Terms { thread: Some(open.sound().thread.to_string()), ..Terms::new(writer.clock.now()) };
    let candidate = gate::Candidate { objects: store, checkpoint: &latest, trail: &open.sound().trail };
    let passed = gate::pass(&candidate, store, &gate::own(writer), accept, terms)?;
    let quarantine = checkout.then(|| Quarantine::new(&writer.store)).transpose()?;
    let plan =
        quarantine.as_ref().map(|quarantine| Plan::new(&writer.store, quarantine, latest.content())).transpose()?;
    open.append(Event::ThreadResumed(ThreadResumed {
        resume_token: passed.token,
        accepted_packet: passed.accepted,
        ..ThreadResumed::new(latest.id.clone())
    }))?;
    let behind = plan.map_or(Ok(Vec::new()), |plan| plan.apply())?;
    Ok((latest, behind))
}

/// Returns a checkpoint of a thread; by default the latest.
pub fn find<'s>(sound: &'s ThreadSnapshot, at: Option<&CheckpointId>) -> Result<&'s Checkpoint, AnyError> {
    match at {
        Some(id) => Ok(sound
            .trail
            .find(id)
            .ok_or_else(|| Error::NoCheckpoint { thread: sound.thread.clone(), checkpoint: id.clone() })?),
        None => Ok(sound.trail.latest().ok_or_else(|| Error::Unknown(sound.thread.clone()))?),
    }
}

/// Writes the bytes of a state or packet. Verifies them before writing, and again while writing.
pub fn hand_out(store: &Store, checkpoint: &Checkpoint, product: Product, out: &mut dyn Write) -> Result<(), AnyError> {
    intact(store, checkpoint)?;
    if store.copy_blob(product.oid, out)? != (product.sha256, product.size) {
        return Err(Error::Altered(checkpoint.id.clone()).into());
    }
    Ok(())
}

/// Fails if the state or packet differs from the entry's digest.
pub fn intact(store: &Store, checkpoint: &Checkpoint) -> Result<(), AnyError> {
    for product in [Some(checkpoint.content().state), checkpoint.content().packet].into_iter().flatten() {
        let found = store.copy_blob(product.oid, &mut std::io::sink())?;
        if found != (product.sha256, product.size) {
            return Err(Error::Altered(checkpoint.id.clone()).into());
        }
    }
    Ok(())
}
