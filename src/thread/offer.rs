//! Offers a checkpoint: a signed descriptor, small enough to be pasted.

use serde_json::Value;

use super::{Error, gate, steps};
use crate::chain::Writer;
use crate::model::descriptor::Descriptor;
use crate::model::format;
use crate::model::packet::Unclean;
use crate::model::thread::CheckpointId;
use crate::model::time::Moment;
use crate::sign;
use crate::verify::Sound;

/// To whom a checkpoint is offered, and for how long.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Whom it is for; anybody, where that is not said.
    pub to_agent: Option<String>,
    /// The moment after which the offer is worth nothing.
    pub expires: Moment,
    /// How bad its packet may be.
    pub accept: Option<Unclean>,
}

/// Returns the descriptor of a checkpoint of ours; nothing is written.
pub fn offer(writer: &Writer, source: &Sound, at: Option<&CheckpointId>, terms: Terms) -> Result<Value, Error> {
    let key = writer.signer.fingerprint();
    if source.key != key {
        return Err(Error::NotOurs { thread: source.thread.clone(), owner: source.key.clone(), key });
    }
    let checkpoint = steps::find(source, at)?;
    steps::intact(&writer.store, checkpoint)?;
    let store = &writer.store;
    let passed =
        gate::pass(store, (store, &gate::own(writer)), (checkpoint, &source.trail), terms.accept, writer.clock.now())?;
    let descriptor = Descriptor {
        source: format!("{}:{}", source.thread, checkpoint.id),
        thread: source.thread.clone(),
        checkpoint: checkpoint.id.clone(),
        blob: checkpoint.content.state.oid,
        sha256: checkpoint.content.state.sha256,
        to_agent: terms.to_agent,
        summary: checkpoint.content.summary.clone(),
        reference: format::thread_ref(&source.thread),
        commit: checkpoint.commit,
        entry: checkpoint.hash,
        object_format: writer.store.object_format().to_owned(),
        nonce: sign::nonce(),
        expires: terms.expires,
        accepted_packet: passed.accepted,
    };
    let signature = writer.signer.sign(&descriptor.payload())?;
    Ok(descriptor.signed(&signature))
}
