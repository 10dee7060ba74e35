//! Creates offers: signed descriptors of checkpoints, small enough to paste.

use std::time::Duration;

use serde_json::Value;

use crate::git::history;
use crate::git::remote::{self, Reach};
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::ledger::sign;
use crate::model::any_error::AnyError;
use crate::model::descriptor::Descriptor;
use crate::model::format;
use crate::model::packet::Unclean;
use crate::model::thread::CheckpointId;
use crate::model::time::Moment;
use crate::thread::packet;

use super::vouch::VerifiedThread;
use super::{Error, gate, steps};

/// The time limit for asking a remote whether it has the checkpoint.
const PATIENCE: Duration = Duration::from_secs(20);

/// The recipient and lifetime of an offer.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The recipient, or `None` for anyone.
    pub to_agent: Option<String>,
    /// The time at which the offer expires.
    pub expires: Moment,
    /// The worst accepted classification of the packet.
    pub accept: Option<Unclean>,
}

/// Returns the descriptor of a checkpoint of ours; writes nothing.
pub fn offer(
    writer: &Writer,
    source: &VerifiedThread,
    at: Option<&CheckpointId>,
    terms: Terms,
) -> Result<Value, AnyError> {
    let source = source.sound();
    let key = writer.signer.fingerprint();
    if source.key != key {
        return Err(Error::NotOurs { thread: source.thread.clone(), owner: source.key.clone(), key }.into());
    }
    let checkpoint = steps::find(source, at)?;
    steps::intact(&writer.store, checkpoint)?;
    let store = &writer.store;
    let thread = Some(source.thread.to_string());
    let check = packet::Terms { thread, elsewhere: true, ..packet::Terms::new(writer.clock.now()) };
    let candidate = gate::Candidate { objects: store, checkpoint, trail: &source.trail };
    let passed = gate::pass(&candidate, store, &gate::own(writer), terms.accept, check)?;
    let descriptor = Descriptor {
        source: format!("{}:{}", source.thread, checkpoint.id),
        thread: source.thread.clone(),
        checkpoint: checkpoint.id.clone(),
        blob: checkpoint.content().state.oid,
        sha256: checkpoint.content().state.sha256,
        to_agent: terms.to_agent,
        summary: checkpoint.content().summary.clone(),
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

/// Parses the lifetime of an offer: `90m`, `48h`, `7d`.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let unit = match text.chars().last() {
        Some('s') => 1_000,
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        _ => return Err("a time is a number and s, m, h or d, like 48h".to_owned()),
    };
    let number = text[..text.len() - 1].parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let digits = text.bytes().rev().skip(1).all(|byte| byte.is_ascii_digit());
    let number = number.filter(|millis| digits && (1..=3_650 * 86_400_000).contains(millis));
    number.ok_or_else(|| "at least 1s, and at most 3650d".to_owned())
}

/// Whether the recipient can find the checkpoint on a remote of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtRemotes {
    /// A remote has it, or there is no remote.
    Held,
    /// No remote has it; this one could.
    Nowhere(String),
    /// No reachable remote has it, and this one was unreachable.
    Unknown(String),
}

/// Asks the remotes for an offered checkpoint, until one has it.
pub fn at_remotes(
    store: &Store,
    reach: &Reach,
    source: &VerifiedThread,
    at: Option<&CheckpointId>,
) -> Result<AtRemotes, AnyError> {
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
        // An unknown head was pushed by another writer and continues ours.
        if tip.is_some_and(|tip| history::continues(store, checkpoint.commit, tip).unwrap_or(true)) {
            return Ok(AtRemotes::Held);
        }
        nowhere.get_or_insert(name);
    }
    Ok(unknown.map(AtRemotes::Unknown).or(nowhere.map(AtRemotes::Nowhere)).unwrap_or(AtRemotes::Held))
}
