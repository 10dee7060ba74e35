//! Finds an offered checkpoint and verifies its thread.

use super::{Accepted, Error, Request};
use crate::git::quarantine::Quarantine;
use crate::git::refs;
use crate::git::remote::Remotes;
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::descriptor::Descriptor;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::place::Place;
use crate::model::thread::Checkpoint;
use crate::thread::steps;
use crate::verify::{self, Ancestor, Logs, Standpoint, ThreadSnapshot, Unproven, Unsound, Verified};

/// A checkpoint that matches the offer; its objects may still be in quarantine.
pub(super) struct Found {
    pub(super) checkpoint: Checkpoint,
    /// Its thread.
    pub(super) sound: Verified<ThreadSnapshot>,
    pub(super) quarantine: Quarantine,
    /// Whether objects are in the quarantine only.
    pub(super) fetched: bool,
}

/// Finds the checkpoint at the requested source, or here, or on a remote.
pub(super) fn find(writer: &Writer, request: &Request, accepted: &Accepted) -> Result<Found, AnyError> {
    let store = &writer.store;
    let descriptor = &accepted.received.descriptor;
    let logs = Logs::read(store)?;
    let fetch = |from: &str| -> Result<Found, AnyError> {
        let quarantine = Quarantine::new(store).map_err(Error::Quarantine)?;
        let tip = quarantine.fetch(&request.reach, from, &descriptor.reference).map_err(Error::Quarantine)?;
        let place = place(store, from, &descriptor.thread)?;
        let (objects, thread) = (quarantine.store(), &descriptor.thread);
        let at = Standpoint { objects, home: store, thread, reference: "", place: &place, tip };
        let (checkpoint, sound) = examine(&at, &logs, request, accepted)?;
        Ok(Found { checkpoint, sound, quarantine, fetched: true })
    };
    if let Some(from) = &request.from {
        return fetch(from);
    }
    let mut first = None;
    let mut keep = |error: AnyError| {
        // Any other error says more than that one source lacks it.
        if first.as_ref().is_none_or(|first: &AnyError| matches!(first.downcast_ref(), Some(Error::NotThere { .. }))) {
            first = Some(error);
        }
    };
    for (reference, tip) in local_heads(store, descriptor)? {
        let (thread, reference) = (&descriptor.thread, reference.as_str());
        let at = Standpoint { objects: store, home: store, thread, reference, place: reference, tip };
        match examine(&at, &logs, request, accepted) {
            Ok((checkpoint, sound)) => {
                let quarantine = Quarantine::new(store).map_err(Error::Quarantine)?;
                return Ok(Found { checkpoint, sound, quarantine, fetched: false });
            }
            Err(error) => keep(error),
        }
    }
    for remote in store.local().remote_names() {
        match fetch(&remote.to_string()) {
            Ok(found) => return Ok(found),
            Err(error) => keep(error),
        }
    }
    Err(first.unwrap_or_else(|| Error::NoSource(descriptor.source.clone()).into()))
}

/// Returns the ref that the thread would have if fetched from this remote; empty for other sources.
fn place(store: &Store, from: &str, thread: &ThreadId) -> Result<String, AnyError> {
    let is_remote = Remotes::read(store)?.names().contains(&from);
    Ok(if is_remote { Place::of_thread(thread).below(&format::fetched_refs(from)) } else { String::new() })
}

/// Returns the heads of the thread's local and fetched refs.
fn local_heads(store: &Store, descriptor: &Descriptor) -> Result<Vec<(String, Oid)>, AnyError> {
    let own = refs::read(store, &descriptor.reference)?.map(|tip| (descriptor.reference.clone(), tip));
    let fetched = refs::fetched_at(store, &Place::of_thread(&descriptor.thread))?;
    Ok(own.into_iter().chain(fetched).collect())
}

/// Verifies the thread ending at a tip against logs, keys and the descriptor, including bytes.
fn examine(
    at: &Standpoint<'_>,
    logs: &Logs,
    request: &Request,
    accepted: &Accepted,
) -> Result<(Checkpoint, Verified<ThreadSnapshot>), AnyError> {
    let descriptor = &accepted.received.descriptor;
    let sound = sound(verify::thread_at(at, logs, &request.options), &descriptor.thread)?;
    if sound.key != accepted.signer {
        return Err(Error::OtherKey { offered: accepted.signer.clone(), owner: sound.key.clone() }.into());
    }
    let Some(checkpoint) = sound.trail.find(&descriptor.checkpoint).cloned() else {
        return Err(if descriptor.checkpoint.seq() < sound.entries {
            Error::Forged("checkpoint_id").into()
        } else {
            Error::NotThere { offered: descriptor.source.clone(), entries: sound.entries }.into()
        });
    };
    let state = &checkpoint.content().state;
    let same = [
        ("commit", checkpoint.commit == descriptor.commit),
        ("entry", checkpoint.hash == descriptor.entry),
        ("blob_id", state.oid == descriptor.blob),
        ("blob_sha256", state.sha256 == descriptor.sha256),
        ("summary", checkpoint.content().summary == descriptor.summary),
    ];
    if let Some((field, _)) = same.iter().find(|(_, same)| !same) {
        return Err(Error::Forged(field).into());
    }
    if let Some(stranger) = sound.lineage.iter().find(|ancestor| is_stranger(ancestor))
        && !request.accept_unknown
    {
        return Err(Error::UnknownLineage {
            thread: stranger.source.thread.clone(),
            signer: stranger.signer.fingerprint.clone(),
            known: stranger.signer.trusted,
        }
        .into());
    }
    steps::intact(at.objects, &checkpoint)?;
    Ok((checkpoint, sound))
}

/// Returns the thread if nothing failed and its lineage is complete.
fn sound(examined: verify::Examined, thread: &ThreadId) -> Result<Verified<ThreadSnapshot>, AnyError> {
    let whole = examined.whole_lineage;
    match examined.proven(false) {
        Ok(sound) if whole => Ok(sound),
        Ok(_) | Err(Unproven::Unread) => {
            Err(Error::Unsound(Unsound::new("it could not be read to its beginning".to_owned(), thread)).into())
        }
        Err(Unproven::Tampered(finding)) => Err(Error::Unsound(Unsound::new(finding, thread)).into()),
        Err(Unproven::Untrusted(finding)) => Err(Error::Untrusted(finding).into()),
    }
}

/// Returns true if a thread of the lineage was unknown to an earlier adopter, or is to this one.
pub(super) fn is_stranger(ancestor: &Ancestor) -> bool {
    !ancestor.signer.trusted || ancestor.accepted_unknown
}
