//! Offers a checkpoint: a signed descriptor, small enough to be pasted.

use std::time::Duration;

use serde_json::Value;

use super::vouch::Vouched;
use super::{Error, gate, steps};
use crate::git::history;
use crate::git::remote::{self, Reach};
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::ledger::sign;
use crate::model::descriptor::Descriptor;
use crate::model::format;
use crate::model::packet::Unclean;
use crate::model::thread::CheckpointId;
use crate::model::time::Moment;

/// How long a remote may take to say whether it holds what is offered.
const PATIENCE: Duration = Duration::from_secs(20);

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
pub fn offer(writer: &Writer, source: &Vouched, at: Option<&CheckpointId>, terms: Terms) -> Result<Value, Error> {
    let source = source.sound();
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

/// Whether those who are offered a checkpoint find it at a remote of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtRemotes {
    /// A remote holds it, or there is no remote that could.
    Held,
    /// No remote holds it; this is one that could.
    Nowhere(String),
    /// No remote that could be asked holds it, and this one could not be asked.
    Unknown(String),
}

/// Asks the repository's remotes for an offered checkpoint; the first that holds it is enough.
pub fn at_remotes(
    store: &Store,
    reach: &Reach,
    source: &Vouched,
    at: Option<&CheckpointId>,
) -> Result<AtRemotes, Error> {
    let checkpoint = steps::find(source.sound(), at)?;
    let reference = format::thread_ref(&source.sound().thread);
    let reach = Reach { prompt: false, within: Some(PATIENCE), ..reach.clone() };
    let (mut nowhere, mut unknown) = (None, None);
    for name in store.local().remote_names() {
        let name = name.to_string();
        let Ok(listed) = remote::list(store, &reach, &name, &reference) else {
            unknown.get_or_insert(name);
            continue;
        };
        let tip = listed.into_iter().find(|(_, listed)| *listed == reference).map(|(tip, _)| tip);
        // What is not here yet was put there by somebody else: it goes on from what they had.
        if tip.is_some_and(|tip| history::continues(store, checkpoint.commit, tip).unwrap_or(true)) {
            return Ok(AtRemotes::Held);
        }
        nowhere.get_or_insert(name);
    }
    Ok(unknown.map(AtRemotes::Unknown).or(nowhere.map(AtRemotes::Nowhere)).unwrap_or(AtRemotes::Held))
}
