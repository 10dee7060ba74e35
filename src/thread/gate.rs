//! The check of an attached packet before its checkpoint is offered, adopted or resumed.
//!
//! It is the check of [`crate::thread::packet`] with two differences: a resume token counts as used
//! if any local thread was resumed with it, and facts about a missing run are unknown. A checkpoint
//! without a packet passes.

use std::io::{self, Write};

use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::packet::{MAX_BYTES, Packet, Unclean, Unusable};
use crate::model::thread::{Checkpoint, CheckpointId, Trail};
use crate::thread::packet::facts::{self, Absent};
use crate::thread::packet::{self, Classification, Report, Terms};
use crate::verify::{AtHand, Gate, Logs, Options};

use super::used::Used;

/// A passed check.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// The classification of the packet; `None` without a packet.
    pub found: Option<Classification>,
    /// The accepted classification; `None` if the packet is clean.
    pub accepted: Option<Unclean>,
    /// The resume token, if it may be recorded.
    pub(super) token: Option<String>,
}

/// A checkpoint whose packet is to pass.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// The store with its bytes.
    pub(super) objects: &'a Store,
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) trail: &'a Trail,
}

/// Checks the packet of a checkpoint, and fails if it is worse than accepted.
///
/// `here` is the repository to look facts up in, with the reader's trust.
/// Writes nothing.
pub(super) fn pass(
    candidate: &Candidate<'_>,
    here: &Store,
    reader: &Options,
    accept: Option<Unclean>,
    terms: Terms,
) -> Result<Passed, AnyError> {
    let Candidate { objects, checkpoint, trail } = *candidate;
    let Some(read) = read(objects, checkpoint)? else { return Ok(Passed::default()) };
    let logs = Logs::read(here)?;
    let gate = Gate { store: here, at_hand: &AtHand::logs(&logs), options: reader, accept_untrusted: false };
    let report = report(&read, &gate, trail, terms)?;
    let found = report.classification;
    let accepted = found.unclean();
    if accepted > accept {
        return Err(Error::Unclean { checkpoint: checkpoint.id.clone(), report: Box::new(report) }.into());
    }
    let token = read.ok().and_then(|packet| packet::plain_token(&packet).map(str::to_owned));
    Ok(Passed { found: Some(found), accepted, token })
}

/// Returns the default trust of a writer.
pub(super) fn own(writer: &Writer) -> Options {
    Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() }
}

/// Checks the packet of a thread's checkpoint; tokens used by any local thread count as used.
pub fn report(
    read: &Result<Packet, Unusable>,
    gate: &Gate<'_>,
    trail: &Trail,
    terms: Terms,
) -> Result<Report, AnyError> {
    let consumed = trail.consumed.union(Used::read(gate.store)?.tokens()).cloned().collect();
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, Some(gate), Absent::Open, terms.elsewhere),
        Err(_) => packet::no_facts(),
    };
    Ok(packet::check(read, facts, &Terms { consumed, ..terms }))
}

/// Reads the packet of a checkpoint, or returns `None` if there is none.
pub fn read(objects: &Store, checkpoint: &Checkpoint) -> Result<Option<Result<Packet, Unusable>>, AnyError> {
    let Some(product) = checkpoint.content().packet else { return Ok(None) };
    let mut head = Head(Vec::new());
    if objects.copy_blob(product.oid, &mut head)? != (product.sha256, product.size) {
        return Err(Error::Altered(checkpoint.id.clone()).into());
    }
    Ok(Some(packet::read(&head.0)))
}

/// Keeps one byte more than the maximum size, so that a larger packet is noticed.
struct Head(Vec<u8>);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_BYTES + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

errors! {
    /// The reason for refusing a checkpoint.
    #[derive(Debug, thiserror::Error)] pub enum Error = "packet";
    Unclean { checkpoint: CheckpointId, report: Box<Report> }:
        "the packet of {checkpoint} is {}" [.report.classification.as_str()];
    Altered(CheckpointId) "altered": "the packet of {0} is not what its entry says";
}
